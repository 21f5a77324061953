"""The activity of a region: by its name first, then by its role and paradigm.

Names have priority because tracers set roles loosely: Score-P gives MPI_Wait and MPI_Init the role
"function", EZTrace gives it to everything. Whole calls are classified: enter and leave alone cannot
distinguish waiting from transfer within a blocking call.
"""

from __future__ import annotations

import re

from desktop.core.accounts import CLASS_OF, Account
from desktop.data.events import Activity, Region

#: MPI calls, without prefix and in lower case, in which a processor waits for another one, or for the start
#: or end of the whole program. Calls of MPI files are I/O; all others move data or manage.
_MPI_WAITING = re.compile(
    r"""recv | mrecv | m?probe | sendrecv(_replace)? | ssend
      | wait(all|any|some)? | test(all|any|some)?
      | barrier | bcast | (all)?gatherv? | scatterv? | (all)?reduce | reduce_scatter(_block)? | alltoall[vw]?
      | (ex)?scan | neighbor_(allgatherv? | alltoall[vw]?)
      | win_(fence | wait | test | start | complete | (un)?lock(_all)? | flush(_local)?(_all)?)
      | init(_thread)? | finalize""",
    re.VERBOSE,
)

_NAMES: dict[str, Activity] = {
    name: activity
    for activity, names in {
        Activity.COMPUTING: ("working", "openmp parallel", "openmp for"),
        Activity.IDLE: (
            *(f"pthread_{call}" for call in ("join", "cond_wait", "cond_timedwait", "barrier_wait")),
            *(f"pthread_{call}" for call in ("mutex_lock", "rwlock_rdlock", "rwlock_wrlock", "spin_lock")),
            *("sem_wait", "sem_timedwait", "gomp_barrier", "gomp_critical_start", "gomp_taskwait"),
            *(f"openmp {construct}" for construct in ("barrier", "implicit barrier", "critical", "set lock")),
            *(f"openmp {construct}" for construct in ("taskwait", "taskgroup", "ordered", "atomic")),
        ),
        Activity.IO: ("read", "write", "pread", "pwrite", "readv", "writev", "fread", "fwrite", "fsync"),
        Activity.UNMEASURED: ("eztrace finalize", "measurement off", "trace buffer flush"),
    }.items()
    for name in names
}

#: Activities of regions other than MPI calls, by name in lower case.
CLASSED = frozenset(_NAMES)

#: Calls by which a host uses accelerators: those that wait for one, and those that launch, copy or manage, by
#: name. Names are those of the public API references (C identifiers, so case counts) or, for directives,
#: those given by OMPT, Score-P and the OpenACC profiling interface. A call that asks whether something is
#: complete waits, as in MPI. Copies are overhead even if they block: names show neither whether they do (a
#: flag, pageable memory), nor how long they wait for a kernel first. A construct whose body runs on the
#: accelerator waits for it, unless ``nowait``; one whose body runs on the host (``target data``) is
#: transparent. Calls that only make the device wait (``cudaStreamWaitEvent``) are not waiting of the host.
_ACCELERATORS: tuple[tuple[str, str, str], ...] = (
    # API; waiting; launching, copying and managing
    (
        "CUDA runtime",
        r"cuda(Device|Thread|Stream|Event)Synchronize | cuda(Stream|Event)Query",
        r"""cuda(Launch | Mem | Memcpy | Memset | Malloc | Free | Host | Stream | Event | Graph | Device
          | Thread | Func | Get | Set | Choose | Configure | Setup | Ipc | Module | Kernel | Library
          | Occupancy | Pointer | Profiler | Import | Destroy | Create | Bind | Unbind | Array | Runtime
          | Driver | Ctx | Init | Peek | Signal | Wait)([A-Z0-9]\w*)?
          | __cuda(Push | Pop | Register | Unregister | Init)\w*""",
    ),
    (
        "CUDA driver",
        r"cu(Ctx|Stream|Event)Synchronize | cu(Stream|Event)Query",
        r"""cu(Launch | Mem | Memcpy | Memset | Module | Ctx | Stream | Event | Graph | Device | Func | Init
          | Array | Mipmapped | Tex | Surf | Param | Pointer | Kernel | Library | Link | Occupancy | Profiler
          | Import | Destroy | Signal | Wait | Get | Driver | Ipc)([A-Z0-9]\w*)?""",
    ),
    (
        "HIP, and the runtime below it",
        r"hip(Device|Ctx|Stream|Event)Synchronize | hip(Stream|Event)Query | hsa_(amd_)?signal_wait\w*",
        r"""hip(Launch | Mem | Memcpy | Memset | Malloc | Free | Host | Ext | Stream | Event | Graph | Device
          | Func | Get | Set | Choose | Configure | Setup | Ipc | Module | Kernel | Occupancy | Pointer
          | Profiler | Import | Destroy | Create | Bind | Unbind | Array | Runtime | Driver | Ctx | Init
          | Peek | Signal | Wait | Tex | Link | Drv)([A-Z0-9]\w*)?
          | __hip(Push | Pop | Register | Unregister)\w* | hsa_\w+""",
    ),
    (
        "OpenCL",
        r"clFinish | clWaitForEvents",
        r"""cl(Enqueue | Flush | Create | Build | Compile | Link | Get | Set | Release | Retain | Unload | SVM
          | Clone | Icd | HostMem | DeviceMem | SharedMem | Mem)([A-Z0-9]\w*)?""",
    ),
    (
        "Level Zero",
        r"""ze((Event | Fence | CommandList)HostSynchronize | CommandQueueSynchronize
          | (Event | Fence)QueryStatus)""",
        r"""zes?(Command | Context | Device | Driver | Event | Fence | Image | Init | Kernel | Mem | Module
          | Physical | Sampler | Virtual)([A-Z0-9]\w*)?""",
    ),
    (
        "OpenACC",
        r"""acc_((wait | async_wait | async_test)(_all)?(_device)?(_all)? | compute(_construct)?)""",
        r"""acc_(wait\w*_async | init\w* | (device_)?(init|shutdown)\w* | malloc | free | copy(in|out)\w*
          | (create | delete)\w* | present_or_\w+ | update\w* | memcpy\w* | (un)?map_data | (at|de)tach\w*
          | get_\w+ | set_\w+ | enqueue_\w+ | (enter|exit)_data | data_(enter|exit) | launch_kernel | upload
          | download)""",
    ),
    (
        "OpenMP target",
        r"""target(\ (teams|parallel|simd|loop)\b(?!.*nowait).*)?
          | __tgt_target(_kernel|_teams\w*|_mapper)?""",
        r"""target\b.*\bnowait | target\ (submit | (enter|exit)\ data | update
          | ((data|memory)\ )?(op|alloc|delete|transfer|associate|disassociate))\b.*
          | omp_target_(alloc|free|memcpy|memset|associate|disassociate|is_)\w* | __tgt_target_(\w*nowait\w*
          | data\w*)""",
    ),
)
_ACCELERATOR_WAITING = re.compile("|".join(waiting for _, waiting, _ in _ACCELERATORS), re.VERBOSE)
_ACCELERATOR_CALL = re.compile("|".join(calls for _, _, calls in _ACCELERATORS), re.VERBOSE)
#: Paradigms whose host regions are all calls or constructs; kernels are of cuda, hip, opencl.
_DIRECTIVES = frozenset({"openacc"})

