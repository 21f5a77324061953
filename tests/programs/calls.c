/* Calls MPI in all the ways that the recorder knows, and counts itself what it does.
 *
 *     calls PART...     each rank prints: rank sends receives bytes-sent bytes-received collectives bytes-moved
 *
 * The last: bytes given to collectives, and those of one-sided calls and files.
 *
 * Parts are independent; without one: all of them.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../desktop/recorder/phasewright.h"

static long sends, receives, out, in, collectives, moved;
static int me, size, next, before;
#define SENT(n) (sends++, out += (n))
#define GOT(n) (receives++, in += (n))

static void blocking(void)
{
    double a[8] = {0}, b[16];
    void *buffer = malloc(4096);
    MPI_Buffer_attach(buffer, 4096);
    for (int mode = 0; mode < 3; mode++) {
        MPI_Request r;
        MPI_Irecv(b, 16, MPI_DOUBLE, before, mode, MPI_COMM_WORLD, &r);
        MPI_Barrier(MPI_COMM_WORLD);
        collectives++;
        if (mode == 0) MPI_Send(a, 8, MPI_DOUBLE, next, mode, MPI_COMM_WORLD);
        if (mode == 1) MPI_Bsend(a, 8, MPI_DOUBLE, next, mode, MPI_COMM_WORLD);
        if (mode == 2) MPI_Rsend(a, 8, MPI_DOUBLE, next, mode, MPI_COMM_WORLD);
        SENT(64);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        GOT(64);
    }
    if (me % 2 == 0 && me + 1 < size) MPI_Ssend(a, 3, MPI_DOUBLE, me + 1, 9, MPI_COMM_WORLD), SENT(24);
    if (me % 2) MPI_Recv(b, 16, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE), GOT(24);
    MPI_Send(a, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(b, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&buffer, &(int){0});
    free(buffer);
}

static void completion(void)
{
    enum { N = 100 };
    char a[N] = {0}, b[N];
    for (int how = 0; how < 6; how++) {
        MPI_Request r[2 * N];
        MPI_Status s[2 * N];
        for (int i = 0; i < N; i++) MPI_Irecv(b + i, 1, MPI_CHAR, how % 2 ? MPI_ANY_SOURCE : before, i, MPI_COMM_WORLD, r + i);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < N; i++) {
            if (i % 4 == 0) MPI_Isend(a + i, 1, MPI_CHAR, next, i, MPI_COMM_WORLD, r + N + i);
            if (i % 4 == 1) MPI_Issend(a + i, 1, MPI_CHAR, next, i, MPI_COMM_WORLD, r + N + i);
            if (i % 4 == 2) MPI_Irsend(a + i, 0, MPI_CHAR, next, i, MPI_COMM_WORLD, r + N + i);
            if (i % 4 == 3) MPI_Isend(a + i, 1, MPI_CHAR, MPI_PROC_NULL, i, MPI_COMM_WORLD, r + N + i);
        }
        for (int i = 0; i < N; i++)
            if (i % 4 != 3) SENT(i % 4 != 2), GOT(i % 4 != 2);
        int left = 2 * N, flag = 0, index, n, which[2 * N];
        for (int i = 3; i < N; i += 4) { /* nobody sends these */
            MPI_Cancel(r + i);
            if (i % 8 == 3) MPI_Wait(r + i, s);
            else MPI_Wait(r + i, MPI_STATUS_IGNORE);
        }
        left -= N / 4;
        if (how == 0) MPI_Waitall(2 * N, r, MPI_STATUSES_IGNORE);
        if (how == 1) while (!flag) MPI_Testall(2 * N, r, &flag, s);
        if (how == 2) while (left--) MPI_Waitany(2 * N, r, &index, MPI_STATUS_IGNORE);
        if (how == 3) while (left) MPI_Testany(2 * N, r, &index, &flag, s), left -= flag;
        if (how == 4) while (left) MPI_Waitsome(2 * N, r, &n, which, MPI_STATUSES_IGNORE), left -= n;
        if (how == 5) while (left) MPI_Testsome(2 * N, r, &n, which, s), left -= n;
        MPI_Barrier(MPI_COMM_WORLD);
        collectives += 2;
    }
}

