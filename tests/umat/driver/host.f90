! Abaqus' part: turning, equilibrium by Newton's method, and cutting.
module umat_driver_host
  use, intrinsic :: iso_fortran_env, only: real64
  use umat_driver_case, only: max_fields, max_props, step_type, test_case
  implicit none(type, external)
  private
  public :: history, run_point

  integer, parameter :: max_statv = 1000, row(6) = [1, 2, 3, 1, 1, 2], column(6) = [1, 2, 3, 2, 3, 3]
  real(real64), parameter :: shortest = 1e-6_real64 ! part of a step
  real(real64), parameter :: origin(3) = 0

  ! A material point, and what the last increment did.
  type :: point_type
    real(real64) :: time = 0, dtime = 0, temperature = 0, fields(max_fields) = 0
    real(real64) :: strain(6) = 0, stress(6) = 0, tangent(6, 6) = 0
    real(real64), allocatable :: statev(:)
  end type point_type

  ! What happened to one point, as lines of text.
  type :: history
    character(:), allocatable :: text
    logical :: finished = .false.
  end type history

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

contains

  subroutine run_point(c, number, h)
    type(test_case), intent(in) :: c
    integer, intent(in) :: number
    type(history), intent(out) :: h
    type(point_type) :: point, next
    real(real64) :: done, part, cut
    integer :: s

    h%text = ""
    point%temperature = c%temperature
    point%fields = c%fields
    allocate (point%statev(c%nstatv), source=0.0_real64)
    do s = 1, size(c%steps)
      done = 0
      part = 1.0_real64 / c%steps(s)%increments
      do while (done < 1 - shortest)
        part = min(part, 1 - done)
        call increment(c, c%steps(s), number, part, part / (1 - done), point, next, cut)
        if (cut < 1) then
          call note(h, "cut", number, [part * c%steps(s)%time, cut])
          part = part * cut
          if (part < shortest) return
          cycle
        end if
        point = next
        done = done + part
        call note(h, "time", number, [point%time, point%dtime])
        call note(h, "stran", number, point%strain(:c%ntens))
        call note(h, "stress", number, point%stress(:c%ntens))
        call note(h, "ddsdde", number, reshape(point%tangent(:c%ntens, :c%ntens), [c%ntens**2]))
        call note(h, "statev", number, point%statev)
      end do
    end do
    h%finished = .true.
  end subroutine run_point

  ! A part of a step, which is a share of what is left of it: `next`, or by how much to cut it.
  subroutine increment(c, step, number, part, share, point, next, cut)
    type(test_case), intent(in) :: c
    type(step_type), intent(in) :: step
    integer, intent(in) :: number
    real(real64), intent(in) :: part, share
    type(point_type), intent(in) :: point
    type(point_type), intent(out) :: next
    real(real64), intent(out) :: cut
    real(real64) :: drot(3, 3), strain(6), stress(6), dstrain(6)
    logical :: free(6)
    integer :: iteration

    drot = rotation(step%rotation * part)
    strain = turned(point%strain, drot, 2.0_real64)
    stress = turned(point%stress, drot, 1.0_real64)
    free = step%free
    free(c%ntens + 1:) = .false.
    dstrain = merge(0.0_real64, step%strain * part * (1 - (number - 1) / (2.0_real64 * c%points)), free)
    dstrain(c%ntens + 1:) = 0

    do iteration = 1, 20
      next = point
      next%stress = stress
      call call_umat(c, step, number, part, share, strain, dstrain, drot, next, cut)
      if (cut < 1) return
      next%strain = strain + dstrain
      if (.not. any(free)) return
      if (maxval(abs(pack(next%stress, free))) <= 1e-10_real64 * maxval(abs(next%stress))) return
      dstrain = dstrain - correction(next, free)
    end do
    cut = 0.25_real64 ! Abaqus' own, if equilibrium is not found
  end subroutine increment

  subroutine call_umat(c, step, number, part, share, strain, dstrain, drot, next, pnewdt)
    type(test_case), intent(in) :: c
    type(step_type), intent(in) :: step
    integer, intent(in) :: number
    real(real64), intent(in) :: part, share, strain(6), dstrain(6), drot(3, 3)
    type(point_type), intent(inout) :: next
    real(real64), intent(out) :: pnewdt
    real(real64) :: stress(c%ntens), tangent(c%ntens, c%ntens), ddsddt(c%ntens), drplde(c%ntens)
    real(real64) :: temperature, fields(max_fields), scalars(5), unit(3, 3)
    integer :: n

    n = c%ntens
    unit = rotation(origin)
    next%dtime = part * step%time
    temperature = share * (step%temperature - next%temperature)
    fields = share * (step%fields - next%fields)
    stress = next%stress(:n)
    tangent = 0
    scalars = 0
    ddsddt = 0
    drplde = 0
    pnewdt = 1
    call umat(stress, next%statev, tangent, scalars(1), scalars(2), scalars(3), scalars(4), ddsddt, drplde, &
              scalars(5), strain(:n), dstrain(:n), [next%time, next%time], next%dtime, next%temperature, temperature, &
              next%fields, fields, c%name, merge(3, 2, n > 3), merge(n - 3, 1, n > 3), n, c%nstatv, &
              c%props(:c%nprops), c%nprops, origin, drot, pnewdt, 1.0_real64, unit, unit, number, 1, 1, 1, &
              [1, 0, 0, 0], 1)
    next%stress = 0
    next%stress(:n) = stress
    next%tangent = 0
    next%tangent(:n, :n) = tangent
    next%time = next%time + next%dtime
    next%temperature = next%temperature + temperature
    next%fields = next%fields + fields
  end subroutine call_umat

  ! The strain that would undo the stress of the free components: the tangent's free part, solved by elimination.
  function correction(point, free)
    type(point_type), intent(in) :: point
    logical, intent(in) :: free(6)
    real(real64) :: correction(6), a(6, 6), b(6)
    integer :: i, j, p, swap(6)
    a = 0
    b = 0
    do i = 1, 6
      a(i, i) = 1
      if (.not. free(i)) cycle
      a(i, :) = merge(point%tangent(i, :), 0.0_real64, free)
      b(i) = point%stress(i)
    end do
    do i = 1, 6
      p = i - 1 + maxloc(abs(a(i:, i)), 1)
      swap = [(j, j=1, 6)]
      swap([i, p]) = [p, i]
      a = a(swap, :)
      b = b(swap)
      do j = i + 1, 6
        b(j) = b(j) - a(j, i) / a(i, i) * b(i)
        a(j, :) = a(j, :) - a(j, i) / a(i, i) * a(i, :)
      end do
    end do
    do i = 6, 1, -1
      correction(i) = (b(i) - dot_product(a(i, i + 1:), correction(i + 1:))) / a(i, i)
    end do
  end function correction

  ! Rodrigues' formula.
  pure function rotation(vector) result(r)
    real(real64), intent(in) :: vector(3)
    real(real64) :: r(3, 3), angle, w(3, 3)
    integer :: i
    r = 0
    do i = 1, 3
      r(i, i) = 1
    end do
    angle = norm2(vector)
    if (angle <= 0) return
    w = 0
    w(2, 1) = vector(3) / angle
    w(3, 1) = -vector(2) / angle
    w(3, 2) = vector(1) / angle
    w = w - transpose(w)
    r = r + sin(angle) * w + (1 - cos(angle)) * matmul(w, w)
  end function rotation

  ! A symmetric tensor, turned; its shear components are `shear` times the matrix's.
  pure function turned(six, drot, shear)
    real(real64), intent(in) :: six(6), drot(3, 3), shear
    real(real64) :: turned(6), a(3, 3)
    integer :: i
    do i = 1, 6
      a(row(i), column(i)) = six(i) / merge(1.0_real64, shear, i <= 3)
      a(column(i), row(i)) = a(row(i), column(i))
    end do
    a = matmul(drot, matmul(a, transpose(drot)))
    do i = 1, 6
      turned(i) = a(row(i), column(i)) * merge(1.0_real64, shear, i <= 3)
    end do
  end function turned

  ! One line: a word, the number of the point, and values with all their digits.
  subroutine note(h, word, number, values)
    type(history), intent(inout) :: h
    character(*), intent(in) :: word
    integer, intent(in) :: number
    real(real64), intent(in) :: values(:)
    character(20 + 26 * size(values)) :: line
    write (line, "(a, 1x, i0, *(1x, es24.16e3))") word, number, values
    h%text = h%text//trim(line)//new_line("a")
  end subroutine note
end module umat_driver_host
