! Evaluate two compiled material models from Fortran, as a finite-element program would.
!
!   example_fortran ELASTICITY_ROOT VISCOPLASTIC_ROOT
!
! The first has no state: strain in, stress out. The second integrates a viscoplastic law over one step, and shows what
! a host does about it: state variables interleaved in one array, the values of the previous step (`x~1`) beside the
! new ones (`x`), a status for each point, and a step that is cut if points did not converge.
module material_block
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, output_unit, real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok, neml2_report_status, neml2_view
  implicit none(type, external)
  private
  public :: elasticity, viscoplasticity

  integer, parameter :: points = 3, steps = 20

  ! The state of one material point: stress, equivalent plastic strain and two back stresses, side by side.
  integer, parameter :: stress = 1, plastic_strain = 7, x1 = 8, x2 = 14, state_size = 19

  ! The arrays of a block of material points. They are bound once: each run reads and writes them where they are.
  type :: block
    real(real64) :: time = 0, old_time = 0
    real(real64) :: strain(6, points) = 0, old_strain(6, points) = 0
    real(real64) :: state(state_size, points) = 0, old_state(state_size, points) = 0
    integer(int32) :: status(points) = 0
  end type block

contains

  subroutine elasticity(root, ok)
    character(*), intent(in) :: root
    logical, intent(out) :: ok
    ! Mandel notation: xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy
    real(real64), target :: strain(6, 1), response(6, 1)
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    character(:), allocatable :: errmsg
    integer(int32) :: stat

    strain(:, 1) = [1e-3_real64, -3e-4_real64, -3e-4_real64, 2e-4_real64, -1e-4_real64, 5e-5_real64]
    call model%load(root, stat, errmsg)
    if (stat == neml2_ok) call evaluation%create(model, stat, errmsg)
    if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(strain), stat, errmsg)
    if (stat == neml2_ok) call evaluation%bind_output("stress", neml2_view(response), stat, errmsg)
    if (stat == neml2_ok) call evaluation%run(1, stat, errmsg)

    ok = stat == neml2_ok
    if (ok) then
      write (output_unit, "(a, 6(1x, es24.16e3))") "elasticity", response
    else
      write (error_unit, "(2a)") "elasticity: ", errmsg
    end if
  end subroutine elasticity

  subroutine viscoplasticity(root, ok)
    character(*), intent(in) :: root
    logical, intent(out) :: ok
    real(real64), parameter :: pi = 3.14159265358979323846_real64
    real(real64), parameter :: amplitude(points) = [1.0_real64, 0.5_real64, 0.25_real64]
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    type(block), target :: b ! all histories start from zero
    real(real64) :: strain(6, points)
    character(:), allocatable :: errmsg
    integer(int32) :: stat
    integer :: k

    call model%load(root, stat, errmsg)
    if (stat == neml2_ok) call evaluation%create(model, stat, errmsg)
    if (stat == neml2_ok) call bind(evaluation, b, stat, errmsg)

    strain = 0
    do k = 1, steps
      if (stat /= neml2_ok) exit
      strain(1, :) = amplitude * 0.01_real64 * sin(2 * pi * k / steps)
      strain(2, :) = -0.3_real64 * strain(1, :)
      strain(3, :) = strain(2, :)
      call advance(evaluation, b, real(k, real64), strain, stat, errmsg)
      if (stat == neml2_ok) then
        write (output_unit, "(a, 1x, i0, 6(1x, es24.16e3))") "viscoplastic", k, b%state(stress:stress + 5, 1)
      end if
    end do

    ok = stat == neml2_ok
    if (.not. ok) write (error_unit, "(2a)") "viscoplasticity: ", errmsg
  end subroutine viscoplasticity

  subroutine bind(evaluation, b, stat, errmsg)
    type(neml2_call), intent(in) :: evaluation
    type(block), intent(inout), target :: b
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg

    ! A scalar is one value for all points.
    call evaluation%bind_input("t", neml2_view(b%time), stat, errmsg)
    if (stat == neml2_ok) call evaluation%bind_input("t~1", neml2_view(b%old_time), stat, errmsg)
    if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(b%strain), stat, errmsg)
    if (stat == neml2_ok) call evaluation%bind_input("strain~1", neml2_view(b%old_strain), stat, errmsg)

    ! Sections of the state: read and written where they are.
    if (stat == neml2_ok) call bind_state("stress", stress, plastic_strain - 1)
    if (stat == neml2_ok) call bind_state("equivalent_plastic_strain", plastic_strain, plastic_strain)
    if (stat == neml2_ok) call bind_state("X1", x1, x2 - 1)
    if (stat == neml2_ok) call bind_state("X2", x2, state_size)
    if (stat == neml2_ok) call evaluation%bind_report(neml2_report_status, neml2_view(b%status), stat, errmsg)

  contains

    subroutine bind_state(name, first, last)
      character(*), intent(in) :: name
      integer, intent(in) :: first, last
      call evaluation%bind_input(name//"~1", neml2_view(b%old_state(first:last, :)), stat, errmsg)
      if (stat == neml2_ok) call evaluation%bind_output(name, neml2_view(b%state(first:last, :)), stat, errmsg)
    end subroutine bind_state
  end subroutine bind

  ! Bring all points to `time` and `strain`: at once if that converges, else in smaller steps.
  subroutine advance(evaluation, b, time, strain, stat, errmsg)
    type(neml2_call), intent(in) :: evaluation
    type(block), intent(inout), target :: b
    real(real64), intent(in) :: time, strain(6, points)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    real(real64) :: start, from(6, points), done, step, s
    integer :: p

    start = b%old_time
    from = b%old_strain
    done = 0 ! fractions of the way
    step = 1
    do while (done < 1)
      s = done + step
      b%time = (1 - s) * start + s * time
      b%strain = (1 - s) * from + s * strain
      call evaluation%run(points, stat, errmsg)
      if (stat < 0) return
      if (stat > 0) then
        do p = 1, points
          if (b%status(p) /= neml2_ok) write (error_unit, "(2(a, i0))") "point ", p, ": status ", b%status(p)
        end do
        step = step / 2
        if (step < 1.0_real64 / 1024) return
        cycle
      end if
      b%old_time = b%time
      b%old_strain = b%strain
      b%old_state = b%state
      done = s
      step = min(step, 1 - done)
    end do
  end subroutine advance
end module material_block

program example
  use, intrinsic :: iso_fortran_env, only: error_unit
  use material_block, only: elasticity, viscoplasticity
  implicit none(type, external)
  character(4096) :: elasticity_root, viscoplastic_root
  logical :: ok

  if (command_argument_count() /= 2) then
    write (error_unit, "(a)") "usage: example_fortran ELASTICITY_ROOT VISCOPLASTIC_ROOT"
    error stop 2
  end if
  call get_command_argument(1, elasticity_root)
  call get_command_argument(2, viscoplastic_root)
  call elasticity(trim(elasticity_root), ok)
  if (ok) call viscoplasticity(trim(viscoplastic_root), ok)
  if (.not. ok) error stop 1
end program example
