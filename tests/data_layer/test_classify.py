"""The table of activities: names go before roles, roles before paradigms."""

from __future__ import annotations

import pytest

from desktop.data.classify import activity, is_parallel, mpi_call, region_activity
from desktop.data.events import Activity, Region

C, O, I, F, U = Activity.COMPUTING, Activity.OVERHEAD, Activity.IDLE, Activity.IO, Activity.UNMEASURED  # noqa: E741 - the five classes as columns of a table


@pytest.mark.parametrize(
    ("name", "role", "paradigm", "expected"),
    [
        ("MPI_Wait", "function", "mpi", I),  # Score-P's role would say overhead
        ("MPI_Init", "function", "mpi", I),
        ("MPI_Comm_rank", "function", "mpi", O),
        ("MPI_Ibarrier", "barrier", "mpi", O),  # the role would say waiting
        ("MPI_Iallreduce", "coll_all2all", "mpi", O),
        ("MPI_Allreduce", "function", "user", I),  # EZTrace
        ("MPI_Isend", "function", "user", O),
        ("MPI_Send", "point2point", "mpi", O),
        ("MPI_Ssend", "", "", I),
        ("MPI_Recv", "point2point", "mpi", I),
        ("MPI_Irecv", "point2point", "mpi", O),
        ("MPI_Sendrecv_replace", "", "", I),
        ("mpi_waitall_", "", "", I),
        ("PMPI_Testsome", "", "", I),
        ("MPI_Test_cancelled", "", "", O),
        ("MPI_Reduce_local", "", "", O),
        ("MPI_Win_fence", "rma", "mpi", I),
        ("MPI_Put", "rma", "mpi", O),
        ("MPI_File_write_all", "file_io", "mpi", F),
        ("MPI_Neighbor_alltoallw", "", "", I),
        ("Working", "function", "user", C),
        ("EZTrace finalize", "function", "user", U),
        ("MEASUREMENT OFF", "artificial", "user", U),
        ("TRACE BUFFER FLUSH", "artificial", "measurement_system", U),
        ("ping-pong.otf2", "artificial", "measurement_system", C),  # the program itself
        ("PARALLEL", "artificial", "mpi", C),
        ("OpenMP Parallel", "function", "user", C),
        ("OpenMP implicit barrier", "function", "user", I),
        ("pthread_join", "function", "user", I),
        ("!$omp barrier @a.c:3", "barrier", "openmp", I),
        ("!$omp for @a.c:3", "loop", "openmp", C),
        ("!$omp atomic @a.c:3", "atomic", "openmp", C),
        ("shmem_put", "rma", "shmem", O),
        ("shmem_barrier_all", "barrier", "shmem", I),
        ("shmem_my_pe", "function", "shmem", O),
        ("shmem_atomic_add", "atomic", "shmem", O),
        ("fwrite", "file_io", "io", F),
        ("dump", "file_io_metadata", "io", F),
        ("main", "function", "compiler", C),
        ("MPI", "", "", C),
        ("my_mpi_send", "", "", C),
    ],
)
def test_table(name: str, role: str, paradigm: str, expected: Activity) -> None:
    assert activity(name, role, paradigm) is expected


def test_an_importer_may_say_it_better() -> None:
    assert region_activity(Region("MPI_Send", activity=I)) is I
    assert region_activity(Region("MPI_Send")) is O


def test_names_of_mpi_calls() -> None:
    assert [mpi_call(name) for name in ("MPI_Send", "pmpi_bcast__", "main", "MPI_")] == [
        "send",
        "bcast",
        "",
        "",
    ]


def test_parallel_regions() -> None:
    assert is_parallel(Region("OpenMP Parallel", "function", "user"))
    assert is_parallel(Region("!$omp parallel @a.c:1", "parallel", "openmp"))
    assert not is_parallel(Region("OpenMP For", "loop", "openmp"))
