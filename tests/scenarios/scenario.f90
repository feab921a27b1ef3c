! Helpers of the scenarios in Fortran: strains, viscoplastic points, and the printing of results.
!
! Each main program sets its traps, since those that a procedure sets end when it returns.
module scenario
  use, intrinsic :: ieee_arithmetic, only: ieee_get_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, int64, output_unit, real64
  use checks, only: check, check_ok, finish, hooke, near, young
  use neml2_capi, only: neml2_call, neml2_model, neml2_report_iterations, neml2_report_status, neml2_view
  implicit none(type, external)
  private
  public :: accept, at_rest, bind, check_elasticity, cycle_load, elastic_strains, finish_scenario, print_integers, &
            print_points, same_bits, wanted_traps

  integer, parameter, public :: state_size = 19
  real(real64), parameter, public :: direction(6) = &
    [1.0_real64, -0.3_real64, -0.25_real64, 0.1_real64, -0.2_real64, 0.05_real64]

  ! Viscoplastic points in one step of a history. The state of a point: stress, equivalent plastic strain, X1, X2.
  type, public :: points
    integer :: n = 0
    real(real64) :: time = 0, old_time = 0
    real(real64), allocatable :: strain(:, :), old_strain(:, :), state(:, :), old_state(:, :)
    integer(int32), allocatable :: status(:), iterations(:)
  end type points

contains

  ! Tells whether a scenario runs with floating-point traps, which valgrind does not know.
  logical function wanted_traps()
    integer :: length
    call get_environment_variable("NEML2_TEST_NO_TRAPS", length=length)
    wanted_traps = length == 0
  end function wanted_traps

  subroutine finish_scenario()
    logical :: halting(size(ieee_usual))
    call ieee_get_halting_mode(ieee_usual, halting)
    if (wanted_traps()) call check(all(halting), "the traps are as they were")
    call finish()
  end subroutine finish_scenario

  ! Every language computes strains by these operations in this order, so that all get the same bits.
  pure function elastic_strains(n) result(strain)
    integer, intent(in) :: n
    real(real64) :: strain(6, n)
    integer :: p
    do p = 1, n
      strain(:, p) = (1e-3_real64 * direction) * (1 + 0.1_real64 * (p - 1))
    end do
  end function elastic_strains

  ! Checks that the model still gives right results, as it must after every error.
  subroutine check_elasticity(model, modulus)
    type(neml2_model), intent(in) :: model
    real(real64), intent(in), optional :: modulus
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 3), stress(6, 3)
    real(real64) :: expected
    integer(int32) :: stat
    character(:), allocatable :: errmsg
    expected = young
    if (present(modulus)) expected = modulus
    strain = elastic_strains(3)
    stress = 0
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%run(3, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(expected, strain)), "the stress equals Hooke's law")
  end subroutine check_elasticity

  subroutine at_rest(b, n)
    type(points), intent(out) :: b
    integer, intent(in) :: n
    b%n = n
    allocate (b%strain(6, n), b%old_strain(6, n), b%state(state_size, n), b%old_state(state_size, n), source=0.0_real64)
    allocate (b%status(n), b%iterations(n), source=0_int32)
  end subroutine at_rest

  ! A call over all arrays of `b`.
  subroutine bind(evaluation, model, b)
    type(neml2_call), intent(inout) :: evaluation
    type(neml2_model), intent(in) :: model
    type(points), intent(inout), target :: b
    integer(int32) :: stat
    character(:), allocatable :: errmsg
    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("t", neml2_view(b%time), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("t~1", neml2_view(b%old_time), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain", neml2_view(b%strain), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain~1", neml2_view(b%old_strain), stat, errmsg)
    call check_ok(stat, errmsg)
    call bind_state("stress", 1, 6)
    call bind_state("equivalent_plastic_strain", 7, 7)
    call bind_state("X1", 8, 13)
    call bind_state("X2", 14, 19)
    call evaluation%bind_report(neml2_report_status, neml2_view(b%status), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_report(neml2_report_iterations, neml2_view(b%iterations), stat, errmsg)
    call check_ok(stat, errmsg)

  contains

    subroutine bind_state(name, first, last)
      character(*), intent(in) :: name
      integer, intent(in) :: first, last
      call evaluation%bind_input(name//"~1", neml2_view(b%old_state(first:last, :)), stat, errmsg)
      call check_ok(stat, errmsg)
      call evaluation%bind_output(name, neml2_view(b%state(first:last, :)), stat, errmsg)
      call check_ok(stat, errmsg)
    end subroutine bind_state
  end subroutine bind

  ! Time and strains of step k of the cycle; the points of `b` count from `first`, which is 0 or more.
  subroutine cycle_load(b, first, k)
    type(points), intent(inout) :: b
    integer, intent(in) :: first, k
    real(real64) :: triangle
    integer :: p
    triangle = k / 5.0_real64
    if (k > 5) triangle = 2 - k / 5.0_real64
    if (k > 15) triangle = k / 5.0_real64 - 4
    b%time = k
    do p = 1, b%n
      b%strain(:, p) = ((0.01_real64 * triangle) / (1 + 0.5_real64 * (first + p - 1))) * direction
    end do
  end subroutine cycle_load

  ! Copies new values over old ones; the arrays stay where they are bound.
  subroutine accept(b)
    type(points), intent(inout) :: b
    b%old_time = b%time
    b%old_strain(:, :) = b%strain
    b%old_state(:, :) = b%state
  end subroutine accept

  pure logical function same_bits(a, b)
    real(real64), intent(in) :: a(:, :), b(:, :)
    same_bits = all(transfer(a, [0_int64]) == transfer(b, [0_int64]))
  end function same_bits

  ! Prints a line per point.
  subroutine print_points(name, values)
    character(*), intent(in) :: name
    real(real64), intent(in) :: values(:, :)
    integer :: p
    do p = 1, size(values, 2)
      write (output_unit, "(a, *(1x, es24.16e3))") name, values(:, p)
    end do
  end subroutine print_points

  ! Prints one line for all points.
  subroutine print_integers(name, values)
    character(*), intent(in) :: name
    integer(int32), intent(in) :: values(:)
    write (output_unit, "(a, *(1x, i0))") name, values
  end subroutine print_integers
end module scenario
