! A user material of Abaqus/Standard in a hundred lines: how a UMAT calls neml2_capi. README.md says what it leaves out.
!
! The law is examples/artifacts/combined_hardening, whose folder NEML2_UMAT_ARTIFACT names. STATEV is the equivalent plastic
! strain and two back stresses; PROPS are Young's modulus and the yield stress.
subroutine umat(stress, statev, ddsdde, sse, spd, scd, rpl, ddsddt, drplde, drpldt, stran, dstran, time, dtime, temp, &
                dtemp, predef, dpred, cmname, ndi, nshr, ntens, nstatv, props, nprops, coords, drot, pnewdt, celent, &
                dfgrd0, dfgrd1, noel, npt, layer, kspt, jstep, kinc)
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use neml2_capi, only: neml2_call, neml2_input_first, neml2_model, neml2_ok, neml2_report_suggested_cut, neml2_view
  implicit none(type, external)
  integer, intent(in) :: ndi, nshr, ntens, nstatv, nprops, noel, npt, layer, kspt, jstep(4), kinc
  real(real64), intent(inout) :: stress(ntens), statev(nstatv), ddsdde(ntens, ntens), pnewdt
  real(real64), intent(inout) :: sse, spd, scd, rpl, ddsddt(ntens), drplde(ntens), drpldt
  real(real64), intent(in) :: stran(ntens), dstran(ntens), time(2), dtime, temp, dtemp, predef(*), dpred(*)
  real(real64), intent(in) :: props(nprops), coords(3), drot(3, 3), celent, dfgrd0(3, 3), dfgrd1(3, 3)
  character(80), intent(in) :: cmname

  ! Abaqus has 11, 22, 33, 12, 13, 23 with doubled shear strains; the model 11, 22, 33, 23, 13, 12 in Mandel's notation.
  integer, parameter :: order(6) = [1, 2, 3, 6, 5, 4]
  real(real64), parameter :: root = sqrt(2.0_real64), shear(6) = [1.0_real64, 1.0_real64, 1.0_real64, root, root, root]
  type(neml2_model), save :: model
  logical, save :: loaded = .false.
  type(neml2_call) :: evaluation
  ! Bound arrays are read and written in place. The second axis counts points: there is one.
  real(real64), target :: strain(6, 1), old_strain(6, 1), new(6, 1), old(6, 1), plastic(1), old_plastic(1)
  real(real64), target :: x1(6, 1), old_x1(6, 1), x2(6, 1), old_x2(6, 1), tangent(6, 6, 1)
  real(real64), target :: now, before, e, yield_stress, cut(1)
  character(1024) :: folder
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: i, j

  !$omp critical
  if (.not. loaded) then
    call get_environment_variable("NEML2_UMAT_ARTIFACT", folder)
    call model%load(trim(folder)) ! without stat an error ends the program, and says why
    loaded = .true.
  end if
  !$omp end critical

  strain(:, 1) = (stran(order) + dstran(order)) / shear
  old_strain(:, 1) = stran(order) / shear
  old(:, 1) = stress(order) * shear
  old_plastic = statev(1)
  old_x1(:, 1) = statev(1 + order) * shear
  old_x2(:, 1) = statev(7 + order) * shear
  before = time(2)
  now = time(2) + dtime
  e = props(1)
  yield_stress = props(2)

  call evaluation%create(model)
  call evaluation%bind_input("strain", neml2_view(strain))
  call evaluation%bind_input("strain~1", neml2_view(old_strain))
  call evaluation%bind_input("t", neml2_view(now))
  call evaluation%bind_input("t~1", neml2_view(before))
  call evaluation%bind_input("stress~1", neml2_view(old))
  call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(old_plastic))
  call evaluation%bind_input("X1~1", neml2_view(old_x1))
  call evaluation%bind_input("X2~1", neml2_view(old_x2))
  call evaluation%bind_parameter("E", neml2_view(e))
  call evaluation%bind_parameter("yield_stress", neml2_view(yield_stress))
  call evaluation%bind_output("stress", neml2_view(new))
  call evaluation%bind_output("equivalent_plastic_strain", neml2_view(plastic))
  call evaluation%bind_output("X1", neml2_view(x1))
  call evaluation%bind_output("X2", neml2_view(x2))
  call evaluation%set_block_order(neml2_input_first)
  call evaluation%bind_derivative("stress", "strain", neml2_view(tangent))
  call evaluation%bind_report(neml2_report_suggested_cut, neml2_view(cut))
  call evaluation%run(1, stat=stat, errmsg=errmsg)

  if (stat < neml2_ok) then
    print "(2a)", "UMAT: ", errmsg
    error stop
  end if
  if (stat > neml2_ok) then ! did not converge: STRESS and STATEV stay, and Abaqus tries a smaller increment
    pnewdt = min(pnewdt, cut(1))
    return
  end if
  stress = new(order, 1) / shear
  statev(1) = plastic(1)
  statev(2:7) = x1(order, 1) / shear
  statev(8:13) = x2(order, 1) / shear
  do j = 1, 6
    do i = 1, 6
      ddsdde(i, j) = tangent(order(i), order(j), 1) / (shear(i) * shear(j))
    end do
  end do
end subroutine umat
