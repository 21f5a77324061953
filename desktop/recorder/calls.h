/* Every call that is recorded, once, for C and Fortran. Numbers in the records are places in these lists; each file
 * says in its head what they mean.
 *
 * X(name, name in Fortran, arguments in C, meaning): for the meaning, a wrapper is made in wrappers.h; SPECIAL: by hand
 * in recorder.c. A letter in a meaning is an argument's, in the order of the standard. */
#define SINGLE_CALLS(X) \
    X(Init, init, 2, SPECIAL) X(Init_thread, init_thread, 4, SPECIAL) X(Finalize, finalize, 0, SPECIAL) \
    X(Abort, abort, 2, SPECIAL) X(Pcontrol, pcontrol, 1, SPECIAL) X(Send, send, 6, SEND) X(Bsend, bsend, 6, SEND) \
    X(Ssend, ssend, 6, SEND) X(Rsend, rsend, 6, SEND) X(Isend, isend, 7, POST_SENT) X(Ibsend, ibsend, 7, POST_SENT) \
    X(Issend, issend, 7, POST_SENT) X(Irsend, irsend, 7, POST_SENT) X(Recv, recv, 7, RECEIVE) \
    X(Irecv, irecv, 7, POST_RECEIVED) X(Sendrecv, sendrecv, 12, EXCHANGE) \
    X(Sendrecv_replace, sendrecv_replace, 9, REPLACE) X(Isendrecv, isendrecv, 13, POST_BOTH) \
    X(Isendrecv_replace, isendrecv_replace, 10, POST_REPLACE) X(Send_init, send_init, 7, INIT_SENT) \
    X(Bsend_init, bsend_init, 7, INIT_SENT) X(Ssend_init, ssend_init, 7, INIT_SENT) \
    X(Rsend_init, rsend_init, 7, INIT_SENT) X(Recv_init, recv_init, 7, INIT_RECEIVED) X(Start, start, 1, START) \
    X(Startall, startall, 2, STARTALL) X(Probe, probe, 4, PLAIN) X(Iprobe, iprobe, 5, ASKED_d) \
    X(Mprobe, mprobe, 5, MATCH) X(Improbe, improbe, 6, ASK_MATCH) X(Mrecv, mrecv, 5, MATCHED) \
    X(Imrecv, imrecv, 5, POST_MATCHED) X(Wait, wait, 2, WAIT) X(Waitall, waitall, 3, WAITALL) \
    X(Waitany, waitany, 4, WAITANY) X(Waitsome, waitsome, 5, WAITSOME) X(Test, test, 3, TEST) \
    X(Testall, testall, 4, TESTALL) X(Testany, testany, 5, TESTANY) X(Testsome, testsome, 5, TESTSOME) \
    X(Cancel, cancel, 1, CANCEL) X(Request_free, request_free, 1, FREE) \
    X(Request_get_status, request_get_status, 3, STATUS) X(Buffer_attach, buffer_attach, 2, PLAIN) \
    X(Buffer_detach, buffer_detach, 2, PLAIN) X(Psend_init, psend_init, 9, PARTED_SENT) \
    X(Precv_init, precv_init, 9, PARTED_RECEIVED) X(Pready, pready, 2, PLAIN) X(Pready_range, pready_range, 3, PLAIN) \
    X(Pready_list, pready_list, 3, PLAIN) X(Parrived, parrived, 3, ASKED_c) X(Comm_dup, comm_dup, 2, NEW_b) \
    X(Comm_dup_with_info, comm_dup_with_info, 3, NEW_c) X(Comm_split, comm_split, 4, NEW_d) \
    X(Comm_split_type, comm_split_type, 5, NEW_e) X(Comm_create, comm_create, 3, NEW_c) \
    X(Comm_create_group, comm_create_group, 4, NEW_d) X(Comm_create_from_group, comm_create_from_group, 5, NEW_e) \
    X(Comm_idup, comm_idup, 3, PLAIN) X(Comm_idup_with_info, comm_idup_with_info, 4, PLAIN) \
    X(Intercomm_create, intercomm_create, 6, NEW_f) \
    X(Intercomm_create_from_groups, intercomm_create_from_groups, 7, NEW_g) \
    X(Intercomm_merge, intercomm_merge, 3, NEW_c) X(Cart_create, cart_create, 6, NEW_f) \
    X(Cart_sub, cart_sub, 3, NEW_c) X(Graph_create, graph_create, 6, NEW_f) \
    X(Dist_graph_create, dist_graph_create, 9, NEW_i) \
    X(Dist_graph_create_adjacent, dist_graph_create_adjacent, 10, NEW_j) X(Comm_free, comm_free, 1, GONE) \
    X(Comm_disconnect, comm_disconnect, 1, GONE) X(Comm_spawn, comm_spawn, 8, NEW_g) \
    X(Comm_spawn_multiple, comm_spawn_multiple, 9, NEW_h) X(Comm_accept, comm_accept, 5, NEW_e) \
    X(Comm_connect, comm_connect, 5, NEW_e) X(Comm_join, comm_join, 2, NEW_b) X(Type_free, type_free, 1, TYPE_GONE) \
    X(Win_create, win_create, 6, COUNTED) X(Win_allocate, win_allocate, 6, COUNTED) \
    X(Win_allocate_shared, win_allocate_shared, 6, COUNTED) X(Win_create_dynamic, win_create_dynamic, 3, PLAIN) \
    X(Win_free, win_free, 1, PLAIN) X(Win_fence, win_fence, 2, PLAIN) X(Win_post, win_post, 3, PLAIN) \
    X(Win_start, win_start, 3, PLAIN) X(Win_complete, win_complete, 1, PLAIN) X(Win_wait, win_wait, 1, PLAIN) \
    X(Win_test, win_test, 2, ASKED_b) X(Win_lock, win_lock, 4, PLAIN) X(Win_unlock, win_unlock, 2, PLAIN) \
    X(Win_lock_all, win_lock_all, 2, PLAIN) X(Win_unlock_all, win_unlock_all, 1, PLAIN) \
    X(Win_flush, win_flush, 2, PLAIN) X(Win_flush_all, win_flush_all, 1, PLAIN) \
    X(Win_flush_local, win_flush_local, 2, PLAIN) X(Win_flush_local_all, win_flush_local_all, 1, PLAIN) \
    X(Win_sync, win_sync, 1, PLAIN) X(Put, put, 8, BYTES_bc) X(Get, get, 8, BYTES_bc) \
    X(Accumulate, accumulate, 9, BYTES_bc) X(Rput, rput, 9, BYTES_bc) X(Rget, rget, 9, BYTES_bc) \
    X(Raccumulate, raccumulate, 10, BYTES_bc) X(Get_accumulate, get_accumulate, 12, BYTES_ef) \
    X(Rget_accumulate, rget_accumulate, 13, BYTES_ef) X(Fetch_and_op, fetch_and_op, 7, ONE_c) \
    X(Compare_and_swap, compare_and_swap, 7, ONE_d) X(File_open, file_open, 5, PLAIN) \
    X(File_close, file_close, 1, PLAIN) X(File_delete, file_delete, 2, PLAIN) \
    X(File_set_size, file_set_size, 2, PLAIN) X(File_preallocate, file_preallocate, 2, PLAIN) \
    X(File_set_view, file_set_view, 6, PLAIN) X(File_sync, file_sync, 1, PLAIN) X(File_seek, file_seek, 3, PLAIN) \
    X(File_seek_shared, file_seek_shared, 3, PLAIN) X(File_read, file_read, 5, BYTES_cd) \
    X(File_read_all, file_read_all, 5, BYTES_cd) X(File_read_shared, file_read_shared, 5, BYTES_cd) \
    X(File_read_ordered, file_read_ordered, 5, BYTES_cd) X(File_write, file_write, 5, BYTES_cd) \
    X(File_write_all, file_write_all, 5, BYTES_cd) X(File_write_shared, file_write_shared, 5, BYTES_cd) \
    X(File_write_ordered, file_write_ordered, 5, BYTES_cd) X(File_read_at, file_read_at, 6, BYTES_de) \
    X(File_read_at_all, file_read_at_all, 6, BYTES_de) X(File_write_at, file_write_at, 6, BYTES_de) \
    X(File_write_at_all, file_write_at_all, 6, BYTES_de) X(File_iread, file_iread, 5, BYTES_cd) \
    X(File_iread_all, file_iread_all, 5, BYTES_cd) X(File_iread_shared, file_iread_shared, 5, BYTES_cd) \
    X(File_iwrite, file_iwrite, 5, BYTES_cd) X(File_iwrite_all, file_iwrite_all, 5, BYTES_cd) \
    X(File_iwrite_shared, file_iwrite_shared, 5, BYTES_cd) X(File_iread_at, file_iread_at, 6, BYTES_de) \
    X(File_iread_at_all, file_iread_at_all, 6, BYTES_de) X(File_iwrite_at, file_iwrite_at, 6, BYTES_de) \
    X(File_iwrite_at_all, file_iwrite_at_all, 6, BYTES_de) X(File_read_all_begin, file_read_all_begin, 4, BYTES_cd) \
    X(File_read_all_end, file_read_all_end, 3, PLAIN) X(File_write_all_begin, file_write_all_begin, 4, BYTES_cd) \
    X(File_write_all_end, file_write_all_end, 3, PLAIN) X(File_read_at_all_begin, file_read_at_all_begin, 5, BYTES_de) \
    X(File_read_at_all_end, file_read_at_all_end, 3, PLAIN) \
    X(File_write_at_all_begin, file_write_at_all_begin, 5, BYTES_de) \
    X(File_write_at_all_end, file_write_at_all_end, 3, PLAIN) X(Session_init, session_init, 3, SESSION) \
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