static void persistent(void)
{
    int a = me, b;
    MPI_Request r[2], freed;
    MPI_Send_init(&a, 1, MPI_INT, next, 3, MPI_COMM_WORLD, r);
    MPI_Recv_init(&b, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, r + 1);
    for (int i = 0; i < 5; i++) {
        if (i % 2) MPI_Startall(2, r);
        else MPI_Start(r), MPI_Start(r + 1);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        SENT(4), GOT(4);
    }
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE); /* none is active */
    MPI_Request_free(r), MPI_Request_free(r + 1);
    MPI_Isend(&a, 1, MPI_INT, next, 4, MPI_COMM_WORLD, &freed), MPI_Request_free(&freed), SENT(4);
    MPI_Recv(&b, 1, MPI_INT, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE), GOT(4);
    MPI_Barrier(MPI_COMM_WORLD), collectives++;
}

static void exchange(void)
{
    double a[4] = {0}, b[8];
    MPI_Status s;
    MPI_Sendrecv(a, 4, MPI_DOUBLE, next, 1, b, 8, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SENT(32), GOT(32);
    MPI_Sendrecv_replace(a, 4, MPI_DOUBLE, next, 2, before, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    SENT(32), GOT(32);
    MPI_Sendrecv(a, 2, MPI_DOUBLE, me ? me - 1 : MPI_PROC_NULL, 3, b, 8, MPI_DOUBLE, me + 1 < size ? me + 1 : MPI_PROC_NULL, 3,
                 MPI_COMM_WORLD, &s);
    if (me) SENT(16);
    if (me + 1 < size) GOT(16);
}

static void probes(void)
{
    int a[5] = {0}, flag = 0, count;
    MPI_Status s;
    MPI_Message m;
    MPI_Request r;
    for (int how = 0; how < 4; how++) {
        MPI_Isend(a, 5, MPI_INT, next, how, MPI_COMM_WORLD, &r), SENT(20);
        if (how == 0) MPI_Probe(before, how, MPI_COMM_WORLD, &s), MPI_Get_count(&s, MPI_INT, &count);
        for (flag = 0; how == 1 && !flag;) MPI_Iprobe(MPI_ANY_SOURCE, how, MPI_COMM_WORLD, &flag, &s);
        if (how < 2) MPI_Recv(a, 5, MPI_INT, before, how, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (how == 2) MPI_Mprobe(MPI_ANY_SOURCE, how, MPI_COMM_WORLD, &m, &s), MPI_Mrecv(a, 5, MPI_INT, &m, &s);
        if (how == 3) {
            MPI_Request q;
            for (flag = 0; !flag;) MPI_Improbe(before, how, MPI_COMM_WORLD, &flag, &m, &s);
            MPI_Imrecv(a, 5, MPI_INT, &m, &q), MPI_Wait(&q, MPI_STATUS_IGNORE);
        }
        GOT(20);
        MPI_Wait(&r, &s);
    }
}

static void types(void)
{
    int a[64] = {0}, b[64];
    for (int i = 1; i <= 20; i++) { /* handles are used again for types of another size */
        MPI_Datatype t;
        MPI_Type_vector(i, 1, 2, MPI_INT, &t);
        MPI_Type_commit(&t);
        MPI_Request r;
        MPI_Irecv(b, 64, MPI_INT, before, i, MPI_COMM_WORLD, &r);
        MPI_Send(a, 1, t, next, i, MPI_COMM_WORLD), SENT(4 * i);
        MPI_Wait(&r, MPI_STATUS_IGNORE), GOT(4 * i);
        MPI_Type_free(&t);
    }
}

static void collective(void)
{
    int n = size, *a = calloc((size_t)n * 4, sizeof *a), *b = calloc((size_t)n * 4, sizeof *b);
    int *counts = malloc(sizeof(int) * (size_t)n), *at = malloc(sizeof(int) * (size_t)n);
    for (int i = 0; i < n; i++) counts[i] = 2, at[i] = 2 * i;
    MPI_Barrier(MPI_COMM_WORLD), collectives++;
    /* Each with its non-blocking form, and what this rank gives by the standard's definition. */
#define TWICE(given, name, form, ...) \
    MPI_##name(__VA_ARGS__, MPI_COMM_WORLD), MPI_##form(__VA_ARGS__, MPI_COMM_WORLD, &r), \
    MPI_Wait(&r, MPI_STATUS_IGNORE), collectives += 2, moved += 2 * (given)
    MPI_Request r;
    MPI_Datatype *each = malloc(sizeof *each * (size_t)n);
    for (int i = 0; i < n; i++) each[i] = MPI_SHORT;
    TWICE(me == n - 1 ? 12 : 0, Bcast, Ibcast, a, 3, MPI_INT, n - 1);
    TWICE(4, Gather, Igather, me ? a : MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, 0);
    TWICE(8, Gatherv, Igatherv, a, 2, MPI_INT, b, counts, at, MPI_INT, 0);
    TWICE(me ? 0 : 4 * n, Scatter, Iscatter, a, 1, MPI_INT, me ? b : MPI_IN_PLACE, 1, MPI_INT, 0);
    TWICE(0, Scatterv, Iscatterv, a, counts, at, MPI_INT, b, 2, MPI_INT, 0); /* what the root gives is not kept */
    TWICE(8, Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 2, MPI_INT);
    TWICE(8, Allgatherv, Iallgatherv, a, 2, MPI_INT, b, counts, at, MPI_INT);
    TWICE(8 * n, Alltoall, Ialltoall, a, 2, MPI_INT, b, 2, MPI_INT);
    TWICE(8 * n, Alltoallv, Ialltoallv, a, counts, at, MPI_INT, b, counts, at, MPI_INT);
    TWICE(4 * n, Alltoallw, Ialltoallw, a, counts, at, each, b, counts, at, each);
    TWICE(16, Reduce, Ireduce, a, b, 4, MPI_INT, MPI_SUM, n / 2);
    TWICE(16, Allreduce, Iallreduce, MPI_IN_PLACE, b, 4, MPI_INT, MPI_SUM);
    TWICE(8 * n, Reduce_scatter, Ireduce_scatter, a, b, counts, MPI_INT, MPI_SUM);
    TWICE(8 * n, Reduce_scatter_block, Ireduce_scatter_block, a, b, 2, MPI_INT, MPI_SUM);
    TWICE(8, Scan, Iscan, a, b, 2, MPI_INT, MPI_SUM);
    TWICE(8, Exscan, Iexscan, a, b, 2, MPI_INT, MPI_SUM);
    MPI_Ibarrier(MPI_COMM_WORLD, &r), collectives++;
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    free(each);
    free(a), free(b), free(counts), free(at);
}

static void groups(void)
{
    MPI_Comm half, copy, grid, both;
    int a = 0, b, rank, n;
    for (int i = 0; i < 40; i++) { /* handles are used again for other members */
        MPI_Comm_split(MPI_COMM_WORLD, (me + i) % 2, -me, &half);
        MPI_Comm_rank(half, &rank), MPI_Comm_size(half, &n);
        MPI_Sendrecv(&a, 1, MPI_INT, (rank + 1) % n, 7, &b, 1, MPI_INT, (rank + n - 1) % n, 7, half, MPI_STATUS_IGNORE);
        SENT(4), GOT(4);
        MPI_Allreduce(&a, &b, 1, MPI_INT, MPI_SUM, half), collectives++, moved += 4;
        MPI_Comm_free(&half);
    }
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Cart_create(copy, 1, &size, &(int){1}, 0, &grid);
    MPI_Barrier(copy), MPI_Barrier(grid), collectives += 2;
    MPI_Comm_free(&grid);
    if (size > 1) { /* between the even and the odd ranks */
        MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
        MPI_Intercomm_create(half, 0, copy, me % 2 ? 0 : 1, 5, &both);
        MPI_Comm_rank(half, &rank);
        int others;
        MPI_Comm_remote_size(both, &others);
        if (rank == 0) {
            MPI_Request r;
            MPI_Irecv(&b, 1, MPI_INT, 0, 1, both, &r);
            MPI_Send(&a, 1, MPI_INT, 0, 1, both), SENT(4);
            MPI_Wait(&r, MPI_STATUS_IGNORE), GOT(4);
        }
        MPI_Barrier(both), collectives++;
        MPI_Intercomm_merge(both, me % 2, &grid);
        MPI_Barrier(grid), collectives++;
        MPI_Comm_free(&grid), MPI_Comm_free(&both), MPI_Comm_free(&half);
    }
    MPI_Comm_free(&copy);
}

static void neighbours(void)
{
    int a[4] = {0}, b[4], counts[2] = {1, 1}, at[2] = {0, 1};
    MPI_Aint bytes[2] = {0, 4};
    MPI_Datatype each[2] = {MPI_INT, MPI_INT};
    MPI_Comm ring, graph, copy;
    MPI_Request r;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &(int){1}, 0, &ring);
    /* They are told as calls only. */
#define AROUND(name, form, comm, ...) \
    MPI_##name(__VA_ARGS__, comm), MPI_##form(__VA_ARGS__, comm, &r), MPI_Wait(&r, MPI_STATUS_IGNORE)
    AROUND(Neighbor_allgather, Ineighbor_allgather, ring, a, 1, MPI_INT, b, 1, MPI_INT);
    AROUND(Neighbor_allgatherv, Ineighbor_allgatherv, ring, a, 1, MPI_INT, b, counts, at, MPI_INT);
    AROUND(Neighbor_alltoallv, Ineighbor_alltoallv, ring, a, counts, at, MPI_INT, b, counts, at, MPI_INT);
    AROUND(Neighbor_alltoallw, Ineighbor_alltoallw, ring, a, counts, bytes, each, b, counts, bytes, each);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &before, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
    AROUND(Neighbor_alltoall, Ineighbor_alltoall, graph, a, 2, MPI_INT, b, 2, MPI_INT);
    MPI_Comm_idup(MPI_COMM_WORLD, &copy, &r), MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Sendrecv(a, 1, MPI_INT, next, 1, b, 1, MPI_INT, before, 1, copy, MPI_STATUS_IGNORE), SENT(4), GOT(4);
    MPI_Comm_free(&copy), MPI_Comm_free(&graph), MPI_Comm_free(&ring);
}

/* One-sided calls with the other ways to synchronise them, with requests, and in memory that is shared. */
static void targets(void)
{
    int *base, own[8] = {0}, value = me, got;
    MPI_Win w;
    MPI_Group all, from, to;
    MPI_Request r;
    MPI_Win_create(own, sizeof own, sizeof *own, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, &before, &from), MPI_Group_incl(all, 1, &next, &to);
    MPI_Win_post(from, 0, w), MPI_Win_start(to, 0, w);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, w), moved += 4;
    MPI_Win_complete(w), MPI_Win_wait(w);
    MPI_Group_free(&from), MPI_Group_free(&to), MPI_Group_free(&all);
    MPI_Barrier(MPI_COMM_WORLD), collectives++;
    MPI_Win_lock_all(0, w);
    MPI_Rput(&value, 1, MPI_INT, next, 1, 1, MPI_INT, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), moved += 4;
    MPI_Raccumulate(&value, 1, MPI_INT, next, 2, 1, MPI_INT, MPI_SUM, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), moved += 4;
    MPI_Win_flush_all(w);
    MPI_Rget(&got, 1, MPI_INT, next, 1, 1, MPI_INT, w, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), moved += 4;
    MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
    MPI_Win_allocate_shared(4, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
    MPI_Win_lock_all(0, w), *base = me, MPI_Win_sync(w), MPI_Win_unlock_all(w);
    MPI_Win_free(&w);
}

static void windows(void)
{
    int *base, value = me;
    MPI_Win w;
    MPI_Win_allocate(16 * sizeof *base, sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &w);
    MPI_Win_fence(0, w);
    MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, w), moved += 4;
    MPI_Accumulate(&value, 1, MPI_INT, next, 1, 1, MPI_INT, MPI_SUM, w), moved += 4;
    MPI_Win_fence(0, w);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, w);
    int before_[2], two[2] = {1, 2};
    MPI_Get(&value, 1, MPI_INT, next, 1, 1, MPI_INT, w), moved += 4;
    MPI_Get_accumulate(two, 2, MPI_INT, before_, 2, MPI_INT, next, 4, 2, MPI_INT, MPI_SUM, w), moved += 8;
    MPI_Fetch_and_op(two, before_, MPI_INT, next, 6, MPI_SUM, w), moved += 4;
    MPI_Win_flush(next, w);
    MPI_Compare_and_swap(two, two + 1, before_, MPI_INT, next, 8, w), moved += 4;
    MPI_Win_unlock(next, w);
    MPI_Win_fence(0, w);
    MPI_Win_free(&w);
}

