! Arrays of any rank and kind, and sections with gaps, are bound where they are; what cannot be is refused and named.
program test_ranks
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_dtype, neml2_error_shape, neml2_error_subject, neml2_float32, &
                        neml2_float64, neml2_input, neml2_model, neml2_ok, neml2_report_status, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 12
  type(neml2_model) :: model
  real(real64) :: expected(6, n)
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  call load(model, "elasticity")
  expected = hooke(young, some_strains(n))
  call element_types_are_told()
  call arrays_of_any_rank()
  call pointers_of_any_bounds()
  call sections_of_a_state()
  call sections_with_more_axes()
  call sections_in_two_orders()
  call sections_of_reports_and_blocks()
  call gaps_within_a_point_are_refused()
  call other_kinds_are_refused()
  call parameters_of_any_rank()
  call finish()

contains

  subroutine element_types_are_told()
    integer(int32) :: dtype
    dtype = 0
    call model%dtype(dtype, stat, errmsg)
    call check(stat == neml2_ok .and. dtype == neml2_float64, "a model of float64")
    dtype = 0
    call model%variable_dtype(neml2_input, 1_int64, dtype, stat, errmsg)
    call check(stat == neml2_ok .and. dtype == neml2_float64, "so is its input")
    dtype = neml2_float32
    call model%variable_dtype(neml2_input, 9_int64, dtype, stat)
    call check(stat < 0 .and. dtype == neml2_float32, "what fails changes nothing")
  end subroutine element_types_are_told

  ! The stress of `evaluation` into `stress`, as points of six.
  subroutine evaluate(evaluation, stress)
    type(neml2_call), intent(in) :: evaluation
    real(real64), intent(inout), target :: stress(6, n)
    stress = -1
    call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, expected), "the stress equals Hooke's law")
  end subroutine evaluate

  subroutine arrays_of_any_rank()
    type(neml2_call) :: evaluation
    real(real64), target :: stress(6, n), state(2, 3, n), r1(6 * n), r4(6, 2, 3, 2), r5(6, 2, 1, 3, 2)
    real(real64), target :: r15(6, 1, 1, 1, 2, 1, 1, 1, 3, 1, 1, 1, 2, 1, 1)
    r1 = reshape(some_strains(n), shape(r1))
    state = reshape(some_strains(n), shape(state))
    r4 = reshape(some_strains(n), shape(r4))
    r5 = reshape(some_strains(n), shape(r5))
    r15 = reshape(some_strains(n), shape(r15))
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(r1), stat, errmsg, stride=6)
    call evaluate(evaluation, stress)
    call evaluation%bind_input("strain", neml2_view(state), stat, errmsg)
    call evaluate(evaluation, stress)
    call evaluation%bind_input("strain", neml2_view(r4), stat, errmsg, stride=6)
    call evaluate(evaluation, stress)
    call evaluation%bind_input("strain", neml2_view(r5), stat, errmsg, stride=6)
    call evaluate(evaluation, stress)
    call evaluation%bind_input("strain", neml2_view(r15), stat, errmsg, stride=6)
    call evaluate(evaluation, stress)
    ! as an output, too
    r15 = -1
    call evaluation%bind_input("strain", neml2_view(r5), stat, errmsg, stride=6)
    call evaluation%bind_output("stress", neml2_view(r15), stat, errmsg, stride=6)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(reshape(r15, [6, n]), expected), "an output of rank 15")
  end subroutine arrays_of_any_rank

  subroutine pointers_of_any_bounds()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), state(9, n), stress(6, n)
    real(real64), pointer :: view(:, :), nothing(:, :)
    strain = some_strains(n)
    state(3:8, :) = strain
    call evaluation%create(model)
    view(0:, -5:) => strain
    call evaluation%bind_input("strain", neml2_view(view), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
    view(-7:, 3:) => state(3:8, :)
    call evaluation%bind_input("strain", neml2_view(view), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
    nothing => null()
    call evaluation%bind_input("strain", neml2_view(nothing), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check(stat < 0 .and. says(errmsg, "strain"), "a null pointer takes the binding back")
  end subroutine pointers_of_any_bounds

  ! Strain and stress in one array of state, as sections.
  subroutine sections_of_a_state()
    type(neml2_call) :: evaluation
    real(real64), target :: state(14, n), moduli(2, n)
    state = -1
    state(1:6, :) = some_strains(n)
    moduli = -1
    moduli(2, :) = young
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(state(1:6, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(state(8:13, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_parameter("elasticity.E", neml2_view(moduli(2, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(state(8:13, :), expected), "the stress in its place")
    call check(all(state(7, :) < 0) .and. all(state(14, :) < 0), "what lies between is not written")

    ! part of the points; the keywords count in memory
    state(8:13, :) = -1
    call evaluation%bind_input("strain", neml2_view(state(1:6, 3:7)), stat, errmsg, stride=14)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(state(8:14, 3:7)), stat, errmsg, first=1)
    call check_ok(stat, errmsg)
    call evaluation%run(6, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "holds 5 points"), errmsg)
    call evaluation%run(5, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(state(8:13, 3:7), expected(:, 3:7)), "some points")
    call check(all(state(8:13, :2) < 0) .and. all(state(8:13, 8:) < 0), "and no others")
    call evaluation%bind_input("strain", neml2_view(state(1:6, 2:3)), stat, errmsg, stride=0)
    call check_ok(stat, errmsg)
    call evaluation%run(5, stat, errmsg)
    call check(near(state(8:13, 3:7), spread(expected(:, 2), 2, 5)), "one value for all points")
    call evaluation%bind_input("strain", neml2_view(state(1:6, 4:4)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(1, stat, errmsg)
    call check(near(state(8:13, 3:3), expected(:, 4:4)), "a section of one column")
    call evaluation%bind_input("strain", neml2_view(state(1:6, :0)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(1, stat, errmsg)
    call check(stat == neml2_error_shape, "a section without points")
  end subroutine sections_of_a_state

  subroutine sections_with_more_axes()
    type(neml2_call) :: evaluation
    real(real64), target :: state(9, 4, 3), pairs(6, 2, n), r4(9, 2, 3, 2), r3(2, 3, 2 * n), stress(6, n)
    call evaluation%create(model)
    state = -1
    state(4:9, :, :) = reshape(some_strains(n), [6, 4, 3])
    call evaluation%bind_input("strain", neml2_view(state(4:9, :, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
    pairs = -1
    pairs(:, 2, :) = some_strains(n)
    call evaluation%bind_input("strain", neml2_view(pairs(:, 2, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
    r4 = -1
    r4(2:7, :, :, :) = reshape(some_strains(n), [6, 2, 3, 2])
    call evaluation%bind_input("strain", neml2_view(r4(2:7, :, :, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
    r3 = -1
    r3(:, :, 2::2) = reshape(some_strains(n), [2, 3, n])
    call evaluation%bind_input("strain", neml2_view(r3(:, :, 2::2)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
  end subroutine sections_with_more_axes

  ! What is not a section with gaps is as it was: the product of all extents but the last.
  subroutine sections_in_two_orders()
    type(neml2_call) :: evaluation
    real(real64), target :: stress(6, n), strain(6, 3 * n)
    strain(:, :n) = some_strains(n)
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain(:, 1:n)), stat, errmsg)
    call evaluate(evaluation, stress)
    strain(:, n + 1:) = -1
    strain(:, 2:3 * n:3) = some_strains(n)
    call evaluation%bind_input("strain", neml2_view(strain(:, 2:3 * n:3)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluate(evaluation, stress)
  end subroutine sections_in_two_orders

  subroutine sections_of_reports_and_blocks()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), wide(40, n)
    integer(int32), target :: status(2, n)
    integer :: p
    strain = some_strains(n)
    wide = -1
    status = -1
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_report(neml2_report_status, neml2_view(status(2, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_derivative("stress", "strain", neml2_view(wide(3:38, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(status(2, :) == neml2_ok) .and. all(status(1, :) == -1), "the second row of a status")
    do p = 1, n
      call check(near(matmul(reshape(wide(3:38, p), [6, 6]), strain(:, p:p)), expected(:, p:p)), "block times strain")
    end do
    call check(all(wide(:2, :) < 0) .and. all(wide(39:, :) < 0), "nothing besides")
  end subroutine sections_of_reports_and_blocks

  subroutine gaps_within_a_point_are_refused()
    type(neml2_call) :: evaluation
    real(real64), target :: state(14, n), cube(8, 6, n), five(9, 2, 3, 2, 1)
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(state(1:12:2, :)), stat, errmsg)
    call refused("every second value")
    call evaluation%bind_input("strain", neml2_view(state(1:6, n:1:-1)), stat, errmsg)
    call refused("backwards")
    call evaluation%bind_input("strain", neml2_view(state(1:5, :)), stat, errmsg)
    call refused("five values side by side")
    call evaluation%bind_input("strain", neml2_view(state(1:6, :)), stat, errmsg, first=2)
    call refused("beyond the end of a column")
    call evaluation%bind_input("strain", neml2_view(state(1:6, :)), stat, errmsg, stride=7)
    call refused("a stride into the gaps")
    call evaluation%bind_derivative("stress", "strain", neml2_view(cube(1:6, :, :)), stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "stress:strain"), "a block with gaps")
    call evaluation%bind_input("strain", neml2_view(cube(1:6, 1:5, :)), stat, errmsg)
    call refused("points at two distances")
    call evaluation%bind_input("strain", neml2_view(five(1:6, :, :, :, :)), stat, errmsg)
    call refused("gaps in five axes")
    call check(says(errmsg, "4 axes"), errmsg)
  end subroutine gaps_within_a_point_are_refused

  subroutine refused(what)
    character(*), intent(in) :: what
    character(:), allocatable :: subject
    call neml2_error_subject(subject)
    call check(stat == neml2_error_shape .and. subject == "strain", what//": about the strain")
    call check(says(errmsg, "'strain' is a section with gaps") .and. says(errmsg, "copy"), what//": "//errmsg)
  end subroutine refused

  subroutine other_kinds_are_refused()
    type(neml2_call) :: evaluation
    real(real32), target :: single(6, n), block(6, 6, n)
    real(real32), allocatable :: stored(:)
    character(:), allocatable :: subject
    single = real(some_strains(n), real32)
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(single), stat, errmsg)
    call check(stat == neml2_error_dtype .and. says(errmsg, "float64") .and. says(errmsg, "float32"), errmsg)
    call neml2_error_subject(subject)
    call check(subject == "strain", "of the strain")
    call evaluation%bind_output("stress", neml2_view(single), stat)
    call check(stat == neml2_error_dtype, "of the stress")
    call evaluation%bind_output("stress", neml2_view(single(:, ::2)), stat)
    call check(stat == neml2_error_dtype, "of a section")
    call evaluation%bind_parameter("E", neml2_view(single(1, 1)), stat)
    call check(stat == neml2_error_dtype, "of a parameter")
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call check(stat == neml2_error_dtype, "of a derivative")
    call evaluation%bind_tangent("strain", neml2_view(single), stat)
    call check(stat == neml2_error_dtype, "of a tangent")
    call evaluation%bind_jvp("stress", neml2_view(single), stat)
    call check(stat == neml2_error_dtype, "of a jvp")
    call evaluation%bind_cotangent("stress", neml2_view(single), stat)
    call check(stat == neml2_error_dtype, "of a cotangent")
    call evaluation%bind_adjoint("strain", neml2_view(single), stat)
    call check(stat == neml2_error_dtype, "of an adjoint")
    call model%set_parameter("elasticity.E", 1.0_real32, stat, errmsg)
    call check(stat == neml2_error_dtype .and. says(errmsg, "elasticity.E"), "of a stored value")
    call model%get_parameter("elasticity.E", stored, stat, errmsg)
    call check(stat == neml2_error_dtype .and. .not. allocated(stored), "as it is read")
  end subroutine other_kinds_are_refused

  subroutine parameters_of_any_rank()
    real(real64) :: moduli(2, 3), table(4, n)
    real(real64), allocatable :: stored(:)
    integer(int64), allocatable :: extents(:)
    moduli = reshape([1, 2, 3, 4, 5, 6], [2, 3]) * 1e3_real64
    call model%set_parameter("elasticity.E", moduli, stat, errmsg)
    call check_ok(stat, errmsg)
    call model%get_parameter("elasticity.E", stored, stat, errmsg, shape=extents)
    call check_ok(stat, errmsg)
    call check(all(extents == [2, 3]), "a batch of two axes")
    call check(all(abs(stored - [1, 2, 3, 4, 5, 6] * 1e3_real64) <= 0), "in array element order")
    table = -1
    table(3, :) = young
    call model%set_parameter("elasticity.E", table(3, :), stat, errmsg)
    call check_ok(stat, errmsg)
    call model%get_parameter("elasticity.E", stored, stat, errmsg, shape=extents)
    call check(size(stored) == n .and. all(abs(stored - young) <= 0), "a section with gaps")
    call model%set_parameter("elasticity.E", young, stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine parameters_of_any_rank
end program test_ranks
