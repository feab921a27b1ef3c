! How the UMAT ends an analysis: a message, and Abaqus' way out. Another host replaces this file.
module umat_errors
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none(type, external)
  private
  public :: fatal

  ! Abaqus brings these two.
  interface
    subroutine stdb_abqerr(lop, string, intv, realv, charv)
      import :: real64
      integer, intent(in) :: lop
      character(*), intent(in) :: string
      integer, intent(in) :: intv(*)
      real(real64), intent(in) :: realv(*)
      character(8), intent(in) :: charv(*)
    end subroutine

    subroutine xit()
    end subroutine
  end interface

  integer, parameter :: stop_now = -3 ! an error; the analysis ends
  integer, parameter :: longest = 500 ! characters that stdb_abqerr takes

contains

  subroutine fatal(message)
    character(*), intent(in) :: message
    character(:), allocatable :: text
    integer :: i
    text = message(:min(len(message), longest))
    do i = 1, len(text) ! %I, %R and %S would stand for numbers and texts
      if (text(i:i) == "%") text(i:i) = "_"
    end do
    call stdb_abqerr(stop_now, text, [0], [0.0_real64], [character(8) :: ""])
    call xit()
  end subroutine fatal
end module umat_errors