static void files(void)
{
    char name[64];
    snprintf(name, sizeof name, "calls-%d.tmp", (int)getppid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD), collectives++, moved += me ? 0 : (long)sizeof name;
    MPI_File f;
    int a[8] = {0};
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
    MPI_File_write_at_all(f, me * 32, a, 8, MPI_INT, MPI_STATUS_IGNORE), moved += 32;
    MPI_File_read_at(f, me * 32, a, 8, MPI_INT, MPI_STATUS_IGNORE), moved += 32;
    MPI_File_close(&f);
}

/* Files by shared places, in order, without blocking, and in two halves. */
static void shared(void)
{
    char name[64];
    snprintf(name, sizeof name, "shared-%d.tmp", (int)getppid());
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD), collectives++, moved += me ? 0 : (long)sizeof name;
    MPI_File f;
    MPI_Request r;
    int a[8] = {0};
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
    MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_ordered(f, a, 8, MPI_INT, MPI_STATUS_IGNORE), moved += 32;
    MPI_File_write_shared(f, a, 2, MPI_INT, MPI_STATUS_IGNORE), moved += 8;
    MPI_File_iwrite_at(f, 8 * me, a, 8, MPI_INT, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), moved += 32;
    MPI_File_write_at_all_begin(f, 8 * me, a, 8, MPI_INT), MPI_File_write_at_all_end(f, a, MPI_STATUS_IGNORE), moved += 32;
    MPI_File_sync(f);
    MPI_File_seek(f, 8 * me, MPI_SEEK_SET);
    MPI_File_iread(f, a, 4, MPI_INT, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), moved += 16;
    MPI_File_read_all(f, a, 4, MPI_INT, MPI_STATUS_IGNORE), moved += 16;
    MPI_File_close(&f);
}

