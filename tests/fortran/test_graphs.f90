! One package alone, over arrays of the host in any layout; with the folder of the packages of tests/models/graphs.py as
! argument, of integers, float32 and results that share storage, too.
program test_graphs
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: artifact, check, check_ok, finish, hooke, near, says, some_strains, young
  use neml2_capi, only: neml2_error_argument, neml2_error_dtype, neml2_error_file, neml2_error_name, &
                        neml2_error_shape, neml2_float32, neml2_float64, neml2_int64, neml2_ok, neml2_tensor, &
                        neml2_view
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)
  integer, parameter :: n = 5
  type(neml2_graph) :: graph
  integer(int32) :: stat
  character(:), allocatable :: errmsg
  character(4096) :: folder

  call graph%load(artifact("elasticity/cpu/float64/elasticity.pt2"), stat, errmsg)
  call check_ok(stat, errmsg)
  call inputs_are_described()
  call it_runs()
  call inputs_may_have_gaps()
  call what_does_not_fit_is_refused()
  call copies_share_one_graph()
  if (command_argument_count() == 1) then
    call get_command_argument(1, folder)
    call integers()
    call single_precision()
    call results_that_share_storage()
    call constants()
  end if
  call finish()

contains

  subroutine inputs_are_described()
    integer(int64) :: ninputs, noutputs
    integer(int64), allocatable :: least(:), greatest(:)
    integer(int32) :: dtype
    ninputs = 0
    noutputs = 0
    dtype = 0
    call graph%arity(ninputs, noutputs, stat, errmsg)
    call check(stat == neml2_ok .and. ninputs == 2 .and. noutputs == 1, "strain and modulus; stress")
    call graph%input_info(1_int64, dtype, least, greatest, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(dtype == neml2_float64 .and. size(least) == 2 .and. least(1) == 6 .and. greatest(1) == 6, "(6, n)")
    call check(least(2) < greatest(2), "of any n")
    call graph%input_info(3_int64, dtype, least, greatest, stat, errmsg)
    call check(stat == neml2_error_argument .and. size(least) == 2, "no third one")
  end subroutine inputs_are_described

  ! The modulus as the package wants it: (n) or (1, n).
  subroutine wrap_modulus(tensor, moduli)
    type(neml2_tensor), intent(inout) :: tensor
    real(real64), intent(inout), target :: moduli(1, n)
    integer(int64), allocatable :: least(:), greatest(:)
    integer(int32) :: dtype
    dtype = 0
    moduli = young
    call graph%input_info(2_int64, dtype, least, greatest)
    if (size(least) == 1) call tensor%wrap(neml2_view(moduli(1, :)), stat, errmsg)
    if (size(least) == 2) call tensor%wrap(neml2_view(moduli), stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine wrap_modulus

  subroutine check_stress(inputs)
    type(neml2_tensor), intent(in) :: inputs(2)
    type(neml2_tensor) :: outputs(1)
    real(real64), allocatable :: values(:)
    integer(int64), allocatable :: extents(:), strides(:)
    call graph%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%shape(extents, stat, errmsg, strides)
    call check(all(extents == [6, n]) .and. size(strides) == 2, "the shape of the stress")
    call outputs(1)%copy(values, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(reshape(values, [6, n]), hooke(young, some_strains(n))), "the stress")
  end subroutine check_stress

  subroutine it_runs()
    type(neml2_tensor) :: inputs(2)
    real(real64), target :: strain(6, n), moduli(1, n)
    strain = some_strains(n)
    call inputs(1)%wrap(neml2_view(strain), stat, errmsg)
    call check_ok(stat, errmsg)
    call wrap_modulus(inputs(2), moduli)
    call check_stress(inputs)
  end subroutine it_runs

  subroutine inputs_may_have_gaps()
    type(neml2_tensor) :: inputs(2), tensor
    real(real64), target :: state(14, 2 * n), moduli(1, n), five(2, 2, 2, 2, 2)
    real(real64), pointer :: values(:)
    real(real64), allocatable :: copied(:)
    integer(int64), allocatable :: extents(:), strides(:)
    integer(int32) :: dtype
    state = -1
    state(3:8, 1::2) = some_strains(n)
    call inputs(1)%wrap(neml2_view(state(3:8, 1::2)), stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(1)%shape(extents, stat, errmsg, strides)
    call check(all(extents == [6, n]) .and. all(strides == [1, 28]), "a section keeps its strides")
    call wrap_modulus(inputs(2), moduli)
    call check_stress(inputs)
    call inputs(1)%values(values, stat, errmsg)
    call check(stat == neml2_error_shape .and. .not. associated(values) .and. says(errmsg, "copy"), errmsg)
    call inputs(1)%copy(copied, stat, errmsg)
    call check(stat == neml2_ok .and. near(reshape(copied, [6, n]), some_strains(n)), "copied from where it lies")
    dtype = 0
    call inputs(1)%dtype(dtype, stat, errmsg)
    call check(stat == neml2_ok .and. dtype == neml2_float64, "its element type")
    call tensor%wrap(neml2_view(five(:1, :, :, :, :)), stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "4 axes") .and. .not. tensor%is_set(), errmsg)
    nullify (values)
    call tensor%wrap(neml2_view(values), stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "null"), "nothing to wrap")
  end subroutine inputs_may_have_gaps

  subroutine what_does_not_fit_is_refused()
    type(neml2_graph) :: nothing
    type(neml2_tensor) :: inputs(2), outputs(2)
    real(real64), target :: wide(7, n), moduli(1, n)
    real(real32), target :: single(6, n)
    wide = 0
    single = 0
    call wrap_modulus(inputs(2), moduli)
    call inputs(1)%create([6_int64, int(n, int64)], stat, errmsg)
    call check_ok(stat, errmsg)
    call graph%run(inputs(:1), outputs(:1), stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "2"), "one input is not enough")
    call graph%run(inputs, outputs, stat, errmsg)
    call check(stat == neml2_error_argument, "two outputs are too many")
    call inputs(1)%wrap(neml2_view(wide))
    call graph%run(inputs, outputs(:1), stat, errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "6"), "seven components")
    call inputs(1)%wrap(neml2_view(single))
    call graph%run(inputs, outputs(:1), stat, errmsg)
    call check(stat == neml2_error_dtype .and. says(errmsg, "float64"), "of another type")
    call check(.not. any(outputs%is_set()), "nothing came of it")
    call nothing%load("/nonexistent.pt2", stat, errmsg)
    call check(stat == neml2_error_file .and. says(errmsg, "/nonexistent.pt2"), "a missing package")
    call nothing%run(inputs, outputs(:1), stat)
    call check(stat == neml2_error_argument .and. .not. nothing%is_loaded(), "no graph")
  end subroutine what_does_not_fit_is_refused

  subroutine copies_share_one_graph()
    type(neml2_graph) :: copy
    copy = graph
    call graph%free()
    call check(copy%is_loaded() .and. .not. graph%is_loaded(), "one name is gone")
    graph = copy
    call it_runs()
  end subroutine copies_share_one_graph

  subroutine integers()
    type(neml2_graph) :: division
    type(neml2_tensor) :: inputs(2), outputs(1)
    integer(int64), target :: a(2, 4), b(8)
    integer(int32), target :: narrow(8)
    integer(int64), pointer :: quotient(:)
    integer(int32), pointer :: wrong(:)
    integer(int32) :: dtype
    integer :: i
    a = reshape([(11 * i, i=1, 8)], [2, 4])
    b = [(i, i=8, 1, -1)]
    narrow = 1
    dtype = 0
    call division%load(trim(folder)//"/integer_division.pt2", stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(1)%wrap(neml2_view(a), stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(2)%wrap(neml2_view(b), stat, errmsg)
    call check_ok(stat, errmsg)
    call division%run(inputs, outputs, stat, errmsg)
    call check(stat == neml2_error_shape, "of two axes")
    call inputs(1)%wrap(neml2_view(a(1, :)), stat, errmsg)
    call inputs(2)%wrap(neml2_view(b(::2)), stat, errmsg)
    call division%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%dtype(dtype, stat)
    call check(dtype == neml2_int64, "integers give integers")
    call outputs(1)%values(quotient, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(quotient == a(1, :) / b(::2)), "the quotients")
    call outputs(1)%values(wrong, stat)
    call check(stat == neml2_error_dtype .and. .not. associated(wrong), "not as int32")
    call inputs(2)%wrap(neml2_view(narrow(:4)))
    call division%run(inputs, outputs, stat, errmsg)
    call check(stat == neml2_error_dtype .and. says(errmsg, "int64"), "int32 does not fit")
  end subroutine integers

  subroutine single_precision()
    type(neml2_graph) :: residual
    type(neml2_tensor) :: inputs(2), outputs(1)
    real(real32), target :: u(1, 3), a(1, 3)
    real(real32), pointer :: r(:)
    integer(int32) :: dtype
    u(1, :) = [1.5_real32, 2.5_real32, -3.0_real32]
    a = 2
    dtype = 0
    call residual%load(trim(folder)//"/root_residual.pt2", stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(1)%wrap(neml2_view(u), stat, errmsg)
    call inputs(2)%wrap(neml2_view(a), stat, errmsg)
    call residual%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%dtype(dtype)
    call outputs(1)%values(r, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(dtype == neml2_float32 .and. all(abs(r - (a(1, :) - u(1, :)**2)) <= 0), "a - u^2 in float32")
  end subroutine single_precision

  ! a, a without its first column, 2 a, and its transpose.
  subroutine results_that_share_storage()
    type(neml2_graph) :: aliases
    type(neml2_tensor) :: inputs(1), outputs(4)
    real(real64), target :: a(3, n)
    real(real64), allocatable :: values(:)
    real(real64), pointer :: same(:)
    a = reshape(some_strains(n), [3, n])
    call aliases%load(trim(folder)//"/aliases.pt2", stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(1)%wrap(neml2_view(a))
    call aliases%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%values(same, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(2)%copy(values, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(reshape(values, [2, n]), a(2:, :)), "a view with gaps")
    call outputs(4)%copy(values, stat, errmsg)
    call check(near(reshape(values, [n, 3]), 2 * transpose(a)), "a transpose")
    call inputs%free()
    call check(near(reshape(same, [3, n]), a), "a result outlives the handle of what it shares")
  end subroutine results_that_share_storage

  ! tanh(x W0^T + b0) W2^T + b2: with no W2 the same at all points, with twice W2 twice as far from that.
  subroutine constants()
    type(neml2_graph) :: network
    type(neml2_tensor) :: inputs(1), weight(1), bias
    real(real64), target :: x(3, n), changed(64, 2)
    real(real64), allocatable :: compiled(:), none(:), doubled(:), values(:)
    integer(int64) :: count, i
    character(:), allocatable :: name
    x = 1e3_real64 * reshape(some_strains(n), [3, n])
    count = 0
    call network%load(trim(folder)//"/weights.pt2", stat, errmsg)
    call check_ok(stat, errmsg)
    call inputs(1)%wrap(neml2_view(x))
    call results_of(network, inputs, compiled)
    call network%constant_count(count, stat, errmsg)
    call check(stat == neml2_ok .and. count == 3, "two matrices, and the bias that is not small")
    do i = 1, count
      call network%get_constant(i, bias, name, stat, errmsg)
      call check_ok(stat, errmsg)
      if (name == "2.weight") call bias%copy(values)
    end do
    changed = 0
    call weight(1)%wrap(neml2_view(changed))
    call network%set_constants(["2.weight"], weight, stat, errmsg)
    call check_ok(stat, errmsg)
    call results_of(network, inputs, none)
    call check(near(reshape(none(3:), [2, n - 1]), reshape(none(:2 * n - 2), [2, n - 1])), "the last bias, at every point")
    changed = 2 * reshape(values, [64, 2])
    call network%set_constants(["2.weight  "], weight, stat, errmsg)
    call check_ok(stat, errmsg)
    call results_of(network, inputs, doubled)
    call check(near(reshape(doubled - none, [2, n]), reshape(2 * (compiled - none), [2, n])), "twice the weights")
    call network%set_constants(["2.bias"], weight, stat, errmsg)
    call check(stat == neml2_error_name, "a number in the code")
    call check(says(errmsg, "0.weight, 0.bias, 2.weight"), errmsg)
    call network%set_constants(["0.bias"], weight, stat, errmsg)
    call check(stat == neml2_error_shape, "of another shape")
    call network%get_constant(4_int64, bias, name, stat, errmsg)
    call check(stat == neml2_error_argument, "there is no fourth one")
    call results_of(network, inputs, values)
    call check(all(abs(values - doubled) <= 0), "errors change nothing")
  end subroutine constants

  ! The only one that the graph returns.
  subroutine results_of(any_graph, inputs, results)
    type(neml2_graph), intent(in) :: any_graph
    type(neml2_tensor), intent(in) :: inputs(:)
    real(real64), allocatable, intent(inout) :: results(:)
    type(neml2_tensor) :: outputs(1)
    call any_graph%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(results, stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine results_of
end program test_graphs
