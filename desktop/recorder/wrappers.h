/* The wrappers of the calls of C and the entries of Fortran, both made of the table in calls.h.
 *
 * Arguments are named a, b, c, ... in the order of the standard. In Fortran all are addresses and handles are integers.
 * What is done for a call is written once: FORTRAN and LARGE (counts of MPI 4, calls that end in _c) are constants. */

/* The arguments of a call, A3(Word) with their type, A3() without. */
#define A0(type)
#define A1(type) type a
#define A2(type) A1(type), type b
#define A3(type) A2(type), type c
#define A4(type) A3(type), type d
#define A5(type) A4(type), type e
#define A6(type) A5(type), type f
#define A7(type) A6(type), type g
#define A8(type) A7(type), type h
#define A9(type) A8(type), type i
#define A10(type) A9(type), type j
#define A11(type) A10(type), type k
#define A12(type) A11(type), type l
#define A13(type) A12(type), type m
#define A14(type) A13(type), type n

#define INTEGER(p) (*(int32_t *)(p))
static Word converted(const char *name, Function *f, Word p)
{
    if (!*f) *f = (Function)symbol(name);
    return *f ? (*f)((Word)INTEGER(p)) : (Word)INTEGER(p);
}
#define F2C(kind, p) ({ static Function f_; converted("PMPI_" #kind "_f2c", &f_, p); })
#define BY_VALUE(kind, p) (FORTRAN ? F2C(kind, p) : (p))
#define BY_ADDRESS(kind, p, i) (FORTRAN ? F2C(kind, (p) + 4 * (i)) : handle_at(p, i))
#define COMM(p) communicator(BY_VALUE(Comm, p))
#define TYPE(p) (uint64_t)type_size(BY_VALUE(Type, p))
#define NUMBER(p) (FORTRAN ? INTEGER(p) : (int)(p))
#define COUNT(p) (FORTRAN ? (uint64_t)INTEGER(p) : LARGE ? (uint64_t)(p) : (uint64_t)(int)(p))
#define BYTES(count, type) (COUNT(count) * TYPE(type))
#define IN_PLACE(p) (FORTRAN ? (p) && ((p) == fortran_in_place || (p) == f08_in_place) : handle(p) == handle(in_place))
#define ROOT(p) world_rank(q, NUMBER(p))
#define SUM(counts) sum(counts, 0, q, LARGE, FORTRAN)
#define SUM_OF(counts, types) sum(counts, types, q, LARGE, FORTRAN)

/* `before` and `after` are done in any case, what stands in `...` where the call has succeeded and is recorded. A call
 * within a call (a Fortran one that calls its C one, an operation of the user) is part of it. */
