! The viscoplastic material points of a host in Fortran, their arrays bound once, and the cycle of tests/scenarios.
module material_points
  use, intrinsic :: iso_fortran_env, only: int32, int64, output_unit, real64
  use checks, only: check
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok
  implicit none(type, external)
  private
  public :: accept, at_rest, bind, load_step, print_state, same_bits

  integer, parameter, public :: state_size = 19

  ! The state of a point: stress, equivalent plastic strain and two back stresses, one beside the other.
  type, public :: points
    integer :: n = 0
    real(real64) :: time = 0, old_time = 0
    real(real64), allocatable :: strain(:, :), old_strain(:, :), state(:, :), old_state(:, :)
  end type points

contains

  function at_rest(n) result(b)
    integer, intent(in) :: n
    type(points) :: b
    b%n = n
    allocate (b%strain(6, n), b%old_strain(6, n), b%state(state_size, n), b%old_state(state_size, n), source=0.0_real64)
  end function at_rest

  subroutine bind(evaluation, model, b)
    type(neml2_call), intent(inout) :: evaluation
    type(neml2_model), intent(in) :: model
    type(points), intent(inout), target :: b
    integer(int32) :: stat
    call evaluation%create(model, stat=stat)
    call check(stat == neml2_ok, "create a call")
    call evaluation%bind_input("t", b%time, stat=stat)
    call evaluation%bind_input("t~1", b%old_time, stat=stat)
    call evaluation%bind_input("strain", b%strain, stat=stat)
    call evaluation%bind_input("strain~1", b%old_strain, stat=stat)
    call bind_state("stress", 1)
    call bind_state("equivalent_plastic_strain", 7)
    call bind_state("X1", 8)
    call bind_state("X2", 14)

  contains

    subroutine bind_state(name, first)
      character(*), intent(in) :: name
      integer, intent(in) :: first
      call evaluation%bind_input(name//"~1", b%old_state, stat=stat, first=first)
      call evaluation%bind_output(name, b%state, stat=stat, first=first)
      call check(stat == neml2_ok, "bind "//name)
    end subroutine bind_state
  end subroutine bind

  ! Time and strains of step k of the cycle; the points of `b` count from `first`, which is 0 or more.
  subroutine load_step(b, first, k)
    type(points), intent(inout) :: b
    integer, intent(in) :: first, k
    real(real64), parameter :: direction(6) = [1.0_real64, -0.3_real64, -0.25_real64, 0.1_real64, -0.2_real64, 0.05_real64]
    real(real64) :: triangle
    integer :: p
    triangle = k / 5.0_real64
    if (k > 5) triangle = 2 - k / 5.0_real64
    if (k > 15) triangle = k / 5.0_real64 - 4
    b%time = k
    do p = 1, b%n
      b%strain(:, p) = 0.01_real64 * triangle / (1 + 0.5_real64 * (first + p - 1)) * direction
    end do
  end subroutine load_step

  ! What is new becomes old; the arrays stay where they are bound.
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

  ! As tests/scenarios/scenario.h prints it.
  subroutine print_state(state)
    real(real64), intent(in) :: state(:)
    write (output_unit, "(a, *(1x, es24.16e3))") "state", state
  end subroutine print_state
end module material_points
