"""The table of activities: names go before roles, roles before paradigms."""

from __future__ import annotations

import pytest

from desktop.data.classify import activity, is_parallel, is_stream, mpi_call, region_activity
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


@pytest.mark.parametrize(
    ("expected", "names"),
    [
        # NVIDIA, CUDA Runtime API and CUDA Driver API references
        (I, "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaThreadSynchronize"),
        (I, "cudaStreamQuery cudaEventQuery cudaStreamSynchronize_ptsz cudaDeviceSynchronize_v3020"),
        (I, "cuCtxSynchronize cuStreamSynchronize cuEventSynchronize cuStreamSynchronize_ptsz cuEventQuery"),
        (O, "cudaMemcpy cudaMemcpyAsync cudaMemcpy2D cudaMemcpyToSymbol cudaMemset cudaMemPrefetchAsync"),
        (O, "cudaLaunchKernel cudaLaunch cudaLaunchCooperativeKernel cudaGraphLaunch cudaStreamWaitEvent"),
        (
            O,
            "cudaMalloc cudaMallocHost cudaFree cudaHostAlloc cudaStreamCreate cudaEventRecord cudaSetDevice",
        ),
        (O, "cudaGetLastError cudaFuncGetAttributes __cudaPushCallConfiguration __cudaRegisterFatBinary"),
        (
            O,
            "cuLaunchKernel cuLaunchKernelEx cuMemcpyHtoD_v2 cuMemcpyDtoHAsync_v2 cuMemAlloc_v2 cuInit",
        ),
        (O, "cuMemsetD8_v2 cuStreamWaitEvent cuModuleLoadData cuCtxCreate_v2 cuDevicePrimaryCtxRetain"),
        # AMD, HIP API and ROCr references
        (I, "hipDeviceSynchronize hipStreamSynchronize hipEventSynchronize hipCtxSynchronize hipEventQuery"),
        (I, "hsa_signal_wait_scacquire hsa_amd_signal_wait_any"),
        (
            O,
            "hipMemcpy hipMemcpyAsync hipMemcpyWithStream hipMemcpyDtoH hipMemset hipStreamWaitEvent hipFree",
        ),
        (O, "hipLaunchKernel hipModuleLaunchKernel hipExtLaunchKernel hipMalloc hipHostMalloc hipSetDevice"),
        (O, "hipGraphLaunch __hipPushCallConfiguration __hipRegisterFatBinary hsa_signal_create"),
        # Khronos, OpenCL API specification
        (I, "clFinish clWaitForEvents"),
        (
            O,
            "clEnqueueNDRangeKernel clEnqueueReadBuffer clEnqueueWriteBuffer clEnqueueBarrierWithWaitList",
        ),
        (
            O,
            "clFlush clCreateBuffer clBuildProgram clSVMAlloc clGetDeviceIDs clReleaseMemObject",
        ),
        # Intel, oneAPI Level Zero specification
        (I, "zeEventHostSynchronize zeFenceHostSynchronize zeCommandQueueSynchronize zeEventQueryStatus"),
        (I, "zeCommandListHostSynchronize"),
        (O, "zeCommandListAppendLaunchKernel zeCommandQueueExecuteCommandLists zeMemAllocDevice zeInit"),
        (O, "zeCommandListAppendWaitOnEvents zeEventHostSignal zeModuleCreate"),
        # OpenACC specification: runtime routines, and events as Score-P and NVIDIA's compilers name them
        (I, "acc_wait acc_wait_all acc_wait_device acc_async_wait acc_async_test acc_wait@solve.f90:12"),
        (I, "acc_compute@solve.f90:12 acc_compute_construct@a.c:3"),
        (O, "acc_wait_async acc_wait_all_async acc_copyin acc_update_device acc_memcpy_to_device acc_malloc"),
        (O, "acc_init@a.c:1 acc_enter_data@a.c:24 acc_data_exit@a.c:9 acc_enqueue_upload@a.c:24 acc_upload"),
        (O, "acc_launch_kernel@a.c:3 acc_enqueue_launch@a.c:24 acc_get_device_num"),
        # OpenMP specification: runtime routines; LLVM's runtime
        (O, "omp_target_alloc omp_target_memcpy omp_target_memcpy_async omp_target_is_present"),
        (O, "__tgt_target_data_begin_mapper __tgt_target_nowait_mapper __tgt_target_data_update"),
        (I, "__tgt_target_kernel __tgt_target_mapper __tgt_target_teams_mapper"),
        # What only looks like one
        (
            C,
            "cudaSolver custom cublasDgemm_check clean clamp accumulate acceleration hipster zeta hsa cu acc",
        ),
        (C, "cuda hip targetLevel target_update zero clFFT_setup_grid main"),
    ],
)
def test_calls_of_accelerators(expected: Activity, names: str) -> None:
    found = {name: activity(name, "function", "user") for name in names.split()}
    assert found == dict.fromkeys(names.split(), expected)
    # TAU records whole prototypes
    found = {name: activity(f"int {name}(void *, size_t) C", "", "") for name in names.split()}
    assert found == dict.fromkeys(names.split(), expected) or "@" in names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("!$omp target @a.c:7", I),
        ("!$omp target", I),
        ("!$omp target teams distribute parallel for @a.c:7", I),
        ("!$omp target nowait @a.c:7", O),
        ("!$omp target teams nowait", O),
        ("!$omp target submit @a.c:7", O),
        ("!$omp target enter data @a.c:7", O),
        ("!$omp target exit data", O),
        ("!$omp target update @a.c:7", O),
        ("!$omp target data @a.c:7", C),  # its body runs on the host
        ("!$omp taskgroup @a.c:7", C),
    ],
)
def test_directives_of_openmp(name: str, expected: Activity) -> None:
    assert activity(name, "function", "openmp") is expected


def test_functions_of_the_program_are_no_calls_of_a_library() -> None:
    assert activity("cudaInitGrid", "function", "compiler") is C
    assert activity("acc_update", "function", "compiler") is C
    assert activity("acc_anything", "wrapper", "openacc") is O


def test_streams_by_name() -> None:
    for name in ("CUDA-D1.S2-node07", "OpenCL-D1.Q1", "CUDA[0:13]", "CUDA[1]", "CUDA[0:7]:1 Process 3"):
        assert is_stream(name)
    for name in ("CUDA host thread", "THREAD 1.1.1", "Process 0", "GPU", "Mycuda[0]"):
        assert not is_stream(name)


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
