! A host that is compiled with traps for invalid operations, overflow and division by zero is not stopped by them.
program test_floating_point
  use, intrinsic :: ieee_arithmetic, only: ieee_get_halting_mode, ieee_invalid, ieee_overflow, ieee_divide_by_zero
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, finish, load
  use neml2_capi, only: neml2_call, neml2_model, neml2_not_converged, neml2_ok, neml2_report_iterations, &
                        neml2_report_residual_norm, neml2_report_status, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 3
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, n), state(19, n), zero(19), time, old_time
  integer(int32), target :: status(n), iterations(n)
  real(real64), target :: residual_norm(n)
  integer(int32) :: stat
  logical :: halting(3)
  character(:), allocatable :: errmsg

  call load(model, "viscoplastic")
  call evaluation%create(model, stat)
  strain = 0
  strain(1, :) = 1e-2_real64
  strain(1, 1) = 1e200_real64 ! its powers overflow
  state = -1
  zero = 0
  time = 1
  old_time = 0
  call evaluation%bind_input("t", neml2_view(time), stat)
  call evaluation%bind_input("t~1", neml2_view(old_time), stat)
  call evaluation%bind_input("strain", neml2_view(strain), stat)
  call evaluation%bind_input("strain~1", neml2_view(zero), stat, stride=0)
  call evaluation%bind_input("stress~1", neml2_view(zero), stat, stride=0)
  call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(zero), stat, stride=0)
  call evaluation%bind_input("X1~1", neml2_view(zero), stat, stride=0)
  call evaluation%bind_input("X2~1", neml2_view(zero), stat, stride=0)
  call evaluation%bind_output("stress", neml2_view(state), stat, first=1)
  call evaluation%bind_output("equivalent_plastic_strain", neml2_view(state), stat, first=7)
  call evaluation%bind_report(neml2_report_status, neml2_view(status), stat)
  call evaluation%bind_report(neml2_report_iterations, neml2_view(iterations), stat)
  call evaluation%bind_report(neml2_report_residual_norm, neml2_view(residual_norm), stat, errmsg)
  call check_ok(stat, errmsg)

  call evaluation%run(n, stat, errmsg)
  call check(stat >= neml2_not_converged, "the point that overflows is reported")
  call check(status(1) >= neml2_not_converged .and. all(status(2:) == neml2_ok), "and is the only one")
  call check(all(abs(state(:, 1) + 1) <= 0), "nothing was written for it")
  call check(all(state(7, 2:) > 0) .and. all(iterations(2:) > 0), "the others flow")
  call check(all(residual_norm(2:) >= 0), "and have small residuals")

  call ieee_get_halting_mode(ieee_invalid, halting(1))
  call ieee_get_halting_mode(ieee_overflow, halting(2))
  call ieee_get_halting_mode(ieee_divide_by_zero, halting(3))
  call check(all(halting), "the host traps again")
  call finish()
end program test_floating_point
