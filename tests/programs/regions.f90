! A program of Fortran with regions, ignored statuses and requests; prints what it sent and received.
program regions
  use mpi
  use phasewright
  implicit none
  integer :: me, ranks, error, k, sent, r(2), first, flagged(MPI_STATUS_SIZE)
  logical :: flag
  double precision :: a(8), b(8)
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  sent = 0
  a = me
  do k = 1, 6
    call phasewright_begin("exchange")
    call MPI_Irecv(b, 8, MPI_DOUBLE_PRECISION, MPI_ANY_SOURCE, k, MPI_COMM_WORLD, r(1), error)
    call MPI_Isend(a, k, MPI_DOUBLE_PRECISION, mod(me + 1, ranks), k, MPI_COMM_WORLD, r(2), error)
    sent = sent + 8 * k
    if (k == 1) call MPI_Waitall(2, r, MPI_STATUSES_IGNORE, error)
    if (k == 2) then
      call MPI_Wait(r(1), MPI_STATUS_IGNORE, error)
      call MPI_Wait(r(2), flagged, error)
    end if
    if (k == 3) then
      flag = .false.
      do while (.not. flag)
        call MPI_Testall(2, r, flag, MPI_STATUSES_IGNORE, error)
      end do
    end if
    if (k >= 4) then
      call MPI_Waitany(2, r, first, flagged, error)
      call MPI_Waitany(2, r, first, MPI_STATUS_IGNORE, error)
    end if
    call phasewright_end("exchange")
    call MPI_Allreduce(a, b, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, error)
  end do
  print '(i0,1x,i0,1x,i0)', me, 6, sent
  call MPI_Finalize(error)
end program regions
