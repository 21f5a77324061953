/* Counts calls of MPI, each for itself and without the recorder's help; loaded before it, to be compared with it.
 *
 *     COUNTED=FOLDER LD_PRELOAD="counter.so recorder.so" program      writes FOLDER/RANK: name, calls; at MPI_Finalize
 *
 * `sends` and `receives`: messages of them whose partner is a process, `bytes`: that were sent; of blocking, posted and
 * exchanging calls, and each time that a persistent request is started; `moved`: bytes of one-sided calls. A call of Fortran that ends up in the one of C is counted once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef intptr_t W;
typedef W (*F)();
static _Thread_local int inside;
static _Atomic long sends, receives, bytes, moved;

/* Ways: messages that are sent and received; one-sided calls, by which arguments say how much; persistent requests that
 * are made and started. */
enum { NO, OUT, IN, BOTH, BC, EF, C, D, TO_SEND, TO_RECEIVE, ONE, ALL };

#define CALLS(X) \
    X(Send, send, 0, OUT) X(Ssend, ssend, 0, OUT) X(Rsend, rsend, 0, OUT) X(Isend, isend, 0, OUT) \
    X(Irsend, irsend, 0, OUT) X(Recv, recv, 0, IN) X(Irecv, irecv, 0, IN) X(Sendrecv, sendrecv, 0, BOTH) \
    X(Barrier, barrier, 1, NO) X(Bcast, bcast, 1, NO) X(Reduce, reduce, 1, NO) \
    X(Allreduce, allreduce, 1, NO) X(Gather, gather, 1, NO) X(Gatherv, gatherv, 1, NO) \
    X(Scatter, scatter, 1, NO) X(Scatterv, scatterv, 1, NO) X(Allgather, allgather, 1, NO) \
    X(Allgatherv, allgatherv, 1, NO) X(Alltoall, alltoall, 1, NO) X(Alltoallv, alltoallv, 1, NO) \
    X(Reduce_scatter, reduce_scatter, 1, NO) X(Scan, scan, 1, NO) X(Exscan, exscan, 1, NO) \
    X(Ibarrier, ibarrier, 1, NO) X(Ibcast, ibcast, 1, NO) X(Iallreduce, iallreduce, 1, NO) \
    X(Igather, igather, 1, NO) X(Igatherv, igatherv, 1, NO) X(Iscatter, iscatter, 1, NO) \
    X(Iscatterv, iscatterv, 1, NO) X(Iallgather, iallgather, 1, NO) X(Iallgatherv, iallgatherv, 1, NO) \
    X(Ialltoall, ialltoall, 1, NO) X(Ialltoallv, ialltoallv, 1, NO) X(Ialltoallw, ialltoallw, 1, NO) \
    X(Send_init, send_init, 0, TO_SEND) X(Ssend_init, ssend_init, 0, TO_SEND) X(Rsend_init, rsend_init, 0, TO_SEND) \
    X(Recv_init, recv_init, 0, TO_RECEIVE) X(Start, start, 0, ONE) X(Startall, startall, 0, ALL) \
    X(Put, put, 0, BC) X(Get, get, 0, BC) X(Accumulate, accumulate, 0, BC) \
    X(Get_accumulate, get_accumulate, 0, EF) X(Fetch_and_op, fetch_and_op, 0, C) \
    X(Compare_and_swap, compare_and_swap, 0, D) X(Wait, wait, 0, NO) X(Waitall, waitall, 0, NO) \
    X(Waitany, waitany, 0, NO) X(Comm_dup, comm_dup, 0, NO) X(Comm_split, comm_split, 0, NO) \
    X(Win_create, win_create, 0, NO) X(Win_create_dynamic, win_create_dynamic, 0, NO) \
    X(Win_allocate, win_allocate, 0, NO) X(Win_free, win_free, 0, NO) X(Win_lock, win_lock, 0, NO) \
    X(Win_unlock, win_unlock, 0, NO) X(Win_lock_all, win_lock_all, 0, NO) \
    X(Win_unlock_all, win_unlock_all, 0, NO) X(Win_flush, win_flush, 0, NO) \
    X(Win_flush_local, win_flush_local, 0, NO) X(Win_fence, win_fence, 0, NO) X(Win_post, win_post, 0, NO) \
    X(Win_start, win_start, 0, NO) X(Win_complete, win_complete, 0, NO) X(Win_wait, win_wait, 0, NO)

