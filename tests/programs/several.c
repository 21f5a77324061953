/* Three threads of each of two ranks exchange so many messages at the same time, completed one by one or together. */
#include <mpi.h>
#include <pthread.h>
#include <stdlib.h>

static int me, times;

static void *exchange(void *tag)
{
    int in, t = (int)(long)tag;
    for (int i = 0; i < times; i++) {
        MPI_Request r[2];
        MPI_Irecv(&in, 1, MPI_INT, 1 - me, t, MPI_COMM_WORLD, r);
        MPI_Isend(&i, 1, MPI_INT, 1 - me, t, MPI_COMM_WORLD, r + 1);
        if (i % 2) MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        else MPI_Wait(r, MPI_STATUS_IGNORE), MPI_Wait(r + 1, MPI_STATUS_IGNORE);
    }
    return NULL;
}

int main(int count, char **words)
{
    int given;
    pthread_t threads[3];
    MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &given);
    if (given < MPI_THREAD_MULTIPLE) return 77;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    times = atoi(words[1]);
    for (long t = 0; t < 3; t++) pthread_create(threads + t, NULL, exchange, (void *)t);
    for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
    MPI_Finalize();
    return 0;
}