/* What came with MPI 4. */
static void later(void)
{
#if MPI_VERSION >= 4
    int a = me, b;
    MPI_Request r;
    MPI_Isendrecv(&a, 1, MPI_INT, next, 1, &b, 1, MPI_INT, before, 1, MPI_COMM_WORLD, &r), SENT(4);
    MPI_Wait(&r, MPI_STATUS_IGNORE), GOT(4);
    MPI_Isendrecv_replace(&a, 1, MPI_INT, next, 2, before, 2, MPI_COMM_WORLD, &r), SENT(4);
    MPI_Wait(&r, MPI_STATUS_IGNORE), GOT(4);
    MPI_Irecv_c(&b, (MPI_Count)1, MPI_INT, before, 3, MPI_COMM_WORLD, &r);
    MPI_Send_c(&a, (MPI_Count)1, MPI_INT, next, 3, MPI_COMM_WORLD), SENT(4);
    MPI_Wait(&r, MPI_STATUS_IGNORE), GOT(4);
    MPI_Allreduce_c(&a, &b, (MPI_Count)1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), collectives++, moved += 4;
    MPI_Session s;
    MPI_Group everybody;
    MPI_Comm all;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Group_from_session_pset(s, "mpi://WORLD", &everybody);
    MPI_Comm_create_from_group(everybody, "calls", MPI_INFO_NULL, MPI_ERRORS_RETURN, &all);
    MPI_Sendrecv(&a, 1, MPI_INT, next, 4, &b, 1, MPI_INT, before, 4, all, MPI_STATUS_IGNORE), SENT(4), GOT(4);
    MPI_Barrier(all), collectives++;
    MPI_Comm_free(&all), MPI_Group_free(&everybody), MPI_Session_finalize(&s);
#endif
}

