/* A random program of so many rounds (its seed): what it computes must not depend on whether it is recorded. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned state;
static unsigned draw(unsigned n) { return (state = state * 1664525u + 1013904223u) >> 8, (state >> 8) % n; }

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int me, size, seed = count > 1 ? atoi(words[1]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    unsigned value = (unsigned)(me + 1) * 2654435761u, other, sum;
    state = (unsigned)seed; /* the same draws on all ranks */
    for (int round = 0; round < 200; round++) {
        unsigned shift = draw((unsigned)size), how = draw(6);
        int to = (me + (int)shift) % size, from = (me + size - (int)shift) % size;
        MPI_Request r[2];
        MPI_Status s;
        MPI_Comm part;
        if (how == 0) MPI_Sendrecv(&value, 1, MPI_UNSIGNED, to, round, &other, 1, MPI_UNSIGNED, from, round, MPI_COMM_WORLD, &s);
        if (how == 1) {
            MPI_Irecv(&other, 1, MPI_UNSIGNED, MPI_ANY_SOURCE, round, MPI_COMM_WORLD, r);
            MPI_Isend(&value, 1, MPI_UNSIGNED, to, round, MPI_COMM_WORLD, r + 1);
            MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        }
        if (how == 2) {
            int flag = 0;
            MPI_Irecv(&other, 1, MPI_UNSIGNED, from, MPI_ANY_TAG, MPI_COMM_WORLD, r);
            MPI_Send(&value, 1, MPI_UNSIGNED, to, round, MPI_COMM_WORLD);
            while (!flag) MPI_Test(r, &flag, &s);
            other += (unsigned)s.MPI_SOURCE * 3 + (unsigned)s.MPI_TAG;
        }
        if (how == 3) MPI_Allreduce(&value, &other, 1, MPI_UNSIGNED, MPI_BXOR, MPI_COMM_WORLD);
        if (how == 4) {
            MPI_Comm_split(MPI_COMM_WORLD, me % 2, (int)shift ? me : -me, &part);
            MPI_Scan(&value, &other, 1, MPI_UNSIGNED, MPI_SUM, part);
            MPI_Comm_free(&part);
        }
        if (how == 5) other = value, MPI_Bcast(&other, 1, MPI_UNSIGNED, (int)shift, MPI_COMM_WORLD);
        value = value * 31 + other;
    }
    MPI_Allreduce(&value, &sum, 1, MPI_UNSIGNED, MPI_SUM, MPI_COMM_WORLD);
    printf("%d %u %u\n", me, value, sum);
    MPI_Finalize();
    return 0;
}
