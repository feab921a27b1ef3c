! A run of more points than a bound array holds is refused before anything is read or written.
program test_extents
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_name, neml2_error_shape, neml2_model, &
                        neml2_ok, neml2_report_iterations, neml2_report_residual_norm, neml2_report_status, &
                        neml2_view
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