/* Asked for before they are waited for, or freed. */
static void asked(void)
{
    int a = me, b, flag;
    MPI_Request r[2], again;
    for (int i = 0; i < 4; i++) {
        MPI_Irecv(&b, 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, r);
        MPI_Isend(&a, 1, MPI_INT, next, i, MPI_COMM_WORLD, r + 1), SENT(4), GOT(4);
        for (int k = 0; k < 2; k++) {
            for (flag = 0; !flag;) MPI_Request_get_status(r[k], &flag, MPI_STATUS_IGNORE);
            MPI_Request_get_status(r[k], &flag, MPI_STATUS_IGNORE);
            if (i % 2) MPI_Request_free(r + k);
            else MPI_Wait(r + k, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(MPI_COMM_WORLD), collectives++;
    }
    MPI_Recv_init(&b, 1, MPI_INT, before, 9, MPI_COMM_WORLD, &again);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&again);
        MPI_Send(&a, 1, MPI_INT, next, 9, MPI_COMM_WORLD), SENT(4), GOT(4);
        for (flag = 0; !flag;) MPI_Request_get_status(again, &flag, MPI_STATUS_IGNORE);
        MPI_Wait(&again, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&again);
}

/* Two processes meet as strangers would, by a port; some libraries have none on some networks. */
static void ports(void)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm both;
    int a = me, b;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    if (me == 0 && MPI_Open_port(MPI_INFO_NULL, port)) *port = 0;
    MPI_Bcast(port, sizeof port, MPI_CHAR, 0, MPI_COMM_WORLD), collectives++, moved += me ? 0 : (long)sizeof port;
    if (me > 1 || !*port) return;
    if (me) MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
    else MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &both);
    MPI_Sendrecv(&a, 1, MPI_INT, 0, 1, &b, 1, MPI_INT, 0, 1, both, MPI_STATUS_IGNORE), SENT(4), GOT(4);
    MPI_Barrier(both), collectives++;
    MPI_Comm_disconnect(&both);
    if (me == 0) MPI_Close_port(port);
}

