! The order and the factors of each component, which an isotropic law could not tell apart; and how states of each kind
! are kept and turned, on a quarter turn about the third axis: 1 becomes 2, and 2 becomes -1.
program test_conventions
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  use umat_conventions, only: mandel_of_strain, mandel_of_stress, state_of_statev, statev_of_state, stress_of_mandel, &
                              tangent_of_mandel
  implicit none(type, external)
  real(real64), parameter :: turn(3, 3) = reshape([0, 1, 0, -1, 0, 0, 0, 0, 1], [3, 3])
  real(real64), parameter :: still(3, 3) = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])
  real(real64), parameter :: root = sqrt(2.0_real64)
  real(real64) :: twice(12), mandel(6, 6), tangent(6, 6)
  integer :: i, j

  ! Mandel's order is 11, 22, 33, 23, 13, 12.
  call check_mandel(mandel_of_strain(values([1, 2, 3, 8, 10, 12])), [6, 5, 4], "strain, with gamma = 2 eps")
  call check_mandel(mandel_of_strain(values([1, 2, 3, 8])), [0, 0, 4], "strain of NTENS = 4")
  call check_mandel(mandel_of_stress(values([1, 2, 3, 4, 5, 6])), [6, 5, 4], "stress")
  call check_mandel(mandel_of_stress(values([1, 2, 3, 4])), [0, 0, 4], "stress of NTENS = 4")
  call check(stress_of_mandel([1.0_real64, 2.0_real64, 3.0_real64, root * 6, root * 5, root * 4]), &
             values([1, 2, 3, 4, 5, 6]), "stress to Abaqus")

  mandel = reshape([((10.0_real64 * i + j, i=1, 6), j=1, 6)], [6, 6])
  tangent = tangent_of_mandel(mandel)
  call check([tangent(1, 2), tangent(2, 1)], values([12, 21]), "the tangent of direct components")
  call check([tangent(1, 4), tangent(1, 5), tangent(1, 6)] * root, values([16, 15, 14]), "stress 11 by shear strains")
  call check([tangent(4, 1), tangent(5, 1), tangent(6, 1)] * root, values([61, 51, 41]), "shear stresses by strain 11")
  call check([tangent(4, 5), tangent(5, 4), tangent(6, 6)] * 2, values([65, 56, 44]), "shear stresses by shear strains")

  call check(state_of_statev("scalar", values([5, 6]), turn), values([5, 6]), "scalars do not turn")
  call check(state_of_statev("vector", values([1, 2, 3]), turn), values([-2, 1, 3]), "a vector turns")

  ! 11 21 31 ...: the components of A are 10 i + j; the turned one has A(2, 2), -A(2, 1), -A(2, 3), ...
  call check(state_of_statev("tensor", values([11, 12, 13, 21, 22, 23, 31, 32, 33]), turn), &
             values([22, -21, -23, -12, 11, 13, -32, 31, 33]), "a tensor turns, and is kept by rows")

  call check(state_of_statev("symmetric", values([1, 2, 3, 4, 5, 6]), turn), &
             [2.0_real64, 1.0_real64, 3.0_real64, root * 5, root * (-6), root * (-4)], "a symmetric tensor turns")
  call check(statev_of_state("symmetric", [1.0_real64, 2.0_real64, 3.0_real64, root * 6, root * 5, root * 4]), &
             values([1, 2, 3, 4, 5, 6]), "the shear components are kept as they are, in Abaqus' order")

  ! Each site by itself.
  twice = values([1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60])
  call check(statev_of_state("symmetric", state_of_statev("symmetric", twice, still)), twice, "sites in a row")

contains

  ! Mandel components are 1, 2, 3 and sqrt(2) times `shear`.
  subroutine check_mandel(actual, shear, what)
    real(real64), intent(in) :: actual(6)
    integer, intent(in) :: shear(3)
    character(*), intent(in) :: what
    call check(actual, [values([1, 2, 3]), root * shear], what)
  end subroutine check_mandel

  pure function values(integers)
    integer, intent(in) :: integers(:)
    real(real64) :: values(size(integers))
    values = integers
  end function values

  subroutine check(actual, expected, what)
    real(real64), intent(in) :: actual(:), expected(:)
    character(*), intent(in) :: what
    if (all(abs(actual - expected) <= 1e-14_real64 * maxval(abs(expected)))) return
    write (error_unit, "(2a)") "failed: ", what
    stop 1
  end subroutine check
end program test_conventions
