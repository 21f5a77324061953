/* Two ranks send to and fro, so often (default: for ever); negative: ends at once with that exit code. Files may
 * then have so many bytes. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int count, char **words)
{
    int me, x = 0;
    long times = count > 1 ? atol(words[1]) : 1L << 60;
    char text[20];
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    int n = snprintf(text, sizeof text, "%d\n", (int)getpid());
    if (times >= 0 && write(1, text, (size_t)n) != n) return 1;
    if (count > 2) setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)atol(words[2]), (rlim_t)atol(words[2])});
    for (long i = 0; i < times; i++)
        for (int turn = 0; turn < 2; turn++)
            if (me == turn) MPI_Send(&x, 1, MPI_INT, 1 - me, 0, MPI_COMM_WORLD);
            else MPI_Recv(&x, 1, MPI_INT, 1 - me, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return times < 0 ? (int)-times : 0;
}
