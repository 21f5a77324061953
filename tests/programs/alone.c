/* An MPI library for one process (with -DLIBRARY) and a program that uses it, so that the recorder can be tried where
 * there is no other: messages go to oneself and are kept until they are received. Layout and constants are MPICH's.
 * With FAR=PLACE in the environment, files seem to be on NFS; at its end the library prints how often they were sent off,
 * and how often that was waited for while the word at that place of them was 0.
 *
 *     alone MESSAGES     sends and receives so many, in a region, forks once, and prints the sum of what it got
 *     alone MESSAGES W   works on for W ms behind the message in the middle, and leaves by exit
 *     alone MESSAGES exec|abort|term      becomes another program in the middle, or is ended by a signal
 *     alone MESSAGES alarm|memory         is interrupted by a signal each 200 us; gets no memory from the start
 *     alone MESSAGES session              begins a session, and never MPI, and ends with what is left of its groups
 *     alone MESSAGES requests             gets no memory behind MPI_Init, and has all receives posted at the same time
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../desktop/recorder/phasewright.h"

typedef int MPI_Comm, MPI_Datatype, MPI_Group;
typedef struct { int low, high, source, tag, error; } MPI_Status;
enum { WORLD = 0x44000000, INT = 0x4c000405, BYTE = 0x4c00010d };

#ifdef LIBRARY
#define BOTH(name, parameters, arguments) \
    int PMPI_##name parameters; \
    int MPI_##name parameters __attribute__((weak)); \
    int MPI_##name parameters { return PMPI_##name arguments; } \
    int PMPI_##name parameters

static int kept[16], count, posted, *into, groups;

BOTH(Init, (int *a, char ***b), (a, b)) { return (void)a, (void)b, 0; }
static int sent, waited;

int fstatfs(int file, struct statfs *of)
{
    memset(of, 0, sizeof *of);
    return (void)file, of->f_type = getenv("FAR") ? 0x6969 : 0xef53, 0;
}
int sync_file_range(int file, off_t from, off_t length, unsigned how)
{
    return (void)file, (void)from, (void)length, (void)how, sent++, 0;
}
int fdatasync(int file)
{
    int word = 1;
    waited += pread(file, &word, sizeof word, atol(getenv("FAR"))) == sizeof word && !word;
    return 0;
}
BOTH(Finalize, (void), ())
{
    if (getenv("FAR")) printf("sent %d waited %d\n", sent, waited);
    return 0;
}
BOTH(Comm_rank, (MPI_Comm c, int *r), (c, r)) { return (void)c, *r = 0; }
BOTH(Comm_size, (MPI_Comm c, int *n), (c, n)) { return (void)c, *n = 1, 0; }
BOTH(Comm_group, (MPI_Comm c, MPI_Group *g), (c, g)) { return (void)c, groups++, *g = 1, 0; }
BOTH(Comm_test_inter, (MPI_Comm c, int *flag), (c, flag)) { return (void)c, *flag = 0; }
BOTH(Group_rank, (MPI_Group g, int *r), (g, r)) { return (void)g, *r = 0; }
BOTH(Group_size, (MPI_Group g, int *n), (g, n)) { return (void)g, *n = 1, 0; }
BOTH(Group_free, (MPI_Group *g), (g)) { return groups--, *g = 0; }
BOTH(Session_init, (int info, int handler, int *s), (info, handler, s)) { return (void)info, (void)handler, *s = 5, 0; }
BOTH(Group_from_session_pset, (int s, char *name, MPI_Group *g), (s, name, g)) { return (void)name, groups++, *g = 1, s != 5; }
BOTH(Session_finalize, (int *s), (s)) { return *s = 0, groups; }
BOTH(Group_translate_ranks, (MPI_Group a, int n, int *from, MPI_Group b, int *to), (a, n, from, b, to))
{
    return (void)a, (void)b, memcpy(to, from, (size_t)n * sizeof *to), 0;
}
BOTH(Type_size, (MPI_Datatype t, int *size), (t, size)) { return *size = t >> 8 & 255, 0; }
BOTH(Get_count, (MPI_Status *s, MPI_Datatype t, int *n), (s, t, n)) { return *n = s->low / (t >> 8 & 255), 0; }
BOTH(Barrier, (MPI_Comm c), (c)) { return (void)c, 0; }
BOTH(Pcontrol, (int level), (level)) { return (void)level, 0; }
BOTH(Send, (void *a, int n, MPI_Datatype t, int to, int tag, MPI_Comm c), (a, n, t, to, tag, c))
{
    return (void)n, (void)t, (void)to, (void)c, (void)tag, kept[count++] = *(int *)a, 0;
}
BOTH(Recv, (void *a, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *s), (a, n, t, from, tag, c, s))
{
    if ((intptr_t)s > 1) *s = (MPI_Status){4, 0, 0, tag, 0};
    return (void)n, (void)t, (void)from, (void)c, *(int *)a = kept[--count], 0;
}
BOTH(Irecv, (void *a, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, int *r), (a, n, t, from, tag, c, r))
{
    return (void)n, (void)t, (void)from, (void)tag, (void)c, into = a, *r = ++posted, 0;
}
BOTH(Wait, (int *r, MPI_Status *s), (r, s))
{
    if ((intptr_t)s > 1) *s = (MPI_Status){4, 0, 0, 7, 0};
    return *r = 0x2c000000, *into = kept[--count], 0;
}
/* As mpi4py asks. */
int MPI_Send_c(void *, long, MPI_Datatype, int, int, MPI_Comm) __attribute__((weak));
int has_large_counts(void) { return MPI_Send_c != NULL; }
#else
int MPI_Init(int *, char ***), MPI_Finalize(void), MPI_Pcontrol(int), has_large_counts(void);
int MPI_Barrier(MPI_Comm) __attribute__((weak)), MPI_Session_init(int, int, int *), MPI_Session_finalize(int *);
int MPI_Send(void *, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
int MPI_Irecv(void *, int, MPI_Datatype, int, int, MPI_Comm, int *), MPI_Wait(int *, MPI_Status *);

static volatile sig_atomic_t alarms;
static void on_alarm(int signal) { alarms += signal == SIGALRM; }

static void no_memory(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) exit(2);
    fclose(file);
    rlim_t size = (rlim_t)(pages * sysconf(_SC_PAGESIZE));
    if (setrlimit(RLIMIT_AS, &(struct rlimit){size, size})) exit(2);
}

