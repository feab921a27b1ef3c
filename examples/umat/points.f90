! One increment of one point: its arguments must be numbers, and its tangent must be one.
module umat_points
  use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use neml2_capi, only: neml2_error_argument, neml2_non_finite, neml2_ok
  use umat_workspaces, only: workspace
  implicit none(type, external)
  private
  public :: evaluate_point, moments, stand_still

  ! Parts of a time step in which nothing flows. The first is the best; a law that solves for rates may not converge in it,
  ! since it divides round-off by it.
  real(real64), parameter :: moments(3) = [1e-10_real64, 1e-8_real64, 1e-6_real64]

  character(2), parameter :: components(6) = ["11", "22", "33", "23", "13", "12"]

contains

  ! Evaluate the point of a workspace, whose stress and tangent are finite where `stat` is neml2_ok. Where the tangent
  ! alone is not, it is that beside the strain: docs/hosts/plug-in.md tells which. An increment without time in which
  ! nothing happens is one of a moment. A positive `stat` may be mended by a smaller increment, a negative one is not.
  subroutine evaluate_point(work, dtime, stat, errmsg)
    type(workspace), intent(inout) :: work
    real(real64), intent(in) :: dtime
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    character(:), allocatable :: message
    logical :: values, tangent
    integer :: k

    stat = neml2_error_argument
    call check_numbers(work, dtime, errmsg)
    if (errmsg /= "") return
    call run(work, values, tangent, stat, message)
    if (stat < neml2_ok) then
      errmsg = message
      return
    end if
    if (.not. tangent .and. abs(dtime) <= 0 .and. work%material%has_rates) then
      if (.not. at_rest(work)) then
        stat = neml2_error_argument
        errmsg = "DTIME is 0 while the strain, the temperature or a field changes, and the law has rates, which " &
                 //"divide by it: give a time step above 0."
        return
      end if
      do k = 1, size(moments)
        call stand_still(work, moments(k), dtime)
        call run(work, values, tangent, stat, message)
        if (tangent) exit
      end do
    end if
    if (tangent) then
      stat = neml2_ok
    else if (values) then
      stat = neml2_ok
      if (tangent_beside(work)) return
      stat = neml2_error_argument
      errmsg = "the derivative of '"//trim(work%material%mapping%stress)//"' with respect to '" &
               //trim(work%material%mapping%strain)//"', which is DDSDDE, is not finite, nor has it a limit beside " &
               //"this strain; the stress itself is. A smaller step does not mend that: write the law so that it can " &
               //"be differentiated here."
    else if (stat <= neml2_non_finite .and. at_rest(work)) then
      stat = neml2_error_argument
      errmsg = "the stress or a state is not finite, and nothing changes in this increment, so that no smaller step " &
               //"mends it. Check the state and the constants, and where the law divides, takes roots or logarithms."
    else
      stat = max(stat, neml2_non_finite)
      errmsg = message
    end if
  end subroutine evaluate_point

  ! Nothing happens in the increment, which takes one of the moments, well above the round-off of the time.
  subroutine stand_still(work, part, dtime)
    type(workspace), intent(inout) :: work
    real(real64), intent(in) :: part, dtime
    real(real64), parameter :: of_time = 1e-13_real64
    work%strain = work%old_strain
    work%time = work%old_time + max(part * merge(dtime, 1.0_real64, dtime > 0), of_time * abs(work%old_time))
    work%temperature = work%old_temperature
    work%fields = work%old_fields
  end subroutine stand_still

  pure logical function at_rest(work)
    type(workspace), intent(in) :: work
    at_rest = .not. (any(abs(work%strain - work%old_strain) > 0) .or. abs(work%temperature - work%old_temperature) > 0 &
                     .or. any(abs(work%fields - work%old_fields) > 0))
  end function at_rest

  subroutine run(work, values, tangent, stat, errmsg)
    type(workspace), intent(inout) :: work
    logical, intent(out) :: values, tangent
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    call work%evaluation%run(1, stat=stat, errmsg=errmsg)
    values = stat == neml2_ok .or. stat == neml2_non_finite
    if (values) values = all(ieee_is_finite(work%state))
    tangent = values
    if (values) tangent = all(ieee_is_finite(work%tangent))
  end subroutine run

  ! The tangent beside the strain, where it tends to a limit: at a distance, and at a tenth of it.
  logical function tangent_beside(work) result(found)
    type(workspace), intent(inout) :: work
    real(real64), parameter :: direction(6) = [0.61_real64, -0.37_real64, 0.23_real64, 0.41_real64, -0.53_real64, &
                                               0.31_real64]
    real(real64), parameter :: far = 1e-7_real64, alike = 1e-2_real64
    real(real64) :: strain(6), distance, before(6, 6), state(size(work%state, 1), 1), energies(2)
    integer :: side

    strain = work%strain(:, 1)
    state = work%state
    energies = [work%stored, work%dissipated]
    found = .false.
    do side = 1, -1, -2
      distance = side * far * max(1.0_real64, maxval(abs(strain)))
      if (.not. at(distance)) cycle
      before = work%tangent(:, :, 1)
      if (.not. at(distance / 10)) cycle
      found = maxval(abs(work%tangent(:, :, 1) - before)) <= alike * maxval(abs(work%tangent))
      if (found) exit
    end do
    work%strain(:, 1) = strain
    work%state = state
    work%stored = energies(1)
    work%dissipated = energies(2)

  contains

    logical function at(distance)
      real(real64), intent(in) :: distance
      character(:), allocatable :: errmsg
      integer(int32) :: stat
      logical :: values
      work%strain(:, 1) = strain + distance * direction
      call run(work, values, at, stat, errmsg)
    end function at
  end function tangent_beside

  ! What is NaN or infinite of the arguments, by their names; no step is small enough for it.
  subroutine check_numbers(work, dtime, errmsg)
    type(workspace), intent(in) :: work
    real(real64), intent(in) :: dtime
    character(:), allocatable, intent(out) :: errmsg
    integer :: k

    errmsg = ""
    ! Texts are made only where something is not finite.
    if (all(ieee_is_finite(work%old_strain)) .and. all(ieee_is_finite(work%strain)) &
        .and. all(ieee_is_finite(work%old_state)) .and. all(ieee_is_finite(work%parameters)) &
        .and. all(ieee_is_finite(work%fields)) .and. ieee_is_finite(work%temperature) &
        .and. ieee_is_finite(work%old_time) .and. ieee_is_finite(dtime) .and. dtime >= 0) return
    associate (m => work%material, map => work%material%mapping)
      call check_tensor("STRAN", work%old_strain(:, 1))
      call check_tensor("STRAN + DSTRAN", work%strain(:, 1))
      if (m%has_old_stress) call check_tensor("STRESS", work%old_state(:6, 1))
      do k = 1, size(m%states)
        call check("STATEV, the state '"//trim(map%states(k)%name)//"',", &
                   work%old_state(m%states(k)%first:m%states(k)%last, 1))
      end do
      do k = 1, size(m%parameters)
        call check("PROPS, the parameter '"//trim(map%parameters(k)%name)//"',", &
                   work%parameters(m%parameters(k)%first:m%parameters(k)%last, 1))
      end do
      if (map%temperature /= "") call check("TEMP + DTEMP", [work%temperature])
      do k = 1, size(map%fields)
        if (map%fields(k)%first == 0) cycle ! a constant
        call check("PREDEF, the field '"//trim(map%fields(k)%name)//"',", [work%fields(map%fields(k)%first, 1)])
      end do
      if (map%time == "") return
      call check("DTIME", [dtime])
      call check("TIME", [work%old_time])
    end associate
    if (errmsg == "" .and. dtime < 0) errmsg = "DTIME is "//decimal(dtime)//"; a time step must be 0 or more."

  contains

    subroutine check_tensor(what, values)
      character(*), intent(in) :: what
      real(real64), intent(in) :: values(6)
      integer :: i
      do i = 1, 6
        call check(what//", component "//components(i)//",", values(i:i))
      end do
    end subroutine check_tensor

    subroutine check(what, values)
      character(*), intent(in) :: what
      real(real64), intent(in) :: values(:)
      if (errmsg /= "" .or. all(ieee_is_finite(values))) return
      errmsg = what//" is NaN or infinite. A smaller step does not mend that: find what made it so before this call."
    end subroutine check
  end subroutine check_numbers

  function decimal(number)
    real(real64), intent(in) :: number
    character(:), allocatable :: decimal
    character(32) :: text
    write (text, "(g0.6)") number
    decimal = trim(adjustl(text))
  end function decimal
end module umat_points
