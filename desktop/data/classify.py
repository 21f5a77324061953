"""Which activity a region stands for: by its name first, then by its role and paradigm.

Names go before roles because tracers set roles loosely: Score-P gives MPI_Wait and MPI_Init the role
"function", EZTrace gives it to everything. Whole calls are classed: enter and leave alone cannot tell
waiting from transfer within a blocking call.
"""

from __future__ import annotations

import re

from desktop.data.events import Activity, Region

#: Names of MPI calls, without prefix and in lower case, in which a processor waits for another one, or
#: for the whole program to start and end. Calls of MPI files are I/O; all others move data or manage.
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
            "pthread_join",
            "pthread_cond_wait",
            "pthread_cond_timedwait",
            "pthread_barrier_wait",
            "pthread_mutex_lock",
            "pthread_rwlock_rdlock",
            "pthread_rwlock_wrlock",
            "pthread_spin_lock",
            "sem_wait",
            "sem_timedwait",
            "openmp barrier",
            "openmp implicit barrier",
            "openmp critical",
            "openmp set lock",
            "openmp taskwait",
            "gomp_barrier",
            "gomp_critical_start",
            "gomp_taskwait",
        ),
        Activity.IO: ("read", "write", "pread", "pwrite", "readv", "writev", "fread", "fwrite", "fsync"),
        Activity.UNMEASURED: ("eztrace finalize", "measurement off", "trace buffer flush"),
    }.items()
    for name in names
}

#: Paradigms whose calls are communication, whatever their role.
_MESSAGE_PASSING = frozenset({"mpi", "shmem", "gaspi", "upc"})

_ROLES: dict[str, Activity] = {
    role: activity
    for activity, roles in {
        Activity.IDLE: (
            "barrier",
            "implicit_barrier",
            "coll_one2all",
            "coll_all2one",
            "coll_all2all",
            "coll_other",
            "task_wait",
            "thread_wait",
        ),
        Activity.OVERHEAD: ("point2point", "rma", "data_transfer"),
        Activity.IO: ("file_io", "file_io_metadata"),
    }.items()
    for role in roles
}


def activity(name: str, role: str = "", paradigm: str = "") -> Activity:
    """What a processor does inside a region; `role` and `paradigm` in lower case, as in `Region`."""
    plain = name.strip().lower()
    call = mpi_call(plain)
    if call:
        if call.startswith("file_"):
            return Activity.IO
        return Activity.IDLE if _MPI_WAITING.fullmatch(call) else Activity.OVERHEAD
    if plain in _NAMES:
        return _NAMES[plain]
    if role in _ROLES:
        return _ROLES[role]
    # Artificial regions that the tracer made up are known by name; what is left of them stands for the
    # program itself (Score-P gives it the program's name) or for a phase of it, and is transparent.
    if paradigm in _MESSAGE_PASSING and role != "artificial":
        return Activity.OVERHEAD
    return Activity.COMPUTING


def mpi_call(name: str) -> str:
    """The name of an MPI call without prefix, in lower case; empty for any other region.

    >>> mpi_call("MPI_Send"), mpi_call("pmpi_send_"), mpi_call("main")
    ('send', 'send', '')
    """
    found = re.fullmatch(r"p?mpi_(\w+?)_*", name.lower())
    return found[1] if found else ""


def is_parallel(region: Region) -> bool:
    """Whether threads other than the master compute inside this region only."""
    return region.name.lower() == "openmp parallel" or (region.role, region.paradigm) == (
        "parallel",
        "openmp",
    )


def region_activity(region: Region) -> Activity:
    """Of a region as defined: what its importer says, else by `activity`."""
    if region.activity is not None:
        return region.activity
    return activity(region.name, region.role, region.paradigm)


def is_communication(region: Region) -> bool:
    """Whether a processor sends, receives, or waits for others to do so, inside this region."""
    speaks = bool(mpi_call(region.name)) or region.paradigm in _MESSAGE_PASSING | {"picl", "paraver"}
    moves = region_activity(region) in (Activity.OVERHEAD, Activity.IDLE)
    return speaks and moves and region.role != "flush"
