"""Names used in OTF2 archives, in the order of their numbers.

Source: OTF2 3.2 reference (score-p.org).
"""

from __future__ import annotations

from desktop.data.events import LocationKind, MessageKind, MetricMode


def listed(names: str) -> tuple[str, ...]:
    return tuple(names.split())


ROLES = listed(
    """unknown function wrapper loop code parallel sections section workshare single single_sblock master
critical critical_sblock atomic barrier implicit_barrier flush ordered ordered_sblock task task_create
task_wait coll_one2all coll_all2one coll_all2all coll_other file_io point2point rma data_transfer artificial
thread_create thread_wait task_untied allocate deallocate reallocate file_io_metadata cancel kernel"""
)
PARADIGMS = listed(
    """unknown user compiler openmp mpi cuda measurement_system pthread hmpp ompss hardware gaspi upc
shmem winthread qtthread acethread tbbthread openacc opencl mtapi sampling none hip kokkos
openmp_target"""
)
OPERATIONS = listed(
    """Barrier Bcast Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv
Alltoallw Allreduce Reduce Reduce_scatter Scan Exscan Reduce_scatter_block Create_handle Destroy_handle
Allocate Deallocate Create_handle_and_allocate Destroy_handle_and_deallocate"""
)
KINDS: dict[int, LocationKind] = {2: "accelerator", 3: "metric"}
#: Event records that are messages, and their kind.
MESSAGES = dict(zip(sorted(MessageKind), (14, 15, 16, 18, 17, 19, 21), strict=True))
#: Meaning of a metric's values by the lower half of its mode; upper halves of those that hold for the time
#: since the sample before, or until the next one.
METRIC_MODES: dict[int, MetricMode] = {0: "accumulated", 1: "absolute", 2: "relative"}
METRIC_LAST, METRIC_NEXT = 0x20, 0x30
#: Prefixes of units by the power of ten.
PREFIXES = {-9: "n", -6: "\N{MICRO SIGN}", -3: "m", 3: "k", 6: "M", 9: "G", 12: "T"}