#: Names by which tracers mark streams of accelerators if their format has no such kind: VampirTrace's
#: processes ("CUDA[0:13]"), Extrae's threads ("CUDA-D1.S2-node").
_STREAM = re.compile(r"(CUDA|HIP|OpenCL|OPENCL|GPU)(\[\d+(:\d+)?\].*|-D\d+\.[SQ]\d+.*)")

#: Paradigms whose calls are communication, whatever their role.
_MESSAGE_PASSING = frozenset({"mpi", "shmem", "gaspi", "upc"})

_ROLES: dict[str, Activity] = {
    role: activity
    for activity, roles in {
        Activity.IDLE: "barrier implicit_barrier coll_one2all coll_all2one coll_all2all coll_other task_wait "
        "thread_wait",
        Activity.OVERHEAD: "point2point rma data_transfer",
        Activity.IO: "file_io file_io_metadata",
    }.items()
    for role in roles.split()
}


def activity(name: str, role: str = "", paradigm: str = "") -> Activity:
    """The activity of a processor inside a region; `role` and `paradigm` in lower case, as in `Region`."""
    plain = name.strip().lower()
    call = mpi_call(plain)
    if call:
        if call.startswith("file_"):
            return Activity.IO
        return Activity.IDLE if _MPI_WAITING.fullmatch(call) else Activity.OVERHEAD
    if plain in _NAMES:
        return _NAMES[plain]
    # Compilers instrument the program's own functions, whatever their names, and no libraries.
    call = accelerator_call(name) if paradigm != "compiler" else ""
    if _ACCELERATOR_WAITING.fullmatch(call):
        return Activity.IDLE
    if _ACCELERATOR_CALL.fullmatch(call) or (paradigm in _DIRECTIVES and call.startswith("acc_")):
        return Activity.OVERHEAD
    if role in _ROLES:
        return _ROLES[role]
    # Artificial regions made by the tracer are known by name; other ones stand for the program itself
    # (Score-P gives one the program's name) or for a phase of it, and are transparent.
    if paradigm in _MESSAGE_PASSING and role != "artificial":
        return Activity.OVERHEAD
    return Activity.COMPUTING


def mpi_call(name: str) -> str:
    """The name of an MPI call without prefix, in lower case; empty for any other region.

    >>> mpi_call("MPI_Send"), mpi_call("pmpi_send_"), mpi_call("main")
    ('send', 'send', '')
    """
    match = re.fullmatch(r"p?mpi_(\w+?)_*", name.lower())
    return match[1] if match else ""


