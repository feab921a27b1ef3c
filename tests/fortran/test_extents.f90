! A run of more points than a bound array holds is refused before anything is read or written.
program test_extents
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_missing, neml2_error_name, neml2_error_shape, &
                        neml2_model, neml2_ok, neml2_report_iterations, neml2_report_residual_history, &
                        neml2_report_residual_norm, neml2_report_status, neml2_view
  use neml2_capi_experimental, only: neml2_call_bind_input_derivative, neml2_call_memory_set
  implicit none(type, external)
  integer, parameter :: n = 4
  type(neml2_model) :: model
  real(real64), target :: strain(6, n), stress(6, n), short(6, 2)
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  call load(model, "elasticity")
  strain = some_strains(n)
  call arrays_that_are_too_short()
  call sections_of_a_state()
  call reports()
  call residual_histories()
  call refused_step_strides()
  call derivatives_of_inputs()
  call bindings_that_are_taken_back()
  call copies_know_the_same()
  call an_array_without_points()
  call finish()

contains

  ! A call with all that it needs for n points.
  subroutine prepare(evaluation)
    type(neml2_call), intent(inout) :: evaluation
    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    stress = -1
  end subroutine prepare

  ! A run of n points fails, and says all of `name`, `points` and n; nothing is written.
  subroutine refused(evaluation, name, points)
    type(neml2_call), intent(in) :: evaluation
    character(*), intent(in) :: name, points
    stress = -1
    call evaluation%run(n, stat, errmsg)
    call check(stat == neml2_error_shape, name//" is too short")
    call check(says(errmsg, "'"//name//"' holds "//points//" points") .and. says(errmsg, "is of 4."), errmsg)
    call check(all(stress < 0), "nothing is written")
  end subroutine refused

  subroutine accepted(evaluation)
    type(neml2_call), intent(in) :: evaluation
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "as many points as all arrays hold")
  end subroutine accepted

  subroutine arrays_that_are_too_short()
    type(neml2_call) :: evaluation
    real(real64), target :: moduli(3), modulus
    short = strain(:, :2)
    moduli = young
    modulus = young
    call prepare(evaluation)
    call evaluation%bind_input("strain", neml2_view(short), stat)
    call refused(evaluation, "strain", "2")
    call evaluation%run(2, stat, errmsg)
    call check_ok(stat, errmsg)

    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(short), stat)
    call refused(evaluation, "stress", "2")
    call evaluation%run(1000000000000_int64, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "1000000000000"), "far too many points")

    ! a binding that fails leaves the one before
    call evaluation%bind_output("stress", neml2_view(stress), stat, stride=5)
    call check(stat == neml2_error_shape, "points that overlap")
    call refused(evaluation, "stress", "2")
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    call accepted(evaluation)

    call evaluation%bind_parameter("elasticity.E", neml2_view(moduli), stat)
    call refused(evaluation, "elasticity.E", "3")
    call evaluation%bind_parameter("elasticity.E", neml2_view(modulus), stat)
    call accepted(evaluation)

    call evaluation%bind_input("strain", neml2_view(strain), stat, stride=0)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, spread(strain(:, 1), 2, n))), "one strain for all points")
  end subroutine arrays_that_are_too_short

  subroutine sections_of_a_state()
    type(neml2_call) :: evaluation
    real(real64), target :: state(14, n), line(6 * n)
    call prepare(evaluation)
    state = 0
    state(9:, :) = strain
    call evaluation%bind_input("strain", neml2_view(state), stat, first=9, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call accepted(evaluation)
    ! the last point would end beyond the array
    call evaluation%bind_input("strain", neml2_view(state), stat, first=10)
    call refused(evaluation, "strain", "3")
    call evaluation%bind_input("strain", neml2_view(state), stat, first=14 * n - 5)
    call refused(evaluation, "strain", "1")
    call evaluation%bind_input("strain", neml2_view(state), stat, first=14 * n - 4, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "strain"), "not one point fits")
    call evaluation%bind_input("strain", neml2_view(state), stat, first=14 * n + 1, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "strain"), "first lies beyond the end")
    call evaluation%bind_input("strain", neml2_view(state(:5, 1)), stat, stride=0, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "strain"), "too short for one value")
    call evaluation%bind_input("strain", neml2_view(state), stat, first=0, errmsg=errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "strain"), "first counts from 1")
    call evaluation%bind_input("strian", neml2_view(state), stat, first=1000, errmsg=errmsg)
    call check(stat == neml2_error_name .and. says(errmsg, "strian"), "an unknown name")
    call refused(evaluation, "strain", "1")

    ! one axis, with the distance of the points given
    line = reshape(strain, [6 * n])
    call evaluation%bind_input("strain", neml2_view(line), stat, stride=6)
    call accepted(evaluation)
    call evaluation%bind_input("strain", neml2_view(line), stat, stride=7)
    call refused(evaluation, "strain", "3")
  end subroutine sections_of_a_state

  subroutine reports()
    type(neml2_call) :: evaluation
    integer(int32), target :: statuses(n), steps(n)
    real(real64), target :: norms(n)
    call prepare(evaluation)
    call evaluation%bind_report(neml2_report_status, neml2_view(statuses(:3)), stat)
    call refused(evaluation, "status", "3")
    call evaluation%bind_report(neml2_report_status, neml2_view(statuses), stat)
    call accepted(evaluation)
    call check(all(statuses == neml2_ok), "all points are well")
    call evaluation%bind_report(neml2_report_iterations, neml2_view(steps(:2)), stat)
    call refused(evaluation, "iterations", "2")
    call evaluation%bind_report(neml2_report_iterations, neml2_view(steps), stat)
    call evaluation%bind_report(neml2_report_residual_norm, neml2_view(norms(:1)), stat)
    call refused(evaluation, "residual norm", "1")
    call evaluation%bind_report(neml2_report_residual_norm, neml2_view(norms), stat)
    call accepted(evaluation)
  end subroutine reports

  ! As many values are written for the last point as for any other.
  subroutine residual_histories()
    integer, parameter :: miters = 10
    type(neml2_call) :: evaluation
    real(real64), target :: line(miters * n), history(miters, n)
    call model%set_option("miters", real(miters, real64), stat)
    call prepare(evaluation)
    line = -1
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(line(:miters * (n - 1) + 1)), stat, &
                                stride=miters, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call refused(evaluation, "residual history", "3")
    call check(all(line < 0), "no history is written")
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(line), stat, stride=miters)
    call accepted(evaluation)
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(history), stat)
    call accepted(evaluation)
  end subroutine residual_histories

  ! A step stride is refused before the array is bound.
  subroutine refused_step_strides()
    type(neml2_call) :: evaluation
    real(real64), target :: one(6, n), block(36, n), one_block(36, n)
    integer(int32), target :: statuses(n), one_status(n)
    one = -7
    one_block = -7
    one_status = -7
    call prepare(evaluation)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call evaluation%bind_report(neml2_report_status, neml2_view(statuses), stat)
    call evaluation%bind_input("strain", neml2_view(one(:, :1)), stat, errmsg, step_stride=-1)
    call check(stat == neml2_error_shape .and. says(errmsg, "'strain' must be 0 or more; got -1"), "an input")
    call evaluation%bind_output("stress", neml2_view(one(:, :1)), stat, errmsg, step_stride=-1)
    call check(stat == neml2_error_shape .and. says(errmsg, "'stress' must be 0 or more; got -1"), "an output")
    call evaluation%bind_output("stress", neml2_view(), stat, errmsg, step_stride=-1)
    call check(stat == neml2_error_shape, "no array")
    call evaluation%bind_derivative("stress", "strain", neml2_view(one_block(:, :1)), stat, errmsg, step_stride=-1)
    call check(stat == neml2_error_shape .and. says(errmsg, "'stress:strain' must"), "a derivative")
    call evaluation%bind_report(neml2_report_status, neml2_view(one_status(:1)), stat, errmsg, step_stride=-1)
    call check(stat == neml2_error_shape .and. says(errmsg, "'status' must"), "a report")
    call accepted(evaluation)
    call check(all(one < -6) .and. all(one_block < -6) .and. all(one_status == -7), "what was refused is not written")
    call check(all(statuses == neml2_ok), "what was bound is written")
    call evaluation%bind_output("stress", neml2_view(), stat, errmsg, step_stride=6)
    call check_ok(stat, errmsg)
  end subroutine refused_step_strides

  subroutine derivatives_of_inputs()
    type(neml2_call) :: evaluation
    real(real64), target :: block(36, n), unit(6, 6, n)
    integer :: i
    unit = 0
    do i = 1, 6
      unit(i, i, :) = 1
    end do
    call prepare(evaluation)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit(:, :, :3)), stat, errmsg)
    call check_ok(stat, errmsg)
    call refused(evaluation, "strain:strain", "3")
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit(:, :5, 1)), stat, stride=0)
    call check(stat == neml2_error_shape, "less than one point")
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit), stat, stride=35)
    call check(stat == neml2_error_shape, "points that overlap")
    call refused(evaluation, "strain:strain", "3")
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit(:, :, 1)), stat, stride=0)
    call accepted(evaluation)
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit), stat)
    call accepted(evaluation)
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(unit(:, :, :1)), stat)
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(), stat)
    call accepted(evaluation)
  end subroutine derivatives_of_inputs

  ! A call knows nothing of arrays that are bound no longer.
  subroutine bindings_that_are_taken_back()
    type(neml2_call) :: evaluation
    real(real64), target :: block(36, 1)
    call prepare(evaluation)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call neml2_call_memory_set(evaluation, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat)
    call check(stat == neml2_error_missing, "no input is bound")
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    call accepted(evaluation)
  end subroutine bindings_that_are_taken_back

  subroutine copies_know_the_same()
    type(neml2_call) :: a, b
    call prepare(a)
    b = a
    call b%bind_output("stress", neml2_view(short), stat)
    call refused(a, "stress", "2")
    call a%free()
    call refused(b, "stress", "2")
    call prepare(a)
    call accepted(a)
    b = a
    call accepted(b)
  end subroutine copies_know_the_same

  ! As a block of elements may be that is not there in this process.
  subroutine an_array_without_points()
    type(neml2_call) :: evaluation
    real(real64), allocatable, target :: nothing(:, :)
    allocate (nothing(14, 0))
    call prepare(evaluation)
    call evaluation%bind_input("strain", neml2_view(nothing), stat, first=8, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(0, stat, errmsg)
    call check_ok(stat, errmsg)
    call refused(evaluation, "strain", "0")
  end subroutine an_array_without_points
end program test_extents
