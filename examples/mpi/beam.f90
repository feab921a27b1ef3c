! A beam in bending, whose elements are distributed over the ranks of MPI.
!
!   mpiexec -n 4 example_mpi_fortran ARTIFACT FILE [DEVICE...]
!
! Each rank has a contiguous block of the elements, with their Gauss points, and a model of its own; of the devices,
! "cpu" unless some are named, each of the ranks of a node keeps one. If points of one rank fail, all cut the step.
! Rank 0 gathers the states: it prints the bending moment, and writes the states of all points to FILE.
module beam
  use, intrinsic :: iso_fortran_env, only: int32, output_unit, real64
  use mpi_f08, only: MPI_COMM_WORLD, MPI_DOUBLE_PRECISION, MPI_Gatherv, MPI_INTEGER, MPI_Reduce, MPI_SUM
  use neml2_capi, only: neml2_call, neml2_device_cpu, neml2_device_cuda, neml2_model, neml2_ok, neml2_report_status, &
                        neml2_view
  use neml2_capi_experimental, only: neml2_scheduler
  use neml2_capi_mpi, only: neml2_mpi_keep_rank, neml2_mpi_worst_status
  implicit none(type, external)
  private
  public :: advance, allocate_points, bending_moment, first_element, gather, open_model, points, tell_moment
  public :: all_points, state_size, steps

  ! The mesh: equal bricks, ordered by their distance from the neutral plane x = 0. Lengths in mm.
  integer, parameter :: nx = 7, ny = 4, nz = 5, elements = nx * ny * nz, nodes = 8, gauss_points = 8
  integer, parameter :: all_points = gauss_points * elements
  real(real64), parameter :: lengths(3) = [10.0_real64 / nx, 8.0_real64 / ny, 20.0_real64 / nz]
  real(real64), parameter :: corners(3, nodes) = &
    real(reshape([-1, -1, -1, 1, -1, -1, 1, 1, -1, -1, 1, -1, &
                  -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1], [3, nodes]), real64)

  ! Bent to and fro; in 1/mm, and s.
  integer, parameter :: steps = 4
  real(real64), parameter :: times(0:steps) = [0, 5, 10, 15, 20]
  real(real64), parameter :: curvatures(0:steps) = [0.0_real64, 1e-3_real64, 1e-2_real64, -1e-2_real64, 0.0_real64]

  ! The state of one point: stress, equivalent plastic strain and two back stresses, side by side.
  integer, parameter :: stress = 1, plastic_strain = 7, x1 = 8, x2 = 14, state_size = 19

  ! The points of one rank. The arrays are bound once: each run reads and writes them where they are.
  type :: points
    integer :: n = 0
    real(real64) :: time = 0, old_time = 0
    real(real64), allocatable :: unit(:, :) ! the strain at a curvature of 1
    real(real64), allocatable :: strain(:, :), old_strain(:, :), state(:, :), old_state(:, :)
    integer(int32), allocatable :: status(:)
  end type points

