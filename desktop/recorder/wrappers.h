/* The wrappers of the calls of C. Arguments are named a, b, c, ... in the order of the standard.
 *
 * Only arguments that the standard calls significant are looked at, and only after the call has succeeded. */

#define P0 void
#define P1 Word a
#define P2 P1, Word b
#define P3 P2, Word c
#define P4 P3, Word d
#define P5 P4, Word e
#define P6 P5, Word f
#define P7 P6, Word g
#define P8 P7, Word h
#define P9 P8, Word i
#define P10 P9, Word j
#define P11 P10, Word k
#define P12 P11, Word l
#define P13 P12, Word m
#define V0
#define V1 a
#define V2 V1, b
#define V3 V2, c
#define V4 V3, d
#define V5 V4, e
#define V6 V5, f
#define V7 V6, g
#define V8 V7, h
#define V9 V8, i
#define V10 V9, j
#define V11 V10, k
#define V12 V11, l
#define V13 V12, m

/* A wrapper for the call `name`, recorded as `as`: what stands in `...` is done after it has succeeded. */
#define CALLED(name, as, n, before, args, ...) \
    API Word MPI_##name(P##n) \
    { \
        enum { AS = CALL_##as }; \
        before \
        BEFORE; \
        Word x = NEXT(MPI_##name) args; \
        AFTER; \
        if (record_) { \
            if (LIKELY(!x)) { __VA_ARGS__ } \
            else put_call(AS, begin_, end_, 0, UNKNOWN, 0, 0); \
        } \
        return x; \
    }
#define WRAP(name, as, n, ...) CALLED(name, as, n, , (V##n), __VA_ARGS__)
#define NOTE(comm, peer, tag, bytes) put_call(AS, begin_, end_, comm, peer, tag, bytes)

/* ---- Calls of which only the time counts ---- */
#define MAKE_SPECIAL(name, n)
#define MAKE_PLAIN(name, n) WRAP(name, name, n, NOTE(0, UNKNOWN, 0, 0);)
#define MAKE_COUNTED(name, n) MAKE_PLAIN(name, n) WRAP(name##_c, name, n, NOTE(0, UNKNOWN, 0, 0);)
#define WITH_BYTES(name, n, count, type) \
    WRAP(name, name, n, NOTE(0, UNKNOWN, 0, (uint64_t)(int)count * type_size(type));) \
    WRAP(name##_c, name, n, NOTE(0, UNKNOWN, 0, (uint64_t)count * type_size(type));)
#define MAKE_ORIGIN(name, n) WITH_BYTES(name, n, b, c)
#define MAKE_RESULT(name, n) WITH_BYTES(name, n, e, f)
#define MAKE_ONE_2(name, n) WRAP(name, name, n, NOTE(0, UNKNOWN, 0, type_size(c));)
#define MAKE_ONE_3(name, n) WRAP(name, name, n, NOTE(0, UNKNOWN, 0, type_size(d));)
#define MAKE_FILE_2(name, n) WITH_BYTES(name, n, c, d)
#define MAKE_FILE_3(name, n) WITH_BYTES(name, n, d, e)
/* One that makes a communicator: the argument of that index, if this process is in it. */
#define MAKE_NEW(name, n, p) WRAP(name, name, n, NOTE(0, UNKNOWN, 0, 0); made(handle_at(p, 0));)
#define MAKE_NEW_1(name, n) MAKE_NEW(name, n, b)
#define MAKE_NEW_2(name, n) MAKE_NEW(name, n, c)
#define MAKE_NEW_3(name, n) MAKE_NEW(name, n, d)
#define MAKE_NEW_4(name, n) MAKE_NEW(name, n, e)
#define MAKE_NEW_5(name, n) MAKE_NEW(name, n, f)
#define MAKE_NEW_6(name, n) MAKE_NEW(name, n, g)
#define MAKE_NEW_7(name, n) MAKE_NEW(name, n, h)
#define MAKE_NEW_8(name, n) MAKE_NEW(name, n, i)
#define MAKE_NEW_9(name, n) MAKE_NEW(name, n, j)

static void made(Word comm)
{
    Word null = library == OPEN_MPI ? (Word)data("ompi_mpi_comm_null") : library == MPICH ? 0x04000000 : 0x100;
    if (handle(comm) != null) communicator(comm);
}

/* The handle is another's as soon as the call is over, so it is forgotten before. */
#define MAKE_GONE(name, n) \
    API Word MPI_##name(Word a) \
    { \
        BEFORE; \
        if (recording) forget_communicator(handle_at(a, 0)); \
        Word x = NEXT(MPI_##name)(a); \
        AFTER; \
        if (record_) DONE(name, 0, UNKNOWN, 0, 0); \
        return x; \
    }

#define X(name, arguments, meaning) MAKE_##meaning(name, arguments)
RECORDED_CALLS(X)
#undef X

API Word MPI_Type_free(Word a)
{
    forget_type(handle_at(a, 0));
    return NEXT(MPI_Type_free)(a);
}

/* ---- Point to point ---- */

/* Each with int counts, and as MPI 4 has it with large ones. */
#define BOTH(MAKE, name, ...) MAKE(name, name, (int), ##__VA_ARGS__) MAKE(name##_c, name, , ##__VA_ARGS__)

#define SEND(name, as, COUNT) WRAP(name, as, 6, \
    Communicator *q = communicator(f); \
    NOTE(q->id, world_rank(q, (int)d), (int)e, (uint64_t)COUNT b * type_size(c));)
BOTH(SEND, Send) BOTH(SEND, Bsend) BOTH(SEND, Ssend) BOTH(SEND, Rsend)

/* A request that is posted; `first`: posted by the call itself, not by MPI_Start. */
#define POST(name, as, COUNT, kind, first) WRAP(name, as, 7, \
    Communicator *q = communicator(f); \
    int peer = world_rank(q, (int)d), tag = (int)e; \
    uint64_t bytes = (uint64_t)COUNT b * type_size(c); \
    uint32_t number = remember(handle_at(g, 0), kind, !(first), q, peer, tag, bytes); \
    NOTE(q->id, (first) ? peer : UNKNOWN, tag, (first) ? amount(bytes, number) : 0);)
BOTH(POST, Isend, SENT, 1) BOTH(POST, Ibsend, SENT, 1) BOTH(POST, Issend, SENT, 1) BOTH(POST, Irsend, SENT, 1)
BOTH(POST, Irecv, RECEIVED, 1)
BOTH(POST, Send_init, SENT, 0) BOTH(POST, Bsend_init, SENT, 0) BOTH(POST, Ssend_init, SENT, 0)
BOTH(POST, Rsend_init, SENT, 0) BOTH(POST, Recv_init, RECEIVED, 0)

static void started(Word request, uint64_t begin)
{
    Request r;
    if (!recall(request, 1, &r)) return;
    change_request(request, 0, 1, 0);
    put(STARTED, begin, r.kind, r.communicator->id, r.peer, r.tag, amount(r.bytes, r.number));
}

WRAP(Start, Start, 1, NOTE(0, UNKNOWN, 0, 0); started(handle_at(a, 0), begin_);)
WRAP(Startall, Startall, 2,
     NOTE(0, UNKNOWN, (int)a, 0); for (int n = 0; n < (int)a; n++) started(handle_at(b, n), begin_);)
WRAP(Cancel, Cancel, 1, NOTE(0, UNKNOWN, 0, 0); change_request(handle_at(a, 0), 1, 0, 0);)

API Word MPI_Request_free(Word a)
{
    Word request = recording ? handle_at(a, 0) : 0;
    BEFORE;
    if (recording && request != null_request) change_request(request, 0, 0, 1);
    Word x = NEXT(MPI_Request_free)(a);
    AFTER;
    if (record_) DONE(Request_free, 0, UNKNOWN, 0, 0);
    return x;
}

static void received(const Communicator *q, const int *status, uint64_t end, uint64_t most)
{
    if (status[status_source] != nobody)
        put(COMPLETED, end, RECEIVED, q->id, world_rank(q, status[status_source]), status[status_tag], status_bytes(status, most));
}

/* A call whose status is looked at: `s_` is the program's, or one of our own where it wants none. */
#define WITH_STATUS(name, as, n, given, args, ...) CALLED(name, as, n, STATUS(given);, args, __VA_ARGS__)

#define RECEIVE(name, as, COUNT) WITH_STATUS(name, as, 7, g, (a, b, c, d, e, f, (Word)s_), \
    Communicator *q = communicator(f); \
    int source = (int)d == any_source ? s_[status_source] : (int)d; \
    NOTE(q->id, world_rank(q, source), (int)d == nobody ? 0 : s_[status_tag], \
         (int)d == nobody ? 0 : status_bytes(s_, (uint64_t)COUNT b * type_size(c)));)
BOTH(RECEIVE, Recv)

#define SEND_RECEIVE(name, as, COUNT) WITH_STATUS(name, as, 12, l, (a, b, c, d, e, f, g, h, i, j, k, (Word)s_), \
    Communicator *q = communicator(k); \
    NOTE(q->id, world_rank(q, (int)d), (int)e, (uint64_t)COUNT b * type_size(c)); \
    if ((int)i != nobody) received(q, s_, end_, (uint64_t)COUNT g * type_size(h));)
