! A bar that is stopped at every third step and continued has the bits of one that was not.
program test_checkpoint
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, finish, load, some_strains
  use neml2_capi, only: neml2_call, neml2_error_file, neml2_error_shape, neml2_model
  use neml2_history, only: neml2_state
  implicit none(type, external)
  integer, parameter :: n = 4, steps = 9
  character(*), parameter :: path = "test_checkpoint.state"
  type :: bar
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    type(neml2_state) :: state
  end type bar
  type(bar) :: whole, part
  real(real64), pointer :: expected(:, :), stress(:, :)
  real(real64) :: time = 0
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: step, reached = 0, unit

  call begin(whole)
  call begin(part)
  do step = 1, steps
    call advance(whole, step)
    call advance(part, step)
    if (mod(step, 3) /= 0) cycle
    call part%evaluation%save_state(path, n, step, real(step, real64), stat, errmsg)
    call check_ok(stat, errmsg)
    call part%state%free()
    call begin(part)
    call part%evaluation%load_state(path, n, reached, time, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(reached == step .and. abs(time - step) <= 0, "the step and the time")
  end do
  expected => whole%state%old("stress")
  stress => part%state%old("stress")
  call check(all(abs(stress - expected) <= 0) .and. any(abs(stress) > 0), "the stress at the end")
  call part%evaluation%load_state(path, n - 1, reached, time, stat)
  call check(stat == neml2_error_shape .and. reached == steps, "another number of points")
  call part%evaluation%save_state(path, n + 1, step, time, stat)
  call check(stat == neml2_error_shape, "more points than are bound")
  open (newunit=unit, file=path, status="old")
  close (unit, status="delete")
  call part%evaluation%load_state(path, n, reached, time, stat)
  call check(stat == neml2_error_file, "no file")
  call finish()

contains

  subroutine begin(it)
    type(bar), intent(inout) :: it
    call load(it%model, "viscoplastic")
    call it%evaluation%create(it%model)
    call it%state%create(it%model, n)
    call it%state%bind(it%evaluation)
  end subroutine begin

  subroutine advance(it, step)
    type(bar), intent(inout) :: it
    integer, intent(in) :: step
    real(real64), pointer :: strain(:, :), t(:, :)
    strain => it%state%now("strain")
    t => it%state%now("t")
    strain = step * some_strains(n)
    t = step
    call it%evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call it%state%advance()
  end subroutine advance
end program test_checkpoint