contains

  ! The displacement of a beam whose curvature is 1. Plastic flow keeps the volume.
  pure function bend(x) result(u)
    real(real64), intent(in) :: x(3)
    real(real64), parameter :: poisson = 0.5_real64
    real(real64) :: u(3)
    u = [(x(3) * x(3) + poisson * (x(1) * x(1) - x(2) * x(2))) / 2, poisson * x(1) * x(2), -x(1) * x(3)]
  end function bend

  ! The strain at Gauss point `g` of `element`, counted from 0, from the displacements of its nodes. Mandel notation:
  ! xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy.
  pure function strain_at(element, g) result(strain)
    integer, intent(in) :: element, g
    real(real64) :: strain(6), gradient(3, 3), u(3), factor(3), slope
    integer :: place(3), a, i, j, k
    place = [element / (ny * nz), modulo(element / nz, ny), modulo(element, nz)]
    gradient = 0
    do a = 1, nodes
      u = bend(lengths * (place + (1 + corners(:, a)) / 2))
      factor = 1 + corners(:, a) * corners(:, g) / sqrt(3.0_real64)
      do j = 1, 3
        slope = corners(j, a) * factor(1 + modulo(j, 3)) * factor(1 + modulo(j + 1, 3)) / (4 * lengths(j))
        gradient(:, j) = gradient(:, j) + u * slope
      end do
    end do
    do i = 1, 3
      j = 1 + modulo(i, 3)
      k = 1 + modulo(i + 1, 3)
      strain(i) = gradient(i, i)
      strain(3 + i) = sqrt(0.5_real64) * (gradient(j, k) + gradient(k, j))
    end do
  end function strain_at

  ! The number of elements before the first of `rank`.
  elemental integer function first_element(rank, ranks)
    integer, intent(in) :: rank, ranks
    first_element = elements * rank / ranks
  end function first_element

  subroutine allocate_points(p, rank, ranks)
    type(points), intent(out) :: p
    integer, intent(in) :: rank, ranks
    integer :: first, i
    first = first_element(rank, ranks)
    p%n = gauss_points * (first_element(rank + 1, ranks) - first)
    allocate (p%unit(6, p%n), p%strain(6, p%n), p%status(p%n))
    allocate (p%old_strain(6, p%n), p%state(state_size, p%n), p%old_state(state_size, p%n), source=0.0_real64)
    do i = 1, p%n
      p%unit(:, i) = strain_at(first + (i - 1) / gauss_points, 1 + modulo(i - 1, gauss_points))
    end do
  end subroutine allocate_points

  ! The model on the device of this rank, and a call over its points. Collective: each part is done on all ranks, or
  ! fails on all.
  subroutine open_model(model, evaluation, p, root, devices, stat, errmsg)
    type(neml2_model), intent(inout) :: model
    type(neml2_call), intent(inout) :: evaluation
    type(points), intent(inout), target :: p
    character(*), intent(in) :: root, devices(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    type(neml2_scheduler) :: scheduler
    integer(int32) :: device, number
    integer :: i
    call scheduler%create(stat)
    do i = 1, size(devices)
      ! "cpu", or "cuda:1"
      device = merge(neml2_device_cuda, neml2_device_cpu, index(devices(i), "cuda") == 1)
      number = 0
      if (index(devices(i), ":") > 0) read (devices(i)(index(devices(i), ":") + 1:), *) number
      if (stat == neml2_ok) call scheduler%add(device, 4096, stat=stat, device_index=number)
    end do
    call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
    if (stat == neml2_ok) call neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD, stat, errmsg)
    if (stat /= neml2_ok) return
    call model%load(root, stat, scheduler=scheduler)
    if (stat == neml2_ok) call evaluation%create(model, stat)
    if (stat == neml2_ok) call bind(evaluation, p, stat)
    call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
  end subroutine open_model

  subroutine bind(evaluation, p, stat)
    type(neml2_call), intent(in) :: evaluation
    type(points), intent(inout), target :: p
    integer(int32), intent(out) :: stat
    call evaluation%bind_input("t", neml2_view(p%time), stat)
    if (stat == neml2_ok) call evaluation%bind_input("t~1", neml2_view(p%old_time), stat)
    if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(p%strain), stat)
    if (stat == neml2_ok) call evaluation%bind_input("strain~1", neml2_view(p%old_strain), stat)
    if (stat == neml2_ok) call bind_state("stress", stress, plastic_strain - 1)
    if (stat == neml2_ok) call bind_state("equivalent_plastic_strain", plastic_strain, plastic_strain)
    if (stat == neml2_ok) call bind_state("X1", x1, x2 - 1)
    if (stat == neml2_ok) call bind_state("X2", x2, state_size)
    if (stat == neml2_ok) call evaluation%bind_report(neml2_report_status, neml2_view(p%status), stat)

  contains

    subroutine bind_state(name, first, last)
      character(*), intent(in) :: name
      integer, intent(in) :: first, last
      call evaluation%bind_input(name//"~1", neml2_view(p%old_state(first:last, :)), stat)
      if (stat == neml2_ok) call evaluation%bind_output(name, neml2_view(p%state(first:last, :)), stat)
    end subroutine bind_state
  end subroutine bind

  ! Bring the points of all ranks through one step: at once if they converge, else in smaller steps, which are the same
  ! on all ranks. Collective.
  subroutine advance(evaluation, p, step, rank, stat, errmsg)
    type(neml2_call), intent(in) :: evaluation
    type(points), intent(inout), target :: p
    integer, intent(in) :: step, rank
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    real(real64) :: done, part, s
    done = 0 ! fractions of the step
    part = 1
    do while (done < 1)
      s = done + part
      p%time = (1 - s) * times(step - 1) + s * times(step)
      p%strain = ((1 - s) * curvatures(step - 1) + s * curvatures(step)) * p%unit
      call evaluation%run(p%n, stat)
      call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
      if (stat < 0) return
      if (stat > 0) then
        call tell_cut(p, rank)
        part = part / 2
        if (part < 1.0_real64 / 64) return
        cycle
      end if
      p%old_time = p%time
      p%old_strain = p%strain
      p%old_state = p%state
      done = s
      part = min(part, 1 - done)
    end do
  end subroutine advance

  ! Say on rank 0 how many points of all ranks failed. Collective.
  subroutine tell_cut(p, rank)
    type(points), intent(in) :: p
    integer, intent(in) :: rank
    integer :: failed
    call MPI_Reduce(count(p%status /= neml2_ok), failed, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD)
    if (rank == 0) write (output_unit, "(a, g0.5, a, i0, a)") &
      "the step to ", p%time, " s is cut: ", failed, " points failed"
  end subroutine tell_cut

  ! The moment of the stresses in a mean cross section, in N mm.
  pure real(real64) function bending_moment(states) result(moment)
    real(real64), intent(in) :: states(:, :)
    real(real64) :: x
    integer :: i
    moment = 0
    do i = 0, all_points - 1
      x = (1 + corners(1, 1 + modulo(i, gauss_points)) / sqrt(3.0_real64)) / 2
      x = lengths(1) * (i / gauss_points / (ny * nz) + x)
      moment = moment - states(stress + 2, i + 1) * x * (lengths(1) * lengths(2) / gauss_points / nz)
    end do
  end function bending_moment

  subroutine tell_moment(step, states)
    integer, intent(in) :: step
    real(real64), intent(in) :: states(:, :)
    write (output_unit, "(3(a, g0.6), a)") "at ", times(step), " s: curvature ", curvatures(step), " /mm, moment ", &
      bending_moment(states), " N mm"
  end subroutine tell_moment

  ! Gather the states of all points on rank 0, in their order. Collective.
  subroutine gather(p, states, ranks)
    type(points), intent(in) :: p
    real(real64), intent(inout) :: states(:, :)
    integer, intent(in) :: ranks
    integer :: begins(0:ranks), r
    begins = state_size * gauss_points * first_element([(r, r=0, ranks)], ranks)
    call MPI_Gatherv(p%state, size(p%state), MPI_DOUBLE_PRECISION, states, begins(1:) - begins(:ranks - 1), &
                     begins(:ranks - 1), MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
  end subroutine gather
end module beam

program example_mpi
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, real64
  use beam, only: advance, all_points, allocate_points, gather, open_model, points, state_size, steps, tell_moment
  use mpi_f08, only: MPI_COMM_WORLD, MPI_Comm_rank, MPI_Comm_size, MPI_Finalize, MPI_Init
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok
  implicit none(type, external)
  character(4096) :: root, path
  character(64), allocatable :: devices(:)
  character(:), allocatable :: errmsg
  type(points), target :: p
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), allocatable :: states(:, :)
  integer(int32) :: stat
  integer :: rank, ranks, step, file, i

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  if (command_argument_count() < 2) then
    if (rank == 0) write (error_unit, "(a)") "usage: mpiexec -n RANKS example_mpi_fortran ARTIFACT FILE [DEVICE...]"
    call MPI_Finalize()
    error stop 2
  end if
  call get_command_argument(1, root)
  call get_command_argument(2, path)
  devices = [character(64) :: "cpu"]
  if (command_argument_count() > 2) then
    deallocate (devices)
    allocate (devices(command_argument_count() - 2))
    do i = 1, size(devices)
      call get_command_argument(2 + i, devices(i))
    end do
  end if

  call allocate_points(p, rank, ranks)
  allocate (states(state_size, merge(all_points, 0, rank == 0)))
  call open_model(model, evaluation, p, trim(root), devices, stat, errmsg)
  do step = 1, steps
    if (stat == neml2_ok) call advance(evaluation, p, step, rank, stat, errmsg)
    if (stat /= neml2_ok) exit
    call gather(p, states, ranks)
    if (rank == 0) call tell_moment(step, states)
  end do

  if (stat /= neml2_ok) then
    write (error_unit, "(a, i0, 2a)") "rank ", rank, ": ", errmsg
  else if (rank == 0) then
    open (newunit=file, file=trim(path), access="stream", form="unformatted", status="replace")
    write (file) states
    close (file)
  end if
  call evaluation%free()
  call model%free()
  call MPI_Finalize()
  if (stat /= neml2_ok) error stop 1
end program example_mpi
