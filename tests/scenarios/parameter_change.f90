! Young's modulus is halved in the model, and then another one at each point in one call only.
program parameter_change
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, hooke, load, near, young
  use neml2_capi, only: neml2_call, neml2_model, neml2_view
  use scenario, only: check_elasticity, elastic_strains, finish_scenario, print_points, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 8
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, n), stress(6, n), moduli(n)
  real(real64) :: expected(6, n)
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: p

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  strain = elastic_strains(n)
  call load(model, "elasticity")
  call evaluation%create(model)
  call evaluation%bind_input("strain", neml2_view(strain))
  call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg)
  call check_ok(stat, errmsg)

  call check_stored(young)
  call run_and_print(hooke(young, strain))

  call model%set_parameter("elasticity.E", young / 2, stat, errmsg)
  call check_ok(stat, errmsg)
  call check_stored(young / 2)
  call run_and_print(hooke(young / 2, strain))

  do p = 1, n
    moduli(p) = 100e3_real64 * p
    expected(:, p:p) = hooke(moduli(p), strain(:, p:p))
  end do
  call evaluation%bind_parameter("elasticity.E", neml2_view(moduli), stat, errmsg)
  call check_ok(stat, errmsg)
  call run_and_print(expected)
  call check_stored(young / 2)
  call check_elasticity(model, young / 2)

  call evaluation%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  subroutine check_stored(modulus)
    real(real64), intent(in) :: modulus
    real(real64), allocatable :: stored(:)
    call model%get_parameter("elasticity.E", stored, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(size(stored) == 1 .and. all(abs(stored - modulus) <= 0), "the stored modulus")
  end subroutine check_stored

  subroutine run_and_print(expected)
    real(real64), intent(in) :: expected(:, :)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, expected), "the stress equals Hooke's law")
    call print_points("stress", stress)
  end subroutine run_and_print
end program parameter_change
