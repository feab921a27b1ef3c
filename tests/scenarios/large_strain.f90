! Hencky's elasticity in simple shear, up to an amount of 2: a law of small strain with the logarithmic strain.
program large_strain
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: artifact, check, check_ok, near, young
  use neml2_capi, only: neml2_call, neml2_model, neml2_strain_logarithmic, neml2_stress_kirchhoff, neml2_view
  use scenario, only: finish_scenario, print_points, wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 4
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: gradient(3, 3, n), stress(6, n)  ! (J, i, point): row by row, as in C
  real(real64) :: expected(6, n), amount, magnitude, root
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: i, p

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  gradient = 0
  expected = 0
  do p = 1, n
    amount = 0.5_real64*p
    magnitude = young/1.3_real64*asinh(amount/2)
    root = sqrt(4 + amount**2)
    do i = 1, 3
      gradient(i, i, p) = 1
    end do
    gradient(2, 1, p) = amount
    expected(1, p) = magnitude*amount/root
    expected(2, p) = -expected(1, p)
    expected(6, p) = sqrt(2.0_real64)*magnitude*2/root
  end do
  call model%load(artifact("elasticity"), stat, errmsg, strain_measure=neml2_strain_logarithmic, &
                  stress_measure=neml2_stress_kirchhoff)
  call check_ok(stat, errmsg)
  call evaluation%create(model, stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%bind_input("deformation_gradient", neml2_view(gradient), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%bind_output("kirchhoff_stress", neml2_view(stress), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%run(n, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(near(stress, expected), "the stress is Hencky's")
  call print_points("stress", stress)

  call evaluation%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()
end program large_strain