#define IN_C(name, as, large, n, before, after, ...) \
    API Word MPI_##name(A##n(Word)) \
    { \
        enum { AS = CALL_##as, FORTRAN = 0, LARGE = large }; \
        before; \
        uint64_t begin_ = tick(); \
        output.depth++, output.entered++; \
        Word x = NEXT(MPI_##name)(A##n()); \
        uint64_t end_ = tick(); \
        int outer_ = --output.depth == 0, record_ = outer_ && recording && !off; \
        if (record_) { \
            if (LIKELY(!x)) { __VA_ARGS__ } \
            else put_call(AS, begin_, end_, 0, NOBODY, 0, 0); \
        } \
        after; \
        return x; \
    }
/* Some libraries end up in the C call of that name, whose wrapper then records it; where none was entered, it is
 * recorded here. More arguments than a call has are passed on: the lengths of its texts, and what nobody looks at. */
#define IN_FORTRAN(lower, as, before, after, ...) \
    static void fortran_##lower(Function real, A14(Word)) \
    { \
        enum { AS = CALL_##as, FORTRAN = 1, LARGE = 0 }; \
        const Word x = 0; \
        before; \
        uint32_t entered_ = output.entered; \
        uint64_t begin_ = tick(); \
        real(A14()); \
        uint64_t end_ = tick(); \
        int outer_ = output.entered == entered_ && !output.depth, record_ = outer_ && recording && !off; \
        if (record_) { __VA_ARGS__ } \
        after; \
        (void)x, (void)begin_, (void)end_; \
    } \
    ENTRY(mpi_##lower##_, lower) ENTRY(mpi_##lower##_f08_, lower) ENTRY(mpi_##lower##_f08ts_, lower)
/* mpi_send_ of mpif.h and `use mpi`, mpi_send_f08_ and mpi_send_f08ts_ of `use mpi_f08`. */
#define ENTRY(symbol_, lower) API void symbol_(A14(Word)) { fortran_##lower(NEXT(symbol_), A14()); }
#define AROUND(name, lower, n, before, after, ...) \
    IN_C(name, name, 0, n, before, after, __VA_ARGS__) IN_FORTRAN(lower, name, before, after, __VA_ARGS__)
#define WRAP(name, lower, n, ...) AROUND(name, lower, n, , , __VA_ARGS__)
/* With counts: one more, with large ones. */
#define COUNTED(name, lower, n, before, after, ...) \
    AROUND(name, lower, n, before, after, __VA_ARGS__) IN_C(name##_c, name, 1, n, before, after, __VA_ARGS__)
#define NOTE(comm, peer, tag, bytes) put_call(AS, begin_, end_, comm, peer, tag, bytes)
#define ONLY_TIME NOTE(0, UNKNOWN, 0, 0);

/* ---- Calls of which only the time counts, or bytes ---- */
#define MAKE_PLAIN(name, lower, n) WRAP(name, lower, n, ONLY_TIME)
#define MAKE_COUNTED(name, lower, n) COUNTED(name, lower, n, , , ONLY_TIME)
#define MAKE_BYTES(name, lower, n, count, type) COUNTED(name, lower, n, , , NOTE(0, UNKNOWN, 0, BYTES(count, type));)
#define MAKE_ONE(name, lower, n, type) WRAP(name, lower, n, NOTE(0, UNKNOWN, 0, TYPE(type));)
/* One that asks, and is told by that argument. */
#define MAKE_ASKED(name, lower, n, flag) \
    WRAP(name, lower, n, if (INTEGER(flag)) ONLY_TIME else put_failed_test(AS, begin_, end_);)

/* ---- Begin and end ---- */
#define MAKE_BEGIN(name, lower, n, several) \
    AROUND(name, lower, n, , if (!x && outer_) finished_begin(AS, begin_, several),)
/* All is written before the library ends, which may end the process's use of its clock and files. */
#define MAKE_END(name, lower, n, how) AROUND(name, lower, n, ends(AS, how), ,)
#define MAKE_LEVEL(name, lower, n) AROUND(name, lower, n, recording_level(NUMBER(a)), ,)

/* ---- Communicators ---- */
/* One that makes a communicator, if this process is in it. */
static void made(Word comm) { if (handle(comm) != null_communicator()) communicator(comm); }
#define MAKE_NEW(name, lower, n, p) WRAP(name, lower, n, ONLY_TIME made(BY_ADDRESS(Comm, p, 0));)
/* The handle is another's as soon as the call is over, so it is forgotten before. */
#define MAKE_GONE(name, lower, n) \
    AROUND(name, lower, n, if (recording) forget_communicator(BY_ADDRESS(Comm, a, 0)), , ONLY_TIME)
#define MAKE_TYPE_GONE(name, lower, n) AROUND(name, lower, n, if (recording) forget_type(BY_ADDRESS(Type, a, 0)), ,)

/* A program may never call MPI_Init, but begin sessions, also one after another. */
#define MAKE_SESSION(name, lower, n) \
    AROUND(name, lower, n, , \
    if (!x && outer_) { learn(); session_begun(AS, BY_ADDRESS(Session, c, 0), begin_, record_); }, ONLY_TIME)
#define MAKE_NO_SESSION(name, lower, n) \
    AROUND(name, lower, n, if (recording) session_ends(BY_ADDRESS(Session, a, 0)), if (outer_) sessions--, ONLY_TIME)

/* ---- Point to point ---- */
#define MAKE_SEND(name, lower, n) COUNTED(name, lower, n, , , \
    Communicator *q = COMM(f); \
    NOTE(q->id, ROOT(d), NUMBER(e), BYTES(b, c));)

/* A request that is posted, by the call itself or by MPI_Start. */
#define MAKE_POST(name, lower, n, kind) COUNTED(name, lower, n, , , \
    Communicator *q = COMM(f); \
    int peer = ROOT(d), tag = NUMBER(e); \
    uint64_t bytes = BYTES(b, c); \
    NOTE(q->id, peer, tag, amount(bytes, remember(BY_ADDRESS(Request, g, 0), kind, 0, q, peer, tag, bytes)));)
#define MAKE_INIT(name, lower, n, kind) COUNTED(name, lower, n, , , \
    Communicator *q = COMM(f); \
    remember(BY_ADDRESS(Request, g, 0), kind, 1, q, ROOT(d), NUMBER(e), BYTES(b, c)); \
    ONLY_TIME)
/* In parts: one message for each start. Its status says nothing that was not asked for. */
#define MAKE_PARTED(name, lower, n, kind) WRAP(name, lower, n, \
    Communicator *q = COMM(g); \
    uint64_t each = FORTRAN ? *(uint64_t *)c : (uint64_t)c; \
    remember(BY_ADDRESS(Request, i, 0), kind, 1, q, ROOT(e), NUMBER(f), COUNT(b) * each * TYPE(d)); \
    ONLY_TIME)

static void started(Word request, uint64_t begin)
{
    Request r = recall(request, START);
    if (r.kind == NONE) return;
    put(STARTED, begin, r.kind == UNSTATED ? RECEIVED : r.kind, r.communicator->id, r.peer, r.tag, amount(r.bytes, r.number));
}

#define MAKE_START(name, lower, n) WRAP(name, lower, n, ONLY_TIME started(BY_ADDRESS(Request, a, 0), begin_);)
#define MAKE_STARTALL(name, lower, n) WRAP(name, lower, n, \
    NOTE(0, UNKNOWN, NUMBER(a), 0); \
    for (int n_ = 0; n_ < NUMBER(a); n_++) started(BY_ADDRESS(Request, b, n_), begin_);)
