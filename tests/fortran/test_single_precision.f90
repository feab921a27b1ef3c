! A model of float32: its arrays are real32, in calls and as tensors, and real64 is refused. The artifact comes from
! tests/python/test_float32.py, u^2 = a with u as a warm start:
!   test_single_precision ROOT
! Without the argument there is nothing to test.
program test_single_precision
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check, check_ok, finish, says
  use neml2_capi, only: neml2_call, neml2_error_dtype, neml2_float32, neml2_model, neml2_ok, neml2_output, &
                        neml2_tensor, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 5
  type(neml2_model) :: model
  character(4096) :: root
  character(:), allocatable :: errmsg
  real(real32), target :: a(n), state(3, n)
  integer(int32) :: dtype, stat

  if (command_argument_count() /= 1) stop
  call get_command_argument(1, root)
  call model%load(root, stat, errmsg, dtype=neml2_float32)
  call check_ok(stat, errmsg)
  dtype = 0
  call model%dtype(dtype)
  call check(dtype == neml2_float32, "a model of float32")
  call model%variable_dtype(neml2_output, 1_int64, dtype)
  call check(dtype == neml2_float32, "so is its output")
  a = [1.0_real32, 2.0_real32, 4.0_real32, 9.0_real32, 16.0_real32]
  call calls()
  call tensors()
  call other_kinds_are_refused()
  call finish()

contains

  subroutine calls()
    type(neml2_call) :: evaluation
    state = 1
    state(2, :) = 1 + a / 2 ! from above
    call evaluation%create(model)
    call evaluation%bind_input("a", neml2_view(a), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("u", neml2_view(state(2, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("u", neml2_view(state(3, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(state(3, :) - sqrt(a)) <= 1e-5_real32 * sqrt(a)), "the roots")
    call check(all(abs(state(1, :) - 1) <= 0), "beside what they do not touch")
  end subroutine calls

  subroutine tensors()
    type(neml2_tensor) :: inputs(2), outputs(1)
    real(real32), pointer :: values(:)
    real(real64), pointer :: wide(:)
    call inputs(1)%wrap(neml2_view(a), stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(2)%wrap(neml2_view(state(2, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call model%forward(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%values(values, stat, errmsg)
    call check(stat == neml2_ok .and. all(abs(values - state(3, :)) <= 0), "as the call has them")
    call outputs(1)%values(wide, stat)
    call check(stat == neml2_error_dtype .and. .not. associated(wide), "not as real64")
  end subroutine tensors

  subroutine other_kinds_are_refused()
    type(neml2_call) :: evaluation
    real(real64), target :: wide(n)
    wide = 1
    call evaluation%create(model)
    call evaluation%bind_input("a", neml2_view(wide), stat, errmsg)
    call check(stat == neml2_error_dtype .and. says(errmsg, "float32"), errmsg)
  end subroutine other_kinds_are_refused
end program test_single_precision
