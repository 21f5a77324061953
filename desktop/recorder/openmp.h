/* OpenMP, where the runtime has OMPT (LLVM's and what is made of it: Intel, AMD; gcc's has not): the regions in which
 * threads work, and the time they wait in. Types and numbers are those of the OpenMP API 5.1, section 19.
 *
 * Every thread has its own file and enters and leaves regions there, as the program's own ones, one after another.
 * A task that runs while its thread waits ends that wait, and begins it anew. A worker says late, when it is needed
 * again, that a parallel region has ended: it did when the thread that began it went on. */

#pragma GCC diagnostic ignored "-Wunused-parameter" /* of what a callback is given, it takes what it needs */

typedef union { uint64_t value; void *pointer; } OmptData;
typedef void (*OmptCallback)(void);
typedef OmptCallback (*OmptLookup)(const char *);
typedef struct {
    int (*initialize)(OmptLookup lookup, int device, OmptData *tool);
    void (*finalize)(OmptData *tool);
    OmptData tool;
} OmptStart;

enum { SCOPE_BEGIN = 1, SCOPE_END = 2 };
enum { INITIAL_TASK = 1, EXPLICIT_TASK = 1 << 16 }; /* of a task, beside the wait that it was taken out of */
enum { NEVER_ACQUIRED_MUTEXES = 1 << 2 | 1 << 4 };

/* When parallel regions ended, by their numbers; places are used again. */
enum { TEAMS = 4096 };
static struct { _Atomic uint64_t number, ended; } teams[TEAMS];
static _Atomic uint64_t last_team;

/* Of a thread: `team`: of a worker, its parallel region; `wait`: the region it waits in; `open`: regions it is in. */
enum { OPEN = 64 };
static __thread struct {
    uint64_t team, last, acquire;
    uint32_t wait, deep, unseen; /* unseen: entered with no room for it */
    uint8_t open[OPEN];
} openmp;

static inline void openmp_put(int what, uint32_t which, uint64_t when)
{
    openmp.last = when;
    put(what, when, REGIONS + which, 0, UNKNOWN, 0, 0);
    if (UNLIKELY(when > output.renew)) renew(&output, when);
}

static void enter(uint32_t which, uint64_t when)
{
    if (!which || !recording || off || output.depth) return;
    if (openmp.deep == OPEN) openmp.unseen++;
    else openmp.open[openmp.deep++] = (uint8_t)(which - CALLS), openmp_put(ENTER, which, when);
}

/* What was entered in it is left with it: runtimes do not tell all ends. What was not entered is not left. */
static void leave(uint32_t which, uint64_t when)
{
    if (!which || !recording || output.depth) return;
    if (openmp.unseen && openmp.unseen--) return;
    uint32_t at = openmp.deep;
    while (at && openmp.open[at - 1] != which - CALLS) at--;
    while (at && openmp.deep >= at) openmp_put(LEAVE, openmp.open[--openmp.deep] + CALLS, when);
}

/* When a worker left: no later than its region ended, nor before what it did last. */
static uint64_t left(void)
{
    uint64_t now = tick(), team = openmp.team, ended = team ? atomic_load(&teams[team % TEAMS].ended) : 0;
    if (team && atomic_load(&teams[team % TEAMS].number) != team) ended = openmp.last;
    return !ended || ended > now ? now : ended > openmp.last ? ended : openmp.last;
}

static void on_parallel_begin(OmptData *task, const void *frame, OmptData *parallel, unsigned threads_, int flags, const void *at)
{
    uint64_t team = parallel->value = atomic_fetch_add(&last_team, 1) + 1;
    atomic_store(&teams[team % TEAMS].ended, 0);
    atomic_store(&teams[team % TEAMS].number, team);
    enter(OMP_PARALLEL, tick());
}

static void on_parallel_end(OmptData *parallel, OmptData *task, int flags, const void *at)
{
    uint64_t now = tick();
    leave(OMP_PARALLEL, now);
    if (parallel && atomic_load(&teams[parallel->value % TEAMS].number) == parallel->value)
        atomic_store(&teams[parallel->value % TEAMS].ended, now);
}

static void on_implicit_task(int scope, OmptData *parallel, OmptData *task, unsigned threads_, unsigned index, int flags)
{
    if (flags & INITIAL_TASK) return;
    if (scope == SCOPE_BEGIN && index && parallel) {
        openmp.team = parallel->value;
        enter(OMP_PARALLEL, tick());
    }
    if (scope == SCOPE_END && index && openmp.team) {
        leave(OMP_PARALLEL, left());
        openmp.team = 0;
    }
}