enum {
#define X(name, lower, collective, way) K_##name,
    CALLS(X)
#undef X
    KINDS
};
static _Atomic long calls[KINDS];
static const struct { const char *name; int collective; } kinds[] = {
#define X(name, lower, collective, way) {#name, collective},
    CALLS(X)
#undef X
};

static long of_type(long count, MPI_Datatype type)
{
    int size = 0;
    PMPI_Type_size(type, &size);
    return count * size;
}

/* The persistent requests; of one that is freed and made again the last counts. */
static struct { MPI_Request request; long bytes; int sends, receives; } kept[1 << 14];
static int many;

static void keep(int way, const W *v, int fortran)
{
#define REQUEST(at) (fortran ? PMPI_Request_f2c(*(int *)(at)) : *(MPI_Request *)(at))
#define GIVEN(i) (fortran ? *(int *)v[i] : (int)v[i])
    MPI_Request request = REQUEST(v[6]);
    int k = 0, real = GIVEN(3) != MPI_PROC_NULL;
    while (k < many && kept[k].request != request) k++;
    if (k == 1 << 14) abort();
    many += k == many;
    kept[k].request = request;
    kept[k].sends = real && way == TO_SEND, kept[k].receives = real && way == TO_RECEIVE;
    kept[k].bytes = kept[k].sends ? of_type(GIVEN(1), fortran ? PMPI_Type_f2c(*(int *)v[2]) : (MPI_Datatype)v[2]) : 0;
}

static void start(int number, W requests, int fortran)
{
    for (int i = 0; i < number; i++) {
        MPI_Request request = REQUEST(requests + (W)(i * (fortran ? sizeof(int) : sizeof(MPI_Request))));
        for (int k = 0; k < many; k++)
            if (kept[k].request == request) sends += kept[k].sends, receives += kept[k].receives, bytes += kept[k].bytes;
    }
}

static void count(int way, const W *v, int fortran)
{
    if (way == TO_SEND || way == TO_RECEIVE) keep(way, v, fortran);
    if (way == ONE) start(1, v[0], fortran);
    if (way == ALL) start(GIVEN(0), v[1], fortran);
    if (way >= TO_SEND) return;
    const int counted[] = {[OUT] = 1, [BOTH] = 1, [BC] = 1, [EF] = 4}, typed[] = {[OUT] = 2, [BOTH] = 2, [BC] = 2, [EF] = 5, [C] = 2, [D] = 3};
#define NUMBER(i) (fortran ? *(int *)v[i] : (int)v[i])
    if (way == NO) return;
    int to = NUMBER(3), from = way == BOTH ? NUMBER(8) : to;
    sends += (way == OUT || way == BOTH) && to != MPI_PROC_NULL;
    receives += (way == IN || way == BOTH) && from != MPI_PROC_NULL;
    if (way == IN || (way < BC && to == MPI_PROC_NULL)) return;
    W type = v[typed[way]];
    long more = of_type(way >= C ? 1 : NUMBER(counted[way]), fortran ? PMPI_Type_f2c(*(int *)type) : (MPI_Datatype)type);
    *(way < BC ? &bytes : &moved) += more;
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
    fprintf(file, "sends %ld\nreceives %ld\nbytes %ld\nmoved %ld\ncollectives %d\n", sends, receives, bytes, moved, collectives);
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
        inside++; \
        W x = next(V); \
        if (!--inside) calls[K_##name]++, count(way, (W[]){V}, 0); \
        return x; \
    } \
    void mpi_##lower##_(P) \
    { \
        static F next; \
        if (!next) next = NEXT("mpi_" #lower "_"); \
        inside++; \
        next(V); \
        if (!--inside) calls[K_##name]++, count(way, (W[]){V}, 1); \
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