static void leave(const char *how)
{
    if (!strcmp(how, "exec")) execl("/bin/echo", "echo", "another program", (char *)NULL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "term")) raise(SIGTERM);
}

static long requests(long messages)
{
    static int request[100000];
    int got;
    long sum = 0;
    no_memory();
    for (int i = 0; i < messages && i < 100000; i++) MPI_Irecv(&got, 1, INT, -2, 7, WORLD, request + i);
    for (int i = 0; i < messages && i < 100000; i++) {
        MPI_Send(&i, 1, INT, 0, 7, WORLD);
        MPI_Wait(request + i, (MPI_Status *)1);
        sum += got;
    }
    return sum;
}

int main(int words, char **word)
{
    long sum = 0, messages = words > 1 ? atol(word[1]) : 10;
    const char *how = words > 2 ? word[2] : "";
    if (!strcmp(how, "memory")) no_memory();
    if (!strcmp(how, "alarm")) {
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &(struct itimerval){{0, 200}, {0, 200}}, NULL);
    }
    struct { int handle, other; } session = {0, -1};
    if (!strcmp(how, "session")) MPI_Session_init(0, 0, &session.handle);
    else MPI_Init(&words, &word);
    if (has_large_counts() || !MPI_Barrier) return 3;
    if (!strcmp(how, "requests")) sum = requests(messages), messages = 0;
    for (int i = 0; i < messages; i++) {
        phasewright_region("a message to oneself");
        int got;
        MPI_Send(&i, 1, INT, 0, 7, WORLD);
        if (i == messages / 2) { /* a child has its parent's memory, not its recording */
            pid_t child = fork();
            if (!child) {
                MPI_Barrier(WORLD);
                _exit(0);
            }
            while (waitpid(child, NULL, 0) < 0) {}
            leave(how);
            if (atol(how) > 0) {
                usleep((useconds_t)atol(how) * 1000);
                exit(0);
            }
        }
        MPI_Recv(&got, 1, INT, -2, 7, WORLD, (MPI_Status *)1);
        sum += got;
    }
    MPI_Pcontrol(0);
    MPI_Barrier(WORLD);
    MPI_Pcontrol(1);
    MPI_Barrier(WORLD);
    while (!strcmp(how, "alarm") && alarms < 20) MPI_Barrier(WORLD);
    printf("%ld\n", sum);
    if (session.handle) return MPI_Session_finalize(&session.handle);
    MPI_Finalize();
    return 0;
}
#endif
