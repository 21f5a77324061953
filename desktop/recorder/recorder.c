/* Records the MPI calls of a program: one shared object, preloaded, for every MPI, made without mpi.h.
 *
 * A wrapper looks into no handle. Every argument travels as one machine word (int, pointer and handle are of class
 * INTEGER in the calling conventions of x86-64, AArch64, ppc64le and riscv64), so it passes its arguments on with a
 * clock before and after. What differs between implementations is learnt from the library itself when MPI begins:
 * the predefined handles and constants, and where a status has its source and tag.
 *
 * Each thread has a file of its own: a head, a tail, a body. Records of 32 bytes are made in the tail, which is mapped
 * and shared, so they outlive a kill and a reader may follow; a full tail is written to the end of the body and used
 * anew. (Records made in a mapping of the body itself cost four times as much, in faults.) The layout is read by
 * desktop/data/importers/recorded.py.
 *
 * Nothing here may end the program or change what it computes: what cannot be recorded is counted as lost.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef intptr_t Word;
typedef Word (*Function)();

#include "calls.h"

/* ---- Files ------------------------------------------------------------------------------------------------- */

typedef struct {
    uint64_t begin;              /* ticks */
    uint32_t duration;           /* ticks; SATURATED: the next record is a LONG one */
    uint16_t call, communicator; /* of `calls` or a Special; as numbered by COMMUNICATOR records of this process */
    int32_t peer, tag;           /* rank in MPI_COMM_WORLD, or a Peer */
    uint64_t amount;             /* bytes, and in the upper 24 bits the request that was posted (0: none) */
} Record;

typedef struct {
    char magic[8];
    uint32_t version, header; /* bytes before the tail */
    uint32_t rank, size, thread, process;
    uint64_t start; /* ticks, when the process began */
    /* Two readings of the ticks, CLOCK_MONOTONIC and CLOCK_REALTIME in ns, the second renewed as the run goes on. */
    uint64_t tick0, monotonic0, real0, tick1, monotonic1, real1;
    _Atomic uint64_t records, stored, lost; /* `stored` of them are in the body */
    uint32_t state, library; /* State, Library */
    char host[64], boot[40], program[488];
    uint64_t cores;    /* that the process may use, a bit each; 0: not known, or some have numbers above 63 */
    uint32_t switches; /* how often the thread lost its core to others */
    uint32_t unused;
    uint64_t world; /* 0, or a number for the MPI_COMM_WORLD of a program that was spawned */
    uint32_t tail;  /* bytes of the tail, before the body */
    uint32_t names; /* bytes of names after this head, one a line, in the order of their numbers */
} Head;

enum { HEADER = 65536, TAIL = 65536, REGIONS = 8192 };
enum State { RUNNING, FINISHED, ABORTED, EXITED };
enum Library { OPEN_MPI = 1, MPICH, MPI_ABI };
enum Peer { NOBODY = -3, UNKNOWN = -1 };
#define SATURATED UINT32_MAX

enum Special {
    COMMUNICATOR = 60000, /* begin: hash of the members, duration: how many, peer: the n-th of them, tag: all in order */
    MEMBERS,              /* duration: index of the first, then four ranks in peer, tag, amount */
    COMPLETED,            /* duration: a Kind */
    STARTED,              /* of a persistent request; duration: a Kind */
    LONG,                 /* begin: end of the record before */
    TEXT,                 /* name of a region; duration: its number, communicator: index of the part, 24 bytes */
    ENTER,                /* duration: number of the region, or REGIONS more than that of a name in the head */
    LEAVE,
};
enum Kind { NONE, SENT, RECEIVED, COLLECTIVE, CANCELLED, MATCHED, UNSTATED };

typedef struct {
    Record *at, *end;
    Head *head;
    uint64_t count, renew;
    int file, depth, broken, folding, far;
    uint32_t entered;       /* calls of C, recorded or not */
    uint32_t open, skipped; /* the program's regions that are open: recorded, and not */
} Output;

static __thread Output output __attribute__((tls_model("initial-exec")));
static _Atomic uint32_t threads;
static int recording, off, use_ticks, several_threads;
static int my_rank = -1, world_size, library;
static uint64_t start_tick, short_gap, my_world;
static char folder[400];
static pthread_key_t at_thread_end;
static pthread_mutex_t tables = PTHREAD_MUTEX_INITIALIZER;

static inline void lock(void) { if (UNLIKELY(several_threads)) pthread_mutex_lock(&tables); }
static inline void unlock(void) { if (UNLIKELY(several_threads)) pthread_mutex_unlock(&tables); }

