! A cycle whose strains are known beforehand, by one procedure: the same bits as one step after another.
program replay
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, load
  use neml2_capi, only: neml2_call, neml2_error_shape, neml2_model, neml2_not_converged, neml2_view
  use scenario, only: accept, at_rest, bind, cycle_load, finish_scenario, points, print_integers, print_points, &
                      same_bits, state_size, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 5, steps = 20
  type(neml2_model) :: model
  type(neml2_call) :: evaluation, step
  type(points), target :: b
  real(real64), target :: times(steps), strain(6, n, steps), state(state_size, n, steps), rest(6), zero
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer(int64) :: made
  integer :: k

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(model, "viscoplastic")
  call at_rest(b, n)
  call bind(step, model, b)
  do k = 1, steps
    call cycle_load(b, 0, k)
    times(k) = b%time
    strain(:, :, k) = b%strain
  end do
  rest = 0
  zero = 0
  call evaluation%create(model)
  call evaluation%bind_input("t", neml2_view(times), stride=0, step_stride=1)
  call evaluation%bind_input("t~1", neml2_view(zero))
  call evaluation%bind_input("strain", neml2_view(strain), stride=6, step_stride=6 * n)
  call evaluation%bind_input("strain~1", neml2_view(rest), stride=0)
  call bind_state("stress", 1)
  call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(zero))
  call evaluation%bind_output("equivalent_plastic_strain", neml2_view(state), first=7, stride=state_size, &
                              step_stride=state_size * n)
  call bind_state("X1", 8)
  call bind_state("X2", 14)
  call evaluation%run_steps(n, steps, made, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(made == steps, "all steps are made")
  do k = 1, steps
    call cycle_load(b, 0, k)
    call step%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(same_bits(b%state, state(:, :, k)), "as one step after another")
    call accept(b)
  end do
  call print_points("state", state(:, :, steps))

  ! Four iterations are too few once the strain turns.
  call model%set_option("miters", 5.0_real64)
  call evaluation%run_steps(n, steps, made, stat, errmsg)
  call check(stat == neml2_not_converged, "a step fails")
  call print_integers("made", [int(made, int32)])

  ! The face knows how long arrays are.
  call evaluation%run_steps(n, steps + 1, made, stat, errmsg)
  call check(stat == neml2_error_shape, "the arrays end before")

  call evaluation%free()
  call step%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  subroutine bind_state(name, first)
    character(*), intent(in) :: name
    integer, intent(in) :: first
    call evaluation%bind_input(name//"~1", neml2_view(rest), stride=0)
    call evaluation%bind_output(name, neml2_view(state), first=first, stride=state_size, step_stride=state_size * n)
  end subroutine bind_state
end program replay
