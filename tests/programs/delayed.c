/* One rank is late once, in one region; who waits for that is known.
 *
 *     delayed WHAT SECONDS     what depends on whom, and for how long rank 0 sleeps in "solve" beyond its work
 *
 * chain    each rank receives from the one before and sends to the next: ranks - 1 wait, each for the one before
 * ring     every rank exchanges with both neighbours in each step: the delay spreads by one rank a step
 * barrier, allreduce, bcast, gather    a collective operation in each step, rank 0 being the root but of gather
 * mixed    a barrier of ranks 0 and 1, then a chain from rank 1 on
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "phasewright.h"

enum { STEPS = 6, LATE = 2 };

static void rest(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, one = 1, all[64];
    const char *what = argc > 1 ? argv[1] : "chain";
    double delay = argc > 2 ? atof(argv[2]) : 0.05;
    MPI_Comm pair;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : MPI_UNDEFINED, rank, &pair);
    MPI_Barrier(MPI_COMM_WORLD);
    int chain = !strcmp(what, "chain"), mixed = !strcmp(what, "mixed");
    for (int step = 0; step < STEPS; step++) {
        if ((chain && rank > 0) || (mixed && rank > 1))
            MPI_Recv(&one, 1, MPI_INT, rank - 1, step, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        phasewright_begin("solve");
        rest(0.002);
        if (rank == 0 && step == LATE) rest(delay);
        phasewright_end("solve");
        if (mixed && rank < 2) MPI_Barrier(pair);
        if ((chain || (mixed && rank > 0)) && rank < ranks - 1)
            MPI_Send(&one, 1, MPI_INT, rank + 1, step, MPI_COMM_WORLD);
        if (!strcmp(what, "ring")) {
            int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
            MPI_Request requests[4];
            MPI_Irecv(&all[0], 1, MPI_INT, before, 0, MPI_COMM_WORLD, &requests[0]);
            MPI_Irecv(&all[1], 1, MPI_INT, after, 1, MPI_COMM_WORLD, &requests[1]);
            MPI_Isend(&one, 1, MPI_INT, after, 0, MPI_COMM_WORLD, &requests[2]);
            MPI_Isend(&one, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &requests[3]);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        }
        if (!strcmp(what, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
        if (!strcmp(what, "allreduce"))
            MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (!strcmp(what, "bcast")) MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (!strcmp(what, "gather")) MPI_Gather(&one, 1, MPI_INT, all, 1, MPI_INT, ranks - 1, MPI_COMM_WORLD);
    }
    phasewright_begin("rest");
    rest(0.002);
    phasewright_end("rest");
    MPI_Finalize();
    return 0;
}
