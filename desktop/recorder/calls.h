/* Every call that is recorded, once, for C and Fortran. Numbers in the records are places in these lists; each file
 * says in its head what they mean.
 *
 * X(name, name in Fortran, arguments in C, meaning): of the meaning MAKE_... in wrappers.h makes a wrapper. A letter
 * behind a meaning is an argument, in the order of the standard. */
#define ON_COMM(X, rest, ...) X(Comm_##rest, comm_##rest, __VA_ARGS__)
#define ON_WIN(X, rest, ...) X(Win_##rest, win_##rest, __VA_ARGS__)
#define ON_FILE(X, rest, ...) X(File_##rest, file_##rest, __VA_ARGS__)
#define MOVES(X, way) \
    ON_FILE(X, way, 5, BYTES, c, d) ON_FILE(X, way##_all, 5, BYTES, c, d) ON_FILE(X, way##_shared, 5, BYTES, c, d) \
    ON_FILE(X, way##_at, 6, BYTES, d, e) ON_FILE(X, way##_at_all, 6, BYTES, d, e)
#define MOVES_IN_TWO(X, way) \
    ON_FILE(X, way##_ordered, 5, BYTES, c, d) \
    ON_FILE(X, way##_all_begin, 4, BYTES, c, d) ON_FILE(X, way##_all_end, 3, PLAIN) \
    ON_FILE(X, way##_at_all_begin, 5, BYTES, d, e) ON_FILE(X, way##_at_all_end, 3, PLAIN)
#define SINGLE_CALLS(X) \
    X(Init, init, 2, BEGIN, 0) X(Init_thread, init_thread, 4, BEGIN, INTEGER(FORTRAN ? b : d) > 1) \
    X(Finalize, finalize, 0, END, FINISHED) X(Abort, abort, 2, END, ABORTED) X(Pcontrol, pcontrol, 1, LEVEL) \
    X(Send, send, 6, SEND) X(Bsend, bsend, 6, SEND) X(Ssend, ssend, 6, SEND) X(Rsend, rsend, 6, SEND) \
    X(Isend, isend, 7, POST, SENT) X(Ibsend, ibsend, 7, POST, SENT) X(Issend, issend, 7, POST, SENT) \
    X(Irsend, irsend, 7, POST, SENT) X(Recv, recv, 7, RECEIVE) X(Irecv, irecv, 7, POST, RECEIVED) \
    X(Sendrecv, sendrecv, 12, EXCHANGE, k, l, i, g, h) \
    X(Sendrecv_replace, sendrecv_replace, 9, EXCHANGE, h, i, f, b, c) \
    X(Isendrecv, isendrecv, 13, POST_EXCHANGE, k, l, i, j, g, h) \
    X(Isendrecv_replace, isendrecv_replace, 10, POST_EXCHANGE, h, i, f, g, b, c) \
    X(Send_init, send_init, 7, INIT, SENT) X(Bsend_init, bsend_init, 7, INIT, SENT) \
    X(Ssend_init, ssend_init, 7, INIT, SENT) X(Rsend_init, rsend_init, 7, INIT, SENT) \
    X(Recv_init, recv_init, 7, INIT, RECEIVED) X(Start, start, 1, START) X(Startall, startall, 2, STARTALL) \
    X(Probe, probe, 4, PLAIN) X(Iprobe, iprobe, 5, ASKED, d) X(Mprobe, mprobe, 5, MATCH) \
    X(Improbe, improbe, 6, ASK_MATCH) X(Mrecv, mrecv, 5, MATCHED) X(Imrecv, imrecv, 5, POST_MATCHED) \
    X(Wait, wait, 2, WAIT) X(Waitall, waitall, 3, WAITALL) X(Waitany, waitany, 4, WAITANY) \
    X(Waitsome, waitsome, 5, WAITSOME) X(Test, test, 3, TEST) X(Testall, testall, 4, TESTALL) \
    X(Testany, testany, 5, TESTANY) X(Testsome, testsome, 5, TESTSOME) X(Cancel, cancel, 1, CANCEL) \
    X(Request_free, request_free, 1, FREE) X(Request_get_status, request_get_status, 3, STATUS) \
    X(Buffer_attach, buffer_attach, 2, PLAIN) X(Buffer_detach, buffer_detach, 2, PLAIN) \
    X(Psend_init, psend_init, 9, PARTED, SENT) X(Precv_init, precv_init, 9, PARTED, UNSTATED) \
    X(Pready, pready, 2, PLAIN) X(Pready_range, pready_range, 3, PLAIN) X(Pready_list, pready_list, 3, PLAIN) \
    X(Parrived, parrived, 3, ASKED, c) ON_COMM(X, dup, 2, NEW, b) ON_COMM(X, dup_with_info, 3, NEW, c) \
    ON_COMM(X, split, 4, NEW, d) ON_COMM(X, split_type, 5, NEW, e) ON_COMM(X, create, 3, NEW, c) \
    ON_COMM(X, create_group, 4, NEW, d) ON_COMM(X, create_from_group, 5, NEW, e) ON_COMM(X, idup, 3, PLAIN) \
    ON_COMM(X, idup_with_info, 4, PLAIN) X(Intercomm_create, intercomm_create, 6, NEW, f) \
    X(Intercomm_create_from_groups, intercomm_create_from_groups, 7, NEW, g) \
    X(Intercomm_merge, intercomm_merge, 3, NEW, c) X(Cart_create, cart_create, 6, NEW, f) \
    X(Cart_sub, cart_sub, 3, NEW, c) X(Graph_create, graph_create, 6, NEW, f) \
    X(Dist_graph_create, dist_graph_create, 9, NEW, i) \
    X(Dist_graph_create_adjacent, dist_graph_create_adjacent, 10, NEW, j) ON_COMM(X, free, 1, GONE) \
    ON_COMM(X, disconnect, 1, GONE) ON_COMM(X, spawn, 8, NEW, g) ON_COMM(X, spawn_multiple, 9, NEW, h) \
    ON_COMM(X, accept, 5, NEW, e) ON_COMM(X, connect, 5, NEW, e) ON_COMM(X, join, 2, NEW, b) \
    X(Type_free, type_free, 1, TYPE_GONE) ON_WIN(X, create, 6, COUNTED) ON_WIN(X, allocate, 6, COUNTED) \
    ON_WIN(X, allocate_shared, 6, COUNTED) ON_WIN(X, create_dynamic, 3, PLAIN) ON_WIN(X, free, 1, PLAIN) \
    ON_WIN(X, fence, 2, PLAIN) ON_WIN(X, post, 3, PLAIN) ON_WIN(X, start, 3, PLAIN) ON_WIN(X, complete, 1, PLAIN) \
    ON_WIN(X, wait, 1, PLAIN) ON_WIN(X, test, 2, ASKED, b) ON_WIN(X, lock, 4, PLAIN) ON_WIN(X, unlock, 2, PLAIN) \
    ON_WIN(X, lock_all, 2, PLAIN) ON_WIN(X, unlock_all, 1, PLAIN) ON_WIN(X, flush, 2, PLAIN) \
    ON_WIN(X, flush_all, 1, PLAIN) ON_WIN(X, flush_local, 2, PLAIN) ON_WIN(X, flush_local_all, 1, PLAIN) \
    ON_WIN(X, sync, 1, PLAIN) X(Put, put, 8, BYTES, b, c) X(Get, get, 8, BYTES, b, c) \
    X(Accumulate, accumulate, 9, BYTES, b, c) X(Rput, rput, 9, BYTES, b, c) X(Rget, rget, 9, BYTES, b, c) \
    X(Raccumulate, raccumulate, 10, BYTES, b, c) X(Get_accumulate, get_accumulate, 12, BYTES, e, f) \
    X(Rget_accumulate, rget_accumulate, 13, BYTES, e, f) X(Fetch_and_op, fetch_and_op, 7, ONE, c) \
    X(Compare_and_swap, compare_and_swap, 7, ONE, d) ON_FILE(X, open, 5, PLAIN) ON_FILE(X, close, 1, PLAIN) \
    ON_FILE(X, delete, 2, PLAIN) ON_FILE(X, set_size, 2, PLAIN) ON_FILE(X, preallocate, 2, PLAIN) \
    ON_FILE(X, set_view, 6, PLAIN) ON_FILE(X, sync, 1, PLAIN) ON_FILE(X, seek, 3, PLAIN) \
    ON_FILE(X, seek_shared, 3, PLAIN) MOVES(X, read) MOVES(X, write) MOVES(X, iread) MOVES(X, iwrite) \
    MOVES_IN_TWO(X, read) MOVES_IN_TWO(X, write) X(Session_init, session_init, 3, SESSION) \
    X(Session_finalize, session_finalize, 1, NO_SESSION)

/* Collectives, each blocking, without blocking (one argument more) and persistent (two more); the communicator, the
 * root, and the bytes that this process gives, or takes where it only takes, by the standard's definition. Only
 * arguments that it calls significant are looked at. */
#define COLLECTIVES(X) \
    X(Barrier, barrier, 1, 2, 3, a, UNKNOWN, 0) \
    X(Bcast, bcast, 5, 6, 7, e, ROOT(d), BYTES(b, c)) \
    X(Gather, gather, 8, 9, 10, h, ROOT(g), IN_PLACE(a) ? BYTES(e, f) : BYTES(b, c)) \
    X(Gatherv, gatherv, 9, 10, 11, i, ROOT(h), IN_PLACE(a) ? 0 : BYTES(b, c)) \
    X(Scatter, scatter, 8, 9, 10, h, ROOT(g), ROOT(g) == my_rank ? BYTES(b, c) : BYTES(e, f)) \
    X(Scatterv, scatterv, 9, 10, 11, i, ROOT(h), IN_PLACE(e) ? 0 : BYTES(f, g)) \
    X(Allgather, allgather, 7, 8, 9, g, UNKNOWN, IN_PLACE(a) ? BYTES(e, f) : BYTES(b, c)) \
    X(Allgatherv, allgatherv, 8, 9, 10, h, UNKNOWN, IN_PLACE(a) ? 0 : BYTES(b, c)) \
    X(Alltoall, alltoall, 7, 8, 9, g, UNKNOWN, IN_PLACE(a) ? BYTES(e, f) : BYTES(b, c)) \
    X(Alltoallv, alltoallv, 9, 10, 11, i, UNKNOWN, IN_PLACE(a) ? SUM(f) * TYPE(h) : SUM(b) * TYPE(d)) \
    X(Alltoallw, alltoallw, 9, 10, 11, i, UNKNOWN, IN_PLACE(a) ? SUM_OF(f, h) : SUM_OF(b, d)) \
    X(Reduce, reduce, 7, 8, 9, g, ROOT(f), BYTES(c, d)) \
    X(Allreduce, allreduce, 6, 7, 8, f, UNKNOWN, BYTES(c, d)) \
    X(Reduce_scatter, reduce_scatter, 6, 7, 8, f, UNKNOWN, SUM(c) * TYPE(d)) \
    X(Reduce_scatter_block, reduce_scatter_block, 6, 7, 8, f, UNKNOWN, BYTES(c, d)) \
    X(Scan, scan, 6, 7, 8, f, UNKNOWN, BYTES(c, d)) \
    X(Exscan, exscan, 6, 7, 8, f, UNKNOWN, BYTES(c, d)) \
    X(Neighbor_allgather, neighbor_allgather, 7, 8, 9, g, UNKNOWN, BYTES(b, c)) \
    X(Neighbor_allgatherv, neighbor_allgatherv, 8, 9, 10, h, UNKNOWN, BYTES(b, c)) \
    X(Neighbor_alltoall, neighbor_alltoall, 7, 8, 9, g, UNKNOWN, BYTES(b, c)) \
    X(Neighbor_alltoallv, neighbor_alltoallv, 9, 10, 11, i, UNKNOWN, 0) \
    X(Neighbor_alltoallw, neighbor_alltoallw, 9, 10, 11, i, UNKNOWN, 0)

/* Regions of OpenMP; their numbers follow those of the calls. */
#define OPENMP_REGIONS(X) \
    X(PARALLEL, "parallel") X(FOR, "for") X(SECTIONS, "sections") X(SINGLE, "single") X(WORKSHARE, "workshare") \
    X(DISTRIBUTE, "distribute") X(TASKLOOP, "taskloop") X(SCOPE, "scope") X(TASK, "task") X(BARRIER, "barrier") \
    X(IMPLICIT, "implicit barrier") X(TASKWAIT, "taskwait") X(TASKGROUP, "taskgroup") X(LOCK, "set lock") \
    X(CRITICAL, "critical") X(ATOMIC, "atomic") X(ORDERED, "ordered")

#define EACH_NAME(X) SINGLE_CALLS(X) COLLECTIVES(X##_THREE)
#define NUMBER_OF(name, ...) CALL_##name,
#define NUMBER_OF_THREE(name, lower, ...) CALL_##name, CALL_I##lower, CALL_##name##_init,
#define NUMBER_OF_REGION(name, text) OMP_##name,
#define NAME_OF(name, ...) "MPI_" #name,
#define NAME_OF_THREE(name, lower, ...) "MPI_" #name, "MPI_I" #lower, "MPI_" #name "_init",
#define NAME_OF_REGION(name, text) "OpenMP " text,
enum { EACH_NAME(NUMBER_OF) CALLS, NOT_OPENMP = CALLS - 1, OPENMP_REGIONS(NUMBER_OF_REGION) ALL_NAMES };
static const char *const all_names[] = {EACH_NAME(NAME_OF) OPENMP_REGIONS(NAME_OF_REGION)};
