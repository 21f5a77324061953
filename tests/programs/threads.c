/* Three threads of OpenMP that wait for each other: at a barrier, for a critical section, for tasks, for the first one.
 * Prints the sum of a loop, and how many tasks have run.
 *
 *     threads ROUNDS          with -DMPI as an MPI program, otherwise without
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef MPI
#include <mpi.h>
#endif

static void work(double ms)
{
    struct timespec t = {0, (long)(ms * 1e6)};
    nanosleep(&t, NULL); /* a busy machine does not make it longer for one thread only */
}

int main(int count, char **words)
{
    int rounds = count > 1 ? atoi(words[1]) : 3, me = 0;
    long sum = 0, tasks = 0;
#ifdef MPI
    int given;
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &given);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
#endif
    omp_lock_t lock;
    omp_init_lock(&lock);
    for (int i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(3)
        {
            work(20 * omp_get_thread_num()); /* the others wait for the last one */
#pragma omp barrier
#pragma omp for reduction(+ : sum)
            for (int k = 0; k < 300; k++) sum += k;
#pragma omp critical
            work(10);
            omp_set_lock(&lock);
            sum++;
            omp_unset_lock(&lock);
#pragma omp single
            {
                for (int k = 0; k < 4; k++)
#pragma omp task
                {
                    work(2);
#pragma omp atomic
                    tasks++;
                }
#pragma omp taskwait
            }
        }
        work(30); /* alone */
    }
#ifdef MPI
    long all = 0;
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    sum = all;
    MPI_Finalize();
#endif
    if (!me) printf("%ld %ld\n", sum, tasks);
    return 0;
}
