! Evaluation with tensors: values and derivatives of elasticity, what is refused, and who frees what.
program test_tensors
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_error_argument, neml2_error_dtype, neml2_error_missing, neml2_error_shape, &
                        neml2_error_unsupported, neml2_int64, neml2_model, neml2_non_finite, neml2_ok, neml2_report, &
                        neml2_report_residual_history, neml2_report_status, neml2_report_suggested_cut, &
                        neml2_tensor, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 4
  type(neml2_model) :: model
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call load(model, "elasticity")
  call values_and_derivatives()
  call batches_have_any_rank()
  call parameters_are_overridden()
  call reports_have_tensors()
  call what_is_wrong_is_refused()
  call copies_share_one_tensor()
  call tensors_of_all_kinds()
  call finish()

contains

  ! The values of a tensor as points of six.
  function points_of(tensor) result(points)
    type(neml2_tensor), intent(in) :: tensor
    real(real64), allocatable :: points(:, :)
    real(real64), pointer :: values(:)
    call tensor%values(values, stat, errmsg)
    call check_ok(stat, errmsg)
    points = reshape(values, [6, size(values) / 6])
  end function points_of

  subroutine values_and_derivatives()
    type(neml2_tensor) :: inputs(1), along(1), outputs(1), results(1)
    real(real64), target :: strain(6, n), direction(6, n)
    integer(int64), allocatable :: extents(:)
    real(real64) :: unit(6, 6), block(6, 6 * n)
    integer :: i, p
    strain = some_strains(n)
    direction = cos(1e4_real64 * strain)
    call inputs(1)%wrap(neml2_view(strain), stat, errmsg)
    call check_ok(stat, errmsg)
    call along(1)%wrap(neml2_view(direction), stat, errmsg)
    call check_ok(stat, errmsg)
    call check(.not. results(1)%is_set(), "nothing yet")
    call model%forward(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(points_of(outputs(1)), hooke(young, strain)), "the stress")
    call model%jvp(inputs, along, results, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(points_of(results(1)), hooke(young, direction)), "jvp = J v")
    call model%vjp(inputs, along, results, stat, errmsg, outputs=outputs)
    call check_ok(stat, errmsg)
    call check(near(points_of(results(1)), hooke(young, direction)), "vjp = w J")
    call model%jacobian(inputs, results, stat, errmsg, outputs=outputs)
    call check_ok(stat, errmsg)
    call check(near(points_of(outputs(1)), hooke(young, strain)), "the stress beside its derivative")
    call results(1)%shape(extents, stat, errmsg)
    call check(size(extents) == 3 .and. all(extents == [6, 6, n]), "a block for each point")
    unit = 0
    do i = 1, 6
      unit(i, i) = 1
    end do
    block = points_of(results(1))
    do p = 1, n
      call check(near(block(:, 6 * p - 5:6 * p), hooke(young, unit)), "the stiffness")
    end do
    ! a direction that is not set is zero
    call along%free()
    call model%jvp(inputs, along, results, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(points_of(results(1))) <= 0), "along nothing")
  end subroutine values_and_derivatives

  subroutine batches_have_any_rank()
    type(neml2_tensor) :: inputs(1), outputs(1)
    real(real64), target :: strain(6, 2, 3), one(6), none(6, 0)
    integer(int64), allocatable :: extents(:)
    strain = reshape(some_strains(6), shape(strain))
    call inputs(1)%wrap(neml2_view(strain), stat)
    call model%forward(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%shape(extents, stat)
    call check(size(extents) == 3 .and. all(extents == [6, 2, 3]), "two axes of points")
    call check(near(points_of(outputs(1)), hooke(young, some_strains(6))), "their stress")
    one = strain(:, 1, 1)
    call inputs(1)%wrap(neml2_view(one), stat)
    call model%forward(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%shape(extents, stat)
    call check(size(extents) == 1, "one point without an axis")
    call inputs(1)%wrap(neml2_view(none), stat, errmsg)
    call check_ok(stat, errmsg)
    call model%forward(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(size(points_of(outputs(1))) == 0, "no points")
  end subroutine batches_have_any_rank

  subroutine parameters_are_overridden()
    type(neml2_tensor) :: inputs(1), outputs(1), parameters(1)
    real(real64), target :: strain(6, n), modulus
    strain = some_strains(n)
    modulus = 100e3_real64
    call inputs(1)%wrap(neml2_view(strain), stat)
    call model%forward(inputs, outputs, stat, errmsg, parameters)
    call check_ok(stat, errmsg)
    call check(near(points_of(outputs(1)), hooke(young, strain)), "the stored value")
    call parameters(1)%wrap(neml2_view(modulus), stat, errmsg)
    call check_ok(stat, errmsg)
    call model%forward(inputs, outputs, stat, errmsg, parameters)
    call check_ok(stat, errmsg)
    call check(near(points_of(outputs(1)), hooke(modulus, strain)), "half the modulus")
  end subroutine parameters_are_overridden

  subroutine reports_have_tensors()
    type(neml2_tensor) :: inputs(1), outputs(1), tensor
    type(neml2_report) :: report, same
    real(real64), target :: strain(6, n)
    integer(int32), pointer :: status(:)
    real(real64), pointer :: cuts(:)
    strain = some_strains(n)
    strain(2, 3) = huge(strain)
    call inputs(1)%wrap(neml2_view(strain), stat)
    call model%forward(inputs, outputs, stat, errmsg, report=report)
    call check(stat == neml2_non_finite .and. outputs(1)%is_set(), "one point is not finite")
    same = report
    call report%free()
    call same%get(neml2_report_status, tensor, stat, errmsg)
    call check_ok(stat, errmsg)
    call tensor%values(status, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(status == [neml2_ok, neml2_ok, neml2_non_finite, neml2_ok]), "the third")
    call tensor%values(cuts, stat, errmsg)
    call check(stat == neml2_error_dtype .and. .not. associated(cuts) .and. says(errmsg, "real64"), "of another type")
    call same%get(neml2_report_suggested_cut, tensor, stat)
    call tensor%values(cuts, stat, errmsg)
    call check(stat == neml2_ok .and. size(cuts) == n, "a cut for each point")
    call same%get(neml2_report_residual_history, tensor, stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "collect_history"), "no history unasked")
    call same%unknown(1_int64, tensor, stat, errmsg)
    call check(stat == neml2_error_argument .and. tensor%is_set(), "no unknowns; what fails keeps what was there")
    call report%get(neml2_report_status, tensor, stat, errmsg)
    call check(stat == neml2_error_argument, "a report that is not there")
  end subroutine reports_have_tensors

  subroutine what_is_wrong_is_refused()
    type(neml2_model) :: nothing
    type(neml2_tensor) :: inputs(1), two(2), results(1), none(0), missing(1)
    real(real64), target :: strain(6, n), narrow(5, n)
    real(real64), pointer :: values(:)
    strain = some_strains(n)
    call inputs(1)%wrap(neml2_view(strain), stat)
    call model%forward(two, results, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "1 inputs") .and. says(errmsg, "2 tensors"), errmsg)
    call model%jacobian(inputs, two, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "1 derivatives"), errmsg)
    call model%jvp(inputs, none, results, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "1 tangents"), errmsg)
    call model%vjp(inputs, two, results, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "1 cotangents"), errmsg)
    call model%forward(missing, results, stat, errmsg)
    call check(stat == neml2_error_missing .and. says(errmsg, "strain"), "a missing input is named")
    call model%param_jacobian(inputs, none, stat, errmsg)
    call check(stat == neml2_error_unsupported .and. says(errmsg, "-p PARAMETER"), "derivatives that were not compiled")
    call model%param_vjp(inputs, inputs, results, stat, errmsg)
    call check(stat == neml2_error_unsupported, "nor were these")
    call inputs(1)%wrap(neml2_view(narrow), stat)
    call model%forward(inputs, results, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "strain"), "five components")
    call nothing%forward(inputs, results, stat, errmsg)
    call check(stat == neml2_error_argument .and. len(errmsg) > 0, "no model")
    call check(.not. results(1)%is_set(), "nothing came of it")
    call results(1)%values(values, stat, errmsg)
    call check(stat == neml2_error_argument .and. .not. associated(values), "no tensor")
  end subroutine what_is_wrong_is_refused

  subroutine tensors_of_all_kinds()
    type(neml2_tensor) :: tensor
    real(real64), target :: scalar, empty(3, 0)
    real(real32), target :: single(2, 3, 4)
    integer(int64), target :: wide(5)
    integer(int32), target :: narrow(2, 2)
    real(real64), pointer :: v64(:)
    real(real32), pointer :: v32(:)
    integer(int64), pointer :: i64(:)
    integer(int32), pointer :: i32(:)
    real(real32), allocatable :: copied(:)
    integer(int64), allocatable :: extents(:), none(:)
    integer :: i
    scalar = 7
    single = reshape([(real(i, real32), i=1, 24)], shape(single))
    wide = [1, 2, 3, 4, 5]
    narrow = reshape([1, 2, 3, 4], [2, 2])
    call tensor%wrap(neml2_view(scalar), stat, errmsg)
    call check_ok(stat, errmsg)
    call tensor%values(v64, stat, errmsg)
    call check(stat == neml2_ok .and. size(v64) == 1 .and. abs(v64(1) - 7) <= 0, "a scalar")
    call tensor%wrap(neml2_view(empty), stat, errmsg)
    call tensor%values(v64, stat, errmsg)
    call check(stat == neml2_ok .and. size(v64) == 0, "no values")
    call tensor%wrap(neml2_view(single), stat, errmsg)
    call check_ok(stat, errmsg)
    call tensor%shape(extents)
    call check(size(extents) == 3 .and. all(extents == [2, 3, 4]), "its shape")
    call tensor%values(v32, stat, errmsg)
    call check(stat == neml2_ok .and. all(abs(v32 - [(real(i, real32), i=1, 24)]) <= 0), "real32")
    v32(24) = -1
    call check(single(2, 3, 4) < 0, "a view, and no copy")
    call tensor%wrap(neml2_view(single(2, :, 2::2)), stat, errmsg)
    call tensor%copy(copied, stat, errmsg)
    call check(stat == neml2_ok .and. all(abs(copied - [8, 10, 12, 20, 22, -1]) <= 0), "with gaps in both axes")
    call tensor%wrap(neml2_view(wide), stat, errmsg)
    call tensor%values(i64, stat, errmsg)
    call check(stat == neml2_ok .and. all(i64 == wide), "int64")
    call tensor%wrap(neml2_view(narrow), stat, errmsg)
    call tensor%values(i32, stat, errmsg)
    call check(stat == neml2_ok .and. all(i32 == [1, 2, 3, 4]), "int32")
    call tensor%values(i64, stat, errmsg)
    call check(stat == neml2_error_dtype .and. .not. associated(i64) .and. says(errmsg, "int64"), "which is not int64")
    call tensor%create([2_int64, 3_int64], stat, errmsg, neml2_int64)
    call check_ok(stat, errmsg)
    call tensor%values(i64, stat, errmsg)
    call check(size(i64) == 6 .and. all(i64 == 0), "a new tensor is zero")
    allocate (none(0))
    call tensor%create(none, stat, errmsg)
    call tensor%values(v64, stat, errmsg)
    call check(size(v64) == 1, "a new scalar")
    call tensor%create([2_int64], stat, errmsg, dtype=99_int32)
    call check(stat < 0 .and. len(errmsg) > 0 .and. tensor%is_set(), "no such type")
    call backwards(single)
  end subroutine tensors_of_all_kinds

  subroutine backwards(single)
    real(real32), intent(inout), target :: single(2, 3, 4)
    type(neml2_tensor) :: tensor
    call tensor%wrap(neml2_view(single(:, 3:1:-2, 1)), stat, errmsg)
    call check(stat < 0 .and. len(errmsg) > 0 .and. .not. tensor%is_set(), "strides are not negative")
  end subroutine backwards

  subroutine copies_share_one_tensor()
    type(neml2_tensor) :: inputs(1), outputs(1), kept
    real(real64), target :: strain(6, n)
    integer :: i
    strain = some_strains(n)
    call inputs(1)%wrap(neml2_view(strain), stat)
    do i = 1, 3
      call model%forward(inputs, outputs, stat)
      if (i == 1) kept = outputs(1)
    end do
    call outputs%free()
    call check(.not. outputs(1)%is_set() .and. kept%is_set(), "only one name is gone")
    call check(near(points_of(kept), hooke(young, strain)), "the values are still there")
    call model%forward(inputs, inputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(points_of(inputs(1)), hooke(young, strain)), "a result may replace what it came from")
  end subroutine copies_share_one_tensor
end program test_tensors
