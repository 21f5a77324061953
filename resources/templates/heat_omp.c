/* A rod that is heated at its ends, with threads. */
#include <stdio.h>
#include <stdlib.h>

#define CELLS 4000

/* Its loop is shared by the threads; called once a sweep. */
static void smooth(const double *from, double *to)
{
#pragma omp parallel for
    for (int i = 1; i < CELLS - 1; i++) {
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
    }
}

/* One thread does it; called twice a sweep. */
static void heat_end(double *cells, int at, double degrees)
{
    cells[at] = 0.5 * (cells[at] + degrees);
}

int main(int count, char **words)
{
    static double one[CELLS], other[CELLS];
    int sweeps = count > 1 ? atoi(words[1]) : 4000;

    for (int sweep = 0; sweep < sweeps; sweep++) {
        double *from = sweep % 2 ? other : one, *to = sweep % 2 ? one : other;
        heat_end(from, 0, 100);
        heat_end(from, CELLS - 1, 50);
        smooth(from, to);
    }
    printf("total %.6e\n", one[1] + other[CELLS - 2]);
    return 0;
}
