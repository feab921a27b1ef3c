! Failed points leave the others alone, and a step that is too large is cut.
program failed_points
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, load
  use neml2_capi, only: neml2_call, neml2_model, neml2_not_converged, neml2_ok
  use scenario, only: accept, at_rest, bind, cycle_load, finish_scenario, points, print_integers, print_points, &
                      same_bits, state_size, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 8, failed = 4, peak = 5
  type(neml2_model) :: model
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(model, "viscoplastic")
  call one_point_fails_alone()
  call a_step_is_cut_until_it_converges()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  ! Steps from rest to the peak of the cycle at once, then again with a strain beyond all measure at one point.
  subroutine one_point_fails_alone()
    type(points), target :: b
    type(neml2_call) :: evaluation
    real(real64) :: good(state_size, n)
    integer :: p
    call at_rest(b, n)
    call bind(evaluation, model, b)
    call cycle_load(b, 0, peak)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    good = b%state

    b%state = -1
    b%strain(1, failed) = 1e200_real64
    call evaluation%run(n, stat, errmsg)
    call check(stat >= neml2_not_converged .and. len(errmsg) > 0, "a point failed")
    good(:, failed) = -1
    call check(same_bits(b%state, good), "what failed is not written, and the others are as without it")
    do p = 1, n
      call check(b%status(p) == merge(stat, neml2_ok, p == failed), "the status says which")
    end do
    call print_integers("status", b%status)
    call print_points("stress", b%state(1:6, :))
  end subroutine one_point_fails_alone

  ! Steps from rest to the peak, and halves a step that needs more than 3 iterations.
  subroutine a_step_is_cut_until_it_converges()
    type(points), target :: b
    type(neml2_call) :: evaluation
    real(real64) :: target_strain(6, n), reached, cut
    integer(int32) :: steps
    call at_rest(b, n)
    call bind(evaluation, model, b)
    call model%set_option("miters", 4.0_real64, stat, errmsg) ! the bound of the count, exclusive
    call check_ok(stat, errmsg)
    call cycle_load(b, 0, peak)
    target_strain = b%strain
    reached = 0
    cut = 1
    steps = 0
    do while (reached < 1 .and. cut > 1e-6_real64)
      b%strain(:, :) = (reached + cut) * target_strain
      b%time = (reached + cut) * peak
      call evaluation%run(n, stat, errmsg)
      if (stat == neml2_ok) then
        call accept(b)
        reached = reached + cut
        steps = steps + 1
      else
        call check(stat > 0, "the failure is recoverable")
        cut = cut / 2
      end if
    end do
    call check(reached >= 1 .and. steps > 1, "the peak is reached in several steps")
    call print_integers("steps", [steps])
    call print_points("stress", b%state(1:6, :))
  end subroutine a_step_is_cut_until_it_converges
end program failed_points
