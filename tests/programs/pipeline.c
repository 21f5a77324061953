/* Blocks go through all ranks in turn: each works on a block when it has it from the rank before.
 *
 *     pipeline BLOCKS STAGE_US DELAY_US     prints: wall=SECONDS
 *
 * Work is sleeping, so that more ranks than cores are no matter. DELAY_US is added to every call of `stage`.
 */
#include "phasewright.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long stage_us, delay_us;

static void stage(int rank)
{
    phasewright_region("stage");
    usleep((useconds_t)(stage_us * (1 + rank % 2) + delay_us));
}

int main(int count, char **words)
{
    int rank, ranks, blocks = atoi(words[1]), block = 0;
    stage_us = atol(words[2]), delay_us = atol(words[3]);
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int k = 0; k < blocks; k++) {
        if (rank > 0) MPI_Recv(&block, 1, MPI_INT, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        stage(rank);
        if (rank + 1 < ranks) MPI_Send(&block, 1, MPI_INT, rank + 1, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!rank) printf("wall=%.6f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
