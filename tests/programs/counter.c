/* Counts calls of MPI, each for itself and without the recorder's help; loaded before it, to be compared with it.
 *
 *     COUNTED=FOLDER LD_PRELOAD="counter.so recorder.so" program      writes FOLDER/RANK: name, calls; at MPI_Finalize
 *
 * `sends` and `receives`: messages of them whose partner is a process, `bytes`: that were sent; of blocking, posted and
 * exchanging calls. A call of Fortran that ends up in the one of C is counted once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef intptr_t W;
typedef W (*F)();
static _Thread_local int inside;
static long sends, receives, bytes;

#define CALLS(X) \
    X(Send, send, 0, 1) X(Ssend, ssend, 0, 1) X(Rsend, rsend, 0, 1) X(Isend, isend, 0, 1) X(Irsend, irsend, 0, 1) \
    X(Recv, recv, 0, 2) X(Irecv, irecv, 0, 2) X(Sendrecv, sendrecv, 0, 3) X(Wait, wait, 0, 0) X(Waitall, waitall, 0, 0) \
    X(Waitany, waitany, 0, 0) X(Barrier, barrier, 1, 0) X(Bcast, bcast, 1, 0) X(Reduce, reduce, 1, 0) \
    X(Allreduce, allreduce, 1, 0) X(Gather, gather, 1, 0) X(Gatherv, gatherv, 1, 0) X(Scatter, scatter, 1, 0) \
    X(Allgather, allgather, 1, 0) X(Allgatherv, allgatherv, 1, 0) X(Alltoall, alltoall, 1, 0) X(Alltoallv, alltoallv, 1, 0) \
    X(Reduce_scatter, reduce_scatter, 1, 0) X(Scan, scan, 1, 0) X(Exscan, exscan, 1, 0) X(Ibarrier, ibarrier, 1, 0) \
    X(Ibcast, ibcast, 1, 0) X(Iallreduce, iallreduce, 1, 0) X(Iallgather, iallgather, 1, 0) X(Ialltoall, ialltoall, 1, 0) \
    X(Ialltoallw, ialltoallw, 1, 0) X(Comm_dup, comm_dup, 0, 0) X(Comm_split, comm_split, 0, 0) \
    X(Win_create, win_create, 0, 0) X(Win_allocate, win_allocate, 0, 0) X(Win_free, win_free, 0, 0) \
    X(Win_lock, win_lock, 0, 0) X(Win_unlock, win_unlock, 0, 0) X(Win_flush, win_flush, 0, 0) \
    X(Win_flush_local, win_flush_local, 0, 0) X(Win_fence, win_fence, 0, 0) X(Put, put, 0, 0) X(Get, get, 0, 0) \
    X(Accumulate, accumulate, 0, 0)

enum {
#define X(name, lower, collective, way) K_##name,
    CALLS(X)
#undef X
    KINDS
};
static long calls[KINDS];
static const struct { const char *name; int collective; } kinds[] = {
#define X(name, lower, collective, way) {#name, collective},
    CALLS(X)
#undef X
};

static void message(int ways, int peer, int source, int count, MPI_Datatype type)
{
    int size = 0;
    if (ways & 1 && peer != MPI_PROC_NULL) {
        PMPI_Type_size(type, &size);
        sends++, bytes += (long)count * size;
    }
    receives += ways & 2 && source != MPI_PROC_NULL;
}

static void written(void)
{
    char name[500];
    int me, collectives = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &me);
    snprintf(name, sizeof name, "%s/%d", getenv("COUNTED"), me);
    FILE *file = fopen(name, "w");
    if (!file) abort();
    for (int k = 0; k < KINDS; k++) {
        if (calls[k]) fprintf(file, "MPI_%s %ld\n", kinds[k].name, calls[k]);
        collectives += kinds[k].collective ? (int)calls[k] : 0;
    }
    fprintf(file, "sends %ld\nreceives %ld\nbytes %ld\ncollectives %d\n", sends, receives, bytes, collectives);
    fclose(file);
}

#define P W a, W b, W c, W d, W e, W f, W g, W h, W i, W j, W k, W l, W m, W n
#define V a, b, c, d, e, f, g, h, i, j, k, l, m, n
#define NEXT(name) ((F)dlsym(RTLD_NEXT, name))
#define X(name, lower, collective, way) \
    W own_##name(P) __asm__("MPI_" #name); /* mpi.h declares it otherwise */ \
    W own_##name(P) \
    { \
        static F next; \
        if (!next) next = NEXT("MPI_" #name); \
        if (!inside++) calls[K_##name]++, message(way, (int)d, (int)(way == 3 ? i : d), (int)b, (MPI_Datatype)c); \
        W x = next(V); \
        inside--; \
        return x; \
    } \
    void mpi_##lower##_(P) \
    { \
        static F next; \
        if (!next) next = NEXT("mpi_" #lower "_"); \
        if (!inside++) { \
            calls[K_##name]++; \
            if (way) message(way, *(int *)d, *(int *)(way == 3 ? i : d), *(int *)b, PMPI_Type_f2c(*(int *)c)); \
        } \
        next(V); \
        inside--; \
    }
CALLS(X)

int MPI_Finalize(void)
{
    if (!inside++) written();
    return (int)NEXT("MPI_Finalize")();
}

void mpi_finalize_(int *error)
{
    if (!inside++) written();
    NEXT("mpi_finalize_")(error);
}