static uint64_t clock_ns(clockid_t id)
{
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Ticks of the processor serve where they are the same on all cores and never stop. */
#if defined(__x86_64__)
#include <cpuid.h>
static inline uint64_t ticks(void) { return __builtin_ia32_rdtsc(); }
static int ticks_are_steady(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);
}
#elif defined(__aarch64__)
static inline uint64_t ticks(void)
{
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
}
static int ticks_are_steady(void) { return 1; }
#else
static inline uint64_t ticks(void) { return 0; }
static int ticks_are_steady(void) { return 0; }
#endif

static inline uint64_t tick(void) { return LIKELY(use_ticks) ? ticks() : clock_ns(CLOCK_MONOTONIC); }

static void say(const char *what, int error)
{
    static atomic_int said;
    if (!atomic_fetch_add(&said, 1))
        fprintf(stderr, "phasewright: rank %d is not recorded further: %s (%s)\n", my_rank, what, strerror(error));
}

/* Beyond the limit of the shell a file would send a signal that ends the program. */
static int beyond_limit(off_t end)
{
    struct rlimit limit;
    return !getrlimit(RLIMIT_FSIZE, &limit) && (rlim_t)end > limit.rlim_cur;
}

/* The records of the tail go to the end of the body. */
static int store_tail(Output *o)
{
    Record *tail = (Record *)((char *)o->head + HEADER);
    size_t size = (size_t)((char *)o->at - (char *)tail);
    off_t to = HEADER + TAIL + (off_t)(o->head->stored * sizeof(Record));
    int error = beyond_limit(to + (off_t)size) ? EFBIG : 0;
    for (char *from = (char *)tail; size && !error;) {
        ssize_t n = pwrite(o->file, from, size, to);
        if (n > 0) from += n, to += n, size -= (size_t)n;
        else if (n == 0 || errno != EINTR) error = n ? errno : ENOSPC;
    }
    if (error) {
        o->broken = 1;
        o->end = o->at; /* what is in the tail stays there */
        say("its file cannot grow", error);
        return 0;
    }
    atomic_store_explicit(&o->head->stored, o->count, memory_order_release);
    o->at = tail;
    o->folding = 0;
    return 1;
}

/* `begin`: of the call that is recorded; the first one began before its file was there. */
static void renew(Output *o, uint64_t begin)
{
    Head *h = o->head;
    if (!h) return;
    if (begin < h->start) h->start = begin;
    h->monotonic1 = clock_ns(CLOCK_MONOTONIC);
    h->real1 = clock_ns(CLOCK_REALTIME);
    h->tick1 = tick();
    struct rusage used;
    if (!getrusage(RUSAGE_THREAD, &used)) h->switches = (uint32_t)used.ru_nivcsw;
    o->renew = h->tick1 + short_gap * 100000;
    /* Its server gets what is new, so that others see it; the writing itself is waited for by nobody. */
    if (UNLIKELY(o->far)) sync_file_range(o->file, 0, 0, SYNC_FILE_RANGE_WRITE);
}

/* On NFS, FUSE (sshfs), SMB or 9P, whose clients keep what is written for up to half a minute. */
static int is_far(int file)
{
    struct statfs of;
    uint32_t type = fstatfs(file, &of) ? 0 : (uint32_t)of.f_type;
    return type == 0x6969 || type == 0x65735546 || type == 0xff534d42 || type == 0xfe534d42 || type == 0x01021997;
}

static void read_word(const char *file, char *into, size_t size)
{
    int f = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = f < 0 ? 0 : read(f, into, size - 1);
    if (f >= 0) close(f);
    into[n > 0 ? n : 0] = 0;
    into[strcspn(into, "\n")] = 0;
}

static uint64_t usable_cores(void)
{
    cpu_set_t set;
    uint64_t mask = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return 0;
    for (int i = 0; i < 64; i++)
        if (CPU_ISSET(i, &set)) mask |= 1ull << i;
    return __builtin_popcountll(mask) == CPU_COUNT(&set) ? mask : 0;
}

