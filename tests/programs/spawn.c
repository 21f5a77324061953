/* Two processes that spawn three; each prints: generation rank sends receives bytes-sent bytes-received collectives */
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

int main(int count, char **words)
{
    MPI_Comm other, all;
    int me, size, others, a[4] = {0}, b[4], sends = 0, receives = 0, out = 0, in = 0, collectives = 0;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&other);
    int first = other == MPI_COMM_NULL;
    if (first) MPI_Comm_spawn(words[0], MPI_ARGV_NULL, 3, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &other, MPI_ERRCODES_IGNORE);
    MPI_Comm_remote_size(other, &others);
    /* Around each world, then from each to its like in the other one. */
    MPI_Sendrecv(a, 2, MPI_INT, (me + 1) % size, 1, b, 2, MPI_INT, (me + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sends++, out += 8, receives++, in += 8;
    if (me < others) {
        MPI_Request r;
        MPI_Irecv(b, 4, MPI_INT, me, 2, other, &r);
        MPI_Send(a, first ? 3 : 4, MPI_INT, me, 2, other), sends++, out += first ? 12 : 16;
        MPI_Wait(&r, MPI_STATUS_IGNORE), receives++, in += first ? 16 : 12;
    }
    MPI_Allreduce(a, b, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD), collectives++;
    MPI_Intercomm_merge(other, !first, &all);
    MPI_Barrier(all), collectives++;
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&other);
    char text[100];
    int n = snprintf(text, sizeof text, "%d %d %d %d %d %d %d\n", !first, me, sends, receives, out, in, collectives);
    if (write(1, text, (size_t)n) != n) return 1;
    MPI_Finalize();
    return 0;
}
