! Regions of a program's own, for `phasewright record`; compile this file with it, nothing has to be linked.
!
!     use phasewright
!     call phasewright_begin("solve")
!     ...
!     call phasewright_end("solve")
module phasewright
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: phasewright_begin, phasewright_end

  interface
    function dlsym(scope, name) bind(c)
      import :: c_ptr, c_funptr, c_char
      type(c_ptr), value :: scope
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: dlsym
    end function dlsym
  end interface

  abstract interface
    subroutine mark(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine mark
  end interface

contains

  subroutine call_with(entry, name)
    character(len=*), intent(in) :: entry, name
    type(c_funptr) :: found
    procedure(mark), pointer :: function
    found = dlsym(c_null_ptr, entry // c_null_char)
    if (.not. c_associated(found)) return
    call c_f_procpointer(found, function)
    call function(trim(name) // c_null_char)
  end subroutine call_with

  subroutine phasewright_begin(name)
    character(len=*), intent(in) :: name
    call call_with("phasewright_enter", name)
  end subroutine phasewright_begin

  subroutine phasewright_end(name)
    character(len=*), intent(in) :: name
    call call_with("phasewright_leave", name)
  end subroutine phasewright_end
end module phasewright
