! Derivatives through calls: of elasticity, and of implicit models that are named as arguments,
!   test_derivatives ISOTROPIC_HARDENING CRYSTAL
! without which their part is left out.
program test_derivatives
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: artifact, check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_dtype, neml2_error_name, neml2_error_shape, &
                        neml2_error_unsupported, neml2_input, neml2_input_first, neml2_model, neml2_ok, &
                        neml2_output, neml2_parameter, neml2_report_iterations, neml2_report_residual_history, &
                        neml2_report_residual_norm, neml2_report_status, neml2_report_suggested_cut, &
                        neml2_source_describe, neml2_unknown, neml2_view
  use neml2_capi_experimental, only: neml2_call_bind_input_derivative
  implicit none(type, external)
  integer, parameter :: n = 5
  type(neml2_model) :: elasticity, plastic, crystal
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call load(elasticity, "elasticity")
  call stiffness_of_elasticity()
  call directions_of_elasticity()
  call extents_are_checked()
  call wrong_bindings_are_refused()
  call derivatives_are_listed()
  call models_are_described()
  call bounds_are_listed()
  if (command_argument_count() == 2) then
    call load_argument(plastic, 1)
    call load_argument(crystal, 2)
    call a_tangent_in_both_orders()
    call a_step_of_a_history()
    call parameters_have_adjoints()
    call histories_are_listed()
  end if
  call finish()

