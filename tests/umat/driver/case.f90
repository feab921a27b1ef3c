! What the driver is asked to do; driver.f90 says how it is written.
module umat_driver_case
  use, intrinsic :: iso_fortran_env, only: error_unit, iostat_end, real64
  implicit none(type, external)
  private
  public :: max_fields, max_props, read_case, step_type, test_case

  integer, parameter :: max_props = 100, max_fields = 10

  type :: step_type
    real(real64) :: time = 1, strain(6) = 0, rotation(3) = 0, temperature = 0, fields(max_fields) = 0
    integer :: increments = 1
    logical :: free(6) = .false.
  end type step_type

  type :: test_case
    character(80) :: name = ""
    real(real64) :: props(max_props) = 0, temperature = 0, fields(max_fields) = 0
    integer :: nprops = 0, nstatv = 0, ntens = 6, points = 1
    type(step_type), allocatable :: steps(:)
  end type test_case

contains

  subroutine read_case(file, c)
    character(*), intent(in) :: file
    type(test_case), intent(out) :: c
    character(80) :: name
    real(real64) :: props(max_props), temperature, fields(max_fields)
    integer :: nprops, nstatv, ntens, points
    namelist /material/ name, props, nprops, nstatv, ntens, points, temperature, fields
    type(step_type) :: next
    character(512) :: problem
    integer :: unit, error

    name = ""
    props = 0
    temperature = 0
    fields = 0
    nprops = 0
    nstatv = 0
    ntens = 6
    points = 1
    open (newunit=unit, file=file, status="old", action="read", iostat=error, iomsg=problem)
    if (error == 0) read (unit, nml=material, iostat=error, iomsg=problem)
    if (error /= 0) call give_up(problem)
    allocate (c%steps(0))
    c%name = name
    c%props = props
    c%temperature = temperature
    c%fields = fields
    c%nprops = nprops
    c%nstatv = nstatv
    c%ntens = ntens
    c%points = points
    do
      call read_step(unit, c, next, error, problem)
      if (error == iostat_end) exit
      if (error /= 0) call give_up(problem)
      c%steps = [c%steps, next]
    end do
    close (unit)
  end subroutine read_case

  ! A step begins with what the last one ended with.
  subroutine read_step(unit, c, next, error, problem)
    integer, intent(in) :: unit
    type(test_case), intent(in) :: c
    type(step_type), intent(out) :: next
    integer, intent(out) :: error
    character(*), intent(inout) :: problem
    real(real64) :: time, strain(6), rotation(3), temperature, fields(max_fields)
    integer :: increments
    logical :: free(6)
    namelist /step/ time, increments, strain, free, rotation, temperature, fields

    time = 1
    increments = 1
    strain = 0
    free = .false.
    rotation = 0
    temperature = c%temperature
    fields = c%fields
    if (size(c%steps) > 0) then
      temperature = c%steps(size(c%steps))%temperature
      fields = c%steps(size(c%steps))%fields
    end if
    read (unit, nml=step, iostat=error, iomsg=problem)
    next%time = time
    next%increments = increments
    next%strain = strain
    next%free = free
    next%rotation = rotation
    next%temperature = temperature
    next%fields = fields
  end subroutine read_step

  subroutine give_up(problem)
    character(*), intent(in) :: problem
    write (error_unit, "(a)") trim(problem)
    stop 2
  end subroutine give_up
end module umat_driver_case
