/* What calls of MPI take, in ns: the least of some rounds. One rank: calls to oneself; two: to and fro.
 *
 *     cost CALLS ROUNDS     prints: name ns
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int x = 1, y, flag;
static MPI_Status status, many[16];
static MPI_Request requests[16];

static void barrier(void) { MPI_Barrier(MPI_COMM_SELF); }
static void allreduce(void) { MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF); }
static void iprobe(void) { MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &flag, &status); }

static void one(void)
{
    MPI_Irecv(&y, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, requests);
    MPI_Send(&x, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    MPI_Wait(requests, &status);
}

static void eight(void)
{
    for (int k = 0; k < 8; k++) MPI_Irecv(&y, 1, MPI_INT, 0, k, MPI_COMM_WORLD, requests + k);
    for (int k = 0; k < 8; k++) MPI_Isend(&x, 1, MPI_INT, 0, k, MPI_COMM_WORLD, requests + 8 + k);
    MPI_Waitall(16, requests, many);
}

static int rank;
static void pingpong(void)
{
    for (int turn = 0; turn < 2; turn++)
        if (rank == turn) MPI_Send(&x, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD);
        else MPI_Recv(&y, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &status);
}

static const struct { const char *name; void (*run)(void); int calls, ranks; } tests[] = {
    {"MPI_Barrier", barrier, 1, 1}, {"MPI_Allreduce", allreduce, 1, 1}, {"MPI_Iprobe", iprobe, 1, 1},
    {"Irecv+Send+Wait", one, 3, 1}, {"8xIrecv+Isend+Waitall", eight, 17, 1}, {"ping-pong", pingpong, 4, 2},
};

int main(int count, char **words)
{
    int calls = count > 1 ? atoi(words[1]) : 10000, rounds = count > 2 ? atoi(words[2]) : 10, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t k = 0; k < sizeof tests / sizeof *tests; k++) {
        double least = 1e9;
        for (int r = 0; tests[k].ranks == ranks && r < rounds; r++) {
            int times = calls / tests[k].calls + 1;
            double begin = MPI_Wtime();
            for (int i = 0; i < times; i++) tests[k].run();
            double ns = (MPI_Wtime() - begin) * 1e9 / times / tests[k].calls;
            if (ns < least) least = ns;
        }
        if (tests[k].ranks == ranks && !rank) printf("%s %.1f\n", tests[k].name, least), fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