static int open_output(Output *o)
{
    char path[512];
    uint32_t thread = atomic_fetch_add(&threads, 1);
    if (thread) several_threads = 1;
    snprintf(path, sizeof path, "%s/%d.%u.pwr", folder, my_rank, thread);
    o->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (o->file < 0 && errno == EEXIST) { /* a program that this one has spawned has ranks from 0 on, too */
        snprintf(path, sizeof path, "%s/%d.%u.%d.pwr", folder, my_rank, thread, (int)getpid());
        o->file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    int error = errno;
    if (o->file >= 0) error = beyond_limit(HEADER + TAIL) ? EFBIG : posix_fallocate(o->file, 0, HEADER + TAIL);
    Head *h = MAP_FAILED;
    if (!error) h = mmap(NULL, HEADER + TAIL, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, o->file, 0);
    if (h == MAP_FAILED) {
        o->broken = 1;
        say(path, error ? error : errno);
        return 0;
    }
    madvise(h, HEADER + TAIL, MADV_DONTFORK);
    o->far = is_far(o->file);
    o->head = h;
    o->at = (Record *)((char *)h + HEADER);
    o->end = o->at + TAIL / sizeof(Record);
    h->version = 1, h->header = HEADER, h->tail = TAIL;
    h->rank = (uint32_t)my_rank, h->size = (uint32_t)world_size, h->thread = thread, h->process = (uint32_t)getpid();
    h->library = (uint32_t)library, h->world = my_world;
    h->start = thread ? tick() : start_tick; /* what a thread did before its first call, nobody knows */
    h->cores = usable_cores();
    gethostname(h->host, sizeof h->host - 1);
    read_word("/proc/sys/kernel/random/boot_id", h->boot, sizeof h->boot);
    if (readlink("/proc/self/exe", h->program, sizeof h->program - 1) < 0) h->program[0] = 0;
    char *names = (char *)(h + 1);
    for (int i = 0; i < ALL_NAMES; i++) h->names += (uint32_t)sprintf(names + h->names, "%s\n", all_names[i]);
    h->monotonic0 = clock_ns(CLOCK_MONOTONIC);
    h->real0 = clock_ns(CLOCK_REALTIME);
    h->tick0 = tick();
    pthread_setspecific(at_thread_end, o);
    renew(o, h->start);
    o->renew = 0; /* the first call renews it too */
    memcpy(h->magic, "PHASEREC", 8);
    return 1;
}

/* A head that says that all has ended reaches others after the records. */
static void settle(Output *o)
{
    if (o->far && !o->broken && store_tail(o)) fdatasync(o->file);
}

static void close_output(void *p)
{
    Output *o = p;
    if (!o->head || o->broken) return;
    renew(o, o->head->start);
    if (o->head->state == RUNNING) settle(o), o->head->state = FINISHED;
    store_tail(o);
    o->at = o->end = NULL;
    o->broken = 1;
    close(o->file);
}

static inline Record *put(int call, uint64_t begin, uint32_t duration, int communicator, int peer, int tag, uint64_t amount)
{
    Output *o = &output;
    if (UNLIKELY(o->at == o->end) && (o->broken || !(o->head ? store_tail(o) : open_output(o)))) {
        if (o->head) atomic_fetch_add(&o->head->lost, 1);
        return NULL;
    }
    Record *r = o->at++;
    *r = (Record){begin, duration, (uint16_t)call, (uint16_t)communicator, peer, tag, amount};
    o->folding = 0;
    atomic_store_explicit(&o->head->records, ++o->count, memory_order_release);
    return r;
}

static inline void put_call(int call, uint64_t begin, uint64_t end, int communicator, int peer, int tag, uint64_t amount)
{
    uint64_t duration = end - begin;
    if (UNLIKELY(duration >= SATURATED)) {
        put(call, begin, SATURATED, communicator, peer, tag, amount);
        put(LONG, end, 0, 0, 0, 0, 0);
    } else
        put(call, begin, (uint32_t)duration, communicator, peer, tag, amount);
    if (UNLIKELY(end > output.renew)) renew(&output, begin);
}

/* A program that asks again and again would fill the disk with its failures. One that follows another within a
 * microsecond is told in one record with it; `tag` counts them. */
static inline void put_failed_test(int call, uint64_t begin, uint64_t end)
{
    Output *o = &output;
    Record *last = o->folding ? o->at - 1 : NULL;
    if (last && last->call == call && begin - (last->begin + last->duration) < short_gap && end - last->begin < SATURATED) {
        last->duration = (uint32_t)(end - last->begin);
        last->tag++;
        return;
    }
    put_call(call, begin, end, 0, UNKNOWN, 1, 0);
    o->folding = o->at && end - begin < SATURATED;
}

/* ---- What differs between libraries ---------------------------------------------------------------------------- */

static Word world, byte_type, null_type, null_request, no_message, in_place, ignore_status;
static Word fortran_ignored[4], fortran_in_place, f08_in_place; /* ignored: MPI_STATUS_IGNORE and _STATUSES_ */
static int any_source, nobody, status_size, status_source, status_tag;
static void *own_library;

/* Python and others open MPI for themselves only: then it is among what is loaded, but in nobody's scope. */
static int look_into(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!info->dlpi_name || !strstr(info->dlpi_name, "libmpi")) return 0;
    void *handle = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) return 0;
    if (dlsym(handle, "PMPI_Comm_rank")) {
        own_library = handle;
        return 1;
    }
    dlclose(handle);
    return 0;
}

static void *symbol_in(void *scope, const char *name)
{
    void *p = dlsym(scope, name);
    if (p) return p;
    if (!own_library) dl_iterate_phdr(look_into, NULL);
    return own_library ? dlsym(own_library, name) : NULL;
}

static void *symbol(const char *name) { return symbol_in(RTLD_NEXT, name); }
/* The program may hold the library's data itself (a copy relocation), so it is looked for from the start. */
static void *data(const char *name) { return symbol_in(RTLD_DEFAULT, name); }

