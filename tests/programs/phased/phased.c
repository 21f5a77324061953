/* Real MPI programs that say themselves when their phases begin.
 *
 *     phased NAME SEED NOISE FILES
 *
 * Computing is made by sleeping until an instant, as in causes.c; messages and waiting are real. Nothing but MPI
 * is traced. Each rank writes FILES.RANK: lines of a label, "first", "median" or "last" (of the ranks), and the
 * time of day in ns. NOISE: standard deviation of the logarithm of each piece of computing.
 */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE
enum { LARGE = 1 << 22 };

static int me, ranks;
static double noise;
static unsigned long long own;
static char out[LARGE], *in;
static FILE *truth;

/* Who waits in a library that polls gives the core away instead. */
int sched_yield(void)
{
    usleep(20);
    return 0;
}

static double uniform(unsigned long long *state)
{
    unsigned long long z = *state += 0x9e3779b97f4a7c15ull; /* splitmix64 */
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return ((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

static void work(double ms)
{
    struct timespec t;
    double a = 1 - uniform(&own), b = uniform(&own);
    double seconds = 1e-3 * ms * exp(noise * sqrt(-2 * log(a)) * cos(2 * M_PI * b));
    clock_gettime(CLOCK_MONOTONIC, &t);
    long long ns = t.tv_sec * 1000000000ll + t.tv_nsec + (long long)(seconds * 1e9);
    t = (struct timespec){ns / 1000000000, ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}

static void mark(const char *label, const char *which)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    fprintf(truth, "%s %s %lld\n", label, which, t.tv_sec * 1000000000ll + t.tv_nsec);
}

static void to(int other, int size) { MPI_Send(out, size, MPI_CHAR, other, 0, WORLD); }
static void from(int other, int size) { MPI_Recv(in, size, MPI_CHAR, other, 0, WORLD, IGNORE); }
static void barrier(void) { MPI_Barrier(WORLD); }
static void bcast(int size) { MPI_Bcast(out, size, MPI_CHAR, 0, WORLD); }

static void reduce(int count)
{
    MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_MAX, WORLD);
}

static void exchange(int other, int size)
{
    MPI_Sendrecv(out, size, MPI_CHAR, other, 0, in, size, MPI_CHAR, other, 0, WORLD, IGNORE);
}

/* Both neighbours at a distance in a row of ranks. */
static void halo(int size, int stride)
{
    int up = me + stride < ranks ? me + stride : MPI_PROC_NULL, down = me - stride >= 0 ? me - stride : MPI_PROC_NULL;
    MPI_Sendrecv(out, size, MPI_CHAR, up, 0, in, size, MPI_CHAR, down, 0, WORLD, IGNORE);
    MPI_Sendrecv(out, size, MPI_CHAR, down, 0, in, size, MPI_CHAR, up, 0, WORLD, IGNORE);
}

/* Items pass along the ranks; then all check. */
static void pipeline(void)
{
    if (me == 0) work(150);
    bcast(100000);
    mark("read|fill", "median");
    for (int item = 0; item < 60; item++) {
        if (me) from(me - 1, 4000);
        if (item == 0) mark("fill|steady", "last");
        work(25);
        if (me < ranks - 1) to(me + 1, 4000);
        if (item == 59) mark("steady|drain", "first");
    }
    barrier();
    mark("drain|check", "median");
    for (int i = 0; i < 12; i++) {
        work(15);
        reduce(8);
    }
}

/* Relaxation on ever finer grids: larger messages, more work. */
static void grids(void)
{
    const int steps[] = {50, 40, 30};
    const double grain[] = {8, 14, 40};
    for (int level = 0; level < 3; level++) {
        if (level == 1) mark("coarse|middle", "median");
        if (level == 2) mark("middle|fine", "median");
        for (int i = 0; i < steps[level]; i++) {
            halo(1000 << (2 * level), 1);
            work(level ? grain[level] : grain[level] * (0.4 + 0.6 * (me % 2)));
        }
        reduce(1);
    }
}

static void farm(void)
{
    work(me ? 10 : 250);
    bcast(4000);
    mark("setup|tasks", "median");
    int tasks = 40 * (ranks - 1), task = 0;
    if (me) {
        for (to(0, 8); MPI_Recv(&task, 1, MPI_INT, 0, 1, WORLD, IGNORE), task < tasks; to(0, 8))
            work(-25 * log(1 - uniform(&own)) + 5);
    } else
        for (; task < tasks + ranks - 1; task++) {
            MPI_Status who;
            MPI_Recv(in, 8, MPI_CHAR, MPI_ANY_SOURCE, 0, WORLD, &who);
            MPI_Send(&task, 1, MPI_INT, who.MPI_SOURCE, 1, WORLD);
        }
    barrier();
    mark("tasks|report", "median");
    if (me == 0) work(300);
    bcast(8);
}

/* Blocks of columns dealt out in turn, then two substitutions along a ring. */
static void lu(void)
{
    int blocks = 6 * ranks;
    work(120);
    barrier();
    mark("generate|factor", "median");
    for (int k = 0; k < blocks; k++) {
        double left = (double)(blocks - k) / blocks;
        if (k % ranks == me) work(6 * left);
        MPI_Bcast(out, (int)(40000 * left), MPI_CHAR, k % ranks, WORLD);
        work(50 * left * left);
    }
    mark("factor|forward", "median");
    for (int k = 0; k < 2 * ranks; k++)
        if (k % ranks == me) {
            if (k) from((k - 1) % ranks, 2000);
            work(20);
            if (k < 2 * ranks - 1) to((k + 1) % ranks, 2000);
        }
    barrier();
    mark("forward|residual", "median");
    work(250);
    reduce(4);
}

static void fft(void)
{
    if (me == 0) work(200);
    MPI_Scatter(out, LARGE / ranks, MPI_CHAR, in, LARGE / ranks, MPI_CHAR, 0, WORLD);
    mark("input|rows", "median");
    for (int i = 0; i < 40; i++) work(12);
    mark("rows|transpose", "median");
    for (int i = 0; i < 25; i++) MPI_Alltoall(out, LARGE / ranks, MPI_CHAR, in, LARGE / ranks, MPI_CHAR, WORLD);
    mark("transpose|columns", "median");
    for (int i = 0; i < 40; i++) work(16);
    mark("columns|output", "median");
    MPI_Gather(out, LARGE / ranks, MPI_CHAR, in, LARGE / ranks, MPI_CHAR, 0, WORLD);
    if (me == 0) work(200);
    barrier();
}

static void multigrid(void)
{
    for (int step = 0; step < 5; step++) {
        int level = step < 3 ? step : 4 - step, stride = 1 << level;
        char label[] = "grid 0";
        label[5] += (char)step;
        if (step) mark(label, "median");
        for (int i = 0; i < 24 << level; i++)
            if (me % stride == 0) {
                halo(32000 >> (2 * level), stride);
                work(20.0 / (1 << level));
            }
        barrier();
    }
}

/* A graph is searched level by level, then its parts are evened out and summed. */
static void irregular(void)
{
    for (int i = 0; i < 15; i++) work(20);
    MPI_Alltoall(out, 20000, MPI_CHAR, in, 20000, MPI_CHAR, WORLD);
    mark("build|search", "median");
    for (int level = 0; level < 14; level++) {
        double front = exp(-(level - 6) * (level - 6) / 12.0);
        work(90 * front * (0.3 + 1.4 * uniform(&own)));
        MPI_Alltoall(out, (int)(8000 * front) + 1, MPI_CHAR, in, (int)(8000 * front) + 1, MPI_CHAR, WORLD);
        reduce(1);
    }
    mark("search|even out", "median");
    for (int i = 0; i < 12; i++) {
        work(30);
        exchange(me ^ 1, 200000);
    }
}

/* Steps with checkpoints: all write, rank 0 longer. */
static void checkpoints(void)
{
    for (int part = 0; part < 3; part++) {
        char ends[] = "steps|checkpoint 0", begins[] = "checkpoint|steps 0";
        ends[17] += (char)part;
        begins[17] += (char)part;
        for (int i = 0; i < 30; i++) {
            halo(8000, 1);
            work(15);
            reduce(1);
        }
        mark(ends, "median");
        MPI_Gather(out, 100000, MPI_CHAR, in, 100000, MPI_CHAR, 0, WORLD);
        if (me == 0) work(160);
        barrier();
        if (part < 2) mark(begins, "median");
    }
}

/* Blocks go round a ring of ranks; who owns the pivot computes longer; then a farm of small tasks by share. */
static void ring(void)
{
    work(me ? 20 : 180);
    MPI_Scatter(out, 60000, MPI_CHAR, in, 60000, MPI_CHAR, 0, WORLD);
    mark("deal|shifts", "median");
    for (int i = 0; i < 3 * ranks; i++) {
        work(22);
        MPI_Sendrecv(out, 60000, MPI_CHAR, (me + 1) % ranks, 0, in, 60000, MPI_CHAR, (me + ranks - 1) % ranks, 0,
                     WORLD, IGNORE);
    }
    mark("shifts|sum", "median");
    for (int i = 0; i < 60; i++) {
        work(3);
        reduce(2000);
    }
    mark("sum|check", "median");
    work(220);
    MPI_Reduce(out, in, 1, MPI_DOUBLE, MPI_MAX, 0, WORLD);
}

/* Half of the ranks simulate and send to the others, which begin later; then all draw. */
static void coupled(void)
{
    int half = ranks / 2, draws = me >= half;
    if (!draws)
        for (int i = 0; i < 25; i++) {
            work(18);
            MPI_Sendrecv(out, 3000, MPI_CHAR, (me + 1) % half, 0, in, 3000, MPI_CHAR, (me + half - 1) % half, 0, WORLD,
                         IGNORE);
        }
    barrier();
    mark("spin-up|coupled", "median");
    for (int i = 0; i < 30; i++) {
        if (draws) from(me - half, 50000);
        work(draws ? 18 : 24);
        if (!draws) to(me + half, 50000);
    }
    barrier();
    mark("coupled|draw", "median");
    for (int i = 0; i < 15; i++) {
        work(25);
        MPI_Reduce(out, in, 5000, MPI_DOUBLE, MPI_MAX, 0, WORLD);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} PROGRAMS[] = {
    {"pipeline", pipeline}, {"grids", grids}, {"farm", farm}, {"lu", lu}, {"fft", fft}, {"multigrid", multigrid},
    {"irregular", irregular}, {"checkpoints", checkpoints}, {"ring", ring}, {"coupled", coupled},
};

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(WORLD, &me);
    MPI_Comm_size(WORLD, &ranks);
    size_t which = 0, known = sizeof PROGRAMS / sizeof *PROGRAMS;
    while (which < known && (count < 5 || strcmp(words[1], PROGRAMS[which].name))) which++;
    if (which == known) return fprintf(stderr, "phased NAME SEED NOISE FILES\n"), 2;
    noise = atof(words[3]);
    own = (unsigned long long)atoll(words[2]) * 1000 + (unsigned long long)me;
    in = malloc((size_t)LARGE * 2);
    char name[4000];
    snprintf(name, sizeof name, "%s.%d", words[4], me);
    truth = fopen(name, "w");
    barrier();
    PROGRAMS[which].run();
    fclose(truth);
    MPI_Finalize();
    return 0;
}
