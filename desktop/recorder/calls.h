/* Every call that is recorded, once: its number in the records is its place in this list. New ones go to the end.
 *
 * X(name, arguments, meaning): how many arguments it has in C, and which wrapper is made for it; SPECIAL: written
 * by hand in wrappers.h or recorder.c. Of those with counts there is one more, ending in _c, whose counts are
 * large (MPI 4); it is recorded as the other. */
#define RECORDED_CALLS(X) \
    X(Init, 2, SPECIAL) X(Init_thread, 4, SPECIAL) X(Finalize, 0, SPECIAL) X(Abort, 2, SPECIAL) \
    X(Pcontrol, 1, SPECIAL) \
    X(Send, 6, SPECIAL) X(Bsend, 6, SPECIAL) X(Ssend, 6, SPECIAL) X(Rsend, 6, SPECIAL) \
    X(Isend, 7, SPECIAL) X(Ibsend, 7, SPECIAL) X(Issend, 7, SPECIAL) X(Irsend, 7, SPECIAL) \
    X(Recv, 7, SPECIAL) X(Irecv, 7, SPECIAL) X(Sendrecv, 12, SPECIAL) X(Sendrecv_replace, 9, SPECIAL) \
    X(Isendrecv, 13, SPECIAL) X(Isendrecv_replace, 10, SPECIAL) \
    X(Send_init, 7, SPECIAL) X(Bsend_init, 7, SPECIAL) X(Ssend_init, 7, SPECIAL) X(Rsend_init, 7, SPECIAL) \
    X(Recv_init, 7, SPECIAL) X(Start, 1, SPECIAL) X(Startall, 2, SPECIAL) \
    X(Probe, 4, PLAIN) X(Iprobe, 5, SPECIAL) X(Mprobe, 5, SPECIAL) X(Improbe, 6, SPECIAL) \
    X(Mrecv, 5, SPECIAL) X(Imrecv, 5, SPECIAL) \
    X(Wait, 2, SPECIAL) X(Waitall, 3, SPECIAL) X(Waitany, 4, SPECIAL) X(Waitsome, 5, SPECIAL) \
    X(Test, 3, SPECIAL) X(Testall, 4, SPECIAL) X(Testany, 5, SPECIAL) X(Testsome, 5, SPECIAL) \
    X(Cancel, 1, SPECIAL) X(Request_free, 1, SPECIAL) X(Request_get_status, 3, PLAIN) \
    X(Buffer_attach, 2, PLAIN) X(Buffer_detach, 2, PLAIN) \
    X(Psend_init, 9, PLAIN) X(Precv_init, 9, PLAIN) X(Pready, 2, PLAIN) X(Pready_range, 3, PLAIN) \
    X(Pready_list, 3, PLAIN) X(Parrived, 3, PLAIN) \
    X(Barrier, 1, SPECIAL) X(Bcast, 5, SPECIAL) X(Gather, 8, SPECIAL) X(Gatherv, 9, SPECIAL) \
    X(Scatter, 8, SPECIAL) X(Scatterv, 9, SPECIAL) X(Allgather, 7, SPECIAL) X(Allgatherv, 8, SPECIAL) \
    X(Alltoall, 7, SPECIAL) X(Alltoallv, 9, SPECIAL) X(Alltoallw, 9, SPECIAL) X(Reduce, 7, SPECIAL) \
    X(Allreduce, 6, SPECIAL) X(Reduce_scatter, 6, SPECIAL) X(Reduce_scatter_block, 6, SPECIAL) \
    X(Scan, 6, SPECIAL) X(Exscan, 6, SPECIAL) \
    X(Neighbor_allgather, 7, SPECIAL) X(Neighbor_allgatherv, 8, SPECIAL) X(Neighbor_alltoall, 7, SPECIAL) \
    X(Neighbor_alltoallv, 9, SPECIAL) X(Neighbor_alltoallw, 9, SPECIAL) \
    X(Ibarrier, 2, SPECIAL) X(Ibcast, 6, SPECIAL) X(Igather, 9, SPECIAL) X(Igatherv, 10, SPECIAL) \
    X(Iscatter, 9, SPECIAL) X(Iscatterv, 10, SPECIAL) X(Iallgather, 8, SPECIAL) X(Iallgatherv, 9, SPECIAL) \
    X(Ialltoall, 8, SPECIAL) X(Ialltoallv, 10, SPECIAL) X(Ialltoallw, 10, SPECIAL) X(Ireduce, 8, SPECIAL) \
    X(Iallreduce, 7, SPECIAL) X(Ireduce_scatter, 7, SPECIAL) X(Ireduce_scatter_block, 7, SPECIAL) \
    X(Iscan, 7, SPECIAL) X(Iexscan, 7, SPECIAL) \
    X(Ineighbor_allgather, 8, SPECIAL) X(Ineighbor_allgatherv, 9, SPECIAL) X(Ineighbor_alltoall, 8, SPECIAL) \
    X(Ineighbor_alltoallv, 10, SPECIAL) X(Ineighbor_alltoallw, 10, SPECIAL) \
    X(Comm_dup, 2, NEW_1) X(Comm_dup_with_info, 3, NEW_2) X(Comm_split, 4, NEW_3) X(Comm_split_type, 5, NEW_4) \
    X(Comm_create, 3, NEW_2) X(Comm_create_group, 4, NEW_3) X(Comm_create_from_group, 5, NEW_4) \
    X(Comm_idup, 3, PLAIN) X(Comm_idup_with_info, 4, PLAIN) X(Intercomm_create, 6, NEW_5) \
    X(Intercomm_create_from_groups, 7, NEW_6) X(Intercomm_merge, 3, NEW_2) \
    X(Cart_create, 6, NEW_5) X(Cart_sub, 3, NEW_2) X(Graph_create, 6, NEW_5) X(Dist_graph_create, 9, NEW_8) \
    X(Dist_graph_create_adjacent, 10, NEW_9) X(Comm_free, 1, GONE) X(Comm_disconnect, 1, GONE) \
    X(Comm_spawn, 8, NEW_6) X(Comm_spawn_multiple, 9, NEW_7) X(Comm_accept, 5, NEW_4) X(Comm_connect, 5, NEW_4) \
    X(Comm_join, 2, NEW_1) X(Type_free, 1, SPECIAL) \
    X(Win_create, 6, COUNTED) X(Win_allocate, 6, COUNTED) X(Win_allocate_shared, 6, COUNTED) \
    X(Win_create_dynamic, 3, PLAIN) X(Win_free, 1, PLAIN) X(Win_fence, 2, PLAIN) X(Win_post, 3, PLAIN) \
    X(Win_start, 3, PLAIN) X(Win_complete, 1, PLAIN) X(Win_wait, 1, PLAIN) X(Win_test, 2, PLAIN) \
    X(Win_lock, 4, PLAIN) X(Win_unlock, 2, PLAIN) X(Win_lock_all, 2, PLAIN) X(Win_unlock_all, 1, PLAIN) \
    X(Win_flush, 2, PLAIN) X(Win_flush_all, 1, PLAIN) X(Win_flush_local, 2, PLAIN) X(Win_flush_local_all, 1, PLAIN) \
    X(Win_sync, 1, PLAIN) \
    X(Put, 8, ORIGIN) X(Get, 8, ORIGIN) X(Accumulate, 9, ORIGIN) X(Rput, 9, ORIGIN) X(Rget, 9, ORIGIN) \
    X(Raccumulate, 10, ORIGIN) X(Get_accumulate, 12, RESULT) X(Rget_accumulate, 13, RESULT) \
    X(Fetch_and_op, 7, ONE_2) X(Compare_and_swap, 7, ONE_3) \
    X(File_open, 5, PLAIN) X(File_close, 1, PLAIN) X(File_delete, 2, PLAIN) X(File_set_size, 2, PLAIN) \
    X(File_preallocate, 2, PLAIN) X(File_set_view, 6, PLAIN) X(File_sync, 1, PLAIN) X(File_seek, 3, PLAIN) \
    X(File_seek_shared, 3, PLAIN) \
    X(File_read, 5, FILE_2) X(File_read_all, 5, FILE_2) X(File_read_shared, 5, FILE_2) X(File_read_ordered, 5, FILE_2) \
    X(File_write, 5, FILE_2) X(File_write_all, 5, FILE_2) X(File_write_shared, 5, FILE_2) \
    X(File_write_ordered, 5, FILE_2) \
    X(File_read_at, 6, FILE_3) X(File_read_at_all, 6, FILE_3) X(File_write_at, 6, FILE_3) \
    X(File_write_at_all, 6, FILE_3) \
    X(File_iread, 5, FILE_2) X(File_iread_all, 5, FILE_2) X(File_iread_shared, 5, FILE_2) \
    X(File_iwrite, 5, FILE_2) X(File_iwrite_all, 5, FILE_2) X(File_iwrite_shared, 5, FILE_2) \
    X(File_iread_at, 6, FILE_3) X(File_iread_at_all, 6, FILE_3) X(File_iwrite_at, 6, FILE_3) \
    X(File_iwrite_at_all, 6, FILE_3) \
    X(File_read_all_begin, 4, FILE_2) X(File_read_all_end, 3, PLAIN) X(File_write_all_begin, 4, FILE_2) \
    X(File_write_all_end, 3, PLAIN) X(File_read_at_all_begin, 5, FILE_3) X(File_read_at_all_end, 3, PLAIN) \
    X(File_write_at_all_begin, 5, FILE_3) X(File_write_at_all_end, 3, PLAIN) \
    X(Session_init, 3, PLAIN) X(Session_finalize, 1, PLAIN)

enum {
#define X(name, arguments, meaning) CALL_##name,
    RECORDED_CALLS(X)
#undef X
    CALLS
};

static const char *const call_names[] = {
#define X(name, arguments, meaning) #name,
    RECORDED_CALLS(X)
#undef X
};

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
