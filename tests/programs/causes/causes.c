/* Programs whose lost time has a known cause.
 *
 *     causes NAME SEED STEPS GRAIN_MS NOISE
 *
 * Computing is made by sleeping until an instant, so that ranks do not take each other's cores and a piece of
 * computing is as long as it says. Messages are real. NOISE: standard deviation of the logarithm of each piece.
 * The table at the end says which pieces a program is made of; record.py says what its causes are.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../desktop/recorder/phasewright.h"

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
enum { THREADS = 4, LARGE = 1 << 25 };

static int me, ranks, steps;
static double grain, noise;
static unsigned long long own, shared; /* states of two generators: of this rank, and the same on all ranks */
static char *out, *in;

/* Who waits in a library that polls gives the core away instead. */
int sched_yield(void)
{
    usleep(20);
    return 0;
}

static double uniform(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform(&own))) * cos(2 * M_PI * uniform(&own));
}

static void rest(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long ns = t.tv_sec * 1000000000ll + t.tv_nsec + (long long)(seconds * 1e9);
    t = (struct timespec){ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

/* Computing in a region of the program; so many times the grain. */
static void work(const char *name, double grains)
{
    phasewright_region(name);
    rest(grains * grain * exp(noise * normal()));
}

static void reduce(void)
{
    double a = me, b;
    MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_SUM, WORLD);
}

static void to(int other, int size) { MPI_Send(out, size, MPI_CHAR, other, 0, WORLD); }
static void from(int other, int size) { MPI_Recv(in, size, MPI_CHAR, other, 0, WORLD, IGNORE); }

/* ---- One cause each ------------------------------------------------------------------------------------------ */

static void imbalance(void)
{
    work("relax", 1 + (double)me / (ranks - 1));
    reduce();
}

static void serial_pipeline(void)
{
    phasewright_region("forward_solve");
    if (me) from(me - 1, 800);
    work("solve_block", 0.5);
    if (me < ranks - 1) to(me + 1, 800);
    if (me == ranks - 1) to(0, 8);
    if (me == 0) from(ranks - 1, 8);
}

/* Even ranks have what odd ranks need, and send it after they have done something else. */
static void late_sender(void)
{
    if (me % 2 == 0) {
        work("update_border", 0.3);
        work("update_inner", 1);
        if (me + 1 < ranks) to(me + 1, 800);
    } else {
        from(me - 1, 800);
        work("update_border", 0.3);
    }
}

static void late_root(void)
{
    if (me == 0) work("choose_pivot", 1);
    MPI_Bcast(out, 8000, MPI_CHAR, 0, WORLD);
    work("eliminate", 0.5);
}

static void small_messages(void)
{
    phasewright_region("exchange_cells");
    int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    for (int i = 0; i < 25; i++) MPI_Sendrecv(out, 8, MPI_CHAR, next, 0, in, 8, MPI_CHAR, before, 0, WORLD, IGNORE);
    work("update_cells", 0.3);
}

static void bandwidth(void)
{
    phasewright_region("exchange_planes");
    int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    MPI_Sendrecv(out, LARGE, MPI_CHAR, next, 0, in, LARGE, MPI_CHAR, before, 0, WORLD, IGNORE);
    work("smooth", 0.2);
}

/* Each time somebody else is interrupted. */
static void barrier_noise(void)
{
    int who = (int)(uniform(&shared) * ranks);
    {
        phasewright_region("advance");
        rest(0.5 * grain * exp(noise * normal()) + (me == who ? grain : 0));
    }
    MPI_Barrier(WORLD);
}

static void io_rank_0(void)
{
    work("advance", 0.5);
    if (me == 0) {
        FILE *file = tmpfile();
        phasewright_region("fwrite");
        fwrite(out, 1, 100000, file);
        rest(grain * exp(noise * normal()));
        fclose(file);
    }
    MPI_Barrier(WORLD);
}

static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

static void *with_lock(void *unused)
{
    phasewright_region("worker");
    for (int i = 0; i < steps; i++) {
        work("parse", 0.2);
        {
            phasewright_region("pthread_mutex_lock");
            pthread_mutex_lock(&table);
        }
        work("insert_into_table", 0.3);
        pthread_mutex_unlock(&table);
    }
    return unused;
}

static void lock(void)
{
    pthread_t all[THREADS];
    for (int i = 0; i < THREADS - 1; i++) pthread_create(all + i, NULL, with_lock, NULL);
    with_lock(NULL);
    phasewright_begin("pthread_join");
    for (int i = 0; i < THREADS - 1; i++) pthread_join(all[i], NULL);
    phasewright_end("pthread_join");
    MPI_Barrier(WORLD);
}

/* Rank 0 takes as long to choose a task as some workers take to do theirs. */
static void master(void)
{
    int tasks = steps * (ranks - 1), task = 0;
    if (me) {
        for (to(0, 8); MPI_Recv(&task, 1, MPI_INT, 0, 0, WORLD, IGNORE), task < tasks; to(0, 8)) work("do_task", 1);
        return;
    }
    for (; task < tasks + ranks - 1; task++) {
        MPI_Status who;
        MPI_Recv(in, 8, MPI_CHAR, MPI_ANY_SOURCE, 0, WORLD, &who);
        if (task < tasks) work("choose_task", 0.5);
        MPI_Send(&task, 1, MPI_INT, who.MPI_SOURCE, 0, WORLD);
    }
}

static void slow_rank(void)
{
    work("relax", me == 2 ? 1.6 : 0.8);
    reduce();
}

static void even(void)
{
    work("relax", 1);
    reduce();
}

/* ---- Two causes each ------------------------------------------------------------------------------------------ */

static void imbalance_and_io(void)
{
    work("relax", 0.4 + 1.2 * me / (ranks - 1));
    reduce();
    if (me == 0) {
        phasewright_region("fwrite");
        rest(0.35 * grain * exp(noise * normal()));
    }
    MPI_Barrier(WORLD);
}

static void pipeline_and_root(void)
{
    for (int i = 0; i < 2; i++) serial_pipeline();
    if (me == 0) work("choose_pivot", 2);
    MPI_Bcast(out, 8000, MPI_CHAR, 0, WORLD);
    work("eliminate", 0.5);
}

static void slow_and_noise(void)
{
    work("relax", me == 1 ? 1.6 : 0.6);
    reduce();
    int who = (int)(uniform(&shared) * ranks);
    {
        phasewright_region("advance");
        rest(0.4 * grain * exp(noise * normal()) + (me == who ? 0.6 * grain : 0));
    }
    MPI_Barrier(WORLD);
}

static void bandwidth_and_imbalance(void)
{
    phasewright_region("step");
    int next = (me + 1) % ranks, before = (me + ranks - 1) % ranks;
    for (int i = 0; i < 4; i++)
        MPI_Sendrecv(out, LARGE, MPI_CHAR, next, 0, in, LARGE, MPI_CHAR, before, 0, WORLD, IGNORE);
    work("relax", 0.2 + 0.6 * me / (ranks - 1));
    reduce();
}

static void small_and_late(void)
{
    small_messages();
    reduce();
    late_sender();
    reduce();
}

/* A lock that the processes of a node share. */
static void lock_and_slow(void)
{
    static pthread_mutex_t *both;
    if (!both) {
        MPI_Win window;
        MPI_Aint size;
        int unit;
        pthread_mutexattr_t kind;
        MPI_Win_allocate_shared(me ? 0 : sizeof *both, 1, MPI_INFO_NULL, WORLD, &both, &window);
        MPI_Win_shared_query(window, 0, &size, &unit, &both);
        pthread_mutexattr_init(&kind);
        pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
        if (!me) pthread_mutex_init(both, &kind);
        MPI_Barrier(WORLD);
    }
    work("parse", 0.2);
    {
        phasewright_region("pthread_mutex_lock");
        pthread_mutex_lock(both);
    }
    work("insert_into_table", 0.3);
    pthread_mutex_unlock(both);
    reduce();
    work("relax", me == 1 ? 1 : 0.3);
    reduce();
}

/* Rank r begins r times so late. MPI_Init waits for the last. */
static void begin_late(char **words, double seconds)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!rank) rank = getenv("PMI_RANK");
    if (getenv("BEGAN") || !rank) return;
    setenv("BEGAN", "1", 1);
    rest(seconds * atoi(rank));
    execv("/proc/self/exe", words);
}

