"""Names of what OTF2 archives record, in the order of their numbers.

Source: OTF2 3.2 reference (score-p.org).
"""

from __future__ import annotations

from desktop.data.events import LocationKind


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
