"""Extrae's public numbers: states, MPI calls, event types. The labels of a trace (.pcf) have priority.

Source: the event tables of Extrae (bsc-performance-tools/extrae, LGPL) and the labels in its traces.
"""

from __future__ import annotations

from desktop.data.events import Activity, MetricAbout

_C, _O, _I = Activity.COMPUTING, Activity.OVERHEAD, Activity.IDLE

#: Name and activity of each state, by number.
STATES: tuple[tuple[str, Activity], ...] = (
    ("Idle", _I),
    ("Running", _C),
    ("Not created", Activity.UNMEASURED),
    ("Waiting a message", _I),
    ("Blocking send", _O),
    ("Synchronization", _I),
    ("Test/Probe", _I),
    ("Scheduling and fork/join", _O),
    ("Wait/WaitAll", _I),
    ("Blocked", _I),
    ("Immediate send", _O),
    ("Immediate receive", _O),
    ("I/O", Activity.IO),
    ("Group communication", _I),
    ("Tracing disabled", Activity.UNMEASURED),
    ("Others", _O),
    ("Send receive", _O),
    ("Memory transfer", _O),
    ("Profiling", Activity.UNMEASURED),
    ("On-line analysis", Activity.UNMEASURED),
    ("Remote memory access", _O),
    ("Atomic", _O),
    ("Memory ordering", _O),
    ("Distributed locking", _O),
    ("Overhead", _O),
)
IDLE = 0
#: States that occur only in MPI calls: waiting for a message, sends and receives, collectives.
IN_MPI = frozenset((3, 4, 8, 10, 11, 13, 16))
_BY_LABEL = {name.lower(): activity for name, activity in STATES}
_NUMBER_OF = {name.lower(): number for number, (name, _) in enumerate(STATES)}


def state_activity(number: int, label: str) -> Activity:
    """The activity of a state: by its label if that is known, else by its number."""
    usual = STATES[number][1] if 0 <= number < len(STATES) else _O
    return _BY_LABEL.get(label.strip().lower(), usual)


def agreed(states: dict[int, str], again: dict[int, list[str]]) -> tuple[dict[int, str], list[int]]:
    """The labels of states, and the states whose label is contradicted.

    These are states with several labels, which get the usual one if it is among them, else the first, and
    states with the usual label of another state that has it too, which get their own usual label.
    """
    labels = states | {
        number: next((one for one in (states[number], *more) if moved(number, one) is None), states[number])
        for number, more in again.items()
    }
    copied = [
        number
        for number, label in labels.items()
        if 0 <= number < len(STATES)
        and (owner := moved(number, label)) is not None
        and labels.get(owner, "").lower() == label.lower()
    ]
    certain = {number: label for number, label in labels.items() if number not in copied}
    return certain, sorted({*again, *copied})


def moved(number: int, label: str) -> int | None:
    """The other state whose usual label this is; None: there is none."""
    owner = _NUMBER_OF.get(label.lower(), number)
    return None if owner == number else owner


POINT_TO_POINT, COLLECTIVE, OTHER, ONE_SIDED, FILES = range(50000001, 50000006)
MPI_ROLES = ("point2point", "coll_other", "function", "rma", "file_io")
#: Communicator, sizes and root of a collective are events at the time of its begin.
SENT, RECEIVED, ROOT, COMMUNICATOR = range(50100001, 50100005)
FUNCTION = 60000019
TRACING, FLUSHING = 40000012, 40000003


#: Types of events that are hardware counters: values since the event before.
COUNTERS = range(42000000, 43000000)


def metric(kind: int) -> MetricAbout:
    """Meaning of the values of an event type."""
    return MetricAbout("", "relative", "last") if kind in COUNTERS else MetricAbout()


def _numbered(first: int, names: str) -> dict[int, str]:
    return dict(enumerate(names.split(), first))


#: Names of MPI calls without prefix, by the value of events 50000001 to 50000005.
MPI_CALLS = {
    **_numbered(1, "Send Recv Isend Irecv Wait Waitall Bcast Barrier Reduce Allreduce Alltoall Alltoallv"),
    **_numbered(13, "Gather Gatherv Scatter Scatterv Allgather Allgatherv Comm_rank Comm_size"),
    **_numbered(30, "Scan Init Finalize Bsend Ssend Rsend Ibsend Issend Irsend Test"),
    **_numbered(41, "Sendrecv Sendrecv_replace"),
    **_numbered(59, "Waitany Waitsome Probe Iprobe"),
    80: "Reduce_scatter",
    155: "Iallreduce",
    156: "Ibarrier",
}
#: Collective operations and their roles.
OPERATIONS = {
    name: role
    for role, names in {
        "barrier": "Barrier",
        "coll_one2all": "Bcast Scatter Scatterv",
        "coll_all2one": "Reduce Gather Gatherv",
        "coll_all2all": "Allreduce Allgather Allgatherv Alltoall Alltoallv Alltoallw Reduce_scatter "
        "Reduce_scatter_block",
        "coll_other": "Scan Exscan",
    }.items()
    for name in names.split()
}
