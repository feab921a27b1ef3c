! What of Abaqus a UMAT calls, for programs without Abaqus: the message goes to the error unit, and the program ends.
subroutine stdb_abqerr(lop, string, intv, realv, charv)
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  implicit none(type, external)
  integer, intent(in) :: lop
  character(*), intent(in) :: string
  integer, intent(in) :: intv(*)
  real(real64), intent(in) :: realv(*)
  character(8), intent(in) :: charv(*)
  write (error_unit, "(a)") trim(merge("***ERROR:  ", "***WARNING:", lop <= -2))//" "//string
end subroutine stdb_abqerr

subroutine xit()
  implicit none(type, external)
  stop 1
end subroutine xit