#if MPI_VERSION >= 4 || OMPI_MAJOR_VERSION >= 5
/* Collectives that are made once and begun twice, one of them by MPI_Startall. */
static void prepared(void)
{
    int n = size, *a = calloc((size_t)n * 4, sizeof *a), *b = calloc((size_t)n * 4, sizeof *b);
    int *counts = malloc(sizeof(int) * (size_t)n), *at = malloc(sizeof(int) * (size_t)n);
    MPI_Request r;
    for (int i = 0; i < n; i++) counts[i] = 2, at[i] = 2 * i;
#define PREPARED(given, name, ...) \
    MPI_##name##_init(__VA_ARGS__, MPI_COMM_WORLD, MPI_INFO_NULL, &r), MPI_Start(&r), MPI_Wait(&r, MPI_STATUS_IGNORE), \
    MPI_Startall(1, &r), MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_Request_free(&r), collectives += 2, moved += 2 * (given)
    PREPARED(me == n - 1 ? 12 : 0, Bcast, a, 3, MPI_INT, n - 1);
    PREPARED(4, Gather, me ? a : MPI_IN_PLACE, 1, MPI_INT, b, 1, MPI_INT, 0);
    PREPARED(me ? 0 : 4 * n, Scatter, a, 1, MPI_INT, me ? b : MPI_IN_PLACE, 1, MPI_INT, 0);
    PREPARED(8, Allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 2, MPI_INT);
    PREPARED(8, Allgatherv, a, 2, MPI_INT, b, counts, at, MPI_INT);
    PREPARED(8 * n, Alltoall, a, 2, MPI_INT, b, 2, MPI_INT);
    PREPARED(8 * n, Alltoallv, a, counts, at, MPI_INT, b, counts, at, MPI_INT);
    PREPARED(16, Reduce, a, b, 4, MPI_INT, MPI_SUM, n / 2);
    PREPARED(16, Allreduce, MPI_IN_PLACE, b, 4, MPI_INT, MPI_SUM);
    PREPARED(8 * n, Reduce_scatter_block, a, b, 2, MPI_INT, MPI_SUM);
    PREPARED(8, Scan, a, b, 2, MPI_INT, MPI_SUM);
    MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &r), MPI_Start(&r), collectives++;
    MPI_Wait(&r, MPI_STATUS_IGNORE), MPI_Request_free(&r);
    free(a), free(b), free(counts), free(at);
}

