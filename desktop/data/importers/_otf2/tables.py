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

#: Records of which only the time counts: the first and the last of a location say when it is there. Their
#: further arguments differ, but the caller clears them away (System V calling convention, the only one the
#: wheel is built for), so that one function of the common five serves them all.
PASSING = listed(
    """Unknown MpiRequestTest ThreadFork ThreadJoin ThreadTeamBegin ThreadTeamEnd ThreadAcquireLock
ThreadReleaseLock ThreadTaskCreate ThreadTaskSwitch ThreadTaskComplete ThreadCreate ThreadBegin ThreadWait
ThreadEnd OmpFork OmpJoin OmpAcquireLock OmpReleaseLock OmpTaskCreate OmpTaskSwitch OmpTaskComplete
ParameterString ParameterInt ParameterUnsignedInt CallingContextSample RmaWinCreate RmaWinDestroy
RmaCollectiveBegin RmaCollectiveEnd RmaGroupSync RmaRequestLock RmaAcquireLock RmaTryLock RmaReleaseLock
RmaSync RmaWaitChange RmaPut RmaGet RmaAtomic RmaOpCompleteBlocking RmaOpCompleteNonBlocking RmaOpTest
RmaOpCompleteRemote IoCreateHandle IoDestroyHandle IoDuplicateHandle IoSeek IoChangeStatusFlags IoDeleteFile
IoOperationBegin IoOperationTest IoOperationIssued IoOperationComplete IoOperationCancelled IoAcquireLock
IoReleaseLock IoTryLock ProgramBegin ProgramEnd CommCreate CommDestroy"""
)
#: Messages and collectives that the tables cannot hold as they are: counted and said.
UNSTORED_RECORDS = listed(
    """NonBlockingCollectiveRequest NonBlockingCollectiveComplete MpiProbe MpiMrecv
MpiImrecvRequest MpiImrecv"""
)