/* The library's own function of a call: Send, or mpi_send_ for Fortran. */
static Function next(const char *name)
{
    char real[80];
    snprintf(real, sizeof real, "P%s", name);
    void *p = symbol(name[0] == 'm' ? name : real);
    if (!p) {
        fprintf(stderr, "phasewright: the MPI library has no %s\n", name);
        abort(); /* the program has just called it: without us it would not have started */
    }
    return (Function)p;
}
#define NEXT(name) ({ static Function f_; if (UNLIKELY(!f_)) f_ = next(#name); f_; })

/* A program may ask by weak references which calls the library has, as mpi4py does: those that it lacks, and for which
 * wrappers were found instead, are not there after all. Such a page stays writable. */
static void hide_what_it_lacks(void)
{
    Dl_info own, there;
    struct link_map *map = NULL;
    void *program = dlopen(NULL, RTLD_LAZY);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    if (!program || dlinfo(program, RTLD_DI_LINKMAP, &map) || !dladdr(folder, &own)) return;
    for (; map; map = map->l_next) {
        const char *names = NULL;
        const ElfW(Sym) *symbols = NULL;
        const ElfW(Rela) *first[2] = {NULL, NULL};
        size_t bytes[2] = {0, 0};
        for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++) {
            /* Some loaders leave what is relative to the object as it is. */
            const void *at = (const void *)(d->d_un.d_ptr + (d->d_un.d_ptr < map->l_addr ? map->l_addr : 0));
            if (d->d_tag == DT_STRTAB) names = at;
            if (d->d_tag == DT_SYMTAB) symbols = at;
            if (d->d_tag == DT_RELA) first[0] = at;
            if (d->d_tag == DT_JMPREL) first[1] = at;
            if (d->d_tag == DT_RELASZ) bytes[0] = d->d_un.d_val;
            if (d->d_tag == DT_PLTRELSZ) bytes[1] = d->d_un.d_val;
        }
        for (int k = 0; k < 2; k++)
            for (size_t i = 0; names && symbols && first[k] && i < bytes[k] / sizeof **first; i++) {
                const ElfW(Sym) *s = &symbols[first[k][i].r_info >> 32];
                if (s->st_info >> 4 != STB_WEAK || s->st_shndx != SHN_UNDEF || strncmp(names + s->st_name, "MPI_", 4)) continue;
                void **found = (void **)(map->l_addr + first[k][i].r_offset);
                char real[80];
                snprintf(real, sizeof real, "P%s", names + s->st_name);
                if (!dladdr(*found, &there) || there.dli_fbase != own.dli_fbase || symbol(real)) continue;
                if (!mprotect((void *)((uintptr_t)found & -page), page, PROT_READ | PROT_WRITE)) *found = NULL;
            }
    }
}

static void learn_all(void)
{
    hide_what_it_lacks();
    Dl_info info;
    void *rank = (void *)NEXT(MPI_Comm_rank), *open = data("ompi_mpi_comm_world");
    int abi = dladdr(rank, &info) && info.dli_fname && strstr(info.dli_fname, "mpi_abi");
    library = abi ? MPI_ABI : open ? OPEN_MPI : MPICH;
    if (library == OPEN_MPI) {
        world = (Word)open;
        byte_type = (Word)data("ompi_mpi_byte");
        null_request = (Word)data("ompi_request_null");
        null_type = (Word)data("ompi_mpi_datatype_null");
        no_message = (Word)data("ompi_message_no_proc");
        in_place = 1, any_source = -1, nobody = -2, status_size = 24, status_source = 0, status_tag = 1;
    } else if (library == MPI_ABI) {
        world = 0x101, byte_type = 0x247, null_request = 0x180, null_type = 0x200, no_message = 0x151, in_place = 1;
        any_source = -1, nobody = -3, status_size = 32, status_source = 0, status_tag = 1;
    } else {
        world = 0x44000000, byte_type = 0x4c00010d, null_request = 0x2c000000, no_message = 0x6c000000, in_place = -1;
        null_type = 0x0c000000, ignore_status = 1;
        any_source = -2, nobody = -1, status_size = 20, status_source = 2, status_tag = 3;
    }
    fortran_in_place = (Word)data("mpi_fortran_in_place_");
    f08_in_place = (Word)data("mpi_fortran_in_place");
    static const char *const ignored[] = {
        "MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE", "MPI_F08_STATUSES_IGNORE"};
    for (int i = 0; i < 4; i++) {
        Word *p = data(ignored[i]);
        fortran_ignored[i] = p ? *p : 0;
    }
}

/* Before the first handle is looked at; sessions may begin in several threads at once. */
static void learn(void)
{
    static pthread_once_t learned = PTHREAD_ONCE_INIT;
    if (*folder) pthread_once(&learned, learn_all);
}

