/* In each iteration odd ranks do something `light`, even ones something `heavy`, and all meet: what delays the light
 * ones costs nothing until they are as slow as the heavy ones.
 *
 *     slack ITERATIONS LIGHT_US HEAVY_US DELAY_US     prints: wall=SECONDS
 *
 * Work is sleeping, so that more ranks than cores are no matter. DELAY_US is added to every call of `light`.
 */
#include "phasewright.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void light(long us)
{
    phasewright_region("light");
    usleep((useconds_t)us);
}

static void heavy(long us)
{
    phasewright_region("heavy");
    usleep((useconds_t)us);
}

int main(int count, char **words)
{
    int rank, iterations = atoi(words[1]);
    long light_us = atol(words[2]), heavy_us = atol(words[3]), delay_us = atol(words[4]);
    double mine = 1.0, all;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int k = 0; k < iterations; k++) {
        if (rank % 2) light(light_us + delay_us);
        else heavy(heavy_us);
        MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (!rank) printf("wall=%.6f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
