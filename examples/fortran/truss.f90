! A truss of three bars under a force, of any law with a history that neml2-capi runs.
!
!   truss ARTIFACT
!
! Three bars hang from a ceiling and meet in one joint: the middle one is vertical and of length 1, the others are at 45
! degrees. The joint is pulled down by a force that grows. Each line has the step, the displacement of the joint, the
! stresses of a slanted and of the middle bar, and the Newton iterations.
!
! A bar is a material point: its strain and its stress are one number, and the tangent is one. The law contracts sideways
! as it likes; these strains are states like all others, which the program keeps without knowing what they are.
module bars
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok, neml2_uniaxial, neml2_view
  use neml2_history, only: neml2_state
  implicit none(type, external)
  private
  public :: truss, open_truss, advance

  integer, parameter :: number_of_bars = 3
  real(real64), parameter :: length(number_of_bars) = [sqrt(2.0_real64), 1.0_real64, sqrt(2.0_real64)]
  ! The cosine of the angle of a bar to the vertical
  real(real64), parameter :: slope(number_of_bars) = 1 / length

  type :: truss
    type(neml2_model) :: model
    type(neml2_call) :: call
    type(neml2_state) :: state ! all that has a history: strain, time, stress, and the strains sideways
    real(real64) :: tangent(1, 1, number_of_bars) = 0
  end type truss

contains

  subroutine open_truss(t, artifact, stat, errmsg)
    type(truss), intent(inout), target :: t
    character(*), intent(in) :: artifact
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg

    call t%model%load(artifact, stat, errmsg, hypothesis=neml2_uniaxial)
    if (stat == neml2_ok) call t%call%create(t%model, stat, errmsg)
    if (stat /= neml2_ok) return
    call t%state%create(t%model, number_of_bars)
    call t%state%bind(t%call)
    call t%call%bind_derivative("stress", "strain", neml2_view(t%tangent), stat, errmsg)
  end subroutine open_truss

  ! Finds the displacement at which the bars bear a force, and makes the state there the old one.
  subroutine advance(t, force, time, displacement, stress, iterations, stat, errmsg)
    type(truss), intent(inout), target :: t
    real(real64), intent(in) :: force, time
    real(real64), intent(inout) :: displacement
    real(real64), intent(out) :: stress(number_of_bars)
    integer, intent(out) :: iterations
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    integer, parameter :: most_iterations = 20
    real(real64), parameter :: tolerance = 1e-10_real64
    real(real64), pointer :: strain(:, :), now(:, :), found(:, :)
    real(real64) :: residual

    strain => t%state%now("strain")
    now => t%state%now("t")
    found => t%state%now("stress")
    now = time
    do iterations = 0, most_iterations
      strain(1, :) = displacement * slope / length
      call t%call%run(number_of_bars, stat, errmsg)
      if (stat /= neml2_ok) return
      stress = found(1, :)
      residual = force - sum(stress * slope)
      if (abs(residual) <= tolerance * force) exit
      displacement = displacement + residual / sum(t%tangent(1, 1, :) * slope**2 / length)
    end do
    call t%state%advance()
  end subroutine advance
end module bars

program main
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, output_unit, real64
  use bars, only: advance, open_truss, truss
  use neml2_capi, only: neml2_ok
  implicit none(type, external)
  integer, parameter :: steps = 8
  type(truss), target :: t
  character(:), allocatable :: errmsg
  character(1024) :: artifact
  integer(int32) :: stat
  real(real64) :: displacement, stress(3)
  integer :: step, iterations

  call get_command_argument(1, artifact)
  call open_truss(t, trim(artifact), stat, errmsg)
  displacement = 0
  do step = 1, steps
    if (stat /= neml2_ok) exit
    call advance(t, 50.0_real64 * step, real(step, real64), displacement, stress, iterations, stat, errmsg)
    if (stat == neml2_ok) write (output_unit, "(i0, 3(1x, es22.14e3), 1x, i0)") step, displacement, stress(1:2), iterations
  end do
  if (stat == neml2_ok) stop
  write (error_unit, "(a)") errmsg
  error stop 1
end program main