/* MPICH's handles are ints: the upper half of the register that holds one may be anything. */
static inline Word handle(Word h) { return library == MPICH ? (Word)(uint32_t)h : h; }
static inline Word handle_at(Word array, int i) { return library == MPICH ? (Word)((uint32_t *)array)[i] : ((Word *)array)[i]; }
static inline uint32_t hash(Word key) { return (uint32_t)(((uint64_t)key * 0x9E3779B97F4A7C15u) >> 40); }

static Word null_communicator(void)
{
    return library == OPEN_MPI ? (Word)data("ompi_mpi_comm_null") : library == MPICH ? 0x04000000 : 0x100;
}

/* ---- Types, communicators, requests -------------------------------------------------------------------------------- */

enum { TYPES = 1024, COMMUNICATORS = 4096 };

static struct { Word type; int64_t size; } sizes[TYPES];

static int64_t type_size(Word type)
{
    type = handle(type);
    uint32_t i = hash(type) & (TYPES - 1);
    if (LIKELY(!several_threads && sizes[i].type == type)) return sizes[i].size;
    int size = 0;
    if (type != null_type) NEXT(MPI_Type_size)(type, (Word)&size);
    if (size < 0) size = 0;
    if (!several_threads) sizes[i].size = size, sizes[i].type = type;
    return size;
}

static void forget_type(Word type)
{
    type = handle(type);
    uint32_t i = hash(type) & (TYPES - 1);
    if (sizes[i].type == type) sizes[i].type = 0;
}

typedef struct {
    Word key;
    uint64_t members;
    int id, size, between; /* between: of two groups; ranks are those of the other one */
    int *ranks;            /* in MPI_COMM_WORLD; NULL: the same */
} Communicator;

/* Entries stay where they are, so that they are found without a lock; a freed one has key -1. */
static Communicator communicators[COMMUNICATORS];
static _Atomic uint32_t communicator_count;
static Word world_group;

static Communicator *known(Word comm)
{
    for (uint32_t k = 0, i = hash(comm) & (COMMUNICATORS - 1); k < COMMUNICATORS; k++, i = (i + 1) & (COMMUNICATORS - 1)) {
        Word key = __atomic_load_n(&communicators[i].key, __ATOMIC_ACQUIRE);
        if (LIKELY(key == comm)) return &communicators[i];
        if (!key) break;
    }
    return NULL;
}

/* The ranks in MPI_COMM_WORLD of a group, which is freed, and a number for its members; NULL: no memory. */
static int *world_ranks(Word group, int size, uint64_t *members)
{
    int *ranks = malloc(2 * (size_t)size * sizeof *ranks);
    *members = 1469598103934665603u ^ my_world;
    if (ranks) {
        int *own = ranks + size;
        for (int i = 0; i < size; i++) own[i] = i;
        if (world_group) NEXT(MPI_Group_translate_ranks)(group, (Word)size, (Word)own, world_group, (Word)ranks);
        for (int i = 0; i < size; i++) {
            if (!world_group || ranks[i] < 0) ranks[i] = UNKNOWN; /* of another program: spawned, or connected */
            *members = (*members ^ (uint64_t)(ranks[i] + 2)) * 1099511628211u;
        }
    }
    NEXT(MPI_Group_free)((Word)&group);
    return ranks;
}

/* Communicators are one across processes if they have the same members and are the n-th of these: a process makes
 * those in the order in which all the others of them do. One between two groups has the members of both. */
static void describe(Communicator *c, Word comm)
{
    int size = 0, same;
    Word group = 0;
    NEXT(MPI_Comm_test_inter)(comm, (Word)&c->between);
    NEXT(MPI_Comm_size)(comm, (Word)&size);
    NEXT(MPI_Comm_group)(comm, (Word)&group);
    int *ranks = world_ranks(group, size, &c->members);
    if (c->between) {
        uint64_t others;
        free(ranks);
        NEXT(MPI_Comm_remote_size)(comm, (Word)&size);
        NEXT(MPI_Comm_remote_group)(comm, (Word)&group);
        ranks = world_ranks(group, size, &others);
        c->members += others + 1;
    }
    same = ranks && !c->between && size == world_size;
    for (int i = 0; same && i < size; i++) same = ranks[i] == i;
    c->size = size;
    int nth = 0;
    for (uint32_t i = 0; i < COMMUNICATORS; i++)
        nth += &communicators[i] != c && communicators[i].id && communicators[i].members == c->members;
    c->ranks = same ? free(ranks), NULL : ranks;
    c->id = (int)atomic_fetch_add(&communicator_count, 1) + 1;
    put(COMMUNICATOR, c->members, (uint32_t)size, c->id, nth, same, 0);
    for (int i = 0; c->ranks && i < size; i += 4) {
        int four[4] = {UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN};
        for (int k = 0; k < 4 && i + k < size; k++) four[k] = ranks[i + k];
        uint64_t rest;
        memcpy(&rest, four + 2, sizeof rest);
        put(MEMBERS, 0, (uint32_t)i, c->id, four[0], four[1], rest);
    }
}

