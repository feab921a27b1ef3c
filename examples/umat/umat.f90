! Abaqus/Standard's user material, over any artifact of neml2-compile. README.md says how to use it.
!
! Given are the strain at the beginning and the end of the increment, time, temperature and predefined fields. Where
! STRESS and STRAN come turned by DROT, STATEV is turned here. In a finite-strain analysis that is a law in the frame
! that turns with the material, of logarithmic strain and Cauchy stress. What hosts do differently is in hosts.f90.
subroutine umat(stress, statev, ddsdde, sse, spd, scd, rpl, ddsddt, drplde, drpldt, stran, dstran, time, dtime, temp, &
                dtemp, predef, dpred, cmname, ndi, nshr, ntens, nstatv, props, nprops, coords, drot, pnewdt, celent, &
                dfgrd0, dfgrd1, noel, npt, layer, kspt, jstep, kinc)
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use neml2_capi, only: neml2_ok
  use umat_conventions, only: mandel_of_strain, mandel_of_stress, state_of_statev, statev_of_state, stress_of_mandel, &
                              tangent_of_mandel
  use umat_errors, only: fatal
  use umat_hosts, only: request_cut, speaks_as
  use umat_points, only: evaluate_point, moments, stand_still
  use umat_pool, only: give_back, take
  use umat_workspaces, only: workspace
  implicit none(type, external)
  integer, intent(in) :: ndi, nshr, ntens, nstatv, nprops, noel, npt, layer, kspt, jstep(4), kinc
  real(real64), intent(inout) :: stress(ntens), statev(nstatv), ddsdde(ntens, ntens), pnewdt
  real(real64), intent(inout) :: sse, spd, scd, rpl, ddsddt(ntens), drplde(ntens), drpldt
  real(real64), intent(in) :: stran(ntens), dstran(ntens), time(2), dtime, temp, dtemp, predef(*), dpred(*)
  real(real64), intent(in) :: props(nprops), coords(3), drot(3, 3), celent, dfgrd0(3, 3), dfgrd1(3, 3)
  character(80), intent(in) :: cmname

  real(real64), parameter :: halve = 0.5_real64
  real(real64), parameter :: still(3, 3) = reshape([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3])
  type(workspace), pointer :: work
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call take(cmname, pnewdt, work, errmsg)
  if (errmsg == "") call check_arguments(errmsg)
  if (errmsg /= "") then
    if (associated(work)) call give_back(work)
    call fatal("UMAT, material "//trim(cmname)//": "//errmsg)
    return
  end if

  call gather()
  call evaluate_point(work, dtime, stat, errmsg)
  if (stat == neml2_ok) then
    call scatter()
  else if (stat > neml2_ok) then
    ! The increment is tried again with a smaller step; STRESS and STATEV are as they were.
    call request_cut(merge(work%cut(1), halve, work%cut(1) < 1), pnewdt)
    if (.not. work%material%host%ignores_failures) call give_tangent_at_rest()
  end if
  call give_back(work)
  if (stat < neml2_ok) call fatal("UMAT, material "//trim(cmname)//": "//errmsg)

contains

  ! What is wrong with the arguments for this material; empty where nothing is. No function: gfortran 12 keeps the length
  ! of a result in a static variable, and threads come here at once.
  subroutine check_arguments(errmsg)
    character(:), allocatable, intent(out) :: errmsg
    character(400) :: text
    text = ""
    associate (m => work%material)
      if (ndi /= 3 .or. (ntens /= 6 .and. ntens /= 4) .or. nshr /= ntens - ndi) then
        write (text, "(3(a, i0), a)") "elements with NTENS = ", ntens, " (NDI = ", ndi, ", NSHR = ", nshr, &
          ") are not supported. Use solid, plane strain or axisymmetric ones, with NTENS = 6 or 4: plane stress, &
          &shells and beams would need a model with their own conditions of zero stress."
      else if (nstatv < m%nstatv) then
        write (text, "(2(a, i0), a)") "there are ", nstatv, " state variables, and the mapping file needs ", m%nstatv, &
          ": set *DEPVAR to that."
      else if (nprops < m%nprops) then
        write (text, "(2(a, i0), a)") "there are ", nprops, " material constants, and the mapping file needs ", &
          m%nprops, ": give them to *USER MATERIAL, CONSTANTS."
      else if (.not. speaks_as(m%host, pnewdt)) then
        text = "PNEWDT is negative, as CalculiX passes it, and the host is "//trim(m%host%name) &
               //": set host = 'calculix' in &material."
      end if
    end associate
    errmsg = trim(text)
  end subroutine check_arguments

  ! DDSDDE of an increment in which nothing happens, in next to no time.
  subroutine give_tangent_at_rest()
    integer :: k
    do k = 1, size(moments)
      call stand_still(work, moments(k), dtime)
      call evaluate_point(work, dtime, stat, errmsg)
      if (stat == neml2_ok) exit
    end do
    if (stat == neml2_ok) then
      call scatter_tangent()
    else
      stat = -1
      errmsg = "the point failed, and so did one at rest, whose tangent the host needs: "//errmsg
    end if
  end subroutine give_tangent_at_rest

  ! From the arguments to the workspace.
  subroutine gather()
    integer :: k
    associate (m => work%material)
      work%old_strain(:, 1) = mandel_of_strain(stran)
      work%strain(:, 1) = mandel_of_strain(stran + dstran)
      work%old_time = time(2)
      work%time = time(2) + dtime
      work%old_temperature = temp
      work%temperature = temp + dtemp
      work%old_fields(:, 1) = predef(:m%nfields)
      work%fields(:, 1) = predef(:m%nfields) + dpred(:m%nfields)
      work%old_state(:6, 1) = mandel_of_stress(stress)
      do k = 1, size(m%states)
        associate (state => m%mapping%states(k), place => m%states(k))
          work%old_state(place%first:place%last, 1) = &
            state_of_statev(state%kind, statev(state%first:state%first + place%last - place%first), &
                            merge(drot, still, m%host%turns))
        end associate
      end do
      do k = 1, size(m%parameters)
        associate (first => m%mapping%parameters(k)%first, place => m%parameters(k))
          work%parameters(place%first:place%last, 1) = props(first:first + place%last - place%first)
        end associate
      end do
    end associate
  end subroutine gather

  ! From the workspace to the arguments.
  subroutine scatter()
    real(real64) :: six(6)
    integer :: k
    six = stress_of_mandel(work%state(:6, 1))
    stress = six(:ntens)
    call scatter_tangent()
    if (work%material%mapping%stored_energy /= "") sse = work%stored(1)
    if (work%material%mapping%dissipated_energy /= "") spd = work%dissipated(1)
    associate (m => work%material)
      do k = 1, size(m%states)
        associate (state => m%mapping%states(k), place => m%states(k))
          statev(state%first:state%first + place%last - place%first) = &
            statev_of_state(state%kind, work%state(place%first:place%last, 1))
        end associate
      end do
    end associate
  end subroutine scatter

  subroutine scatter_tangent()
    real(real64) :: tangent(6, 6)
    tangent = tangent_of_mandel(work%tangent(:, :, 1))
    ddsdde = tangent(:ntens, :ntens)
  end subroutine scatter_tangent
end subroutine umat