#define MAKE_CANCEL(name, lower, n) WRAP(name, lower, n, ONLY_TIME recall(BY_ADDRESS(Request, a, 0), CANCEL);)
#define MAKE_FREE(name, lower, n) AROUND(name, lower, n, \
    Word request = recording ? BY_ADDRESS(Request, a, 0) : 0; \
    if (recording && request != null_request) recall(request, FORGET);, , ONLY_TIME)

static inline int no_status(Word p, int fortran)
{
    if (!fortran) return handle(p) == ignore_status;
    for (int n = 0; n < 4; n++) if (p == fortran_ignored[n]) return 1;
    return 0;
}

/* A status of our own where the program wants none. */
#define STATUS(p) int own_[16]; int *s_ = no_status(p, FORTRAN) ? own_ : (int *)(p); p = (Word)s_

#define MAKE_RECEIVE(name, lower, n) COUNTED(name, lower, n, STATUS(g), , \
    Communicator *q = COMM(f); \
    int asked = NUMBER(d), source = asked == any_source ? s_[status_source] : asked; \
    NOTE(q->id, world_rank(q, source), asked == nobody ? 0 : s_[status_tag], \
         asked == nobody ? 0 : status_bytes(s_, BYTES(b, c)));)
#define MAKE_EXCHANGE(name, lower, n, comm, status, source, count, type) COUNTED(name, lower, n, STATUS(status), , \
    Communicator *q = COMM(comm); \
    NOTE(q->id, ROOT(d), NUMBER(e), BYTES(b, c)); \
    Request r = {.kind = RECEIVED, .active = 1, .communicator = q, .bytes = BYTES(count, type)}; \
    if (NUMBER(source) != nobody) finished(r, s_, end_);)
/* MPICH leaves anything in the status of these: what was asked for is taken for what came. */
#define MAKE_POST_EXCHANGE(name, lower, n_, comm, request, source, tag, count, type) COUNTED(name, lower, n_, , , \
    Communicator *q = COMM(comm); \
    NOTE(q->id, ROOT(d), NUMBER(e), BYTES(b, c)); \
    remember(BY_ADDRESS(Request, request, 0), library == OPEN_MPI ? RECEIVED : UNSTATED, 0, q, \
             ROOT(source), NUMBER(tag), BYTES(count, type));)

