! A package calls a subroutine of the host. NEML2_TEST_OPERATORS is the folder that tests/models/operators.py fills; if
! it is not set, only what needs no package is tested.
module saturation
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_error_dtype, neml2_error_name, neml2_error_record, neml2_not_converged, neml2_ok, &
                        neml2_tensor
  use neml2_capi_experimental, only: neml2_argument_boolean, neml2_operator_call
  use checks, only: check
  implicit none(type, external)
  private
  public :: saturate

  character(*), parameter, public :: schema = &
    "neml2_capi_operators::saturate(Tensor x, float scale=1.0, bool twice=False, int order=1) -> Tensor"
  logical, public :: is_to_fail = .false., is_to_miss = .false.

contains

  subroutine saturate(arguments, stat)
    type(neml2_operator_call), intent(inout) :: arguments
    integer(int32), intent(out) :: stat
    type(neml2_tensor) :: x, y
    real(real64), pointer :: from(:), to(:)
    integer(int64), allocatable :: shape(:)
    character(:), allocatable :: name
    real(real64) :: scale
    logical :: twice
    integer(int64) :: order, narguments, noutputs, position, count
    integer(int32) :: kind

    if (is_to_fail) then
      stat = neml2_not_converged
      call neml2_error_record(stat, "", "on purpose")
      return
    end if
    call arguments%size(narguments, noutputs, stat)
    call check(stat == neml2_ok .and. narguments == 4 .and. noutputs == 1, "the size of a call")
    call arguments%find("thrice", position, stat)
    call check(stat == neml2_error_name, "no argument of this name")
    call arguments%find("twice", position, stat)
    call check(stat == neml2_ok .and. position == 3, "the position of an argument")
    call arguments%argument_info(position, name, kind, count, stat)
    call check(stat == neml2_ok .and. name == "twice" .and. kind == neml2_argument_boolean .and. count == -1, &
               "what an argument is")
    call arguments%get(2_int64, order, stat)
    call check(stat == neml2_error_dtype, "a real number is no integer")

    call arguments%get(1_int64, x, stat)
    if (stat == neml2_ok) call arguments%get(2_int64, scale, stat)
    if (stat == neml2_ok) call arguments%get(position, twice, stat)
    if (stat == neml2_ok) call arguments%get(4_int64, order, stat)
    if (stat == neml2_ok) call x%shape(shape, stat)
    if (stat == neml2_ok) call x%values(from, stat)
    if (stat == neml2_ok) call y%create(shape, stat)
    if (stat == neml2_ok) call y%values(to, stat)
    if (stat /= neml2_ok) return
    to = merge(2, 1, twice)*scale*from**order/(1 + from**order)
    if (.not. is_to_miss) call arguments%set_output(1_int64, y, stat)
  end subroutine saturate
end module saturation

program test_operators
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, near, says
  use neml2_capi, only: neml2_error_argument, neml2_error_name, neml2_error_runtime, neml2_error_unsupported, &
                        neml2_not_converged, neml2_tensor, neml2_view
  use neml2_capi_experimental, only: neml2_graph, neml2_operator_register, neml2_operator_unregister
  use saturation, only: is_to_fail, is_to_miss, saturate, schema
  implicit none(type, external)
  character(4096) :: folder
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: length

  call neml2_operator_register("saturate(Tensor x) -> Tensor", saturate, stat, errmsg)
  call check(stat == neml2_error_argument .and. says(errmsg, "does not name its library"), "no schema")
  call neml2_operator_unregister("mylib::none", stat, errmsg)
  call check(stat == neml2_error_name, "no operator")
  call neml2_operator_register(schema, saturate, stat, errmsg)
  call check_ok(stat, errmsg)
  call neml2_operator_register(schema, saturate, stat, errmsg)
  call check(stat == neml2_error_argument .and. says(errmsg, "is registered already"), "a second one")
  call get_environment_variable("NEML2_TEST_OPERATORS", folder, length)
  if (length > 0) call a_package_calls_the_subroutine(trim(folder)//"/saturate.pt2")
  call finish()

contains

  subroutine a_package_calls_the_subroutine(package)
    character(*), intent(in) :: package
    type(neml2_graph) :: graph
    type(neml2_tensor) :: input(1), output(1)
    real(real64), target :: x(4, 2)
    real(real64), pointer :: made(:)
    integer :: i
    x = reshape([(0.5_real64*i, i=1, 8)], [4, 2])
    call graph%load(package, stat, errmsg)
    call check_ok(stat, errmsg)
    call input(1)%wrap(neml2_view(x))
    call graph%run(input, output, stat, errmsg)
    call check_ok(stat, errmsg)
    call output(1)%values(made, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(maxval(abs(made - reshape(x**2/(1 + x**2) + 1, [8]))) < 1e-15_real64, "what the package returns")
    is_to_fail = .true.
    call graph%run(input, output, stat, errmsg)
    call check(stat == neml2_not_converged .and. says(errmsg, "saturate failed: on purpose"), "a failure")
    is_to_fail = .false.
    is_to_miss = .true.
    call graph%run(input, output, stat, errmsg)
    call check(stat == neml2_error_runtime .and. says(errmsg, "gave no output"), "no output")
    is_to_miss = .false.
    call graph%run(input, output, stat, errmsg)
    call check_ok(stat, errmsg)
    call neml2_operator_unregister(schema, stat, errmsg)
    call check_ok(stat, errmsg)
    call graph%run(input, output, stat, errmsg)
    call check(stat == neml2_error_unsupported .and. says(errmsg, "was unregistered"), "no operator any more")
    call input(1)%free()
    call output(1)%free()
    call graph%free()
  end subroutine a_package_calls_the_subroutine
end program test_operators
