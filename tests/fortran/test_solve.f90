! The Newton loop is the program's, and agrees with the library's.
program test_solve
  use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, load, says
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_shape, neml2_model, neml2_not_converged, &
                        neml2_ok, neml2_report_iterations, neml2_report_status, neml2_singular, neml2_solve, &
                        neml2_unknown, neml2_view
  implicit none(type, external)

  integer, parameter :: points = 5, size_of_state = 19
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, points), old_strain(6, points), time, old_time
  real(real64), target :: state(size_of_state, points), old_state(size_of_state, points)
  integer(int32), target :: status(points), iterations(points)
  real(real64) :: atol, rtol, miters
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  call load(model, "viscoplastic")
  call model%get_option("atol", atol, stat)
  call model%get_option("rtol", rtol, stat)
  call model%get_option("miters", miters, stat)
  call bind()
  call a_loop_of_its_own_agrees_with_the_library()
  call the_system_is_consistent()
  call a_failed_point_keeps_its_arrays()
  call what_is_wrong_is_refused()
  call finish()

contains

  subroutine bind()
    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call bind_time("t", time)
    call bind_time("t~1", old_time)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_input("strain~1", neml2_view(old_strain), stat)
    call bind_state("stress", 1)
    call bind_state("equivalent_plastic_strain", 7)
    call bind_state("X1", 8)
    call bind_state("X2", 14)
    call evaluation%bind_report(neml2_report_status, neml2_view(status), stat)
    call evaluation%bind_report(neml2_report_iterations, neml2_view(iterations), stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine bind

  subroutine bind_time(name, value)
    character(*), intent(in) :: name
    real(real64), intent(in), target :: value
    real(real64), pointer :: bound
    bound => value
    call evaluation%bind_input(name, neml2_view(bound), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
  end subroutine bind_time

  subroutine bind_state(name, first)
    character(*), intent(in) :: name
    integer, intent(in) :: first
    call evaluation%bind_input(name//"~1", neml2_view(old_state), stat, first=first, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output(name, neml2_view(state), stat, first=first, errmsg=errmsg)
    call check_ok(stat, errmsg)
  end subroutine bind_state

  ! Step k of a cycle of 20, with another amplitude at each point.
  subroutine apply_load(k)
    integer, intent(in) :: k
    real(real64), parameter :: pi = acos(-1.0_real64)
    real(real64), parameter :: direction(6) = 0.05_real64 * [20, -6, -5, 2, -4, 1]
    integer :: p
    time = k
    do p = 1, points
      strain(:, p) = 0.01_real64 / p * sin(2 * pi * k / 20) * direction
    end do
  end subroutine apply_load

  subroutine begin_history()
    integer :: k
    strain = 0
    state = 0
    time = 0
    do k = 1, 4
      call accept_step()
      call apply_load(k)
      call evaluation%run(points, stat, errmsg)
      call check_ok(stat, errmsg)
    end do
  end subroutine begin_history

  subroutine accept_step()
    old_strain = strain
    old_state = state
    old_time = time
  end subroutine accept_step

  ! Newton's method for each point, as the library has it.
  subroutine newton(solve)
    type(neml2_solve), intent(in) :: solve
    real(real64), allocatable :: u(:, :), r(:, :), du(:, :)
    real(real64) :: first(points), norm(points)
    integer(int32) :: outcome(points), steps(points), singular(points)
    integer(int64) :: n, npoints
    integer :: k
    call solve%size(n, npoints, stat)
    call check(stat == neml2_ok .and. n == size_of_state .and. npoints == points, "the size of the system")
    allocate (u(n, npoints), r(n, npoints), du(n, npoints))
    call solve%guess(u, stat, errmsg)
    call check_ok(stat, errmsg)
    outcome = neml2_not_converged
    steps = 0
    singular = 0
    first = 0
    do k = 0, int(miters) - 1
      if (k > 0) then
        call solve%step(u, du, stat, errmsg, singular)
        call check_ok(stat, errmsg)
        where (spread(outcome == neml2_not_converged, 1, int(n))) u = u + du
        where (outcome == neml2_not_converged) steps = k
        where (outcome == neml2_not_converged .and. singular /= 0) outcome = neml2_singular
      end if
      call solve%residual(u, r, stat, errmsg)
      call check_ok(stat, errmsg)
      norm = sqrt(sum(r**2, 1))
      where (.not. ieee_is_finite(norm)) norm = huge(norm) ! a comparison with NaN traps
      if (k == 0) first = norm
      where (outcome == neml2_not_converged .and. (norm < atol .or. norm < rtol * first)) outcome = neml2_ok
      if (.not. any(outcome == neml2_not_converged .and. norm < huge(norm))) exit
    end do
    call solve%accept(u, stat, errmsg, status=outcome, iterations=steps)
    call check_ok(stat, errmsg)
  end subroutine newton

  subroutine a_loop_of_its_own_agrees_with_the_library()
    type(neml2_solve) :: solve
    real(real64) :: expected(size_of_state, points)
    integer(int32) :: expected_iterations(points)
    integer :: segments
    logical :: more
    call begin_history()
    call accept_step()
    call apply_load(5)
    call evaluation%run(points, stat, errmsg)
    call check_ok(stat, errmsg)
    expected = state
    expected_iterations = iterations
    state = -1
    call solve%begin(evaluation, points, stat, errmsg)
    call check_ok(stat, errmsg)
    segments = 0
    do
      call solve%next(more, stat, errmsg)
      call check_ok(stat, errmsg)
      if (.not. more) exit
      segments = segments + 1
      call newton(solve)
    end do
    call check(segments == 1, "one implicit segment")
    call check(all(abs(state + 1) <= 0), "nothing is written before the end")
    call solve%finish(stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(state - expected) <= 1e-12_real64 * maxval(abs(expected))), "the state is the library's")
    call check(all(iterations == expected_iterations), "after as many steps")
  end subroutine a_loop_of_its_own_agrees_with_the_library

  ! r + A du = 0, from the Jacobian and from the product with it; the unknowns are told apart.
  subroutine the_system_is_consistent()
    type(neml2_solve) :: solve, copy
    real(real64), dimension(size_of_state, points) :: u, r, du, y
    real(real64) :: a(size_of_state, size_of_state, points)
    integer(int64) :: k, n, npoints, nunknowns, unknown, first, pieces, stride, length
    integer :: p
    logical :: more
    character(:), allocatable :: name
    call solve%begin(evaluation, points, stat)
    call solve%next(more, stat)
    copy = solve
    call solve%free()
    call copy%size(n, npoints, stat, nunknowns=nunknowns)
    call check(nunknowns == 4, "four unknowns")
    do k = 1, nunknowns
      call copy%layout(k, unknown, first, pieces, stride, length, stat, errmsg)
      call check_ok(stat, errmsg)
      call model%variable_name(neml2_unknown, unknown, name, stat)
      call check(pieces == 1 .and. length == merge(1, 6, name == "equivalent_plastic_strain"), "the place of "//name)
    end do
    call copy%layout(nunknowns + 1, unknown, first, pieces, stride, length, stat, errmsg)
    call check(stat == neml2_error_argument, "there are no more")
    call copy%guess(u, stat)
    call copy%residual(u, r, stat)
    call copy%step(u, du, stat)
    call copy%jacobian(u, a, stat, errmsg)
    call check_ok(stat, errmsg)
    call copy%matvec(u, du, y, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(y + r) <= 1e-10_real64 * maxval(abs(r))), "the product with the step")
    do p = 1, points
      y(:, p) = matmul(du(:, p), a(:, :, p))
    end do
    call check(all(abs(y + r) <= 1e-10_real64 * maxval(abs(r))), "the Jacobian, transposed")
  end subroutine the_system_is_consistent

  subroutine a_failed_point_keeps_its_arrays()
    type(neml2_solve) :: solve
    logical :: more
    strain(2, 3) = 1e100_real64
    state = -1
    call solve%begin(evaluation, points, stat)
    call solve%next(more, stat)
    call newton(solve)
    call solve%next(more, stat)
    call solve%finish(stat, errmsg)
    call check(stat > 0 .and. len(errmsg) > 0, "a point that fails is reported")
    call check(status(3) == stat .and. all(status([1, 2, 4, 5]) == neml2_ok), "at its place")
    call check(all(abs(state(:, 3) + 1) <= 0), "its state is left as it was")
    call check(all(abs(state(1, [1, 2, 4, 5]) + 1) > 0), "the others are written")
    call apply_load(5)
  end subroutine a_failed_point_keeps_its_arrays

  subroutine what_is_wrong_is_refused()
    type(neml2_solve) :: solve
    real(real64) :: u(size_of_state, points), few(size_of_state, points - 1)
    logical :: more
    call solve%next(more, stat, errmsg)
    call check(stat == neml2_error_argument .and. .not. more, "nothing was begun")
    call solve%guess(u, stat, errmsg)
    call check(stat == neml2_error_argument .and. len(errmsg) > 0, "so there is no system")
    call solve%begin(evaluation, points + 1, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "holds 5 points"), "more points than there are")
    call solve%begin(evaluation, points, stat)
    call solve%next(more, stat)
    call solve%guess(few, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "(19, 5)"), "too short a vector")
    call solve%guess(u, stat)
    call solve%accept(u, stat, errmsg, status(:2))
    call check(stat == neml2_error_shape .and. says(errmsg, "status"), "too few flags")
    call solve%next(more, stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "accept"), "not accepted")
    call solve%finish(stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "accept"), "nor at its end")
    call solve%accept(u, stat, errmsg)
    call check_ok(stat, errmsg)
    call solve%next(more, stat)
    call solve%finish(stat, errmsg)
    call check(stat == neml2_not_converged .and. says(errmsg, "your solver accepted"), "the guess is no solution")
    call solve%finish(stat)
    call check(stat == neml2_error_argument, "a solve ends once")
    call solve%begin(evaluation, points, stat)
    call solve%next(more, stat) ! and is abandoned
  end subroutine what_is_wrong_is_refused
end program test_solve