/* ---- Messages that a probe has taken out ---- */
#define TAKEN_OUT(comm, message) \
    if (NUMBER(a) != nobody) remember(BY_ADDRESS(Message, message, 0), MATCHED, 0, COMM(comm), UNKNOWN, 0, 0);
#define MAKE_MATCH(name, lower, n) WRAP(name, lower, n, ONLY_TIME TAKEN_OUT(c, d))
#define MAKE_ASK_MATCH(name, lower, n) WRAP(name, lower, n, \
    if (!INTEGER(d)) put_failed_test(AS, begin_, end_); \
    else { ONLY_TIME TAKEN_OUT(c, e) })
#define MESSAGE(p) Word message = recording ? BY_ADDRESS(Message, p, 0) : 0
#define MAKE_MATCHED(name, lower, n) COUNTED(name, lower, n, STATUS(e); MESSAGE(d), , \
    Request r = recall(message, COMPLETE); \
    if (r.kind) \
        NOTE(r.communicator->id, world_rank(r.communicator, s_[status_source]), s_[status_tag], status_bytes(s_, BYTES(b, c))); \
    else NOTE(0, NOBODY, 0, 0);)
#define MAKE_POST_MATCHED(name, lower, n) COUNTED(name, lower, n, MESSAGE(d), , \
    Request r = recall(message, COMPLETE); \
    uint32_t number = !r.kind ? 0 \
        : remember(BY_ADDRESS(Request, e, 0), RECEIVED, 0, r.communicator, UNKNOWN, 0, BYTES(b, c)); \
    NOTE(number ? r.communicator->id : 0, number ? UNKNOWN : NOBODY, 0, amount(0, number));)

/* ---- Completion ---- */
#define MAKE_WAIT(name, lower, n) AROUND(name, lower, n, \
    STATUS(b); \
    Word request = recording ? BY_ADDRESS(Request, a, 0) : 0; \
    Request r = FORTRAN ? (Request){.kind = NONE} : taken(request), , \
    ONLY_TIME \
    if (r.kind) finished(r, s_, end_); \
    else if (FORTRAN || !several_threads) completed(request, s_, end_);)
#define MAKE_TEST(name, lower, n) AROUND(name, lower, n, \
    STATUS(c); Word request = recording ? BY_ADDRESS(Request, a, 0) : 0, , \
    if (!INTEGER(b)) put_failed_test(AS, begin_, end_); \
    else { ONLY_TIME completed(request, s_, end_); })
/* What is complete may also be freed without a wait. */
#define MAKE_STATUS(name, lower, n) AROUND(name, lower, n, STATUS(c), , \
    if (!INTEGER(b)) put_failed_test(AS, begin_, end_); \
    else { ONLY_TIME finished(recall(BY_VALUE(Request, a), LOOK), s_, end_); })

/* The handles of many requests as they were before the call, and statuses where the program wants none; handles NULL:
 * no memory for them. */
enum { FEW = 64, STATUS_SIZE = 32 };
typedef struct {
    Word *handles, few[FEW * (1 + STATUS_SIZE / sizeof(Word))];
    char *statuses;
    Request *taken;
} Many;

static inline void look_at(Many *many, int n, Word requests_, Word *statuses, int fortran, int take)
{
    size_t count = recording && n > 0 ? (size_t)n : 0;
    many->taken = take && several_threads && count ? malloc(count * sizeof *many->taken) : NULL;
    many->handles = count > FEW ? malloc(count * (sizeof(Word) + STATUS_SIZE)) : many->few;
    if (!many->handles) return;
    for (size_t i = 0; i < count; i++) {
        many->handles[i] = fortran ? F2C(Request, requests_ + 4 * (Word)i) : handle_at(requests_, (int)i);
        if (many->taken) many->taken[i] = taken(many->handles[i]);
    }
    if (recording && no_status(*statuses, fortran)) *statuses = (Word)(many->handles + count);
    many->statuses = (char *)*statuses;
}

