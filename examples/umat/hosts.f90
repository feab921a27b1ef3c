! Hosts: the arguments that a program passes to UMAT, and its use of a point that failed.
!
!                                                        abaqus       calculix
!   PNEWDT that asks for nothing                         positive     negative
!   state, stress and strain that come in                turn, DROT   stay where they were
!   stress and tangent of a failed point                 are unused   enter the matrix
!   temperature at the beginning                         is TEMP      is unknown
!   predefined fields                                    are there    are not
module umat_hosts
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none(type, external)
  private
  public :: find_host, host, material_of, request_cut, speaks_as

  type :: host
    character(16) :: name = ""
    logical :: asks_positive = .true., turns = .true., ignores_failures = .true.
    logical :: has_old_temperature = .true., has_fields = .true.
  end type host

  type(host), parameter :: hosts(2) = [host("abaqus"), host("calculix", .false., .false., .false., .false., .false.)]

contains

  ! The host `name`, or where that is empty the one that passes such a PNEWDT; `errmsg` is empty on success.
  subroutine find_host(name, pnewdt, h, errmsg)
    character(*), intent(in) :: name
    real(real64), intent(in) :: pnewdt
    type(host), intent(out) :: h
    character(:), allocatable, intent(out) :: errmsg
    integer :: k
    errmsg = ""
    do k = 1, size(hosts)
      h = hosts(k)
      if (merge(h%name == name, speaks_as(h, pnewdt), name /= "")) return
    end do
    errmsg = "There is no host '"//name//"'; it can be abaqus or calculix."
  end subroutine find_host

  ! Whether the host can have passed this PNEWDT. One that asks for nothing by a negative value passes on the request of
  ! another point, which is positive.
  pure logical function speaks_as(h, pnewdt)
    type(host), intent(in) :: h
    real(real64), intent(in) :: pnewdt
    speaks_as = pnewdt > 0 .or. .not. h%asks_positive
  end function speaks_as

  ! Ask for a smaller step, unless another point asked for a smaller one.
  pure subroutine request_cut(cut, pnewdt)
    real(real64), intent(in) :: cut
    real(real64), intent(inout) :: pnewdt
    if (pnewdt <= 0 .or. cut < pnewdt) pnewdt = cut
  end subroutine request_cut

  ! The material of CMNAME. CalculiX has the library in it: @ABAQUSNL_LIBRARY@STEEL is STEEL.
  pure function material_of(cmname) result(name)
    character(*), intent(in) :: cmname
    character(:), allocatable :: name
    name = trim(cmname)
    if (name(:min(1, len(name))) == "@") name = name(index(name, "@", back=.true.) + 1:)
  end function material_of
end module umat_hosts