static const struct {
    const char *name;
    void (*step)(void);
    int once;     /* it has the loop itself */
    double start; /* grains until the next rank begins */
} PROGRAMS[] = {
    {"imbalance", imbalance, 0, 0},
    {"serial_pipeline", serial_pipeline, 0, 0},
    {"late_sender", late_sender, 0, 0},
    {"late_root", late_root, 0, 0},
    {"small_messages", small_messages, 0, 0},
    {"bandwidth", bandwidth, 0, 0},
    {"barrier_noise", barrier_noise, 0, 0},
    {"io_rank_0", io_rank_0, 0, 0},
    {"lock", lock, 1, 0},
    {"master", master, 1, 0},
    {"start_up", even, 0, 10},
    {"slow_rank", slow_rank, 0, 0},
    {"imbalance_and_io", imbalance_and_io, 0, 0},
    {"pipeline_and_root", pipeline_and_root, 0, 0},
    {"slow_and_noise", slow_and_noise, 0, 0},
    {"master_and_start_up", master, 1, 10},
    {"bandwidth_and_imbalance", bandwidth_and_imbalance, 0, 0},
    {"small_and_late", small_and_late, 0, 0},
    {"lock_and_slow", lock_and_slow, 0, 0},
};

int main(int count, char **words)
{
    size_t which = 0, known = sizeof PROGRAMS / sizeof *PROGRAMS;
    while (which < known && (count < 6 || strcmp(words[1], PROGRAMS[which].name))) which++;
    if (which == known) return fprintf(stderr, "causes NAME SEED STEPS GRAIN_MS NOISE\n"), 2;
    shared = own = strtoull(words[2], NULL, 10) * 1000;
    steps = atoi(words[3]), grain = atof(words[4]) / 1e3, noise = atof(words[5]);
    if (PROGRAMS[which].start > 0) begin_late(words, PROGRAMS[which].start * grain);
    int given;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(WORLD, &me);
    MPI_Comm_size(WORLD, &ranks);
    own += 1 + me;
    size_t size = strstr(words[1], "bandwidth") ? LARGE : 1 << 20;
    out = malloc(size), in = malloc(size);
    memset(out, 1, size), memset(in, 1, size);
    MPI_Barrier(WORLD);
    for (int i = 0; i < (PROGRAMS[which].once ? 1 : steps); i++) PROGRAMS[which].step();
    MPI_Finalize();
    return 0;
}
