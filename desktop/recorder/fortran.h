/* The entries of Fortran: mpi_send_ of mpif.h and `use mpi`, mpi_send_f08_ and mpi_send_f08ts_ of `use mpi_f08`.
 *
 * All arguments are addresses and handles are integers. Some libraries end up in the C call of that name, whose
 * wrapper then records it; where none was entered, it is recorded here. More arguments than a call has are passed
 * on: the lengths of its texts, and what the callee never looks at. */

#define P14 P13, Word n
#define V14 V13, n
#define COMM(p) communicator(F2C(Comm, p))
#define TYPE(p) type_size(F2C(Type, p))
#define BYTES(count, type) ((uint64_t)INTEGER(count) * (uint64_t)TYPE(type))

/* `last` is done in any case, the rest where the call is to be recorded. */
#define ENTRY(symbol_, name, before, args, last, ...) \
    API void symbol_(P14) \
    { \
        enum { AS = CALL_##name }; \
        uint32_t entered_ = output.entered; \
        uint64_t begin_ = tick(); \
        before; \
        NEXT(symbol_) args; \
        uint64_t end_ = tick(); \
        (void)end_; \
        if (output.entered == entered_ && !output.depth) { __VA_ARGS__ } \
        last; \
    }
#define ALL_ENTRIES(lower, name, before, args, last, ...) \
    ENTRY(lower##_, name, before, args, last, __VA_ARGS__) \
    ENTRY(lower##_f08_, name, before, args, last, __VA_ARGS__) \
    ENTRY(lower##_f08ts_, name, before, args, last, __VA_ARGS__)
#define IF_ON if (recording && !off)
#define FORTRAN(lower, name, ...) ALL_ENTRIES(mpi_##lower, name, , (V14), , IF_ON { __VA_ARGS__ })

/* ---- Begin and end ---- */
#define BEGIN(lower, name, several) ALL_ENTRIES(mpi_##lower, name, , (V14), , finished_begin(AS, begin_, several);)
BEGIN(init, Init, 0)
BEGIN(init_thread, Init_thread, INTEGER(b) > 1)
/* All is written before the library ends, and the C call that it may come to finds nothing to record. */
#define END(lower, name, how) \
    ALL_ENTRIES(mpi_##lower, name, \
        if (recording) { put_call(AS, begin_, tick(), 0, UNKNOWN, 0, 0); end(how); }, (V14), ,)
END(finalize, Finalize, FINISHED)
END(abort, Abort, ABORTED)

/* ---- Point to point ---- */
#define F_SEND(lower, name) FORTRAN(lower, name, \
    Communicator *q = COMM(f); NOTE(q->id, world_rank(q, INTEGER(d)), INTEGER(e), BYTES(b, c));)
F_SEND(send, Send) F_SEND(bsend, Bsend) F_SEND(ssend, Ssend) F_SEND(rsend, Rsend)
#define F_POST(lower, name, kind, first) FORTRAN(lower, name, \
    Communicator *q = COMM(f); \
    int peer = world_rank(q, INTEGER(d)), tag = INTEGER(e); \
    uint64_t bytes = BYTES(b, c); \
    uint32_t number = remember(REQUEST(g), kind, !(first), q, peer, tag, bytes); \
    NOTE(q->id, (first) ? peer : UNKNOWN, tag, (first) ? amount(bytes, number) : 0);)
F_POST(isend, Isend, SENT, 1) F_POST(ibsend, Ibsend, SENT, 1) F_POST(issend, Issend, SENT, 1)
F_POST(irsend, Irsend, SENT, 1) F_POST(irecv, Irecv, RECEIVED, 1)
F_POST(send_init, Send_init, SENT, 0) F_POST(bsend_init, Bsend_init, SENT, 0)
F_POST(ssend_init, Ssend_init, SENT, 0) F_POST(rsend_init, Rsend_init, SENT, 0)
F_POST(recv_init, Recv_init, RECEIVED, 0)
FORTRAN(start, Start, NOTE(0, UNKNOWN, 0, 0); started(REQUEST(a), begin_);)
FORTRAN(startall, Startall, NOTE(0, UNKNOWN, INTEGER(a), 0);
        for (int32_t k_ = 0; k_ < INTEGER(a); k_++) started(REQUEST(b + 4 * k_), begin_);)
FORTRAN(cancel, Cancel, NOTE(0, UNKNOWN, 0, 0); change_request(REQUEST(a), 1, 0, 0);)

/* A status of our own where the program wants none. */
#define F_STATUS(given) int own_[16]; int *s_ = (given) == fortran_ignore_status ? own_ : (int *)(given)
ALL_ENTRIES(mpi_recv, Recv, F_STATUS(g);, (a, b, c, d, e, f, (Word)s_, h, i, j, k, l, m, n), ,
    IF_ON {
        Communicator *q = COMM(f);
        int source = INTEGER(d) == any_source ? s_[status_source] : INTEGER(d);
        int none = INTEGER(d) == nobody;
        NOTE(q->id, world_rank(q, source), none ? 0 : s_[status_tag], none ? 0 : status_bytes(s_, BYTES(b, c)));
    })
ALL_ENTRIES(mpi_sendrecv, Sendrecv, F_STATUS(l);, (a, b, c, d, e, f, g, h, i, j, k, (Word)s_, m, n), ,
    IF_ON {
        Communicator *q = COMM(k);
        NOTE(q->id, world_rank(q, INTEGER(d)), INTEGER(e), BYTES(b, c));
        if (INTEGER(i) != nobody) received(q, s_, end_, BYTES(g, h));
    })
ALL_ENTRIES(mpi_sendrecv_replace, Sendrecv_replace, F_STATUS(i);, (a, b, c, d, e, f, g, h, (Word)s_, j, k, l, m, n), ,
    IF_ON {
        Communicator *q = COMM(h);
        uint64_t bytes = BYTES(b, c);
        NOTE(q->id, world_rank(q, INTEGER(d)), INTEGER(e), bytes);
        if (INTEGER(f) != nobody) received(q, s_, end_, bytes);
    })
FORTRAN(probe, Probe, NOTE(0, UNKNOWN, 0, 0);)
FORTRAN(iprobe, Iprobe, if (INTEGER(d)) NOTE(0, UNKNOWN, 0, 0); else put_failed_test(AS, begin_, end_);)

/* ---- Completion ---- */
ALL_ENTRIES(mpi_wait, Wait, F_STATUS(b); Word request = recording ? REQUEST(a) : 0;, (a, (Word)s_, c, d, e, f, g, h, i, j, k, l, m, n), ,
    IF_ON {
        NOTE(0, UNKNOWN, 0, 0); completed(request, s_, end_);
    })
ALL_ENTRIES(mpi_test, Test, F_STATUS(c); Word request = recording ? REQUEST(a) : 0;, (a, b, (Word)s_, d, e, f, g, h, i, j, k, l, m, n), ,
    IF_ON {
        if (!INTEGER(b)) put_failed_test(AS, begin_, end_);
        else { NOTE(0, UNKNOWN, 0, 0); completed(request, s_, end_); }
    })
ALL_ENTRIES(mpi_request_free, Request_free, if (recording) change_request(REQUEST(a), 0, 0, 1);, (V14), ,
    IF_ON NOTE(0, UNKNOWN, 0, 0);)

#define F_MANY(lower, name, given, ignored, complete, times, which, place) \
    ALL_ENTRIES(mpi_##lower, name, \
        Many many; Word before_ = given; look_at(&many, INTEGER(a), b, &given, ignored, 1);, \
        (V14), leave_many(&many, before_ != given), \
        IF_ON { \
            if (!(complete)) put_failed_test(AS, begin_, end_); \
            else if (many.handles) { \
                int times_ = times; \
                NOTE(0, UNKNOWN, times_, 0); \
                for (int n_ = 0; n_ < times_; n_++) \
                    completed(many.handles[which], many.statuses == (char *)ignored ? NULL : \
                              (const int *)(many.statuses + (size_t)(place) * (size_t)status_size), end_); \
            } \
        })
#define F_SOME(p) (INTEGER(p) > 0 ? INTEGER(p) : 0)
F_MANY(waitall, Waitall, c, fortran_ignore_statuses, 1, INTEGER(a), n_, n_)
F_MANY(testall, Testall, d, fortran_ignore_statuses, INTEGER(c), INTEGER(a), n_, n_)
F_MANY(waitany, Waitany, d, fortran_ignore_status, 1, INTEGER(c) >= 1 && INTEGER(c) <= INTEGER(a), INTEGER(c) - 1, 0)
F_MANY(testany, Testany, e, fortran_ignore_status, INTEGER(d), INTEGER(c) >= 1 && INTEGER(c) <= INTEGER(a), INTEGER(c) - 1, 0)
F_MANY(waitsome, Waitsome, e, fortran_ignore_statuses, 1, F_SOME(c), ((int32_t *)d)[n_] - 1, n_)
F_MANY(testsome, Testsome, e, fortran_ignore_statuses, INTEGER(c) != 0, F_SOME(c), ((int32_t *)d)[n_] - 1, n_)

/* ---- Collectives ---- */
#define F_COLLECTIVE(lower, name, comm, root, bytes) FORTRAN(lower, name, \
    Communicator *q = COMM(comm); \
    int between = q->between; \
    NOTE(q->id, between ? UNKNOWN : (root), 0, between ? 0 : (bytes));)
#define F_BOTH(lower, name, ilower, iname, comm, root, bytes) \
    F_COLLECTIVE(lower, name, comm, root, bytes) F_COLLECTIVE(ilower, iname, comm, root, bytes)
#define F_ROOT(p) world_rank(q, INTEGER(p))
F_BOTH(barrier, Barrier, ibarrier, Ibarrier, a, UNKNOWN, 0)
F_BOTH(bcast, Bcast, ibcast, Ibcast, e, F_ROOT(d), BYTES(b, c))
F_BOTH(gather, Gather, igather, Igather, h, F_ROOT(g), F_ROOT(g) == my_rank ? BYTES(e, f) : BYTES(b, c))
F_BOTH(gatherv, Gatherv, igatherv, Igatherv, i, F_ROOT(h), F_ROOT(h) == my_rank ? 0 : BYTES(b, c))
F_BOTH(scatter, Scatter, iscatter, Iscatter, h, F_ROOT(g), F_ROOT(g) == my_rank ? BYTES(b, c) : BYTES(e, f))
F_BOTH(scatterv, Scatterv, iscatterv, Iscatterv, i, F_ROOT(h), F_ROOT(h) == my_rank ? 0 : BYTES(f, g))
F_BOTH(allgather, Allgather, iallgather, Iallgather, g, UNKNOWN, BYTES(e, f))
F_BOTH(allgatherv, Allgatherv, iallgatherv, Iallgatherv, h, UNKNOWN, 0)
F_BOTH(alltoall, Alltoall, ialltoall, Ialltoall, g, UNKNOWN, BYTES(e, f))
F_BOTH(alltoallv, Alltoallv, ialltoallv, Ialltoallv, i, UNKNOWN, sum(f, 0, q, 0) * (uint64_t)TYPE(h))
F_BOTH(alltoallw, Alltoallw, ialltoallw, Ialltoallw, i, UNKNOWN, 0)
F_BOTH(reduce, Reduce, ireduce, Ireduce, g, F_ROOT(f), BYTES(c, d))
F_BOTH(allreduce, Allreduce, iallreduce, Iallreduce, f, UNKNOWN, BYTES(c, d))
F_BOTH(reduce_scatter, Reduce_scatter, ireduce_scatter, Ireduce_scatter, f, UNKNOWN, sum(c, 0, q, 0) * (uint64_t)TYPE(d))
F_BOTH(reduce_scatter_block, Reduce_scatter_block, ireduce_scatter_block, Ireduce_scatter_block, f, UNKNOWN, BYTES(c, d))
F_BOTH(scan, Scan, iscan, Iscan, f, UNKNOWN, BYTES(c, d))
F_BOTH(exscan, Exscan, iexscan, Iexscan, f, UNKNOWN, BYTES(c, d))

/* ---- Calls of which only the time counts, and those that make or end communicators ---- */
#define F_PLAIN(lower, name) FORTRAN(lower, name, NOTE(0, UNKNOWN, 0, 0);)
#define F_BYTES(lower, name, count, type) FORTRAN(lower, name, NOTE(0, UNKNOWN, 0, BYTES(count, type));)
#define F_NEW(lower, name, p) FORTRAN(lower, name, NOTE(0, UNKNOWN, 0, 0); made(F2C(Comm, p));)
#define F_GONE(lower, name) \
    ALL_ENTRIES(mpi_##lower, name, if (recording) forget_communicator(F2C(Comm, a));, (V14), , \
        IF_ON NOTE(0, UNKNOWN, 0, 0);)
F_NEW(comm_dup, Comm_dup, b) F_NEW(comm_split, Comm_split, d) F_NEW(comm_split_type, Comm_split_type, e)
F_NEW(comm_create, Comm_create, c) F_NEW(comm_create_group, Comm_create_group, d)
F_NEW(intercomm_create, Intercomm_create, f) F_NEW(intercomm_merge, Intercomm_merge, c)
F_NEW(cart_create, Cart_create, f) F_NEW(cart_sub, Cart_sub, c) F_NEW(graph_create, Graph_create, f)
F_NEW(dist_graph_create_adjacent, Dist_graph_create_adjacent, j)
F_GONE(comm_free, Comm_free) F_GONE(comm_disconnect, Comm_disconnect)
F_PLAIN(neighbor_allgather, Neighbor_allgather) F_PLAIN(neighbor_alltoall, Neighbor_alltoall)
F_PLAIN(neighbor_alltoallv, Neighbor_alltoallv)
F_PLAIN(win_create, Win_create) F_PLAIN(win_allocate, Win_allocate) F_PLAIN(win_free, Win_free)
F_PLAIN(win_fence, Win_fence) F_PLAIN(win_lock, Win_lock) F_PLAIN(win_unlock, Win_unlock)
F_PLAIN(win_lock_all, Win_lock_all) F_PLAIN(win_unlock_all, Win_unlock_all) F_PLAIN(win_flush, Win_flush)
F_PLAIN(win_flush_all, Win_flush_all) F_PLAIN(win_post, Win_post) F_PLAIN(win_start, Win_start)
F_PLAIN(win_complete, Win_complete) F_PLAIN(win_wait, Win_wait)
F_BYTES(put, Put, b, c) F_BYTES(get, Get, b, c) F_BYTES(accumulate, Accumulate, b, c) F_BYTES(rput, Rput, b, c)
F_BYTES(rget, Rget, b, c) F_BYTES(raccumulate, Raccumulate, b, c) F_BYTES(get_accumulate, Get_accumulate, e, f)
FORTRAN(fetch_and_op, Fetch_and_op, NOTE(0, UNKNOWN, 0, TYPE(c));)
FORTRAN(compare_and_swap, Compare_and_swap, NOTE(0, UNKNOWN, 0, TYPE(d));)
F_PLAIN(file_open, File_open) F_PLAIN(file_close, File_close) F_PLAIN(file_delete, File_delete)
F_PLAIN(file_set_view, File_set_view) F_PLAIN(file_sync, File_sync)
F_BYTES(file_read, File_read, c, d) F_BYTES(file_read_all, File_read_all, c, d) F_BYTES(file_read_at, File_read_at, d, e)
F_BYTES(file_read_at_all, File_read_at_all, d, e) F_BYTES(file_write, File_write, c, d) F_BYTES(file_write_all, File_write_all, c, d)
F_BYTES(file_write_at, File_write_at, d, e) F_BYTES(file_write_at_all, File_write_at_all, d, e)
