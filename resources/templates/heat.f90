! A rod that is heated at its ends: a small program to try an experiment with.
module rod
  implicit none
  integer, parameter :: cells = 400, dp = kind(1.0d0)
contains
  ! Called once a sweep, and does most of the work.
  subroutine smooth(from, to)
    real(dp), intent(in) :: from(:)
    real(dp), intent(inout) :: to(:)
    integer :: i
    do i = 2, cells - 1
      to(i) = from(i) + 0.25_dp * (from(i - 1) - 2 * from(i) + from(i + 1))
    end do
  end subroutine smooth

  ! Called twice a sweep, and does next to nothing itself.
  real(dp) function heated(old, degrees) result(new)
    real(dp), intent(in) :: old, degrees
    new = 0.5_dp * (old + degrees)
  end function heated
end module rod

program heat
  use rod
  implicit none
  real(dp) :: one(cells) = 0, other(cells) = 0
  integer :: sweep

  do sweep = 1, 10000
    one(1) = heated(one(1), 100.0_dp)
    one(cells) = heated(one(cells), 50.0_dp)
    call smooth(one, other)
    other(1) = one(1)
    other(cells) = one(cells)
    call smooth(other, one)
  end do
  print '(a,es14.6)', 'total ', sum(one)
end program heat
