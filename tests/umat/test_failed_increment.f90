! An increment that is too large leaves STRESS and STATEV as they were, and asks for a smaller one by PNEWDT. Its host is
! the argument: for CalculiX DDSDDE is the tangent of a point at rest, and STATEV does not turn.
program test_failed_increment
  use, intrinsic :: iso_fortran_env, only: error_unit, real64
  implicit none(type, external)

  interface
    subroutine umat(stress, statev, ddsdde, sse, spd, scd, rpl, ddsddt, drplde, drpldt, stran, dstran, time, dtime, &
                    temp, dtemp, predef, dpred, cmname, ndi, nshr, ntens, nstatv, props, nprops, coords, drot, pnewdt, &
                    celent, dfgrd0, dfgrd1, noel, npt, layer, kspt, jstep, kinc)
      import :: real64
      integer, intent(in) :: ndi, nshr, ntens, nstatv, nprops, noel, npt, layer, kspt, jstep(4), kinc
      real(real64), intent(inout) :: stress(ntens), statev(nstatv), ddsdde(ntens, ntens), pnewdt
      real(real64), intent(inout) :: sse, spd, scd, rpl, ddsddt(ntens), drplde(ntens), drpldt
      real(real64), intent(in) :: stran(ntens), dstran(ntens), time(2), dtime, temp, dtemp, predef(*), dpred(*)
      real(real64), intent(in) :: props(nprops), coords(3), drot(3, 3), celent, dfgrd0(3, 3), dfgrd1(3, 3)
      character(80), intent(in) :: cmname
    end subroutine
  end interface

  real(real64), parameter :: unit(3, 3) = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3]), zero(6) = 0
  real(real64), parameter :: quarter(3, 3) = reshape([0, 1, 0, -1, 0, 0, 0, 0, 1], [3, 3])
  real(real64) :: drot(3, 3), neutral, old_tangent(6, 6)
  logical :: calculix
  character(8) :: host
  real(real64) :: stress(6), statev(14), ddsdde(6, 6), pnewdt, given(6), kept(14), turned(14), scalars(5), vectors(6, 2)
  character(80) :: name
  integer :: i

  name = "COMBINED_HARDENING"
  given = [(10.0_real64 * i, i=1, 6)]
  kept = [(0.01_real64 * i, i=1, 14)] ! one more than the mapping needs
  stress = given
  statev = kept
  ddsdde = 7
  scalars = 3
  vectors = 3

  call get_command_argument(1, host)
  calculix = host == "calculix"
  neutral = merge(-1.0_real64, 1.0_real64, calculix)
  drot = merge(quarter, unit, calculix)

  pnewdt = neutral
  call evaluate(1e60_real64 * [1, -1, 1, 0, 0, 1])
  call check(pnewdt > 0 .and. pnewdt < 1, "PNEWDT asks for a smaller step")
  call check(all(same(stress, given)), "STRESS is as it was")
  call check(all(same(statev, kept)), "STATEV is as it was")
  old_tangent = ddsdde
  if (calculix) then
    call check(all([(ddsdde(i, i) > 1e3_real64, i=1, 6)]), "DDSDDE is the tangent at rest")
    call check(ddsdde(1, 1) < 300e3_real64, "DDSDDE is one of E = 200e3")
  else
    call check(all(same(reshape(ddsdde, [36]), [(7.0_real64, i=1, 36)])), "DDSDDE is as it was")
  end if

  ! The smallest step that any point asks for remains.
  pnewdt = 1e-3_real64
  call evaluate(1e60_real64 * [1, -1, 1, 0, 0, 1])
  call check(same(pnewdt, 1e-3_real64), "PNEWDT is the smaller one of another point")
  call check(all(same(ddsdde, old_tangent)), "DDSDDE is as at the failure before")

  ! A smaller step has its result, and PNEWDT as it came.
  pnewdt = neutral
  call evaluate([5e-3_real64, -1e-3_real64, -2e-3_real64, 3e-3_real64, -4e-3_real64, 2e-3_real64])
  call check(same(pnewdt, neutral), "PNEWDT is as it was")
  call check(.not. any(same(stress, given)), "STRESS is new")
  call check(.not. any(same(statev(:13), kept(:13))), "STATEV is new")
  call check(same(statev(14), kept(14)), "what the mapping does not name is as it was")
  if (calculix) then ! the same if nothing turns
    stress = given
    ddsdde = 7
    turned = statev
    statev = kept
    drot = unit
    call evaluate([5e-3_real64, -1e-3_real64, -2e-3_real64, 3e-3_real64, -4e-3_real64, 2e-3_real64])
    call check(all(same(statev, turned)), "DROT is not looked at")
  end if
  call check(all(same(scalars, 3.0_real64)) .and. all(same(vectors, 3.0_real64)), "no other argument is touched")

contains

  subroutine evaluate(dstran)
    real(real64), intent(in) :: dstran(6)
    call umat(stress, statev, ddsdde, scalars(1), scalars(2), scalars(3), scalars(4), vectors(:, 1), vectors(:, 2), &
              scalars(5), zero, dstran, zero(:2), 1.0_real64, 0.0_real64, 0.0_real64, zero, zero, name, 3, 3, 6, 14, &
              [200e3_real64, 150.0_real64], 2, zero(:3), drot, pnewdt, 1.0_real64, unit, unit, 1, 1, 1, 1, &
              [1, 0, 0, 0], 1)
  end subroutine evaluate

  elemental logical function same(x, y)
    real(real64), intent(in) :: x, y
    same = abs(x - y) <= 0
  end function same

  subroutine check(condition, what)
    logical, intent(in) :: condition
    character(*), intent(in) :: what
    if (condition) return
    write (error_unit, "(2a)") "failed: ", what
    stop 1
  end subroutine check
end program test_failed_increment
