"""For whom the members of collective operations wait, by the name that an importer gives the operation.

Two questions are kept apart. `pattern`: for whom may a member have waited (the patterns of Scalasca)?
`Depends`: which members cannot have left before which others entered, whatever the library does? Only the
second can prove a clock wrong. MPI promises little about it: "a collective operation may, or may not, have
the effect of synchronizing all calling processes" (MPI 4.0, section 6.1), only a barrier always does (6.3).
Everything else follows from data, which no process has before they are sent:

Barrier (6.3) : each member leaves after every other has entered.
Bcast (6.4), Scatter, Scatterv (6.6) : each leaves after the root has entered, if it gets any data.
Gather, Gatherv (6.5), Reduce (6.9.1) : the root leaves after each that sends any data has entered.
Allgather (6.7), Alltoall (6.8), Allreduce (6.9.6), Reduce_scatter_block (6.10) : each after every other, if
    there are any data; their amount is one for all members.
Allgatherv (6.7) : each after every other that sends any data.
Reduce_scatter (6.10) : each that gets any data after every other.
Scan, Exscan (6.11) : each after all of lower ranks, if there are any data.
Alltoallv, Alltoallw (6.8) : nothing; a trace says how much each member sends, not to whom.
Making a communicator (7.4) : nothing that the standard promises.

Caveats of libraries: a size of 0 in a trace may also be one unknown to the tool, which only loses a bound; a
reduction that could know its result from some inputs only (MPI_LAND) is assumed to wait for all, as in every
known library; the two groups of an intercommunicator wait for each other, not among themselves, but no format
distinguishes them here, so importers should leave out intercommunicators that they recognise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from desktop.core import machine
from desktop.core.arrays import Flags, Ints
from desktop.core.clock_repair import Held
from desktop.data.classify import mpi_call
from desktop.data.matching import Instances

#: Which rows of an operation count: none, all, all if any row has data, rows with data of their own.
NEVER, ALWAYS, UNIFORM, OWN = range(4)


class Depends(NamedTuple):
    """`pattern`: a kind of `core.machine`. `sources`: who must have entered before `targets` leave."""

    pattern: int
    sources: int
    targets: int


_TABLE: dict[str, Depends] = {
    name: Depends(pattern, sources, targets)
    for pattern, sources, targets, names in (
        (machine.N_TO_N, ALWAYS, ALWAYS, "barrier"),
        (machine.N_TO_N, UNIFORM, UNIFORM, "allreduce allgather alltoall reduce_scatter_block"),
        (machine.N_TO_N, OWN, ALWAYS, "allgatherv"),
        (machine.N_TO_N, ALWAYS, OWN, "reduce_scatter"),
        (machine.N_TO_N, NEVER, NEVER, "alltoallv alltoallw all-to-all"),
        (machine.N_TO_N, NEVER, NEVER, "create_handle create_handle_and_allocate"),
        (machine.ONE_TO_ALL, UNIFORM, UNIFORM, "bcast scatter"),
        (machine.ONE_TO_ALL, ALWAYS, OWN, "scatterv one-to-all"),
        (machine.ALL_TO_ONE, UNIFORM, UNIFORM, "gather reduce"),
        (machine.ALL_TO_ONE, OWN, ALWAYS, "gatherv all-to-one"),
        (machine.PREFIX, UNIFORM, UNIFORM, "scan exscan"),
    )
    for name in names.split()
}


def depends(operation: str) -> Depends | None:
    """Dependencies of an operation by its name, with or without MPI's prefix, in any case; None: unknown.

    >>> depends("MPI_Barrier") == depends("barrier") == Depends(machine.N_TO_N, ALWAYS, ALWAYS)
    True
    >>> depends("Destroy_handle") is None
    True
    """
    return _TABLE.get(mpi_call(operation) or operation.lower())


def holds(
    instances: Instances, texts: Sequence[str], process: Ints, reordered: Collection[int] | None
) -> tuple[Held, Ints]:
    """Which rows of operations cannot have been left before which others were entered; pattern of each
    instance.

    process : (locations,) process numbers. reordered : communicators whose ranks are not in location order.
    """
    rules = np.array([depends(text) or Depends(-1, NEVER, NEVER) for text in texts], np.int64).reshape(-1, 3)
    pattern, sources, targets = rules[instances.operation].T
    members = np.diff(instances.start)
    first = instances.start[:-1]
    ordered = pattern == machine.PREFIX
    unknown = (
        instances.communicator >= 0 if reordered is None else np.isin(instances.communicator, list(reordered))
    )
    sources = np.where(ordered & unknown, NEVER, sources)
    data = np.maximum(instances.sent, instances.received)
    some = np.maximum.reduceat(data, first) > 0 if first.size else np.zeros(0, bool)

    def needed(rule: Ints, own: Ints) -> Flags:
        whole = (rule == ALWAYS) | ((rule == UNIFORM) & some)
        picked: Flags = np.repeat(whole, members) | (np.repeat(rule == OWN, members) & (own > 0))
        return picked

    source, target = needed(sources, instances.sent), needed(targets, instances.received)
    root = np.maximum.reduceat(instances.root, first) if first.size else np.zeros(0, np.int64)
    of_root = np.repeat(root >= 0, members) & (
        process[instances.location] == process[np.repeat(root, members)]
    )
    one_to_all = np.repeat(pattern == machine.ONE_TO_ALL, members)
    all_to_one = np.repeat(pattern == machine.ALL_TO_ONE, members)
    source &= ~one_to_all | of_root
    target &= ~all_to_one | of_root
    target &= ~(one_to_all & of_root)
    source &= ~(all_to_one & of_root)
    places = process[instances.location]
    return Held(instances.start, places, instances.begin, instances.end, source, target, ordered), pattern
