! A state carries the history of points as one who does it by hand.
program test_state
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, finish, load, some_strains
  use neml2_capi, only: neml2_call, neml2_model, neml2_not_converged, neml2_report_rescue_solves, neml2_view
  use neml2_history, only: neml2_state
  implicit none(type, external)
  integer, parameter :: n = 3, steps = 4
  type(neml2_model) :: model
  type(neml2_call) :: evaluation, by_hand
  type(neml2_state) :: state, saved
  real(real64), pointer :: strain(:, :), t(:, :), stress(:, :)
  real(real64), target :: given(6, n), old_given(6, n), time, old_time, values(19, n), old_values(19, n)
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: step

  call load(model, "viscoplastic")
  call evaluation%create(model)
  call state%create(model, n)
  call state%bind(evaluation)
  strain => state%now("strain")
  t => state%now("t")
  stress => state%now("stress")
  call bind_by_hand()
  do step = 1, steps
    given = step * some_strains(n)
    time = step
    strain = given
    t = time
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg) ! again, from the same history
    call by_hand%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(stress - values(1:6, :)) <= 0) .and. any(abs(stress) > 0), "the stress of a step")
    call state%advance()
    old_given = given
    old_time = time
    old_values = values
  end do
  stress => state%old("stress")
  call check(all(abs(stress - old_values(1:6, :)) <= 0), "what is now became old")
  call keep()
  call state%free()
  call rescue()
  call finish()

contains

  ! A copy has values of its own, and gives them back to the arrays that calls are bound to.
  subroutine keep()
    real(real64), pointer :: before(:, :)
    real(real64) :: there(6, n)
    there = stress
    saved = state
    before => saved%old("stress")
    stress = 2
    call check(all(abs(before - there) <= 0), "a copy does not follow")
    state = saved
    call check(all(abs(stress - there) <= 0), "values come back where they were")
    saved = saved
    call check(all(abs(before - there) <= 0), "a state is assigned to itself")
    call saved%create(model, n + 1)
    saved = state
    before => saved%old("stress")
    call check(size(before, 2) == n .and. all(abs(before - there) <= 0), "a copy has as many points")
    call saved%free()
    call check(all(abs(stress - there) <= 0), "the other one is still there")
    state = saved
    call state%create(model, n)
  end subroutine keep

  ! Fifty per cent from rest: a point that does not converge is solved again if an option says so, and the report counts.
  subroutine rescue()
    integer(int32), target :: solves(n)
    given = 500 * some_strains(n)
    time = 1
    old_given = 0
    old_time = 0
    old_values = 0
    call by_hand%bind_report(neml2_report_rescue_solves, neml2_view(solves), stat, errmsg)
    call check_ok(stat, errmsg)
    call by_hand%run(n, stat)
    call check(stat == neml2_not_converged .and. all(solves == 0), "fails without")
    call model%set_option("rescue", 100.0_real64, stat, errmsg)
    call check_ok(stat, errmsg)
    call by_hand%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(any(solves > 0), "is solved, and counted")
  end subroutine rescue

  subroutine bind_by_hand()
    old_given = 0
    old_time = 0
    old_values = 0
    call by_hand%create(model)
    call by_hand%bind_input("strain", neml2_view(given))
    call by_hand%bind_input("strain~1", neml2_view(old_given))
    call by_hand%bind_input("t", neml2_view(time))
    call by_hand%bind_input("t~1", neml2_view(old_time))
    call by_hand%bind_input("stress~1", neml2_view(old_values(1:6, :)))
    call by_hand%bind_input("equivalent_plastic_strain~1", neml2_view(old_values(7, :)))
    call by_hand%bind_input("X1~1", neml2_view(old_values(8:13, :)))
    call by_hand%bind_input("X2~1", neml2_view(old_values(14:19, :)))
    call by_hand%bind_output("stress", neml2_view(values(1:6, :)))
    call by_hand%bind_output("equivalent_plastic_strain", neml2_view(values(7, :)))
    call by_hand%bind_output("X1", neml2_view(values(8:13, :)))
    call by_hand%bind_output("X2", neml2_view(values(14:19, :)))
  end subroutine bind_by_hand
end program test_state