contains

  subroutine load_argument(model, position)
    type(neml2_model), intent(inout) :: model
    integer, intent(in) :: position
    character(4096) :: path
    call get_command_argument(position, path)
    call model%load(trim(path), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call model%set_option("atol", 1e-12_real64, stat)
    call model%set_option("rtol", 1e-14_real64, stat)
  end subroutine load_argument

  ! d stress / d strain, (stress, strain).
  pure function stiffness() result(tangent)
    real(real64) :: tangent(6, 6)
    real(real64) :: unit(6, 6)
    integer :: i
    unit = 0
    do i = 1, 6
      unit(i, i) = 1
    end do
    tangent = hooke(young, unit)
  end function stiffness

  ! Six distinct values at each point.
  pure function directions(count) result(values)
    integer, intent(in) :: count
    real(real64) :: values(6, count)
    integer :: i, p
    do p = 1, count
      do i = 1, 6
        values(i, p) = sin(1 + 0.7_real64 * (6 * p + i))
      end do
    end do
  end function directions

  subroutine stiffness_of_elasticity()
    integer, parameter :: record = 45
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), stress(6, n), block(6, 6, n), state(record, n), half(6, 6)
    integer :: p, q
    strain = some_strains(n)
    call evaluation%create(elasticity, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "the stress beside its derivative")
    do p = 1, n
      call check(near(block(:, :, p), stiffness()), "the stiffness of a point")
    end do
    ! in one array of state
    state = -1
    call evaluation%bind_derivative("stress", "strain", neml2_view(state), stat, first=8, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    do p = 1, n
      call check(near(reshape(state(8:43, p), [6, 6]), stiffness()), "interleaved")
    end do
    call check(all(state(:7, :) < 0) .and. all(state(44:, :) < 0), "what lies between is not written")
    ! by itself an input is the unit matrix; half of that gives half of the stiffness
    half = reshape([(0.5_real64, [(0.0_real64, q=1, 6)], p=1, 5), 0.5_real64], [6, 6])
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(half), stat, errmsg, stride=0)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(block(:, :, n), 0.5_real64*stiffness()), "the stiffness of half a strain")
    call neml2_call_bind_input_derivative(evaluation, "strain", "strain", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine stiffness_of_elasticity

  subroutine directions_of_elasticity()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), along(6, n), jvp(6, n), adjoint(6, n), total(6)
    strain = some_strains(n)
    along = directions(n)
    call evaluation%create(elasticity, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_jvp("stress", neml2_view(jvp), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(jvp) <= 0), "a tangent that is not bound is zero")
    call evaluation%bind_tangent("strain", neml2_view(along), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_cotangent("stress", neml2_view(along), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_adjoint("strain", neml2_view(adjoint), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(jvp, hooke(young, along)), "jvp = J v")
    call check(near(adjoint, hooke(young, along)), "vjp = w J")
    call evaluation%bind_adjoint("strain", neml2_view(total), stat, stride=0, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(reshape(total, [6, 1]), reshape(sum(adjoint, 2), [6, 1])), "the sum over all points")
  end subroutine directions_of_elasticity

  ! A run of more points than an array holds writes nothing, whatever the array is bound as.
  subroutine extents_are_checked()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), along(6, n), block(6, 6, n - 1), short(6, n - 1), moduli(n - 1)
    real(real64), target :: history(50, n - 1), cuts(n - 1)
    strain = some_strains(n)
    along = directions(n)
    call prepare(evaluation, strain)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call refused(evaluation, "the derivative 'stress:strain'")
    call evaluation%bind_derivative("stress", "strain", neml2_view(block(:, :5, 1)), stat, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "36 values"), "not one block fits")
    call prepare(evaluation, strain)
    call evaluation%bind_tangent("strain", neml2_view(short), stat)
    call refused(evaluation, "the tangent of 'strain'")
    call prepare(evaluation, strain)
    call evaluation%bind_jvp("stress", neml2_view(short), stat)
    call refused(evaluation, "the jvp of 'stress'")
    call prepare(evaluation, strain)
    call evaluation%bind_cotangent("stress", neml2_view(short), stat)
    call refused(evaluation, "the cotangent of 'stress'")
    call prepare(evaluation, strain)
    call evaluation%bind_adjoint("strain", neml2_view(short), stat)
    call refused(evaluation, "the adjoint of 'strain'")
    call prepare(evaluation, strain)
    call evaluation%bind_parameter("E", neml2_view(moduli), stat)
    call refused(evaluation, "the parameter 'elasticity.E'")
    call prepare(evaluation, strain)
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(history), stat)
    call refused(evaluation, "the report 'residual history'")
    call prepare(evaluation, strain)
    call evaluation%bind_report(neml2_report_suggested_cut, neml2_view(cuts), stat)
    call refused(evaluation, "the report 'suggested cut'")
    cuts = 0
    call evaluation%run(n - 1, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(abs(cuts - 1) <= 0), "nothing to cut")
  end subroutine extents_are_checked

  subroutine prepare(evaluation, strain)
    type(neml2_call), intent(inout) :: evaluation
    real(real64), intent(in), pointer, contiguous :: strain(:, :)
    call evaluation%create(elasticity, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
  end subroutine prepare

  subroutine refused(evaluation, what)
    type(neml2_call), intent(in) :: evaluation
    character(*), intent(in) :: what
    call check(stat == neml2_ok, what//" is bound")
    call evaluation%run(n, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, what//" holds 4 points"), what//": "//errmsg)
  end subroutine refused

  subroutine wrong_bindings_are_refused()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), block(6, 6, n)
    integer :: p
    strain = some_strains(n)
    call evaluation%create(elasticity, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat)
    call evaluation%bind_derivative("stress", "strain", neml2_view(block), stat, stride=35, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "stress:strain"), "blocks that overlap")
    call evaluation%bind_derivative("stress", "elasticity.E", neml2_view(block), stat, of_parameter=.true., errmsg=errmsg)
    call check(stat == neml2_error_unsupported .and. says(errmsg, "-d stress:elasticity.E"), "a pair not compiled")
    call evaluation%bind_derivative("stress", "elasticity.E", neml2_view(block), stat, errmsg=errmsg)
    call check(stat == neml2_error_name .and. says(errmsg, "elasticity.E"), "a parameter is no input")
    call evaluation%bind_adjoint("elasticity.E", neml2_view(strain), stat, of_parameter=.true., errmsg=errmsg)
    call check(stat == neml2_error_unsupported .and. says(errmsg, "-d OUTPUT:elasticity.E"), "no adjoint was compiled")
    call evaluation%bind_jvp("strain", neml2_view(strain), stat, errmsg=errmsg)
    call check(stat == neml2_error_name, "an input is no output")
    call evaluation%bind_tangent("strain", neml2_view(strain), stat, first=0, errmsg=errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "the tangent of 'strain'"), "first counts from 1")
    call evaluation%set_block_order(7_int32, stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "7"), "no such order")
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    do p = 1, n
      call check(near(block(:, :, p), stiffness()), "usable afterwards")
    end do
  end subroutine wrong_bindings_are_refused

  subroutine derivatives_are_listed()
    integer(int64), allocatable :: extents(:)
    integer(int64) :: count, output, variable
    logical :: batched
    call elasticity%derivative_count(neml2_input, count, stat, errmsg)
    call check(stat == neml2_ok .and. count == 1, "one derivative")
    call elasticity%derivative_info(neml2_input, 1_int64, output, variable, stat, errmsg, extents, batched)
    call check_ok(stat, errmsg)
    call check(output == 1 .and. variable == 1 .and. all(extents == [6, 6]), "of the first by the first")
    call elasticity%derivative_info(neml2_input, 2_int64, output, variable, stat, errmsg)
    call check(stat == neml2_error_argument .and. output == 1, "no second one; what fails changes nothing")
    call elasticity%derivative_count(neml2_parameter, count, stat)
    call check(count == 0, "none of parameters")
    call elasticity%derivative_count(neml2_output, count, stat)
    call check(stat == neml2_error_argument, "none of outputs")
    call elasticity%variable_count(neml2_unknown, count, stat)
    call check(stat == neml2_ok .and. count == 0, "no unknowns")
    call elasticity%history_count(count, stat, errmsg)
    call check(stat == neml2_ok .and. count == 0, "no history")
  end subroutine derivatives_are_listed

  subroutine bounds_are_listed()
    character(*), parameter :: folder = "test_derivatives_bounds"
    type(neml2_model) :: bounded
    real(real64), allocatable :: lower(:), upper(:)
    integer(int64) :: count = -1, variable = 0
    integer(int32) :: kind = -1
    logical :: physical = .true.
    integer :: unit
    call execute_command_line("rm -rf "//folder//" && cp -r '"//artifact("elasticity")//"' "//folder)
    open (newunit=unit, file=folder//"/bounds.json", status="replace")
    write (unit, "(a)") '{"version": 1, "bounds": [{"variable": "elasticity.E", "kind": "validity",', &
      ' "lower": [1e5], "upper": [null]}]}'
    close (unit)
    call bounded%load(folder, stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call execute_command_line("rm -rf "//folder)
    call bounded%bound_count(count, stat, errmsg)
    call check(stat == neml2_ok .and. count == 1, "one bound")
    call bounded%bound_info(1_int64, kind, variable, stat, errmsg, lower, upper, physical)
    call check_ok(stat, errmsg)
    call check(kind == neml2_parameter .and. variable == 1 .and. .not. physical, "of the modulus")
    call check(size(lower) == 1 .and. lower(1) >= 1e5_real64 .and. upper(1) > huge(1.0_real64), "its sides")
    call bounded%bound_info(2_int64, kind, variable, stat)
    call check(stat == neml2_error_argument, "no other")
    call bounded%set_option("bounds", "fail", stat)
    call bounded%set_parameter("elasticity.E", 1e4_real64, stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "below 100000"), "a value beyond")
  end subroutine bounds_are_listed

  subroutine models_are_described()
    character(:), allocatable :: text, same
    call elasticity%describe(text, stat, errmsg)
    call check_ok(stat, errmsg)
    call neml2_source_describe(artifact("elasticity"), same, stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call check(text == same .and. says(text, "elasticity.E"), "the same from the model and the folder")
    call elasticity%checksum(text, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(len(text) == 64, "a checksum")
    text = same
    call neml2_source_describe("/nonexistent", text, stat, errmsg=errmsg)
    call check(stat < 0 .and. text == same .and. says(errmsg, "/nonexistent"), "a missing folder")
  end subroutine models_are_described

  ! The tangent of the stress is not symmetric, and that by the orientation not even square.
  subroutine a_tangent_in_both_orders()
    type(neml2_call) :: evaluation
    real(real64), target :: rate(6, n), vorticity(3), density(12), strain(6), orientation(3, n), time(3)
    real(real64), target :: c_order(6, 6, n), ddsdde(6, 6, n), by_orientation(3, 6, n), transposed(6, 3, n)
    real(real64), target :: plus(6, n), minus(6, n)
    real(real64) :: tangent(6, 6, n), difference(6, 6, n), asymmetry
    real(real64), parameter :: h = 1e-5_real64
    integer :: i, p
    rate = spread([0.1_real64, -0.05_real64, -0.05_real64, 0.02_real64, 0.004_real64, -0.01_real64], 2, n)
    do p = 1, n
      rate(:, p) = (1 + 0.1_real64 * p) * rate(:, p)
    end do
    vorticity = [0.1_real64, -0.05_real64, -0.05_real64]
    density = 10 + [(0.1_real64 * i, i=1, 12)]
    strain = [9.3e-4_real64, -5.1e-4_real64, -4.2e-4_real64, 1.0e-4_real64, -1.6e-5_real64, -1.1e-4_real64]
    orientation = spread([0.2_real64, -0.1_real64, -0.05_real64], 2, n)
    time = [0.03_real64, 0.02_real64, 0.01_real64]
    call evaluation%create(crystal, stat)
    call evaluation%bind_input("deformation_rate", neml2_view(rate), stat)
    call evaluation%bind_input("vorticity", neml2_view(vorticity), stat, stride=0)
    call evaluation%bind_input("dislocation_density~1", neml2_view(density), stat, stride=0)
    call evaluation%bind_input("elastic_strain~1", neml2_view(strain), stat, stride=0)
    call evaluation%bind_input("orientation~1", neml2_view(orientation), stat)
    call evaluation%bind_input("t", neml2_view(time(1)), stat)
    call evaluation%bind_input("t~1", neml2_view(time(2)), stat)
    call evaluation%bind_input("t~2", neml2_view(time(3)), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)

    call evaluation%bind_derivative("stress", "deformation_rate", neml2_view(c_order), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_derivative("stress", "orientation~1", neml2_view(by_orientation), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%set_block_order(neml2_input_first, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_derivative("stress", "deformation_rate", neml2_view(ddsdde), stat)
    call evaluation%bind_derivative("stress", "orientation~1", neml2_view(transposed), stat)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    asymmetry = 0
    do p = 1, n
      call check(all(abs(ddsdde(:, :, p) - transpose(c_order(:, :, p))) <= 0), "one is the transpose of the other")
      call check(all(abs(transposed(:, :, p) - transpose(by_orientation(:, :, p))) <= 0), "where it is not square, too")
      asymmetry = max(asymmetry, maxval(abs(ddsdde(:, :, p) - c_order(:, :, p))))
    end do
    call check(asymmetry > 1e-5_real64 * maxval(abs(ddsdde)), "the tangent is not symmetric")

    tangent = ddsdde ! which the next runs write again
    do i = 1, 6 ! tangent(k, i) is d stress(k) / d rate(i)
      rate(i, :) = rate(i, :) + h
      call evaluation%bind_output("stress", neml2_view(plus), stat)
      call evaluation%run(n, stat)
      rate(i, :) = rate(i, :) - 2 * h
      call evaluation%bind_output("stress", neml2_view(minus), stat)
      call evaluation%run(n, stat)
      rate(i, :) = rate(i, :) + h
      difference(:, i, :) = (plus - minus) / (2 * h)
    end do
    call check(all(abs(tangent - difference) <= 1e-6_real64 * maxval(abs(tangent))), "and agrees with differences")
  end subroutine a_tangent_in_both_orders

  ! Two steps of a history, state in one array, with the tangent, its products, and the report.
  subroutine a_step_of_a_history()
    integer, parameter :: shear(3) = [4, 5, 6]
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), old_strain(6, n), state(7, n), old_state(7, n), time, old_time
    real(real64), target :: tangent(6, 6, n), along(6, n), jvp(6, n), weight(6, n), adjoint(6, n)
    real(real64), target :: norms(50, n), last_norm(n), cut(n)
    integer(int32), target :: status(n), iterations(n)
    integer :: step, p
    old_strain = 0
    old_state = 0
    old_time = 0
    along = 1e-3_real64 * directions(n)
    weight = directions(n)
    call evaluation%create(plastic, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_input("strain~1", neml2_view(old_strain), stat)
    call evaluation%bind_input("t", neml2_view(time), stat)
    call evaluation%bind_input("t~1", neml2_view(old_time), stat)
    call evaluation%bind_input("stress~1", neml2_view(old_state), stat)
    call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(old_state), stat, first=7)
    call evaluation%bind_output("stress", neml2_view(state), stat)
    call evaluation%bind_output("equivalent_plastic_strain", neml2_view(state), stat, first=7)
    call evaluation%bind_derivative("stress", "strain", neml2_view(tangent), stat)
    call evaluation%set_block_order(neml2_input_first, stat)
    call evaluation%bind_tangent("strain", neml2_view(along), stat)
    call evaluation%bind_jvp("stress", neml2_view(jvp), stat)
    call evaluation%bind_cotangent("stress", neml2_view(weight), stat)
    call evaluation%bind_adjoint("strain", neml2_view(adjoint), stat)
    call evaluation%bind_report(neml2_report_status, neml2_view(status), stat)
    call evaluation%bind_report(neml2_report_iterations, neml2_view(iterations), stat)
    call evaluation%bind_report(neml2_report_residual_norm, neml2_view(last_norm), stat)
    call evaluation%bind_report(neml2_report_suggested_cut, neml2_view(cut), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(norms), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_report(neml2_report_residual_history, neml2_view(norms(:3, :)), stat, errmsg)
    call check(stat == neml2_error_shape, "a history has no gaps: miters says how many values are written")
    call evaluation%bind_report(neml2_report_iterations, neml2_view(cut), stat, errmsg)
    call check(stat == neml2_error_dtype, "iterations are counted in int32")
    do step = 1, 2
      time = step
      strain = step * some_strains(n)
      call evaluation%run(n, stat, errmsg)
      call check_ok(stat, errmsg)
      do p = 1, n
        call close_to(jvp(:, p), matmul(tangent(:, :, p), along(:, p)), "jvp = J v")
        call close_to(adjoint(:, p), matmul(weight(:, p), tangent(:, :, p)), "vjp = w J")
        call check(abs(norms(iterations(p) + 1, p) - last_norm(p)) <= 0, "the history ends with the last norm")
        call check(all(ieee_is_nan(norms(iterations(p) + 2:, p))), "and is NaN afterwards")
      end do
      call check(all(status == neml2_ok) .and. all(abs(cut - 1) <= 0), "all points are well")
      old_strain = strain
      old_state = state
      old_time = time
    end do
    call check(all(state(7, :) > 0) .and. all(abs(state(shear, :)) > 0), "they flow, with shear")
  end subroutine a_step_of_a_history

  subroutine close_to(values, expected, what)
    real(real64), intent(in) :: values(:), expected(:)
    character(*), intent(in) :: what
    call check(all(abs(values - expected) <= 1e-10_real64 * maxval(abs(expected))), what)
  end subroutine close_to

  subroutine parameters_have_adjoints()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), zero(6), time, old_time, weight(6, n), block(6, n), each(n), total, short(2)
    strain = 2 * some_strains(n)
    zero = 0
    time = 1
    old_time = 0
    weight = directions(n)
    call evaluation%create(plastic, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_input("strain~1", neml2_view(zero), stat, stride=0)
    call evaluation%bind_input("stress~1", neml2_view(zero), stat, stride=0)
    call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(zero), stat, stride=0)
    call evaluation%bind_input("t", neml2_view(time), stat)
    call evaluation%bind_input("t~1", neml2_view(old_time), stat)
    call evaluation%bind_cotangent("stress", neml2_view(weight), stat)
    call evaluation%bind_derivative("stress", "E", neml2_view(block), stat, of_parameter=.true., errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_adjoint("E", neml2_view(each), stat, of_parameter=.true., errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call close_to(each, sum(weight * block, 1), "the adjoint of a parameter at each point")
    call evaluation%bind_adjoint("residual.elasticity.E", neml2_view(total), stat, of_parameter=.true., errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call close_to([total], [sum(each)], "and over all points")
    ! what a short name is bound to is checked, too
    call evaluation%bind_adjoint("E", neml2_view(short), stat, of_parameter=.true., errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "residual.elasticity.E"), "an array that is too short")
    call evaluation%bind_adjoint("E", neml2_view(each), stat, of_parameter=.true.)
    call evaluation%bind_derivative("stress", "E", neml2_view(short), stat, of_parameter=.true., stride=6, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "stress:residual.elasticity.E"), "not one block fits")
  end subroutine parameters_have_adjoints

  subroutine histories_are_listed()
    character(:), allocatable :: name
    integer(int64) :: count, i, input, age, output, current, expected
    call plastic%history_count(count, stat, errmsg)
    call check(stat == neml2_ok .and. count == 4, "four inputs are history")
    do i = 1, count
      call plastic%history_info(i, input, stat, errmsg, age, output, current)
      call check_ok(stat, errmsg)
      call plastic%variable_name(neml2_input, input, name, stat)
      name = name(:index(name, "~") - 1)
      call plastic%variable_find(merge(neml2_output, neml2_input, output > 0), name, expected, stat, errmsg)
      call check_ok(stat, errmsg)
      call check(age == 1 .and. expected == max(output, current) .and. min(output, current) == 0, "what becomes of it")
    end do
    call plastic%history_info(5_int64, input, stat, errmsg)
    call check(stat == neml2_error_argument .and. input > 0, "no fifth one; what fails changes nothing")
    call plastic%variable_count(neml2_unknown, count, stat)
    call check(count == 2, "two unknowns")
  end subroutine histories_are_listed
end program test_derivatives
