! Point to point, collectives, persistent requests and a communicator in Fortran, by `use mpi_f08` (-DF08), `use mpi`
! (-DMODULE) or mpif.h; each prints: rank sends receives bytes-sent bytes-received collectives bytes-moved
program languages
#ifdef F08
  use mpi_f08
#define COMM type(MPI_Comm)
#define REQUEST type(MPI_Request)
#define STATUS type(MPI_Status)
#define SIZE_OF
#elif defined(MODULE)
  use mpi
#define COMM integer
#define REQUEST integer
#define STATUS integer
#define SIZE_OF (MPI_STATUS_SIZE)
#endif
  implicit none
#if !defined(F08) && !defined(MODULE)
  include 'mpif.h'
#define COMM integer
#define REQUEST integer
#define STATUS integer
#define SIZE_OF (MPI_STATUS_SIZE)
#endif
  integer :: me, ranks, error, k, first, sends, receives, out, in, collectives, moved, next, before, which(2), done
  integer, allocatable :: a(:), b(:), counts(:), at(:)
  logical :: flag
  COMM :: half
  REQUEST :: r(2)
  STATUS :: s SIZE_OF
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  next = mod(me + 1, ranks)
  before = mod(me + ranks - 1, ranks)
  allocate(a(4 * ranks), b(4 * ranks), counts(ranks), at(ranks))
  a = me
  counts = 2
  at = [(2 * k, k = 0, ranks - 1)]
  sends = 0; receives = 0; out = 0; in = 0; collectives = 0; moved = 0
  do k = 1, 7
    call MPI_Irecv(b, 4, MPI_INTEGER, MPI_ANY_SOURCE, k, MPI_COMM_WORLD, r(1), error)
    call MPI_Isend(a, 3, MPI_INTEGER, next, k, MPI_COMM_WORLD, r(2), error)
#ifdef WITHOUT_SOME
    if (k == 4 .or. k == 5) call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, error)
#else
    if (k == 4) then
      call MPI_Waitany(2, r, first, s, error)
      call MPI_Waitany(2, r, first, MPI_STATUS_IGNORE, error)
    end if
    if (k == 5) then
      done = 0
      do while (done < 2)
        call MPI_Waitsome(2, r, first, which, MPI_STATUSES_IGNORE, error)
        done = done + first
      end do
    end if
#endif
    if (k == 1) call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, error)
    if (k == 2) then
      call MPI_Wait(r(1), MPI_STATUS_IGNORE, error)
      call MPI_Wait(r(2), s, error)
    end if
    if (k == 3 .or. k == 7) then
      flag = .false.
      do while (.not. flag)
        if (k == 3) call MPI_Testall(2, r, flag, MPI_STATUSES_IGNORE, error)
        if (k == 7) call MPI_Test(r(1), flag, MPI_STATUS_IGNORE, error)
      end do
      if (k == 7) call MPI_Wait(r(2), MPI_STATUS_IGNORE, error)
    end if
    if (k == 6) then
      do first = 1, 2
        flag = .false.
        do while (.not. flag)
          call MPI_Request_get_status(r(first), flag, MPI_STATUS_IGNORE, error)
        end do
        call MPI_Wait(r(first), MPI_STATUS_IGNORE, error)
      end do
    end if
    call sent(3)
    call MPI_Barrier(MPI_COMM_WORLD, error)
    collectives = collectives + 1
  end do
  call MPI_Sendrecv(a, 2, MPI_INTEGER, next, 8, b, 4, MPI_INTEGER, before, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call sent(2)
  call MPI_Send_init(a, 1, MPI_INTEGER, next, 9, MPI_COMM_WORLD, r(1), error)
  call MPI_Recv_init(b, 1, MPI_INTEGER, before, 9, MPI_COMM_WORLD, r(2), error)
  do k = 1, 3
    call MPI_Startall(2, r, error)
    call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, error)
    call sent(1)
  end do
  call MPI_Request_free(r(1), error)
  call MPI_Request_free(r(2), error)
  if (me == 0) then
    call MPI_Send(a, 4, MPI_INTEGER, 1, 10, MPI_COMM_WORLD, error)
    sends = sends + 1; out = out + 16
  else if (me == 1) then
    call MPI_Probe(MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, s, error)
    call MPI_Recv(b, 4, MPI_INTEGER, MPI_ANY_SOURCE, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    receives = receives + 1; in = in + 16
  end if
  call MPI_Comm_split(MPI_COMM_WORLD, mod(me, 2), me, half, error)
  call MPI_Allreduce(MPI_IN_PLACE, b, 4, MPI_INTEGER, MPI_SUM, half, error)
  call MPI_Comm_free(half, error)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 2, MPI_INTEGER, MPI_COMM_WORLD, error)
  call MPI_Alltoallv(a, counts, at, MPI_INTEGER, b, counts, at, MPI_INTEGER, MPI_COMM_WORLD, error)
  call MPI_Bcast(a, 3, MPI_INTEGER, 1, MPI_COMM_WORLD, error)
  call MPI_Reduce(a, b, 4, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
  call MPI_Iallreduce(a, b, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, r(1), error)
  call MPI_Wait(r(1), MPI_STATUS_IGNORE, error)
  collectives = collectives + 6
  moved = 16 + 8 + 8 * ranks + 16 + 16
  if (me == 1) moved = moved + 12
  print '(i0,6(1x,i0))', me, sends, receives, out, in, collectives, moved
  call MPI_Finalize(error)
contains
  subroutine sent(count)
    integer, intent(in) :: count
    sends = sends + 1
    receives = receives + 1
    out = out + 4 * count
    in = in + 4 * count
  end subroutine sent
end program languages
