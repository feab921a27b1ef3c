! The consistent tangent of a plastic step, in both block orders. The load turns before, and the back stresses do not
! follow at once: the tangent is not symmetric.
program tangent
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, check_ok, load
  use neml2_capi, only: neml2_call, neml2_input_first, neml2_model, neml2_view
  use scenario, only: accept, at_rest, bind, cycle_load, direction, finish_scenario, points, print_points, same_bits, &
                      wanted_traps
  implicit none(type, external)
  integer, parameter :: n = 3, steps = 5
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  type(points), target :: b
  real(real64), target :: strain_first(6, 6, n), stress_first(6, 6, n) ! by their first extent
  real(real64) :: differences(6, 6, n), norm
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: k, p

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  call load(model, "combined_hardening")
  call at_rest(b, n)
  call bind(evaluation, model, b)
  do k = 1, steps
    call cycle_load(b, 0, k)
    call run()
    call accept(b)
  end do
  b%time = steps + 1
  do p = 1, n
    b%strain(:, p) = b%strain(:, p) + (0.005_real64 / (1 + 0.5_real64 * (p - 1))) * direction(6:1:-1)
  end do
  call evaluation%bind_derivative("stress", "strain", neml2_view(strain_first), stat, errmsg)
  call check_ok(stat, errmsg)
  call run()
  call evaluation%bind_derivative("stress", "strain", neml2_view(stress_first), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%set_block_order(neml2_input_first, stat, errmsg)
  call check_ok(stat, errmsg)
  call run()
  call evaluation%bind_derivative("stress", "strain", neml2_view(), stat, errmsg)
  call check_ok(stat, errmsg)
  call find_differences(1e-7_real64)

  do p = 1, n
    call check(same_bits(stress_first(:, :, p), transpose(strain_first(:, :, p))), "the transpose in the other order")
    norm = norm2(stress_first(:, :, p))
    call check(norm2(stress_first(:, :, p) - differences(:, :, p)) < 1e-6_real64 * norm, "equals differences")
    call check(norm2(stress_first(:, :, p) - strain_first(:, :, p)) > 1e-4_real64 * norm, "is not symmetric")
  end do
  call print_points("tangent", reshape(strain_first, [36, n]))

  call evaluation%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  subroutine run()
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine run

  ! Central differences of the step: (stress, strain, point).
  subroutine find_differences(h)
    real(real64), intent(in) :: h
    real(real64) :: above(6, n)
    integer :: j
    do j = 1, 6
      b%strain(j, :) = b%strain(j, :) + h
      call run()
      above = b%state(1:6, :)
      b%strain(j, :) = b%strain(j, :) - 2 * h
      call run()
      b%strain(j, :) = b%strain(j, :) + h
      differences(:, j, :) = (above - b%state(1:6, :)) / (2 * h)
    end do
  end subroutine find_differences
end program tangent
