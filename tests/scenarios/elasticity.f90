! Hooke's law at 8 points.
program elasticity
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, hooke, load, near, young
  use neml2_capi, only: neml2_call, neml2_model, neml2_view
  use scenario, only: elastic_strains, finish_scenario, print_points, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 8
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, n), stress(6, n)
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  strain = elastic_strains(n)
  call load(model, "elasticity")
  call evaluation%create(model, stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%bind_input("strain", neml2_view(strain), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%run(n, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(near(stress, hooke(young, strain)), "the stress equals Hooke's law")
  call print_points("stress", stress)

  call evaluation%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()
end program elasticity
