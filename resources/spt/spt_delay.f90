! spt_delay: an artificial delay for synthetic-perturbation tuning, in Fortran (2003 and later).
!
! Build spt_delay_c.c beside it (the loop and its fences, which Fortran cannot say), write "use spt_delay_module" where it
! is needed, and at every place that might be a bottleneck, in a source that is preprocessed (.F90, or -cpp):
!
!     #ifdef F1
!       call spt_delay(100_c_long)
!     #endif
module spt_delay_module
  use, intrinsic :: iso_c_binding, only: c_long
  implicit none
  private
  public :: spt_delay, c_long

  interface
    subroutine spt_delay(units) bind(c, name="spt_delay_out_of_line")
      import :: c_long
      integer(c_long), value, intent(in) :: units
    end subroutine spt_delay
  end interface
end module spt_delay_module
