! A solver of the program's in place of the built-in one, as a callback and over tensors.
module own_solvers
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check
  use neml2_capi, only: neml2_error_argument, neml2_error_record, neml2_not_converged, neml2_ok, neml2_solve
  implicit none(type, external)
  private
  public :: fail_the_second, give_up, newton

  integer, parameter, public :: n = 4, newton_steps = 15
  integer, public :: calls = 0

contains

  ! Newton's method, the same number of steps everywhere.
  subroutine newton(system, stat)
    type(neml2_solve), intent(inout) :: system
    integer(int32), intent(out) :: stat
    real(real64), allocatable :: u(:, :), du(:, :)
    integer(int64) :: size_of_point, points
    integer(int32) :: steps(n)
    integer :: k
    calls = calls + 1
    call system%size(size_of_point, points, stat)
    if (stat /= neml2_ok) return
    allocate (u(size_of_point, points), du(size_of_point, points))
    call system%guess(u, stat)
    do k = 1, newton_steps
      if (stat == neml2_ok) call system%step(u, du, stat)
      if (stat == neml2_ok) u = u + du
    end do
    steps = newton_steps
    if (stat == neml2_ok) call system%accept(u, stat, iterations=steps)
  end subroutine newton

  subroutine give_up(system, stat)
    type(neml2_solve), intent(inout) :: system
    integer(int32), intent(out) :: stat
    integer(int64) :: size_of_point, points
    logical :: more
    call system%next(more, stat)
    call check(stat == neml2_error_argument .and. .not. more, "a callback has one system")
    call system%finish(stat)
    call check(stat == neml2_error_argument, "a callback does not end the evaluation")
    call system%size(size_of_point, points, stat)
    call check(stat == neml2_ok .and. points == n, "what fails leaves the system")
    stat = -77
    call neml2_error_record(stat, "Newton", "The solver gave up.")
  end subroutine give_up

  subroutine fail_the_second(system, stat)
    type(neml2_solve), intent(inout) :: system
    integer(int32), intent(out) :: stat
    real(real64) :: u(19, n)
    call system%guess(u, stat)
    call system%accept(u, stat, status=[neml2_ok, neml2_not_converged, neml2_ok, neml2_ok])
  end subroutine fail_the_second
end module own_solvers

program test_own_solver
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, load, says
  use own_solvers, only: calls, fail_the_second, give_up, n, newton, newton_steps
  use neml2_capi, only: neml2_error_argument, neml2_error_shape, neml2_input, neml2_model, neml2_not_converged, &
                        neml2_ok, neml2_output, neml2_report, neml2_report_iterations, neml2_report_status, &
                        neml2_solve, neml2_tensor, neml2_view
  implicit none(type, external)
  type(neml2_model) :: model
  type(neml2_tensor) :: inputs(8), expected(4)
  real(real64), target :: strain(6, n), tensor(6, n), scalar(n), time, old_time
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  call load(model, "viscoplastic")
  call wrap_inputs()
  call model%forward(inputs, expected, stat, errmsg)
  call check_ok(stat, errmsg)
  call a_callback_agrees_with_the_library()
  call a_callback_ends_an_evaluation()
  call a_callback_fails_points()
  call tensors_are_solved_in_a_loop()
  call what_is_wrong_is_refused()
  call finish()