static Communicator *communicator(Word comm)
{
    static Communicator nothing;
    comm = handle(comm);
    Communicator *c = known(comm);
    if (LIKELY(c != NULL)) return c;
    pthread_mutex_lock(&tables);
    if (!(c = known(comm))) {
        uint32_t i = hash(comm) & (COMMUNICATORS - 1), k = 0;
        while (communicators[i].key && k++ < COMMUNICATORS) i = (i + 1) & (COMMUNICATORS - 1);
        if (k >= COMMUNICATORS - 1 || communicator_count >= 60000)
            c = &nothing;
        else {
            describe(c = &communicators[i], comm);
            __atomic_store_n(&c->key, comm, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&tables);
    return c;
}

static void forget_communicator(Word comm)
{
    Communicator *c = known(handle(comm));
    if (c) __atomic_store_n(&c->key, -1, __ATOMIC_RELEASE);
}

static inline int world_rank(const Communicator *c, int rank)
{
    if (LIKELY(rank >= 0 && rank < c->size)) return c->ranks ? c->ranks[rank] : rank;
    return rank == nobody ? NOBODY : UNKNOWN;
}

/* Chains of a hash table. One handle may stand for several requests (libraries have one for all that are complete
 * at once), so the latest of that key is taken. */
typedef struct {
    Word key;
    uint64_t bytes;
    const Communicator *communicator;
    int peer, tag;
    uint32_t number, following;
    uint8_t kind, persistent, cancelled, active;
} Request;

/* What a call does to a request that is known; a persistent one is known until it is freed (FORGET). */
enum Use { COMPLETE, LOOK, START, CANCEL, FORGET };

static Request *requests;
static uint32_t *chains, room, used, unused_requests, last_number;

static int more_requests(void)
{
    uint32_t size = room ? room * 2 : 1024;
    Request *r = realloc(requests, size * sizeof *r);
    if (!r) return 0;
    requests = r;
    uint32_t *c = calloc(size, sizeof *c);
    if (!c) return 0;
    for (uint32_t k = 1; k <= used; k++) { /* all of them are in use, or none more would be asked for */
        uint32_t *chain = &c[hash(requests[k].key) & (size - 1)];
        requests[k].following = *chain;
        *chain = k;
    }
    free(chains);
    chains = c;
    room = size;
    return 1;
}

/* Its number, or 0 if there is no memory for it. */
static uint32_t remember(Word key, int kind, int persistent, const Communicator *c, int peer, int tag, uint64_t bytes)
{
    key = handle(key);
    lock();
    uint32_t k = unused_requests;
    if (k)
        unused_requests = requests[k].following;
    else if (used + 1 < room || more_requests())
        k = ++used;
    uint32_t number = 0;
    if (k) {
        uint32_t *chain = &chains[hash(key) & (room - 1)];
        last_number = last_number % 0xffffff + 1;
        number = last_number;
        requests[k] = (Request){key, bytes, c, peer, tag, number, *chain, (uint8_t)kind, (uint8_t)persistent, 0, !persistent};
        *chain = k;
    } else if (output.head) /* that it is completed will not be known */
        atomic_fetch_add(&output.head->lost, 1);
    unlock();
    return number;
}

/* Where its chain points to it; to 0: it is not known. */
static inline uint32_t *link_to(Word key)
{
    uint32_t *link = &chains[hash(key) & (room - 1)];
    while (*link && requests[*link].key != key) link = &requests[*link].following;
    return link;
}

static inline void take_out(uint32_t *link)
{
    uint32_t k = *link;
    *link = requests[k].following;
    requests[k].following = unused_requests;
    unused_requests = k;
}

/* What is known of a request, by its handle; of kind NONE: nothing. */
static Request recall(Word key, enum Use use)
{
    Request found = {.kind = NONE};
    if (!room) return found;
    lock();
    uint32_t *link = link_to(handle(key)), k = *link;
    if (k) {
        found = requests[k];
        requests[k].active = use == START || (use == CANCEL && found.active);
        requests[k].cancelled |= use == CANCEL;
        if (use == FORGET || (use == COMPLETE && !found.persistent)) take_out(link);
    }
    unlock();
    return found;
}

static inline uint64_t amount(uint64_t bytes, uint32_t number)
{
    return (bytes < 1ull << 40 ? bytes : (1ull << 40) - 1) | (uint64_t)number << 40;
}

static inline uint64_t status_bytes(const int *status, uint64_t otherwise)
{
    int n = -1;
    NEXT(MPI_Get_count)((Word)status, byte_type, (Word)&n);
    return n >= 0 ? (uint64_t)n : otherwise;
}

/* A request that the library says is complete; status NULL: it was not given one. */
static void finished(Request r, const int *status, uint64_t end)
{
    if (r.kind == UNSTATED) r.kind = RECEIVED, status = NULL;
    if ((r.kind != SENT && r.kind != RECEIVED) || !r.active) return;
    int kind = r.kind, peer = r.peer, tag = r.tag;
    uint64_t bytes = r.bytes;
    if (UNLIKELY(r.cancelled) && status) {
        int flag = 0;
        NEXT(MPI_Test_cancelled)((Word)status, (Word)&flag);
        if (flag) kind = CANCELLED;
    }
    if (kind == RECEIVED && peer != NOBODY && status) {
        peer = world_rank(r.communicator, status[status_source]);
        tag = status[status_tag];
        bytes = status_bytes(status, bytes);
    }
    put(COMPLETED, end, (uint32_t)kind, r.communicator->id, peer, tag, amount(bytes, r.number));
}

static void completed(Word key, const int *status, uint64_t end)
{
    if (handle(key) != null_request) finished(recall(key, COMPLETE), status, end);
}

/* Another thread may be given the handle as soon as the library is done with it: taken out before the call. */
static inline Request taken(Word key)
{
    int known_to_us = UNLIKELY(several_threads) && recording && handle(key) != null_request;
    return known_to_us ? recall(key, COMPLETE) : (Request){.kind = NONE};
}

/* ---- Begin and end ------------------------------------------------------------------------------------------------- */

static void in_child(void)
{
    recording = 0; /* its files are its parent's, and are not mapped here */
    memset(&output, 0, sizeof output);
    output.broken = 1;
}

__attribute__((constructor)) static void loaded(void)
{
    const char *name = getenv("PHASEWRIGHT_RECORD");
    if (!name || !*name || strlen(name) >= sizeof folder) return;
    strcpy(folder, name);
    use_ticks = ticks_are_steady();
    start_tick = tick();
}

static void start_recording(int rank, int size)
{
    my_rank = rank, world_size = size;
    uint64_t t0 = tick(), n0 = clock_ns(CLOCK_MONOTONIC);
    while (clock_ns(CLOCK_MONOTONIC) - n0 < 100000) {}
    short_gap = (tick() - t0) / 100 + 1; /* a microsecond, roughly */
    pthread_key_create(&at_thread_end, close_output);
    pthread_atfork(NULL, NULL, in_child);
    recording = 1;
}

static int alone, world_begun; /* alone: begun without MPI */
static Word world_session; /* that `world_group` is of; 0: of MPI_COMM_WORLD */
static _Atomic int sessions;

/* Programs that are spawned have ranks from 0 on, too: they are told apart by their launcher's name for the job, or
 * by the process that started them on this machine. */
static uint64_t spawned(void)
{
    Function parent_of = (Function)symbol("PMPI_Comm_get_parent");
    Word parent = null_communicator();
    if (parent_of) parent_of((Word)&parent);
    if (handle(parent) == null_communicator()) return 0;
    uint64_t number = 14695981039346656037u ^ (uint64_t)getppid();
    const char *job = getenv("PMIX_NAMESPACE");
    if (job) number = 14695981039346656037u;
    while (job && *job) number = (number ^ (uint8_t)*job++) * 1099511628211u;
    return number;
}

/* By MPI_Init, or by the first session of a program that never calls it. */
static void begin(int threads_wanted, Word session)
{
    if (!*folder || (my_rank >= 0 && !recording)) return;
    learn();
    if (session && !world_group)
        NEXT(MPI_Group_from_session_pset)(session, (Word)"mpi://WORLD", (Word)&world_group), world_session = session;
    if (!session) NEXT(MPI_Comm_group)(world, (Word)&world_group), world_session = 0;
    several_threads |= threads_wanted;
    if (recording && !alone) return;
    int rank = 0, size = 0;
    NEXT(MPI_Group_rank)(world_group, (Word)&rank);
    NEXT(MPI_Group_size)(world_group, (Word)&size);
    if (!session) my_world = spawned();
    if (!alone) start_recording(rank, size);
    alone = 0;
    if (!session) communicator(world);
}

/* A program of threads is one of one process, unless a launcher of MPI has started it: then MPI_Init is waited for. */
static void begin_alone(void)
{
    static const char *const launched[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PMI_FD", "SLURM_PROCID", "FLUX_TASK_RANK", "ALPS_APP_PE"};
    for (size_t i = 0; i < sizeof launched / sizeof *launched; i++)
        if (getenv(launched[i])) return;
    if (!*folder || my_rank >= 0) return;
    alone = 1;
    start_recording(0, 1);
}

static void end(int state)
{
    if (!recording) return;
    recording = 0;
    if (!output.head) return;
    settle(&output);
    output.head->state = (uint32_t)state;
    close_output(&output);
}

/* By exit, without MPI_Finalize: the head says when. */
__attribute__((destructor)) static void unloaded(void) { end(world_begun || !library || sessions ? EXITED : FINISHED); }

static void finished_begin(int call, uint64_t from, int multiple)
{
    begin(multiple, 0);
    world_begun = 1;
    if (recording) put_call(call, from, tick(), 0, UNKNOWN, 0, 0);
}

static void session_begun(int call, Word session, uint64_t from, int recorded)
{
    sessions++;
    begin(1, session);
    if (recording && !recorded && !off) put_call(call, from, tick(), 0, UNKNOWN, 0, 0);
}

/* Nothing that was made of it may be left. */
static void session_ends(Word session)
{
    if (!world_session || session != world_session) return;
    NEXT(MPI_Group_free)((Word)&world_group);
    world_group = world_session = 0;
}

static void ends(int call, int state)
{
    uint64_t now = tick();
    if (recording && !off && !output.depth) put_call(call, now, now, 0, UNKNOWN, 0, 0);
    end(state);
}

/* Level 0 stops the recording on this process, any other goes on with it. */
static void recording_level(int level)
{
    if (!recording || off == (level == 0)) return;
    put(CALL_Pcontrol, tick(), 0, 0, UNKNOWN, level, 0);
    off = level == 0;
}

#include "wrappers.h"

/* ---- The program's own regions ------------------------------------------------------------------------------------- */

#define NO_REGION UINT32_MAX
static struct { char *_Atomic name; } regions[REGIONS];

/* The number of a name, and its text in this thread's file where it is not there yet. */
static uint32_t region(const char *name)
{
    static __thread uint8_t written[REGIONS / 8];
    uint32_t h = 2166136261u;
    for (const char *c = name; *c; c++) h = (h ^ (uint8_t)*c) * 16777619u;
    uint32_t i = h % REGIONS, k = 0;
    for (;; i = (i + 1) % REGIONS) {
        char *there = atomic_load(&regions[i].name);
        if (!there) {
            char *copy = strdup(name);
            if (!copy) return NO_REGION;
            if (atomic_compare_exchange_strong(&regions[i].name, &there, copy)) there = copy;
            else free(copy);
        }
        if (!strcmp(there, name)) break;
        if (++k == REGIONS) return NO_REGION;
    }
    if (!(written[i / 8] & 1 << i % 8)) {
        written[i / 8] |= (uint8_t)(1 << i % 8);
        size_t length = strlen(name);
        for (size_t part = 0; part * 24 <= length && part < 64; part++) {
            char text[24] = {0};
            size_t rest = length - part * 24;
            memcpy(text, name + part * 24, rest < 24 ? rest : 24);
            Record *r = put(TEXT, 0, i, (int)part, 0, 0, 0);
            if (r) memcpy(&r->begin, text, 8), memcpy(&r->peer, text + 8, 16);
        }
    }
    return i;
}

/* Of a region only what was entered is left: it may have begun before MPI did, or inside of a call. */
static void mark(int what, const char *name, uint32_t (*number_of)(const char *))
{
    Output *o = &output;
    if (!recording || o->depth) return;
    if (what == ENTER && off && ++o->skipped) return;
    if (what == LEAVE && (o->skipped ? o->skipped-- : !o->open)) return;
    uint32_t number = number_of(name);
    if (number == NO_REGION) return;
    put(what, tick(), number, 0, UNKNOWN, 0, 0);
    o->open += what == ENTER ? 1u : -1u;
}

API void phasewright_enter(const char *name) { mark(ENTER, name, region); }
API void phasewright_leave(const char *name) { mark(LEAVE, name, region); }

/* ---- Functions that the compiler instruments (-finstrument-functions; names need -rdynamic) ------------------------ */

static uint32_t function_region(const char *function)
{
    static __thread struct { const char *function; uint32_t number; } known_functions[256];
    uint32_t i = hash((Word)function) & 255;
    if (known_functions[i].function == function) return known_functions[i].number;
    Dl_info info;
    char name[300] = "?";
    if (dladdr(function, &info)) {
        const char *file = info.dli_fname ? info.dli_fname : "?", *slash = strrchr(file, '/');
        size_t offset = (size_t)(function - (const char *)info.dli_fbase);
        if (info.dli_sname) snprintf(name, sizeof name, "%s", info.dli_sname);
        else snprintf(name, sizeof name, "%s+0x%zx", slash ? slash + 1 : file, offset);
    }
    known_functions[i].number = region(name);
    known_functions[i].function = function;
    return known_functions[i].number;
}

API void __cyg_profile_func_enter(void *function, void *site);
API void __cyg_profile_func_exit(void *function, void *site);
void __cyg_profile_func_enter(void *function, void *site) { (void)site, mark(ENTER, function, function_region); }
void __cyg_profile_func_exit(void *function, void *site) { (void)site, mark(LEAVE, function, function_region); }

#include "openmp.h"