#define EACH_NAME(X) SINGLE_CALLS(X) COLLECTIVES(X##_THREE)
#define NUMBER_OF(name, ...) CALL_##name,
#define NUMBER_OF_THREE(name, lower, ...) CALL_##name, CALL_I##lower, CALL_##name##_init,
#define NAME_OF(name, ...) #name,
#define NAME_OF_THREE(name, lower, ...) #name, "I" #lower, #name "_init",
enum { EACH_NAME(NUMBER_OF) CALLS };
static const char *const call_names[] = {EACH_NAME(NAME_OF)};

/* Regions of OpenMP; their numbers follow those of the calls. */
#define OPENMP_REGIONS(X) \
    X(PARALLEL, "parallel") X(FOR, "for") X(SECTIONS, "sections") X(SINGLE, "single") X(WORKSHARE, "workshare") \
    X(DISTRIBUTE, "distribute") X(TASKLOOP, "taskloop") X(SCOPE, "scope") X(TASK, "task") X(BARRIER, "barrier") \
    X(IMPLICIT, "implicit barrier") X(TASKWAIT, "taskwait") X(TASKGROUP, "taskgroup") X(LOCK, "set lock") \
    X(CRITICAL, "critical") X(ATOMIC, "atomic") X(ORDERED, "ordered")

enum {
    NOT_OPENMP = CALLS - 1,
#define X(name, text) OMP_##name,
    OPENMP_REGIONS(X)
#undef X
    ALL_NAMES
};

static const char *const openmp_names[] = {
#define X(name, text) text,
    OPENMP_REGIONS(X)
#undef X
};