BOTH(SEND_RECEIVE, Sendrecv)

#define REPLACE(name, as, COUNT) WITH_STATUS(name, as, 9, i, (a, b, c, d, e, f, g, h, (Word)s_), \
    Communicator *q = communicator(h); \
    uint64_t bytes = (uint64_t)COUNT b * type_size(c); \
    NOTE(q->id, world_rank(q, (int)d), (int)e, bytes); \
    if ((int)f != nobody) received(q, s_, end_, bytes);)
BOTH(REPLACE, Sendrecv_replace)

/* MPICH leaves anything in the status of these: what was asked for is taken for what came. */
#define RECEIVED_BESIDE (library == OPEN_MPI ? RECEIVED : UNSTATED)
#define POST_BOTH(name, as, COUNT) WRAP(name, as, 13, \
    Communicator *q = communicator(k); \
    NOTE(q->id, world_rank(q, (int)d), (int)e, (uint64_t)COUNT b * type_size(c)); \
    remember(handle_at(l, 0), RECEIVED_BESIDE, 0, q, world_rank(q, (int)i), (int)j, (uint64_t)COUNT g * type_size(h));)
BOTH(POST_BOTH, Isendrecv)
#define POST_REPLACE(name, as, COUNT) WRAP(name, as, 10, \
    Communicator *q = communicator(h); \
    uint64_t bytes = (uint64_t)COUNT b * type_size(c); \
    NOTE(q->id, world_rank(q, (int)d), (int)e, bytes); \
    remember(handle_at(i, 0), RECEIVED_BESIDE, 0, q, world_rank(q, (int)f), (int)g, bytes);)
