! A cycle of tension and compression: all state variables of a point lie in one array.
program viscoplastic_cycle
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, load
  use neml2_capi, only: neml2_call, neml2_model
  use scenario, only: accept, at_rest, bind, cycle_load, finish_scenario, points, print_integers, print_points, &
                      wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 5, steps = 20
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  type(points), target :: b
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: k

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(model, "viscoplastic")
  call at_rest(b, n)
  call bind(evaluation, model, b)
  do k = 1, steps
    call cycle_load(b, 0, k)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(b%state(7, :) >= b%old_state(7, :)), "plastic strain does not decrease")
    call check(all(abs(sum(b%state(8:10, :), 1)) < 1e-10_real64), "X1 has no trace") ! MPa
    call check(all(abs(sum(b%state(14:16, :), 1)) < 1e-10_real64), "X2 has no trace")
    call accept(b)
  end do
  call check(b%state(7, 1) > 1e-3_real64, "it did flow")
  call print_points("state", b%state)
  call print_integers("iterations", b%iterations)

  call evaluation%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()
end program viscoplastic_cycle