static inline void leave_many(Many *many)
{
    if (many->handles != many->few) free(many->handles);
    free(many->taken);
}

static inline void each_completed(const Many *many, int which, int place, uint64_t end)
{
    const int *status = (const int *)(many->statuses + (size_t)place * (size_t)status_size);
    if (many->taken) finished(many->taken[which], status, end);
    else completed(many->handles[which], status, end);
}

/* `which`: index of the request that is complete, or of the i-th that is; counted from 1 in Fortran. */
#define MANY(name, lower, n, given, complete, times, which, place) AROUND(name, lower, n, \
    Many many; \
    look_at(&many, NUMBER(a), b, &given, FORTRAN, !FORTRAN && (int)AS == CALL_Waitall), \
    leave_many(&many), \
    if (!many.handles) ONLY_TIME \
    else if (!(complete)) put_failed_test(AS, begin_, end_); \
    else { \
        int times_ = times; \
        NOTE(0, UNKNOWN, times_, 0); \
        for (int n_ = 0; n_ < times_; n_++) each_completed(&many, which, place, end_); \
    })
#define ONE(p) (INTEGER(p) >= FORTRAN && INTEGER(p) < NUMBER(a) + FORTRAN)
#define SOME(p) (INTEGER(p) > 0 ? INTEGER(p) : 0)
#define MAKE_WAITALL(name, lower, n) MANY(name, lower, n, c, 1, NUMBER(a), n_, n_)
#define MAKE_TESTALL(name, lower, n) MANY(name, lower, n, d, INTEGER(c), NUMBER(a), n_, n_)
#define MAKE_WAITANY(name, lower, n) MANY(name, lower, n, d, 1, ONE(c), INTEGER(c) - FORTRAN, 0)
#define MAKE_TESTANY(name, lower, n) MANY(name, lower, n, e, INTEGER(d), ONE(c), INTEGER(c) - FORTRAN, 0)
#define MAKE_WAITSOME(name, lower, n) MANY(name, lower, n, e, 1, SOME(c), ((int *)d)[n_] - FORTRAN, n_)
#define MAKE_TESTSOME(name, lower, n) MANY(name, lower, n, e, INTEGER(c), SOME(c), ((int *)d)[n_] - FORTRAN, n_)

/* ---- Collectives ---- */
/* In all; where types are given, in bytes of these. */
static uint64_t sum(Word counts, Word types, const Communicator *q, int large, int fortran)
{
    uint64_t total = 0;
    for (int n = 0; n < q->size; n++) {
        uint64_t count = large ? ((uint64_t *)counts)[n] : (uint64_t)((int *)counts)[n];
        if (count && types) count *= (uint64_t)type_size(fortran ? F2C(Type, types + 4 * n) : handle_at(types, n));
        total += count;
    }
    return total;
}

/* Roots between two groups are not ranks, and which arguments count is another matter there. */
#define COLLECT(name, lower, n, comm, root, bytes) COUNTED(name, lower, n, , , \
    Communicator *q = COMM(comm); \
    int between = q->between; \
    NOTE(q->id, between ? UNKNOWN : (root), 0, between ? 0 : (bytes));)
/* The request is the last argument; its start begins what the call without blocking would. */
#define COLLECT_LATER(name, lower, as, n, comm, root, bytes) COUNTED(name, lower, n, , , \
    Communicator *q = COMM(comm); \
    int between = q->between; \
    Word request[] = {A##n()}; \
    remember(BY_ADDRESS(Request, request[n - 1], 0), COLLECTIVE, 1, q, between ? UNKNOWN : (root), (int)CALL_##as, between ? 0 : (bytes)); \
    ONLY_TIME)
#define MAKE_COLLECTIVE(name, lower, n, more, most, comm, root, bytes) \
    COLLECT(name, lower, n, comm, root, bytes) COLLECT(I##lower, i##lower, more, comm, root, bytes) \
    COLLECT_LATER(name##_init, lower##_init, I##lower, most, comm, root, bytes)

#define MAKE(name, lower, n, meaning, ...) MAKE_##meaning(name, lower, n, ##__VA_ARGS__)
SINGLE_CALLS(MAKE)
COLLECTIVES(MAKE_COLLECTIVE)
