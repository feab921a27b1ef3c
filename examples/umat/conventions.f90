! How Abaqus and NEML2 write the same tensor.
!
!             order                      shear strain     shear stress
!   Abaqus    11, 22, 33, 12, 13, 23     gamma = 2 eps    sigma
!   NEML2     11, 22, 33, 23, 13, 12     sqrt(2) eps      sqrt(2) sigma     (SR2: Mandel notation)
!
! In plane strain and with axial symmetry (NTENS = 4) Abaqus leaves out 13 and 23.
module umat_conventions
  use, intrinsic :: iso_fortran_env, only: real64
  use neml2_mandel, only: from_tensor, from_voigt, to_tensor, to_voigt
  implicit none(type, external)
  private
  public :: mandel_of_strain, mandel_of_stress, stress_of_mandel, tangent_of_mandel
  public :: item_size, state_of_statev, statev_of_state

  real(real64), parameter :: root = sqrt(2.0_real64)

  ! The Mandel component that is Abaqus' component i, and the other way round: the permutation is its own inverse.
  integer, parameter :: place(6) = [1, 2, 3, 6, 5, 4]
  ! Factors of the components of stress, from Abaqus to Mandel notation.
  real(real64), parameter :: factor(6) = [1.0_real64, 1.0_real64, 1.0_real64, root, root, root]

contains

  ! From 4 or 6 components of strain, with engineering shear.
  pure function mandel_of_strain(strain) result(mandel)
    real(real64), intent(in) :: strain(:)
    real(real64) :: mandel(6), full(6)
    full = 0
    full(:size(strain)) = strain
    mandel = from_voigt(full, shear="engineering", order="abaqus")
  end function mandel_of_strain

  ! From 4 or 6 components of stress.
  pure function mandel_of_stress(stress) result(mandel)
    real(real64), intent(in) :: stress(:)
    real(real64) :: mandel(6), full(6)
    full = 0
    full(:size(stress)) = stress
    mandel = from_voigt(full, shear="tensor", order="abaqus")
  end function mandel_of_stress

  ! All six components of stress; of which NTENS = 4 takes the first four.
  pure function stress_of_mandel(mandel) result(stress)
    real(real64), intent(in) :: mandel(6)
    real(real64) :: stress(6)
    stress = to_voigt(mandel, shear="tensor", order="abaqus")
  end function stress_of_mandel

  ! DDSDDE(i, j) = d stress(i) / d strain(j), from (stress, strain) in Mandel notation.
  pure function tangent_of_mandel(mandel) result(tangent)
    real(real64), intent(in) :: mandel(6, 6)
    real(real64) :: tangent(6, 6)
    integer :: j
    do j = 1, 6
      tangent(:, j) = mandel(place, place(j)) / (factor * factor(j))
    end do
  end function tangent_of_mandel

  ! ------------------------------------------------------------------------------------------
  ! State variables, by their kind
  !
  !   kind          in STATEV                                    in the model
  !   scalar        1 value                                      the same
  !   vector        3 values                                     the same
  !   symmetric     11, 22, 33, 12, 13, 23, shear not doubled    SR2
  !   tensor        11, 12, 13, 21, 22, 23, 31, 32, 33           R2, row by row
  !
  ! A variable with several sites, grains for example, is one such item after another.
  ! ------------------------------------------------------------------------------------------

  ! The values of one item; 0 where there is no such kind.
  pure integer function item_size(kind)
    character(*), intent(in) :: kind
    select case (kind)
    case ("scalar"); item_size = 1
    case ("vector"); item_size = 3
    case ("symmetric"); item_size = 6
    case ("tensor"); item_size = 9
    case default; item_size = 0
    end select
  end function item_size

  ! The model's values of a state, from STATEV, turned with the material by DROT.
  pure function state_of_statev(kind, statev, drot) result(state)
    character(*), intent(in) :: kind
    real(real64), intent(in) :: statev(:), drot(3, 3)
    real(real64) :: state(size(statev))
    integer :: first, last
    do first = 1, size(statev), item_size(kind)
      last = first + item_size(kind) - 1
      associate (old => statev(first:last), new => state(first:last))
        select case (kind)
        case ("scalar")
          new = old
        case ("vector")
          new = matmul(drot, old)
        case ("symmetric")
          new = from_tensor(turned(to_tensor(mandel_of_stress(old)), drot))
        case default
          new = reshape(transpose(turned(transpose(reshape(old, [3, 3])), drot)), [9])
        end select
      end associate
    end do
  end function state_of_statev

  ! What goes to STATEV of the model's values of a state.
  pure function statev_of_state(kind, state) result(statev)
    character(*), intent(in) :: kind
    real(real64), intent(in) :: state(:)
    real(real64) :: statev(size(state))
    integer :: first
    statev = state
    if (kind /= "symmetric") return
    do first = 1, size(state), 6
      statev(first:first + 5) = stress_of_mandel(state(first:first + 5))
    end do
  end function statev_of_state

  pure function turned(tensor, drot)
    real(real64), intent(in) :: tensor(3, 3), drot(3, 3)
    real(real64) :: turned(3, 3)
    turned = matmul(drot, matmul(tensor, transpose(drot)))
  end function turned
end module umat_conventions
