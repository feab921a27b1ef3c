! A host ends a long evaluation by the function that the library asks.
module host
  implicit none(type, external)
  logical :: wants_an_end = .true.

contains

  logical function asked()
    asked = wants_an_end
  end function asked
end module host

program test_interrupt
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, finish, load, says
  use host, only: asked, wants_an_end
  use neml2_capi, only: neml2_call, neml2_error_interrupted, neml2_interrupt_set, neml2_model, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 100000
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), allocatable, target :: strain(:, :), stress(:, :)
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call load(model, "elasticity")
  allocate (strain(6, n), stress(6, n), source=0.0_real64)
  strain(1, :) = 1e-3_real64
  call evaluation%create(model)
  call evaluation%bind_input("strain", neml2_view(strain))
  call evaluation%bind_output("stress", neml2_view(stress))
  call neml2_interrupt_set(asked)
  call evaluation%run(n, stat, errmsg)
  call check(stat == neml2_error_interrupted .and. says(errmsg, "The host ended the evaluation"), errmsg)
  wants_an_end = .false.
  call evaluation%run(n, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(all(abs(stress(1, :) - stress(1, 1)) <= 0) .and. stress(1, 1) > 0, "it goes on")
  call finish()
end program test_interrupt
