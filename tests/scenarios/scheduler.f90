! Points in sub-batches on the devices of a scheduler: the same results, and errors of each sub-batch.
program scheduler
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: artifact, check, check_ok, load
  use neml2_capi, only: neml2_call, neml2_device_cpu, neml2_error_count, neml2_error_get, neml2_model, &
                        neml2_not_converged
  use neml2_capi_experimental, only: neml2_model_points, neml2_scheduler
  use scenario, only: accept, at_rest, bind, cycle_load, finish_scenario, points, print_integers, print_points, &
                      same_bits, state_size, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 8, steps = 5, batch_size = 3
  type(neml2_model) :: plain, model
  real(real64) :: states(state_size, n), expected(state_size, n)
  character(:), allocatable :: errmsg
  integer(int64) :: evaluated
  integer(int32) :: stat

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(plain, "viscoplastic")
  call load_scheduled()
  call cycle(plain, expected)
  call cycle(model, states)
  call check(same_bits(states, expected), "the same bits")
  call print_points("state", states)
  call neml2_model_points(model, 1_int64, evaluated, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(evaluated == n * steps, "all points were evaluated there")
  call sub_batches_fail()
  call plain%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  subroutine load_scheduled()
    type(neml2_scheduler) :: devices
    call devices%create(stat, errmsg)
    call check_ok(stat, errmsg)
    call devices%add(neml2_device_cpu, batch_size, stat, errmsg)
    call check_ok(stat, errmsg)
    call model%load(artifact("viscoplastic"), stat, errmsg, scheduler=devices)
    call check_ok(stat, errmsg)
  end subroutine load_scheduled

  ! Steps from rest through the beginning of the cycle.
  subroutine cycle(evaluated_by, state)
    type(neml2_model), intent(in) :: evaluated_by
    real(real64), intent(out) :: state(state_size, n)
    type(points), target :: b
    type(neml2_call) :: evaluation
    integer :: k
    call at_rest(b, n)
    call bind(evaluation, evaluated_by, b)
    do k = 1, steps
      if (k > 1) call accept(b)
      call cycle_load(b, 0, k)
      call evaluation%run(n, stat, errmsg)
      call check_ok(stat, errmsg)
    end do
    state = b%state
  end subroutine cycle

  ! Steps from rest to the peak at once, with strains beyond all measure at the points 1 and 6, counted from 0.
  subroutine sub_batches_fail()
    type(points), target :: b
    type(neml2_call) :: evaluation
    character(:), allocatable :: message
    integer(int32) :: errors(2)
    integer(int64) :: i
    call at_rest(b, n)
    call bind(evaluation, model, b)
    call cycle_load(b, 0, steps)
    b%strain(1, [2, 7]) = 1e200_real64
    call evaluation%run(n, stat, errmsg)
    call check(stat >= neml2_not_converged, "points failed")
    call check(neml2_error_count() == 2, "in two sub-batches")
    do i = 1, 2
      call neml2_error_get(i, errors(i), message, stat, errmsg)
      call check_ok(stat, errmsg)
    end do
    call print_integers("errors", errors)
    call print_integers("status", b%status)
  end subroutine sub_batches_fail
end program scheduler
