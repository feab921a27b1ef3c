! Print the stress of an elastic model for one strain.
program stress_of_strain
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok, neml2_view
  implicit none(type, external)
  real(real64), target :: strain(6, 1), stress(6, 1)
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  character(:), allocatable :: errmsg
  character(4096) :: root
  integer(int32) :: stat

  strain(:, 1) = [1e-3_real64, -3e-4_real64, -2.5e-4_real64, 1e-4_real64, -2e-4_real64, 5e-5_real64] ! Mandel notation
  call get_command_argument(1, root)
  call model%load(trim(root), stat=stat, errmsg=errmsg)
  if (stat == neml2_ok) call evaluation%create(model, stat=stat, errmsg=errmsg)
  if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(strain), stat=stat, errmsg=errmsg)
  if (stat == neml2_ok) call evaluation%bind_output("stress", neml2_view(stress), stat=stat, errmsg=errmsg)
  if (stat == neml2_ok) call evaluation%run(1, stat=stat, errmsg=errmsg)

  if (stat /= neml2_ok) then
    write (error_unit, "(a)") errmsg
    error stop 1
  end if
  print "(es24.16e3)", stress
end program stress_of_strain