def accelerator_call(name: str) -> str:
    """The name of an accelerator call as in the tables: without result, arguments, version and place.

    >>> accelerator_call("cudaError_t cudaMemcpy(void*, size_t) C"), accelerator_call("!$omp target @a.c:3")
    ('cudaMemcpy', 'target')
    """
    plain = name.partition("@")[0].strip()
    directive = re.fullmatch(r"(?:!\$|#pragma )?omp (target\b.*)", plain, re.IGNORECASE)
    if directive:
        return directive[1].lower()
    words = plain.partition("(")[0].split()
    return re.sub(r"(_v\d+)?(_ptds|_ptsz)?$", "", words[-1]) if words else ""


def is_stream(name: str) -> bool:
    """Whether a process or thread with this name is a stream of an accelerator."""
    return bool(_STREAM.fullmatch(name))


def is_parallel(region: Region) -> bool:
    """Whether threads other than the master compute inside this region only."""
    return region.name.lower() == "openmp parallel" or (region.role, region.paradigm) == (
        "parallel",
        "openmp",
    )


def region_activity(region: Region) -> Activity:
    """The activity of a region: as given by its importer, else by `activity`."""
    if region.activity is not None:
        return region.activity
    return activity(region.name, region.role, region.paradigm)


#: MPI calls (without prefix, in lower case) that neither communicate nor wait: queries and management.
_MPI_MANAGING = re.compile(
    r"""(type|op|info|group|errhandler|error|attr|keyval|status|request|session|t)_\w+
      | comm_(rank|size|compare|get_\w+|set_\w+|test_inter|remote_\w+|group|\w*keyval|\w*attr|\w*errhandler)
      | (cart|graph|dist_graph)_(get|coords|rank|shift|map|neighbors\w*) | (cartdim|graphdims)_get | topo_test
      | dims_create | win_(get|set)_\w+ | get_\w+ | address | aint_\w+ | wtime | wtick | initialized
      | finalized | query_thread | is_thread_main | alloc_mem | free_mem | buffer_\w+ | (un)?pack\w*
      | pcontrol | abort | register_datarep | [bsr]?(send|recv)_init""",
    re.VERBOSE,
)
_MPI_ENDS = re.compile(r"init(_thread)?|finalize")
_LOCKS = re.compile(
    r"""pthread_(mutex|rwlock|spin)_\w+ | sem_(timed)?wait | gomp_critical_\w+
      | openmp\ (critical|ordered|atomic|set\ lock)
      | .*\bomp\ (critical|ordered|atomic)\b.* | omp_set_(nest_)?lock""",
    re.VERBOSE,
)
_THREADS = re.compile(
    r"""pthread_(join|barrier|cond)\w* | openmp\ (barrier|implicit\ barrier|taskwait|taskgroup)
      | gomp_(barrier|taskwait)
      | .*\bomp\ (implicit\ )?(barrier|taskwait|taskgroup)\b.*""",
    re.VERBOSE,
)


def account_class(region: Region, doing: Activity) -> int:
    """The class of time (one of `desktop.core.accounts.CLASSES`) that a location spends in this region, whose
    activity is `doing`."""
    plain, role = region.name.strip().lower(), region.role
    call = mpi_call(plain)
    account = None
    if doing == Activity.UNMEASURED and region.paradigm == "paraver" and plain == "not created":
        return CLASS_OF[int(doing), Account.ABSENT]
    if doing not in (Activity.OVERHEAD, Activity.IDLE):
        return int(doing)
    if _MPI_ENDS.fullmatch(call):
        account = Account.STARTUP
    elif is_communication(region) and not _MPI_MANAGING.fullmatch(call):
        account = Account.MOVING
    elif doing == Activity.IDLE:
        if _ACCELERATOR_WAITING.fullmatch(accelerator_call(region.name)):
            account = Account.ACCELERATOR
        elif _LOCKS.fullmatch(plain) or role in ("critical", "critical_sblock", "lock_acquire", "ordered"):
            account = Account.LOCK
        elif _THREADS.fullmatch(plain) or role in (
            "barrier", "implicit_barrier", "task_wait", "thread_wait"
        ):  # fmt: skip
            account = Account.THREADS
    return int(doing) if account is None else CLASS_OF[int(doing), account]


def is_communication(region: Region) -> bool:
    """Whether a processor sends, receives, or waits for others to do so, inside this region."""
    speaks = bool(mpi_call(region.name)) or region.paradigm in _MESSAGE_PASSING | {"picl", "paraver"}
    speaks = speaks or region.activity is not None  # which the messages inside have decided
    moves = region_activity(region) in (Activity.OVERHEAD, Activity.IDLE)
    # The state of Paraver for all calls of MPI that do not communicate, such as MPI_Init.
    others = region.paradigm == "paraver" and region.name.strip().lower() == "others"
    return speaks and moves and not others and region.role != "flush"
