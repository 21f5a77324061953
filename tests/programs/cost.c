/* What calls of MPI take, in ns: the least of some rounds. Calls to oneself, by one rank or all four; to and fro, by
 * two or two pairs.
 *
 *     cost CALLS ROUNDS           prints: name ns
 *     cost memory CALLS THREADS   prints: memory in kB after so many calls (MPI_Barrier) by so many threads
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, x = 1, y, flag;
static MPI_Status status, many[16];
static MPI_Request requests[16];

static void barrier(void) { MPI_Barrier(MPI_COMM_SELF); }
static void allreduce(void) { MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); }
static void iprobe(void) { MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &status); }

static void one(void)
{
    MPI_Irecv(&y, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, requests);
    MPI_Send(&x, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
    MPI_Wait(requests, &status);
}

static void eight(void)
{
    for (int k = 0; k < 8; k++) MPI_Irecv(&y, 1, MPI_INT, rank, k, MPI_COMM_WORLD, requests + k);
    for (int k = 0; k < 8; k++) MPI_Isend(&x, 1, MPI_INT, rank, k, MPI_COMM_WORLD, requests + 8 + k);
    MPI_Waitall(16, requests, many);
}

static MPI_Win window;
static void into(void)
{
    MPI_Put(&x, 1, MPI_INT, rank, 0, 1, MPI_INT, window);
    MPI_Win_flush(rank, window);
}

static void pingpong(void)
{
    for (int turn = 0; turn < 2; turn++)
        if (rank % 2 == turn) MPI_Send(&x, 1, MPI_INT, rank ^ 1, 0, MPI_COMM_WORLD);
        else MPI_Recv(&y, 1, MPI_INT, rank ^ 1, 0, MPI_COMM_WORLD, &status);
}

static const struct { const char *name; void (*run)(void); int calls, together; } tests[] = {
    {"MPI_Barrier", barrier, 1, 0}, {"MPI_Allreduce", allreduce, 1, 0}, {"MPI_Iprobe", iprobe, 1, 0},
    {"Irecv+Send+Wait", one, 3, 0}, {"8xIrecv+Isend+Waitall", eight, 17, 0}, {"Put+Win_flush", into, 2, 1},
    {"ping-pong", pingpong, 4, 1},
};

static long calls;
static void *many_barriers(void *unused)
{
    MPI_Comm own;
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    for (long i = 0; i < calls; i++) MPI_Barrier(own);
    MPI_Comm_free(&own);
    return unused;
}

static int memory(int threads)
{
    pthread_t thread[64];
    char line[200];
    int given;
    MPI_Init_thread(NULL, NULL, threads > 1 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &given);
    if (threads > 64 || (threads > 1 && given < MPI_THREAD_MULTIPLE)) return 77;
    calls /= threads;
    if (threads == 1) many_barriers(NULL);
    for (int t = 0; t < threads && threads > 1; t++) pthread_create(thread + t, NULL, many_barriers, NULL);
    for (int t = 0; t < threads && threads > 1; t++) pthread_join(thread[t], NULL);
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %d", &given) == 1) printf("kB %d\n", given), fflush(stdout);
    MPI_Finalize();
    return 0;
}

int main(int count, char **words)
{
    if (count > 3 && !strcmp(words[1], "memory")) return calls = atol(words[2]), memory(atoi(words[3]));
    int rounds = count > 2 ? atoi(words[2]) : 10, ranks;
    calls = count > 1 ? atol(words[1]) : 10000;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > 1) { /* Open MPI 4 has no windows of one process */
        MPI_Win_create(&y, sizeof y, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    }
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        double least = 1e9;
        int run = tests[k].together ? ranks % 2 == 0 : ranks != 2;
        MPI_Barrier(MPI_COMM_WORLD);
        for (int r = 0; run && r < rounds; r++) {
            long times = calls / tests[k].calls + 1;
            double begin = MPI_Wtime();
            for (long i = 0; i < times; i++) tests[k].run();
            double ns = (MPI_Wtime() - begin) * 1e9 / (double)times / tests[k].calls;
            if (ns < least) least = ns;
        }
        if (run && !rank) printf("%s %.1f\n", tests[k].name, least), fflush(stdout);
    }
    if (ranks > 1) MPI_Win_unlock(rank, window), MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