static void on_work(int kind, int scope, OmptData *parallel, OmptData *task, uint64_t count, const void *at)
{
    static const uint32_t regions_of[] = {
        0, OMP_FOR, OMP_SECTIONS, OMP_SINGLE, 0, OMP_WORKSHARE, OMP_DISTRIBUTE, OMP_TASKLOOP, OMP_SCOPE, 0,
        OMP_FOR, OMP_FOR, OMP_FOR, OMP_FOR,
    };
    if ((unsigned)kind >= sizeof regions_of / sizeof *regions_of || (scope != SCOPE_BEGIN && scope != SCOPE_END)) return;
    (scope == SCOPE_BEGIN ? enter : leave)(regions_of[kind], tick());
}

static void on_wait(int kind, int scope, OmptData *parallel, OmptData *task, const void *at)
{
    uint32_t which = kind == 1 || kind == 3 ? OMP_BARRIER : kind == 5 ? OMP_TASKWAIT : kind == 6 ? OMP_TASKGROUP
                   : kind == 7 ? 0 : OMP_IMPLICIT;
    if (!which) return;
    if (scope == SCOPE_BEGIN) {
        uint64_t now = tick();
        int last = openmp.deep ? openmp.open[openmp.deep - 1] + CALLS : 0;
        if (last == OMP_SINGLE && (which == OMP_BARRIER || which == OMP_IMPLICIT))
            leave(OMP_SINGLE, now); /* programs of gcc do not say when it ends, and it has no barrier in it */
        enter(openmp.wait = which, now);
    } else if (scope == SCOPE_END) {
        leave(openmp.wait, left());
        openmp.wait = 0;
    }
}

static void on_task_create(OmptData *task, const void *frame, OmptData *made, int flags, int dependences, const void *at)
{
    if (flags & 4) made->value = EXPLICIT_TASK;
}

static void on_task_schedule(OmptData *before, int status, OmptData *after)
{
    if (!before || !after || before == after) return;
    uint64_t now = tick();
    leave(openmp.wait, now);
    if (before->value & EXPLICIT_TASK) leave(OMP_TASK, now);
    before->value = (before->value & EXPLICIT_TASK) | openmp.wait;
    if (after->value & EXPLICIT_TASK) enter(OMP_TASK, now);
    uint32_t wait = (uint32_t)after->value & (EXPLICIT_TASK - 1);
    enter(openmp.wait = wait > NOT_OPENMP && wait < ALL_NAMES ? wait : 0, now);
}

static void on_acquire(int kind, unsigned hint, unsigned how, uint64_t mutex, const void *at)
{
    openmp.acquire = tick();
}

static void on_acquired(int kind, uint64_t mutex, const void *at)
{
    if ((unsigned)kind > 7 || 1 << kind & NEVER_ACQUIRED_MUTEXES || !recording || off || output.depth) return;
    uint64_t now = tick(), from = openmp.acquire ? openmp.acquire : now;
    put_call(kind < 4 ? OMP_LOCK : OMP_CRITICAL + kind - 5, from, now, 0, UNKNOWN, 0, 0);
    openmp.acquire = 0;
}

static int openmp_begins(OmptLookup lookup, int device, OmptData *tool)
{
    static const struct { int event; OmptCallback callback; } wanted[] = {
        {3, (OmptCallback)on_parallel_begin}, {4, (OmptCallback)on_parallel_end}, {5, (OmptCallback)on_task_create},
        {6, (OmptCallback)on_task_schedule}, {7, (OmptCallback)on_implicit_task}, {16, (OmptCallback)on_wait},
        {20, (OmptCallback)on_work}, {26, (OmptCallback)on_acquire}, {27, (OmptCallback)on_acquired},
    };
    int (*set)(int, OmptCallback) = (int (*)(int, OmptCallback))lookup("ompt_set_callback");
    if (!set) return 0;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) set(wanted[i].event, wanted[i].callback);
    begin_alone();
    return 1;
}

static void openmp_ends(OmptData *tool) {}

typedef OmptStart *(*OmptTool)(unsigned version, const char *runtime);

/* The runtime looks for a function of this name. Another tool that was loaded has its turn where we record nothing. */
API OmptStart *ompt_start_tool(unsigned version, const char *runtime);
OmptStart *ompt_start_tool(unsigned version, const char *runtime)
{
    static OmptStart start = {openmp_begins, openmp_ends, {0}};
    if (*folder) return &start;
    OmptTool other = (OmptTool)dlsym(RTLD_NEXT, "ompt_start_tool");
    return other ? other(version, runtime) : NULL;
}
