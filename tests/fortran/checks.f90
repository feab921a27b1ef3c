! The checks of the Fortran tests: one that fails says what, and the program goes on; finish() says how it ended.
module checks
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, real64
  use neml2_capi, only: neml2_model, neml2_ok
  implicit none(type, external)
  private
  public :: artifact, check, check_ok, finish, hooke, near, says, some_strains, load

  real(real64), parameter, public :: young = 200e3_real64, poisson = 0.3_real64
  integer :: failures = 0

contains

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    failures = failures + 1
    write (error_unit, "(2a)") "failed: ", what
  end subroutine check

  subroutine check_ok(stat, errmsg)
    integer(int32), intent(in) :: stat
    character(*), intent(in) :: errmsg
    call check(stat == neml2_ok .and. len(errmsg) == 0, errmsg)
  end subroutine check_ok

  subroutine finish()
    if (failures > 0) error stop 1
  end subroutine finish

  ! The artifact `name` in the folder that NEML2_TEST_ARTIFACTS names.
  function artifact(name) result(path)
    character(*), intent(in) :: name
    character(:), allocatable :: path
    integer :: length
    call get_environment_variable("NEML2_TEST_ARTIFACTS", length=length)
    allocate (character(len=length) :: path)
    call get_environment_variable("NEML2_TEST_ARTIFACTS", path)
    path = path//"/"//name
  end function artifact

  subroutine load(model, name)
    type(neml2_model), intent(inout) :: model
    character(*), intent(in) :: name
    character(:), allocatable :: errmsg
    integer(int32) :: stat
    call model%load(artifact(name), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    if (stat /= neml2_ok) call finish()
  end subroutine load

  ! Strains with six distinct components, other ones at each point.
  pure function some_strains(n) result(strain)
    integer, intent(in) :: n
    real(real64) :: strain(6, n)
    real(real64), parameter :: base(6) = &
      [1e-3_real64, -3e-4_real64, -2e-4_real64, 2e-4_real64, -1e-4_real64, 5e-5_real64]
    integer :: p
    do p = 1, n
      strain(:, p) = base * (1 + 0.1_real64 * mod(p, 17))
    end do
  end function some_strains

  ! Hooke's law in Mandel notation: stress = 2 G strain + lambda tr(strain) I.
  pure function hooke(modulus, strain) result(stress)
    real(real64), intent(in) :: modulus, strain(:, :)
    real(real64) :: stress(6, size(strain, 2)), lambda
    integer :: p
    lambda = modulus * poisson / ((1 + poisson) * (1 - 2 * poisson))
    stress = modulus / (1 + poisson) * strain
    do p = 1, size(strain, 2)
      stress(:3, p) = stress(:3, p) + lambda * sum(strain(:3, p))
    end do
  end function hooke

  pure logical function near(values, expected)
    real(real64), intent(in) :: values(:, :), expected(:, :)
    near = all(abs(values - expected) <= 1e-12_real64 * maxval(abs(expected)))
  end function near

  ! Whether a message contains `text`.
  pure logical function says(message, text)
    character(*), intent(in) :: message, text
    says = index(message, text) > 0
  end function says
end module checks
