! Four threads share one model, each with a call and points of its own.
program threads
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32
  use checks, only: check, load
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok
  use omp_lib, only: omp_get_num_threads, omp_set_dynamic
  use scenario, only: accept, at_rest, bind, cycle_load, finish_scenario, points, print_points, same_bits, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 64, parts = 4, quarter = n / parts, steps = 5
  type(neml2_model) :: model
  type(points), target :: serial, part(parts)
  integer(int32) :: worst(parts)
  integer :: i, started

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(model, "viscoplastic")
  call omp_set_dynamic(.false.)
  call run_cycle(serial, 0, n, worst(1))
  call check(worst(1) == neml2_ok, "the serial cycle")

  started = 0
  !$omp parallel do num_threads(parts) schedule(static, 1) default(none) shared(part, worst) reduction(max: started)
  do i = 1, parts
    started = omp_get_num_threads()
    call run_cycle(part(i), (i - 1) * quarter, quarter, worst(i))
  end do
  !$omp end parallel do
  call check(started == parts .and. all(worst == neml2_ok), "as many threads as parts")
  do i = 1, parts
    call check(same_bits(part(i)%state, serial%state(:, (i - 1) * quarter + 1:i * quarter)), "the same bits")
  end do
  call print_points("state", serial%state(:, [1, n]))

  call model%free()
  call finish_scenario()

contains

  ! `worst` is the greatest status, or an error.
  subroutine run_cycle(b, first, count, worst)
    type(points), intent(inout), target :: b
    integer, intent(in) :: first, count
    integer(int32), intent(out) :: worst
    type(neml2_call) :: evaluation
    integer(int32) :: stat
    integer :: k
    call at_rest(b, count)
    call bind(evaluation, model, b)
    worst = neml2_ok
    do k = 1, steps
      call cycle_load(b, first, k)
      call evaluation%run(count, stat)
      if (stat /= neml2_ok) worst = stat
      call accept(b)
    end do
  end subroutine run_cycle
end program threads
