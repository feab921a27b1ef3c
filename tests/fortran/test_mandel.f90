! Symmetric tensors from and to the forms that others have.
program test_mandel
  use, intrinsic :: iso_fortran_env, only: real64
  use checks, only: check, finish
  use neml2_mandel, only: from_tensor, from_voigt, to_tensor, to_voigt
  implicit none(type, external)
  real(real64), parameter :: root = sqrt(2.0_real64)
  real(real64), parameter :: tensor(3, 3) = reshape([1, 6, 5, 6, 2, 4, 5, 4, 3], [3, 3]) * 1.0_real64
  real(real64), parameter :: mandel(6) = [1.0_real64, 2.0_real64, 3.0_real64, 4 * root, 5 * root, 6 * root]
  real(real64) :: many(6, 4), skew(3, 3)

  call check(near(from_tensor(tensor), mandel), "from a tensor")
  call check(near(reshape(to_tensor(mandel), [9]), reshape(tensor, [9])), "to a tensor")
  skew = tensor
  skew(1, 2) = 10
  skew(2, 1) = 2
  call check(near(from_tensor(skew), mandel), "the symmetric part")
  call check(near(to_voigt(mandel, "tensor"), [1, 2, 3, 4, 5, 6] * 1.0_real64), "Voigt, of a stress")
  call check(near(to_voigt(mandel, "engineering", "abaqus"), [1, 2, 3, 12, 10, 8] * 1.0_real64), "Abaqus, of a strain")
  call check(near(from_voigt([1, 2, 3, 12, 10, 8] * 1.0_real64, "engineering", "abaqus"), mandel), "and back")
  call check(near(from_voigt([1, 2, 3, 8, 10, 12] * 1.0_real64, "engineering", "voigt"), mandel), "Voigt, of a strain")

  call random_number(many)
  call check(near([from_voigt(to_voigt(many, "engineering", "abaqus"), "engineering", "abaqus")], [many]), "many at once")
  call check(near([from_tensor(to_tensor(many))], [many]), "many tensors at once")
  call finish()

contains

  pure logical function near(found, expected)
    real(real64), intent(in) :: found(:), expected(:)
    near = size(found) == size(expected) .and. all(abs(found - expected) <= 1e-14_real64 * maxval(abs(expected)))
  end function near
end program test_mandel