contains

  ! One step from rest, of another size at each point.
  subroutine wrap_inputs()
    real(real64), parameter :: direction(6) = 0.05_real64 * [20, -6, -5, 2, -4, 1]
    character(:), allocatable :: name
    integer(int64), allocatable :: extents(:)
    integer(int64) :: i
    integer :: p
    do p = 1, n
      strain(:, p) = 0.002_real64 / p * direction
    end do
    tensor = 0
    scalar = 0
    time = 1
    old_time = 0
    do i = 1, size(inputs)
      call model%variable_name(neml2_input, i, name)
      call model%variable_shape(neml2_input, i, extents)
      if (name == "strain") then
        call inputs(i)%wrap(neml2_view(strain))
      else if (name == "t") then
        call inputs(i)%wrap(neml2_view(time))
      else if (name == "t~1") then
        call inputs(i)%wrap(neml2_view(old_time))
      else if (size(extents) == 0) then
        call inputs(i)%wrap(neml2_view(scalar))
      else
        call inputs(i)%wrap(neml2_view(tensor))
      end if
    end do
  end subroutine wrap_inputs

  subroutine agrees(outputs)
    type(neml2_tensor), intent(in) :: outputs(:)
    real(real64), pointer :: values(:), wanted(:)
    integer :: i
    do i = 1, size(outputs)
      call outputs(i)%values(values, stat, errmsg)
      call check_ok(stat, errmsg)
      call expected(i)%values(wanted)
      call check(all(abs(values - wanted) <= 1e-9_real64 * maxval(abs(wanted))), "the output of the library")
    end do
  end subroutine agrees

  subroutine a_callback_agrees_with_the_library()
    type(neml2_tensor) :: outputs(4), steps
    type(neml2_report) :: report
    integer(int32), pointer :: counts(:)
    calls = 0
    call model%forward_with(newton, inputs, outputs, stat, errmsg, report=report)
    call check_ok(stat, errmsg)
    call check(calls == 1, "one implicit segment")
    call agrees(outputs)
    call report%get(neml2_report_iterations, steps)
    call steps%values(counts, stat, errmsg)
    call check(stat == neml2_ok .and. all(counts == newton_steps), "what was accepted is reported")
  end subroutine a_callback_agrees_with_the_library

  subroutine a_callback_ends_an_evaluation()
    type(neml2_tensor) :: outputs(4)
    call model%forward_with(give_up, inputs, outputs, stat, errmsg)
    call check(stat == -77 .and. .not. any(outputs%is_set()), "with its own status")
    call check(says(errmsg, "The solver gave up."), errmsg)
  end subroutine a_callback_ends_an_evaluation

  subroutine a_callback_fails_points()
    type(neml2_tensor) :: outputs(4), status
    type(neml2_report) :: report
    integer(int32), pointer :: values(:)
    call model%forward_with(fail_the_second, inputs, outputs, stat, errmsg, report=report)
    call check(stat == neml2_not_converged .and. outputs(1)%is_set(), "recoverable")
    call report%get(neml2_report_status, status)
    call status%values(values, stat, errmsg)
    call check(stat == neml2_ok .and. values(2) == neml2_not_converged, "the second")
    call check(count(values /= neml2_ok) == 1, "and no other")
  end subroutine a_callback_fails_points

  subroutine tensors_are_solved_in_a_loop()
    type(neml2_solve) :: solve
    type(neml2_tensor) :: outputs(4)
    type(neml2_report) :: report
    logical :: more
    calls = 0
    call solve%begin(model, inputs, stat, errmsg)
    call check_ok(stat, errmsg)
    do
      call solve%next(more, stat, errmsg)
      call check_ok(stat, errmsg)
      if (.not. more) exit
      call newton(solve, stat)
      call check(stat == neml2_ok, "solved")
    end do
    call solve%finish(stat, errmsg, outputs(:3))
    call check(stat == neml2_error_shape .and. says(errmsg, "4 outputs"), errmsg)
    call solve%finish(stat, errmsg, outputs, report)
    call check_ok(stat, errmsg)
    call check(calls == 1 .and. report%is_set() .and. .not. solve%is_set(), "it has ended")
    call agrees(outputs)
  end subroutine tensors_are_solved_in_a_loop

  subroutine what_is_wrong_is_refused()
    type(neml2_solve) :: solve
    type(neml2_tensor) :: outputs(4)
    integer(int64) :: count
    call solve%begin(model, inputs(:3), stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "8 inputs"), errmsg)
    call model%forward_with(newton, inputs(:3), outputs, stat, errmsg)
    call check(stat == neml2_error_shape, "as in forward")
    call solve%finish(stat, errmsg, outputs)
    call check(stat == neml2_error_argument .and. .not. any(outputs%is_set()), "nothing was begun")
    call model%variable_count(neml2_output, count)
    call check(count == 4, "the model is as it was")
  end subroutine what_is_wrong_is_refused
end program test_own_solver