BOTH(POST_REPLACE, Isendrecv_replace)

/* ---- Probes ---- */
WRAP(Iprobe, Iprobe, 5, if (*(int *)d) NOTE(0, UNKNOWN, 0, 0); else put_failed_test(AS, begin_, end_);)
WRAP(Mprobe, Mprobe, 5, NOTE(0, UNKNOWN, 0, 0);
     if ((int)a != nobody) remember(handle_at(d, 0), MATCHED, 0, communicator(c), UNKNOWN, 0, 0);)
WRAP(Improbe, Improbe, 6,
     if (!*(int *)d) put_failed_test(AS, begin_, end_);
     else {
         NOTE(0, UNKNOWN, 0, 0);
         if ((int)a != nobody) remember(handle_at(e, 0), MATCHED, 0, communicator(c), UNKNOWN, 0, 0);
     })

#define MATCHED_RECEIVE(name, as, COUNT) \
    API Word MPI_##name(P5) \
    { \
        STATUS(e); \
        Word message = recording ? handle_at(d, 0) : 0; \
        Request r; \
        BEFORE; \
        Word x = NEXT(MPI_##name)(a, b, c, d, (Word)s_); \
        AFTER; \
        if (record_) { \
            if (!x && recall(message, 0, &r)) \
                DONE(as, r.communicator->id, world_rank(r.communicator, s_[status_source]), s_[status_tag], \
                     status_bytes(s_, (uint64_t)COUNT b * type_size(c))); \
            else DONE(as, 0, NOBODY, 0, 0); \
        } \
        return x; \
    }
BOTH(MATCHED_RECEIVE, Mrecv)

#define POST_MATCHED(name, as, COUNT) \
    API Word MPI_##name(P5) \
    { \
        Word message = recording ? handle_at(d, 0) : 0; \
        Request r; \
        BEFORE; \
        Word x = NEXT(MPI_##name)(V5); \
        AFTER; \
        if (record_) { \
            uint32_t number = 0; \
            int known = !x && recall(message, 0, &r); \
            if (known) \
                number = remember(handle_at(e, 0), RECEIVED, 0, r.communicator, UNKNOWN, 0, (uint64_t)COUNT b * type_size(c)); \
            DONE(as, known ? r.communicator->id : 0, known ? UNKNOWN : NOBODY, 0, amount(0, number)); \
        } \
        return x; \
    }
BOTH(POST_MATCHED, Imrecv)

/* ---- Completion ---- */
API Word MPI_Wait(Word a, Word b)
{
    STATUS(b);
    Word request = recording ? handle_at(a, 0) : 0;
    Request r;
    int known_ = taken(request, &r);
    BEFORE;
    Word x = NEXT(MPI_Wait)(a, (Word)s_);
    AFTER;
    if (record_) {
        DONE(Wait, 0, UNKNOWN, 0, 0);
        if (!x && known_) finished(r, s_, end_);
        else if (!x && !several_threads) completed(request, s_, end_);
    }
    return x;
}

API Word MPI_Test(Word a, Word b, Word c)
{
    STATUS(c);
    Word request = recording ? handle_at(a, 0) : 0;
    BEFORE;
    Word x = NEXT(MPI_Test)(a, b, (Word)s_);
    AFTER;
    if (record_) {
        if (!x && !*(int *)b)
            put_failed_test(CALL(Test), begin_, end_);
        else {
            DONE(Test, 0, UNKNOWN, 0, 0);
            if (!x) completed(request, s_, end_);
        }
    }
    return x;
}

/* Handles of Fortran are integers, and all arguments are addresses. */
#define INTEGER(p) (*(int32_t *)(p))
static Word converted(const char *name, Function *f, Word p)
{
    if (!*f) *f = (Function)symbol(name);
    return *f ? (*f)((Word)INTEGER(p)) : (Word)INTEGER(p);
}
#define F2C(kind, p) ({ static Function f_; converted("PMPI_" #kind "_f2c", &f_, p); })
#define REQUEST(p) F2C(Request, p)

/* The handles of many requests as they were before the call, and statuses where the program wants none. */
enum { FEW = 64 };
typedef struct {
    Word few[FEW], *handles;
    char small[FEW * 32], *statuses;
} Many;

static void look_at(Many *many, int n, Word requests_, Word *statuses, Word ignored, int fortran)
{
    size_t count = n > 0 ? (size_t)n : 0;
    many->handles = many->few;
    many->statuses = (char *)*statuses;
    if (!recording) return;
    if (count > FEW && !(many->handles = malloc(count * sizeof(Word)))) return;
    for (size_t i = 0; i < count; i++)
        many->handles[i] = fortran ? REQUEST(requests_ + 4 * (Word)i) : handle_at(requests_, (int)i);
    if ((fortran ? *statuses : handle(*statuses)) != ignored) return;
    many->statuses = many->small;
    if (count > FEW && !(many->statuses = malloc(count * 32))) many->statuses = (char *)*statuses;
    *statuses = (Word)many->statuses;
}

static void leave_many(Many *many, int given)
{
    if (many->handles != many->few) free(many->handles);
    if (given && many->statuses != many->small) free(many->statuses);
}

static inline const int *status_at(const Many *many, int i)
{
    return handle((Word)many->statuses) == ignore_statuses ? NULL : (const int *)(many->statuses + (size_t)i * (size_t)status_size);
}

static Request *take_all(const Many *many, int n)
{
    Request *all = several_threads && recording && many->handles && n > 0 ? malloc((size_t)n * sizeof *all) : NULL;
    for (int i = 0; all && i < n; i++) taken(many->handles[i], all + i);
    return all;
}

/* `which`: index of the request that is complete, or of the i-th that is. */
#define MANY(name, n, count, statuses, complete, times, which, place) \
    API Word MPI_##name(P##n) \
    { \
        Many many; \
        Word given = statuses; \
        look_at(&many, (int)count, b, &statuses, ignore_statuses, 0); \
        Request *all_ = CALL_##name == CALL_Waitall ? take_all(&many, (int)count) : NULL; \
        BEFORE; \
        Word x = NEXT(MPI_##name)(V##n); \
        AFTER; \
        if (record_ && many.handles) { \
            int times_ = x ? 0 : (times); \
            if (!x && !(complete)) put_failed_test(CALL(name), begin_, end_); \
            else { \
                DONE(name, 0, UNKNOWN, times_, 0); \
                for (int n_ = 0; n_ < times_; n_++) \
                    if (!all_) completed(many.handles[which], status_at(&many, place), end_); \
                    else finished(all_[n_], status_at(&many, place), end_); \
            } \
        } \
        leave_many(&many, given != statuses); \
        free(all_); \
        return x; \
    }
#define INDEX(p) (*(int *)(p))
#define SOME(p) (INDEX(p) > 0 ? INDEX(p) : 0)
MANY(Waitall, 3, a, c, 1, (int)a, n_, n_)
MANY(Testall, 4, a, d, INDEX(c), (int)a, n_, n_)
MANY(Waitany, 4, a, d, 1, INDEX(c) >= 0 && INDEX(c) < (int)a, INDEX(c), 0)
MANY(Testany, 5, a, e, INDEX(d), INDEX(c) >= 0 && INDEX(c) < (int)a, INDEX(c), 0)
MANY(Waitsome, 5, a, e, 1, SOME(c), ((int *)d)[n_], n_)
MANY(Testsome, 5, a, e, INDEX(c) != 0, SOME(c), ((int *)d)[n_], n_)

/* ---- Collectives: bytes are what this process gives, or takes where it only takes ---- */

/* In all; where types are given, in bytes of these. */
static uint64_t sum(Word counts, Word types, const Communicator *q, int large)
{
    uint64_t total = 0;
    for (int n = 0; n < q->size; n++) {
        uint64_t count = large ? ((uint64_t *)counts)[n] : (uint64_t)((int *)counts)[n];
        if (count) total += types ? count * (uint64_t)type_size(handle_at(types, n)) : count;
    }
    return total;
}

/* Roots between two groups are not ranks, and which arguments count is another matter there. */
#define COLLECT(name, as, large_, n, comm, root, bytes) WRAP(name, as, n, \
    enum { LARGE = large_ }; \
    Communicator *q = communicator(comm); \
    int between = q->between; \
    NOTE(q->id, between ? UNKNOWN : (root), 0, between ? 0 : (bytes));)
/* A blocking one, and the one with a request as its last argument. */
#define COLLECTIVE(name, iname, n, more, comm, root, bytes) \
    COLLECT(name, name, 0, n, comm, root, bytes) COLLECT(name##_c, name, 1, n, comm, root, bytes) \
    COLLECT(iname, iname, 0, more, comm, root, bytes) COLLECT(iname##_c, iname, 1, more, comm, root, bytes)
#define SIZE(count, type) ((LARGE ? (uint64_t)(count) : (uint64_t)(int)(count)) * (uint64_t)type_size(type))
#define SUM(counts, types) sum(counts, types, q, LARGE)
#define IN_PLACE(p) (handle(p) == handle(in_place))
#define ROOT(r) world_rank(q, (int)(r))
#define AT_ROOT(r) (ROOT(r) == my_rank)
COLLECT(Barrier, Barrier, 0, 1, a, UNKNOWN, 0) COLLECT(Ibarrier, Ibarrier, 0, 2, a, UNKNOWN, 0)
COLLECTIVE(Bcast, Ibcast, 5, 6, e, ROOT(d), SIZE(b, c))
COLLECTIVE(Gather, Igather, 8, 9, h, ROOT(g), IN_PLACE(a) ? SIZE(e, f) : SIZE(b, c))
COLLECTIVE(Gatherv, Igatherv, 9, 10, i, ROOT(h), IN_PLACE(a) ? 0 : SIZE(b, c))
COLLECTIVE(Scatter, Iscatter, 8, 9, h, ROOT(g), AT_ROOT(g) ? SIZE(b, c) : SIZE(e, f))
COLLECTIVE(Scatterv, Iscatterv, 9, 10, i, ROOT(h), AT_ROOT(h) && IN_PLACE(e) ? 0 : SIZE(f, g))
COLLECTIVE(Allgather, Iallgather, 7, 8, g, UNKNOWN, IN_PLACE(a) ? SIZE(e, f) : SIZE(b, c))
COLLECTIVE(Allgatherv, Iallgatherv, 8, 9, h, UNKNOWN, IN_PLACE(a) ? 0 : SIZE(b, c))
COLLECTIVE(Alltoall, Ialltoall, 7, 8, g, UNKNOWN, IN_PLACE(a) ? SIZE(e, f) : SIZE(b, c))
COLLECTIVE(Alltoallv, Ialltoallv, 9, 10, i, UNKNOWN, IN_PLACE(a) ? SUM(f, 0) * type_size(h) : SUM(b, 0) * type_size(d))
COLLECTIVE(Alltoallw, Ialltoallw, 9, 10, i, UNKNOWN, IN_PLACE(a) ? SUM(f, h) : SUM(b, d))
COLLECTIVE(Reduce, Ireduce, 7, 8, g, ROOT(f), SIZE(c, d))
COLLECTIVE(Allreduce, Iallreduce, 6, 7, f, UNKNOWN, SIZE(c, d))
COLLECTIVE(Reduce_scatter, Ireduce_scatter, 6, 7, f, UNKNOWN, SUM(c, 0) * type_size(d))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, 6, 7, f, UNKNOWN, SIZE(c, d))
COLLECTIVE(Scan, Iscan, 6, 7, f, UNKNOWN, SIZE(c, d))
COLLECTIVE(Exscan, Iexscan, 6, 7, f, UNKNOWN, SIZE(c, d))
COLLECTIVE(Neighbor_allgather, Ineighbor_allgather, 7, 8, g, UNKNOWN, SIZE(b, c))
COLLECTIVE(Neighbor_allgatherv, Ineighbor_allgatherv, 8, 9, h, UNKNOWN, SIZE(b, c))
COLLECTIVE(Neighbor_alltoall, Ineighbor_alltoall, 7, 8, g, UNKNOWN, SIZE(b, c))
COLLECTIVE(Neighbor_alltoallv, Ineighbor_alltoallv, 9, 10, i, UNKNOWN, 0)
COLLECTIVE(Neighbor_alltoallw, Ineighbor_alltoallw, 9, 10, i, UNKNOWN, 0)
