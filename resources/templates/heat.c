/* A rod that is heated at its ends: a small program to try an experiment with. */
#include <stdio.h>
#include <stdlib.h>

#define CELLS 400

/* Called once a sweep, and does most of the work. */
static void smooth(const double *from, double *to)
{
    for (int i = 1; i < CELLS - 1; i++)
        to[i] = from[i] + 0.25 * (from[i - 1] - 2 * from[i] + from[i + 1]);
}

/* Called four times a sweep, and does next to nothing itself. */
static void heat_end(double *cells, int at, double degrees)
{
    cells[at] = 0.5 * (cells[at] + degrees);
}

/* Called every hundredth sweep. */
static double total(const double *cells)
{
    double sum = 0;
    for (int i = 0; i < CELLS; i++)
        sum += cells[i];
    return sum;
}

int main(int count, char **words)
{
    double one[CELLS] = {0}, other[CELLS] = {0}, sum = 0;
    int sweeps = count > 1 ? atoi(words[1]) : 20000;

    for (int sweep = 0; sweep < sweeps; sweep++) {
        double *from = sweep % 2 ? other : one, *to = sweep % 2 ? one : other;
        heat_end(from, 0, 100);
        heat_end(from, CELLS - 1, 50);
        smooth(from, to);
        heat_end(to, 0, 100);
        heat_end(to, CELLS - 1, 50);
        if (sweep % 100 == 0)
            sum += total(to);
    }
    printf("total %.6e\n", sum);
    return 0;
}