/* A message that is made ready in four parts; three times. */
static void partitioned(void)
{
    int a[12] = {0}, b[12], flag;
    MPI_Request r[2];
    MPI_Psend_init(a, 4, 3, MPI_INT, next, 5, MPI_COMM_WORLD, MPI_INFO_NULL, r);
    MPI_Precv_init(b, 4, 3, MPI_INT, before, 5, MPI_COMM_WORLD, MPI_INFO_NULL, r + 1);
    for (int i = 0; i < 3; i++) {
        MPI_Startall(2, r);
        MPI_Pready(2, r[0]), MPI_Pready_range(0, 1, r[0]), MPI_Pready_list(1, &(int){3}, r[0]);
        for (flag = 0; !flag;) MPI_Parrived(r[1], 1, &flag);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
        SENT(48), GOT(48);
    }
    MPI_Request_free(r), MPI_Request_free(r + 1);
}
#else
static void prepared(void) {}
static void partitioned(void) {}
#endif

/* Counts of MPI 4. */
static void large(void)
{
#if MPI_VERSION >= 4
    int *a = calloc(8 * (size_t)size, sizeof *a), *b = calloc(8 * (size_t)size, sizeof *b);
    MPI_Count *counts = malloc(sizeof *counts * (size_t)size);
    MPI_Aint *at = malloc(sizeof *at * (size_t)size);
    for (int i = 0; i < size; i++) counts[i] = 2, at[i] = 2 * i;
    MPI_Request r[2];
    MPI_Recv_init_c(b, (MPI_Count)4, MPI_INT, before, 1, MPI_COMM_WORLD, r), MPI_Start(r);
    MPI_Isend_c(a, (MPI_Count)4, MPI_INT, next, 1, MPI_COMM_WORLD, r + 1), SENT(16), GOT(16);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE), MPI_Request_free(r);
    MPI_Sendrecv_c(a, (MPI_Count)3, MPI_INT, next, 2, b, (MPI_Count)3, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    SENT(12), GOT(12);
    MPI_Sendrecv_replace_c(a, (MPI_Count)3, MPI_INT, next, 3, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE), SENT(12), GOT(12);
    MPI_Bcast_c(a, (MPI_Count)3, MPI_INT, 0, MPI_COMM_WORLD), collectives++, moved += me ? 0 : 12;
    MPI_Alltoallv_c(a, counts, at, MPI_INT, b, counts, at, MPI_INT, MPI_COMM_WORLD), collectives++, moved += 8 * size;
    MPI_Ireduce_c(a, b, (MPI_Count)4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD, r), collectives++, moved += 16;
    MPI_Wait(r, MPI_STATUS_IGNORE);
    free(a), free(b), free(counts), free(at);
#endif
}

static void regions(void)
{
    const char *name = "solve the equations of the twenty-fourth day";
    for (int i = 0; i < 3; i++) {
        phasewright_region(name);
        phasewright_begin("inner");
        MPI_Barrier(MPI_COMM_WORLD), collectives++;
        phasewright_end("inner");
    }
    MPI_Pcontrol(0);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(1);
}

static const struct { const char *name; void (*run)(void); } parts[] = {
    {"blocking", blocking}, {"completion", completion}, {"persistent", persistent}, {"exchange", exchange},
    {"probes", probes}, {"types", types}, {"collective", collective}, {"groups", groups}, {"windows", windows},
    {"files", files}, {"regions", regions}, {"neighbours", neighbours}, {"targets", targets}, {"shared", shared},
    {"later", later}, {"asked", asked}, {"prepared", prepared}, {"partitioned", partitioned}, {"large", large},
    {"ports", ports},
};

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (me + 1) % size, before = (me + size - 1) % size;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (int i = 1; i < count || count == 1; i++) {
            if (count == 1 || !strcmp(words[i], parts[k].name)) parts[k].run();
            if (count == 1) break;
        }
    char text[200];
    int n = snprintf(text, sizeof text, "%d %ld %ld %ld %ld %ld %ld\n", me, sends, receives, out, in, collectives, moved);
    if (write(1, text, (size_t)n) != n) return 1;
    MPI_Finalize();
    return 0;
}
