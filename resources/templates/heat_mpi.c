/* A rod that is heated at its ends, in pieces of one process each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 400

static int rank, size;

/* The neighbours' cells; called once a sweep. */
static void exchange(double *cells)
{
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL, right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Sendrecv(cells + 1, 1, MPI_DOUBLE, left, 0, cells + CELLS + 1, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(cells + CELLS, 1, MPI_DOUBLE, right, 1, cells, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Called once a sweep. */
static void smooth(const double *from, double *to)
{
    for (int i = 1; i <= CELLS; i++)
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

/* Called every hundredth sweep. */
static double total(const double *cells)
{
    double own = 0, sum = 0;
    for (int i = 1; i <= CELLS; i++)
        own += cells[i];
    MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

int main(int count, char **words)
{
    double one[CELLS + 2] = {0}, other[CELLS + 2] = {0}, sum = 0;
    int sweeps = count > 1 ? atoi(words[1]) : 20000;

    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int sweep = 0; sweep < sweeps; sweep++) {
        double *from = sweep % 2 ? other : one, *to = sweep % 2 ? one : other;
        if (rank == 0)
            from[1] = 100;
        exchange(from);
        smooth(from, to);
        if (sweep % 100 == 0)
            sum += total(to);
    }
    if (rank == 0)
        printf("total %.6e\n", sum);
    MPI_Finalize();
    return 0;
}
