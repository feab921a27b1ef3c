! The Fortran face of neml2_capi, written over the C ABI of neml2_capi.h alone: read its introduction and its
! conventions first. What differs here:
!
! Source    Compile this file with your program: module files fit one compiler only.
! Status    Every procedure that can fail has `stat`: 0 is success, positive is recoverable (some points failed: cut
!           the step and try again), negative is fatal. `errmsg`, where given, receives the message, and is empty on
!           success. Nothing here stops the program.
! Arrays    C's (n, 6) is Fortran's (6, n): the same memory, never copied. Shapes are given in Fortran's order, and
!           variables and options are counted from 1.
! Binding   An array that is bound must have the TARGET attribute, be contiguous, and stay where it is until the last
!           run. A section with a stride, state(1:6, :), is refused by the compiler: bind `state` with `first=1`.
!           How many points an array holds is remembered: a run of more is neml2_error_shape, and touches nothing.
! Tensors   Evaluation with tensors is for arrays of batches, and for all derivatives at once; a finite-element host
!           needs only a neml2_call. An array that is wrapped is used where it is, and a result is read where it is.
! Handles   Objects of all types are freed with their last copy: `b = a` makes another name for the same object. The
!           copies are counted without a lock: make and drop them on one thread. A thread needs a call of its own, and
!           no copy of the model. In types of yours, hold them by pointer or assign them one by one
!           (`b%model = a%model`): in `b = a` gfortran 12 finalizes a component once too often.
! Not here  Of the C header: graphs, tensors of other memory layouts, the list of the options, and the element types of
!           models and variables. What is bound or wrapped is real64.
module neml2_capi
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_int32_t, c_int64_t, c_loc, &
                                         c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  implicit none(type, external)
  private

  public :: neml2_model, neml2_call, neml2_tensor, neml2_report, neml2_solve
  public :: neml2_abi_version, neml2_version, neml2_error_message, neml2_error_subject, neml2_artifact_describe

  integer(int32), parameter, public :: neml2_ok = 0
  integer(int32), parameter, public :: neml2_non_finite = 1
  integer(int32), parameter, public :: neml2_not_converged = 2
  integer(int32), parameter, public :: neml2_singular = 3
  integer(int32), parameter, public :: neml2_error_argument = -1
  integer(int32), parameter, public :: neml2_error_name = -2
  integer(int32), parameter, public :: neml2_error_missing = -3
  integer(int32), parameter, public :: neml2_error_shape = -4
  integer(int32), parameter, public :: neml2_error_dtype = -5
  integer(int32), parameter, public :: neml2_error_file = -6
  integer(int32), parameter, public :: neml2_error_artifact = -7
  integer(int32), parameter, public :: neml2_error_unsupported = -8
  integer(int32), parameter, public :: neml2_error_runtime = -9
  integer(int32), parameter, public :: neml2_error_memory = -10
  integer(int32), parameter, public :: neml2_error_internal = -11

  integer(int32), parameter, public :: neml2_input = 0
  integer(int32), parameter, public :: neml2_output = 1
  integer(int32), parameter, public :: neml2_parameter = 2
  integer(int32), parameter, public :: neml2_unknown = 3

  integer(int32), parameter, public :: neml2_report_status = 0
  integer(int32), parameter, public :: neml2_report_iterations = 1
  integer(int32), parameter, public :: neml2_report_residual_norm = 2
  integer(int32), parameter, public :: neml2_report_residual_history = 3
  integer(int32), parameter, public :: neml2_report_suggested_cut = 4

  integer(int32), parameter, public :: neml2_output_first = 0
  integer(int32), parameter, public :: neml2_input_first = 1

  integer(int32), parameter :: float64 = 1
  integer(int32), parameter :: int32_values = 4

  ! What an array can be bound as: a variable of one of the kinds above, or one of these.
  integer(int32), parameter :: report = 3
  integer(int32), parameter :: tangent = 4
  integer(int32), parameter :: cotangent = 5
  integer(int32), parameter :: jvp = 6
  integer(int32), parameter :: adjoint = 7
  integer(int32), parameter :: parameter_adjoint = 8
  integer(int32), parameter :: derivative = 9
  integer(int32), parameter :: parameter_derivative = 10

  ! As messages name them.
  character(*), parameter :: role_names(neml2_input:parameter_derivative) = &
    [character(12) :: "input", "output", "parameter", "report", "tangent of", "cotangent of", "jvp of", "adjoint of", &
                      "adjoint of", "derivative", "derivative"]
  ! The arrays of a report, in the order of their kinds.
  character(*), parameter :: report_names(neml2_report_status:neml2_report_suggested_cut) = &
    [character(16) :: "status", "iterations", "residual norm", "residual history", "suggested cut"]

  ! What a call knows of an array that it can bind: the values of one point, and the points that it holds. A derivative
  ! has the name "output:variable".
  type :: extent
    integer(int32) :: role
    character(:), allocatable :: name
    integer(int64) :: point_size = 1
    integer(int64) :: points = huge(0_int64) ! no limit before an array is bound
  end type extent

  ! A handle of the C library, the number of Fortran objects that refer to it and, of a call, all that can be bound.
  type :: shared_handle
    type(c_ptr) :: c = c_null_ptr
    integer :: uses = 1
    type(extent), allocatable :: extents(:)
    type(c_ptr) :: system = c_null_ptr ! of a solve, the current one
  end type shared_handle

  ! A compiled material model. Any number of threads may evaluate it at once.
  type :: neml2_model
    private
    type(shared_handle), pointer :: shared => null()
  contains
    procedure :: load => model_load
    procedure :: load_stub => model_load_stub
    procedure :: is_loaded => model_is_loaded
    procedure :: variable_count => model_variable_count
    procedure :: variable_find => model_variable_find
    procedure :: variable_name => model_variable_name
    procedure :: variable_shape => model_variable_shape
    procedure :: derivative_count => model_derivative_count
    procedure :: derivative_info => model_derivative_info
    procedure :: history_count => model_history_count
    procedure :: history_info => model_history_info
    procedure :: describe => model_describe
    procedure :: forward => model_forward
    procedure :: jvp => model_jvp
    procedure :: vjp => model_vjp
    procedure :: jacobian => model_jacobian
    procedure :: param_jacobian => model_param_jacobian
    procedure :: param_vjp => model_param_vjp
    procedure :: get_parameter => model_get_parameter
    generic :: set_parameter => set_parameter_0, set_parameter_1, set_parameter_2, set_parameter_3
    generic :: set_option => set_option_number, set_option_text
    generic :: get_option => get_option_number, get_option_text
    procedure :: free => model_free
    generic :: assignment(=) => model_assign
    procedure, private :: set_parameter_0, set_parameter_1, set_parameter_2, set_parameter_3
    procedure, private :: set_option_number, set_option_text, get_option_number, get_option_text
    procedure, private :: model_assign
    final :: model_final
  end type neml2_model

  ! An array of any rank: of the host, wrapped without a copy, or a result.
  type :: neml2_tensor
    private
    type(shared_handle), pointer :: shared => null()
  contains
    generic :: wrap => wrap_0, wrap_1, wrap_2, wrap_3
    procedure :: is_set => tensor_is_set
    procedure :: shape => tensor_shape
    generic :: values => values_real64, values_int32
    procedure :: free => tensor_free
    generic :: assignment(=) => tensor_assign
    procedure, private :: wrap_0, wrap_1, wrap_2, wrap_3
    procedure, private :: values_real64, values_int32
    procedure, private :: tensor_assign
    final :: tensor_final
  end type neml2_tensor

  ! The report of one evaluation with tensors.
  type :: neml2_report
    private
    type(shared_handle), pointer :: shared => null()
  contains
    procedure :: get => report_get
    procedure :: unknown => report_unknown
    procedure :: free => report_free
    generic :: assignment(=) => report_assign
    procedure, private :: report_assign
    final :: report_final
  end type neml2_report

  ! Arrays of the host, bound to the variables of a model by name; one per thread. It keeps the model alive.
  !
  ! An array of a variable or a derivative has any rank up to 3. `stride` is the distance from one point to the next in
  ! elements: the product of all extents but the last unless it is given, 0 for a scalar, which is one value for all
  ! points, or of an adjoint their sum. `first` is the position in the array, counted from 1, of the first value: with
  ! it, variables interleave in one array of state.
  type :: neml2_call
    private
    type(shared_handle), pointer :: shared => null()
  contains
    procedure :: create => call_create
    generic :: bind_input => bind_input_0, bind_input_1, bind_input_2, bind_input_3
    generic :: bind_output => bind_output_1, bind_output_2, bind_output_3
    generic :: bind_parameter => bind_parameter_0, bind_parameter_1, bind_parameter_2, bind_parameter_3
    generic :: bind_tangent => bind_tangent_0, bind_tangent_1, bind_tangent_2, bind_tangent_3
    generic :: bind_jvp => bind_jvp_1, bind_jvp_2, bind_jvp_3
    generic :: bind_cotangent => bind_cotangent_0, bind_cotangent_1, bind_cotangent_2, bind_cotangent_3
    generic :: bind_derivative => bind_derivative_1, bind_derivative_2, bind_derivative_3
    generic :: bind_adjoint => bind_adjoint_0, bind_adjoint_1, bind_adjoint_2, bind_adjoint_3
    procedure :: set_block_order => call_set_block_order
    procedure :: bind_status => call_bind_status
    procedure :: bind_iterations => call_bind_iterations
    procedure :: bind_residual_norm => call_bind_residual_norm
    procedure :: bind_residual_history => call_bind_residual_history
    procedure :: bind_suggested_cut => call_bind_suggested_cut
    generic :: run => run_int32, run_int64
    procedure :: free => call_free
    generic :: assignment(=) => call_assign
    procedure, private :: bind_input_0, bind_input_1, bind_input_2, bind_input_3
    procedure, private :: bind_output_1, bind_output_2, bind_output_3
    procedure, private :: bind_parameter_0, bind_parameter_1, bind_parameter_2, bind_parameter_3
    procedure, private :: bind_tangent_0, bind_tangent_1, bind_tangent_2, bind_tangent_3
    procedure, private :: bind_jvp_1, bind_jvp_2, bind_jvp_3
    procedure, private :: bind_cotangent_0, bind_cotangent_1, bind_cotangent_2, bind_cotangent_3
    procedure, private :: bind_derivative_1, bind_derivative_2, bind_derivative_3
    procedure, private :: bind_adjoint_0, bind_adjoint_1, bind_adjoint_2, bind_adjoint_3
    procedure, private :: run_int32, run_int64
    procedure, private :: call_assign
    final :: call_final
  end type neml2_call

  ! An evaluation of a call whose nonlinear systems r(u) = 0 you solve, one implicit segment after another:
  !
  !     call solve%begin(evaluation, npoints, stat)
  !     do
  !       call solve%next(more, stat)
  !       if (.not. more) exit
  !       call solve%guess(u, stat)
  !       ... u = u + du, with du from solve%step(u, du, stat), until solve%residual(u, r, stat) is small
  !       call solve%accept(u, stat)
  !     end do
  !     call solve%finish(stat)
  !
  ! Vectors are arrays (n, npoints), with n from `size`. Inputs are copied at the beginning; all other arrays that are
  ! bound in the call are read and written at the end, and must stay until then. In neml2_capi.h see "Solving yourself".
  type :: neml2_solve
    private
    type(shared_handle), pointer :: shared => null()
  contains
    generic :: begin => begin_int32, begin_int64
    procedure :: next => solve_next
    procedure :: size => solve_size
    procedure :: layout => solve_layout
    procedure :: guess => solve_guess
    procedure :: residual => solve_residual
    procedure :: step => solve_step
    procedure :: jacobian => solve_jacobian
    procedure :: matvec => solve_matvec
    procedure :: accept => solve_accept
    procedure :: finish => solve_finish
    procedure :: free => solve_free
    generic :: assignment(=) => solve_assign
    procedure, private :: begin_int32, begin_int64
    procedure, private :: solve_assign
    final :: solve_final
  end type neml2_solve

  interface
    ! The ABI of the library that is loaded: 1000 * major + minor.
    function neml2_abi_version() bind(c, name="neml2_abi_version") result(version)
      import :: c_int32_t
      integer(c_int32_t) :: version
    end function

    function c_version() bind(c, name="neml2_version") result(text)
      import :: c_ptr
      type(c_ptr) :: text
    end function

    function c_error_message(buffer, capacity, needed) bind(c, name="neml2_error_message") result(stat)
      import :: c_char, c_int32_t, c_int64_t
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: needed
      integer(c_int32_t) :: stat
    end function

    function c_error_subject(buffer, capacity, needed) bind(c, name="neml2_error_subject") result(stat)
      import :: c_char, c_int32_t, c_int64_t
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(out) :: needed
      integer(c_int32_t) :: stat
    end function

    function c_tensor_wrap(out, data, dtype, ndim, shape, strides, deleter, context) &
      bind(c, name="neml2_tensor_wrap") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: data
      integer(c_int32_t), value :: dtype
      integer(c_int64_t), value :: ndim
      integer(c_int64_t), intent(in) :: shape(*)
      type(c_ptr), value :: strides, deleter, context
      integer(c_int32_t) :: stat
    end function

    function c_tensor_shape(ndim, shape, strides, tensor) bind(c, name="neml2_tensor_shape") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(out) :: ndim
      type(c_ptr), intent(out) :: shape
      type(c_ptr), value :: strides, tensor
      integer(c_int32_t) :: stat
    end function

    function c_tensor_dtype(out, tensor) bind(c, name="neml2_tensor_dtype") result(stat)
      import :: c_int32_t, c_ptr
      integer(c_int32_t), intent(out) :: out
      type(c_ptr), value :: tensor
      integer(c_int32_t) :: stat
    end function

    function c_tensor_data(out, tensor) bind(c, name="neml2_tensor_data") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), intent(out) :: out
      type(c_ptr), value :: tensor
      integer(c_int32_t) :: stat
    end function

    subroutine c_tensor_free(tensor) bind(c, name="neml2_tensor_free")
      import :: c_ptr
      type(c_ptr), intent(inout) :: tensor
    end subroutine

    function c_model_load(out, path, device, dtype) bind(c, name="neml2_model_load") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      character(kind=c_char), intent(in) :: path(*)
      character(kind=c_char), intent(in), optional :: device(*), dtype(*)
      integer(c_int32_t) :: stat
    end function

    function c_model_load_stub(out, stub, name, device, dtype) bind(c, name="neml2_model_load_stub") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      character(kind=c_char), intent(in) :: stub(*), name(*)
      character(kind=c_char), intent(in), optional :: device(*), dtype(*)
      integer(c_int32_t) :: stat
    end function

    function c_model_variable_count(out, model, kind) bind(c, name="neml2_model_variable_count") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: out
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      integer(c_int32_t) :: stat
    end function

    function c_model_variable_find(index, model, kind, name) bind(c, name="neml2_model_variable_find") result(stat)
      import :: c_char, c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: index
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t) :: stat
    end function

    function c_model_variable_name(name, type, model, kind, index) bind(c, name="neml2_model_variable_name") &
      result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(inout) :: name, type
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    function c_model_variable_shape(ndim, shape, sub_ndim, model, kind, index) &
      bind(c, name="neml2_model_variable_shape") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: ndim
      type(c_ptr), intent(inout) :: shape
      integer(c_int64_t), intent(inout) :: sub_ndim
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    function c_model_derivative_count(out, model, kind) bind(c, name="neml2_model_derivative_count") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: out
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      integer(c_int32_t) :: stat
    end function

    function c_model_derivative_info(output, variable, batched, ndim, shape, model, kind, index) &
      bind(c, name="neml2_model_derivative_info") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: output, variable
      integer(c_int32_t), intent(inout) :: batched
      integer(c_int64_t), intent(inout) :: ndim
      type(c_ptr), intent(inout) :: shape
      type(c_ptr), value :: model
      integer(c_int32_t), value :: kind
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    function c_model_history_count(out, model) bind(c, name="neml2_model_history_count") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: out
      type(c_ptr), value :: model
      integer(c_int32_t) :: stat
    end function

    function c_model_history_info(input, age, output, current, model, index) &
      bind(c, name="neml2_model_history_info") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: input, age, output, current
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    function c_model_describe(buffer, capacity, needed, model) bind(c, name="neml2_model_describe") result(stat)
      import :: c_char, c_int32_t, c_int64_t, c_ptr
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(inout) :: needed
      type(c_ptr), value :: model
      integer(c_int32_t) :: stat
    end function

    function c_artifact_describe(buffer, capacity, needed, path, device, dtype) &
      bind(c, name="neml2_artifact_describe") result(stat)
      import :: c_char, c_int32_t, c_int64_t
      character(kind=c_char), intent(inout) :: buffer(*)
      integer(c_int64_t), value :: capacity
      integer(c_int64_t), intent(inout) :: needed
      character(kind=c_char), intent(in) :: path(*), device(*), dtype(*)
      integer(c_int32_t) :: stat
    end function

    function c_model_parameter_get(out, model, name) bind(c, name="neml2_model_parameter_get") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t) :: stat
    end function

    function c_model_parameter_set(model, name, value) bind(c, name="neml2_model_parameter_set") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: value
      integer(c_int32_t) :: stat
    end function

    subroutine c_model_free(model) bind(c, name="neml2_model_free")
      import :: c_ptr
      type(c_ptr), intent(inout) :: model
    end subroutine

    function c_option_set_number(model, name, value) bind(c, name="neml2_model_option_set_number") result(stat)
      import :: c_char, c_double, c_int32_t, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*)
      real(c_double), value :: value
      integer(c_int32_t) :: stat
    end function

    function c_option_get_number(out, model, name) bind(c, name="neml2_model_option_get_number") result(stat)
      import :: c_char, c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t) :: stat
    end function

    function c_option_set_text(model, name, value) bind(c, name="neml2_model_option_set_text") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*), value(*)
      integer(c_int32_t) :: stat
    end function

    function c_option_get_text(out, model, name) bind(c, name="neml2_model_option_get_text") result(stat)
      import :: c_char, c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int32_t) :: stat
    end function

    function c_call_create(out, model) bind(c, name="neml2_call_create") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: model
      integer(c_int32_t) :: stat
    end function

    function c_call_bind_derivative(call, output, kind, variable, data, dtype, point_stride) &
      bind(c, name="neml2_call_bind_derivative") result(stat)
      import :: c_char, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: call
      character(kind=c_char), intent(in) :: output(*)
      integer(c_int32_t), value :: kind
      character(kind=c_char), intent(in) :: variable(*)
      type(c_ptr), value :: data
      integer(c_int32_t), value :: dtype
      integer(c_int64_t), value :: point_stride
      integer(c_int32_t) :: stat
    end function

    function c_call_bind_adjoint(call, kind, variable, data, dtype, point_stride) &
      bind(c, name="neml2_call_bind_adjoint") result(stat)
      import :: c_char, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: call
      integer(c_int32_t), value :: kind
      character(kind=c_char), intent(in) :: variable(*)
      type(c_ptr), value :: data
      integer(c_int32_t), value :: dtype
      integer(c_int64_t), value :: point_stride
      integer(c_int32_t) :: stat
    end function

    function c_call_set_block_order(call, order) bind(c, name="neml2_call_set_block_order") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: call
      integer(c_int32_t), value :: order
      integer(c_int32_t) :: stat
    end function

    function c_call_bind_report(call, kind, data, point_stride) bind(c, name="neml2_call_bind_report") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: call
      integer(c_int32_t), value :: kind
      type(c_ptr), value :: data
      integer(c_int64_t), value :: point_stride
      integer(c_int32_t) :: stat
    end function

    function c_call_run(call, npoints) bind(c, name="neml2_call_run") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: call
      integer(c_int64_t), value :: npoints
      integer(c_int32_t) :: stat
    end function

    subroutine c_call_free(call) bind(c, name="neml2_call_free")
      import :: c_ptr
      type(c_ptr), intent(inout) :: call
    end subroutine

    function c_report_get(out, report, kind) bind(c, name="neml2_report_get") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: report
      integer(c_int32_t), value :: kind
      integer(c_int32_t) :: stat
    end function

    function c_report_unknown(out, report, index) bind(c, name="neml2_report_unknown") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: report
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    subroutine c_report_free(report) bind(c, name="neml2_report_free")
      import :: c_ptr
      type(c_ptr), intent(inout) :: report
    end subroutine

    function c_model_forward(outputs, report, model, inputs, parameters) bind(c, name="neml2_model_forward") &
      result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: outputs, report, model, inputs, parameters
      integer(c_int32_t) :: stat
    end function

    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  ! The functions that bind an array by the name of one variable have one signature.
  abstract interface
    function c_call_bind(call, name, data, dtype, point_stride) bind(c) result(stat)
      import :: c_char, c_int32_t, c_int64_t, c_ptr
      type(c_ptr), value :: call
      character(kind=c_char), intent(in) :: name(*)
      type(c_ptr), value :: data
      integer(c_int32_t), value :: dtype
      integer(c_int64_t), value :: point_stride
      integer(c_int32_t) :: stat
    end function
  end interface
  procedure(c_call_bind), bind(c, name="neml2_call_bind_input") :: c_call_bind_input
  procedure(c_call_bind), bind(c, name="neml2_call_bind_output") :: c_call_bind_output
  procedure(c_call_bind), bind(c, name="neml2_call_bind_parameter") :: c_call_bind_parameter
  procedure(c_call_bind), bind(c, name="neml2_call_bind_tangent") :: c_call_bind_tangent
  procedure(c_call_bind), bind(c, name="neml2_call_bind_jvp") :: c_call_bind_jvp
  procedure(c_call_bind), bind(c, name="neml2_call_bind_cotangent") :: c_call_bind_cotangent

  interface
    function c_solve_begin_call(out, call, npoints) bind(c, name="neml2_solve_begin_call") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      type(c_ptr), intent(inout) :: out
      type(c_ptr), value :: call
      integer(c_int64_t), value :: npoints
      integer(c_int32_t) :: stat
    end function

    function c_solve_next(system, solve) bind(c, name="neml2_solve_next") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), intent(inout) :: system
      type(c_ptr), value :: solve
      integer(c_int32_t) :: stat
    end function

    function c_solve_end(outputs, report, solve) bind(c, name="neml2_solve_end") result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: outputs, report
      type(c_ptr), intent(inout) :: solve
      integer(c_int32_t) :: stat
    end function

    subroutine c_solve_free(solve) bind(c, name="neml2_solve_free")
      import :: c_ptr
      type(c_ptr), intent(inout) :: solve
    end subroutine

    function c_system_size(npoints, n, nunknowns, system) bind(c, name="neml2_system_size") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: npoints, n, nunknowns
      type(c_ptr), value :: system
      integer(c_int32_t) :: stat
    end function

    function c_system_layout(unknown, offset, pieces, piece_stride, piece_size, system, index) &
      bind(c, name="neml2_system_layout") result(stat)
      import :: c_int32_t, c_int64_t, c_ptr
      integer(c_int64_t), intent(inout) :: unknown, offset, pieces, piece_stride, piece_size
      type(c_ptr), value :: system
      integer(c_int64_t), value :: index
      integer(c_int32_t) :: stat
    end function

    function c_system_guess(u, system) bind(c, name="neml2_system_guess") result(stat)
      import :: c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: u(*)
      type(c_ptr), value :: system
      integer(c_int32_t) :: stat
    end function

    function c_system_residual(r, system, u) bind(c, name="neml2_system_residual") result(stat)
      import :: c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: r(*)
      type(c_ptr), value :: system
      real(c_double), intent(in) :: u(*)
      integer(c_int32_t) :: stat
    end function

    function c_system_step(du, singular, system, u) bind(c, name="neml2_system_step") result(stat)
      import :: c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: du(*)
      integer(c_int32_t), intent(inout), optional :: singular(*)
      type(c_ptr), value :: system
      real(c_double), intent(in) :: u(*)
      integer(c_int32_t) :: stat
    end function

    function c_system_jacobian(a, system, u) bind(c, name="neml2_system_jacobian") result(stat)
      import :: c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: a(*)
      type(c_ptr), value :: system
      real(c_double), intent(in) :: u(*)
      integer(c_int32_t) :: stat
    end function

    function c_system_matvec(y, system, u, v) bind(c, name="neml2_system_matvec") result(stat)
      import :: c_double, c_int32_t, c_ptr
      real(c_double), intent(inout) :: y(*)
      type(c_ptr), value :: system
      real(c_double), intent(in) :: u(*), v(*)
      integer(c_int32_t) :: stat
    end function

    function c_system_accept(system, u, status, iterations) bind(c, name="neml2_system_accept") result(stat)
      import :: c_double, c_int32_t, c_ptr
      type(c_ptr), value :: system
      real(c_double), intent(in) :: u(*)
      integer(c_int32_t), intent(in), optional :: status(*), iterations(*)
      integer(c_int32_t) :: stat
    end function
  end interface

  ! The functions that differentiate have one of two signatures.
  abstract interface
    function c_jacobian(outputs, blocks, report, model, inputs, parameters) bind(c) result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: outputs, blocks, report, model, inputs, parameters
      integer(c_int32_t) :: stat
    end function

    function c_product(outputs, products, report, model, inputs, directions, parameters) bind(c) result(stat)
      import :: c_int32_t, c_ptr
      type(c_ptr), value :: outputs, products, report, model, inputs, directions, parameters
      integer(c_int32_t) :: stat
    end function
  end interface
  procedure(c_jacobian), bind(c, name="neml2_model_jacobian") :: c_model_jacobian
  procedure(c_jacobian), bind(c, name="neml2_model_param_jacobian") :: c_model_param_jacobian
  procedure(c_product), bind(c, name="neml2_model_jvp") :: c_model_jvp
  procedure(c_product), bind(c, name="neml2_model_vjp") :: c_model_vjp
  procedure(c_product), bind(c, name="neml2_model_param_vjp") :: c_model_param_vjp

  ! What values() points to where there are none.
  real(real64), target :: no_real64(0)
  integer(int32), target :: no_int32(0)

contains

  ! ------------------------------------------------------------------------------------------
  ! Version and errors
  ! ------------------------------------------------------------------------------------------

  ! The release of the library, for example "0.1.0".
  function neml2_version() result(version)
    character(:), allocatable :: version
    version = text_at(c_version())
  end function neml2_version

  ! The message of this thread's last failed call of the library: what was wrong, what was expected and what to do. Of
  ! an array that is too short, which is found here, only errmsg tells.
  subroutine neml2_error_message(message)
    character(:), allocatable, intent(out) :: message
    call read_error(c_error_message, message)
  end subroutine neml2_error_message

  ! The name of the variable, parameter, option, segment or file that the last error is about; empty where there is
  ! none.
  subroutine neml2_error_subject(subject)
    character(:), allocatable, intent(out) :: subject
    call read_error(c_error_subject, subject)
  end subroutine neml2_error_subject

  ! ------------------------------------------------------------------------------------------
  ! Models
  ! ------------------------------------------------------------------------------------------

  ! Load the artifact at `path`, the folder that holds metadata.json. `device` is "cpu" and `dtype` is "float64" unless
  ! given. What was loaded before is replaced on success and kept on failure.
  subroutine model_load(self, path, stat, device, dtype, errmsg)
    class(neml2_model), intent(inout) :: self
    character(*), intent(in) :: path
    integer(int32), intent(out) :: stat
    character(*), intent(in), optional :: device, dtype
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: loaded
    loaded = c_null_ptr
    stat = c_model_load(loaded, c_text(path), c_text(device, "cpu"), c_text(dtype, "float64"))
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat == neml2_ok) call model_take(self, loaded)
  end subroutine model_load

  ! Load the model `name` of a HIT stub, the <name>_aoti.i file that neml2-compile writes beside an artifact.
  subroutine model_load_stub(self, stub, name, stat, device, dtype, errmsg)
    class(neml2_model), intent(inout) :: self
    character(*), intent(in) :: stub, name
    integer(int32), intent(out) :: stat
    character(*), intent(in), optional :: device, dtype
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: loaded
    loaded = c_null_ptr
    stat = c_model_load_stub(loaded, c_text(stub), c_text(name), c_text(device, "cpu"), c_text(dtype, "float64"))
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat == neml2_ok) call model_take(self, loaded)
  end subroutine model_load_stub

  ! Whether a model has been loaded, and not been freed.
  pure logical function model_is_loaded(self)
    class(neml2_model), intent(in) :: self
    model_is_loaded = associated(self%shared)
  end function model_is_loaded

  ! How many variables of a kind (neml2_input, neml2_output, neml2_parameter, neml2_unknown) there are.
  subroutine model_variable_count(self, kind, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(out) :: count
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    count = 0
    stat = c_model_variable_count(count, c_handle(self%shared), kind)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_variable_count

  ! The position of a variable among its kind, counted from 1; 0 where there is none of this name.
  subroutine model_variable_find(self, kind, name, index, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    character(*), intent(in) :: name
    integer(int64), intent(out) :: index
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    index = -1
    stat = c_model_variable_find(index, c_handle(self%shared), kind, c_text(name))
    index = index + 1
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_variable_find

  ! The name of a variable, counted from 1, and its mathematical type as NEML2 names it ("SR2", "Scalar").
  subroutine model_variable_name(self, kind, index, name, stat, type, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(out) :: name
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: type, errmsg
    type(c_ptr) :: name_text, type_text
    name_text = c_null_ptr
    type_text = c_null_ptr
    stat = c_model_variable_name(name_text, type_text, c_handle(self%shared), kind, index - 1)
    name = text_at(name_text)
    if (present(type)) type = text_at(type_text)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_variable_name

  ! The shape of a variable at one point, in Fortran's order; empty for a scalar.
  subroutine model_variable_shape(self, kind, index, shape, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    integer(int64), allocatable, intent(out) :: shape(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int64) :: ndim, sub_ndim
    type(c_ptr) :: sizes
    ndim = 0
    sub_ndim = 0
    sizes = c_null_ptr
    stat = c_model_variable_shape(ndim, sizes, sub_ndim, c_handle(self%shared), kind, index - 1)
    shape = reversed(sizes, ndim)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_variable_shape

  ! How many derivatives were compiled with respect to inputs (kind neml2_input) or parameters (neml2_parameter).
  subroutine model_derivative_count(self, kind, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(out) :: count
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    count = 0
    stat = c_model_derivative_count(count, c_handle(self%shared), kind)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_derivative_count

  ! The positions of the output and the variable of a derivative, all counted from 1; the shape of its block at one
  ! point, in Fortran's order: (variable..., output...); and whether each point has its own, else one is that of all.
  subroutine model_derivative_info(self, kind, index, output, variable, stat, shape, batched, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    integer(int64), intent(out) :: output, variable
    integer(int32), intent(out) :: stat
    integer(int64), allocatable, intent(out), optional :: shape(:)
    logical, intent(out), optional :: batched
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int64) :: ndim
    integer(int32) :: own
    type(c_ptr) :: sizes
    output = -1
    variable = -1
    own = 0
    ndim = 0
    sizes = c_null_ptr
    stat = c_model_derivative_info(output, variable, own, ndim, sizes, c_handle(self%shared), kind, index - 1)
    output = output + 1
    variable = variable + 1
    if (present(shape)) shape = reversed(sizes, ndim)
    if (present(batched)) batched = own /= 0
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_derivative_info

  ! How many inputs are history: x~1, x~2 and so on, the values of x one and two steps before.
  subroutine model_history_count(self, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(out) :: count
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    count = 0
    stat = c_model_history_count(count, c_handle(self%shared))
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_history_count

  ! The positions of an input x~age, and of the output x or the input x that it becomes; 0 where there is none.
  subroutine model_history_info(self, index, input, stat, age, output, current, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(out) :: input
    integer(int32), intent(out) :: stat
    integer(int64), intent(out), optional :: age, output, current
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int64) :: positions(3), steps
    positions = -1
    steps = 0
    stat = c_model_history_info(positions(1), steps, positions(2), positions(3), c_handle(self%shared), index - 1)
    input = positions(1) + 1
    if (present(age)) age = steps
    if (present(output)) output = positions(2) + 1
    if (present(current)) current = positions(3) + 1
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_history_info

  ! What the model holds, as a JSON document.
  subroutine model_describe(self, text, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(:), allocatable, intent(out) :: text
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: needed
    needed = 1
    stat = c_model_describe(nothing, 0_int64, needed, c_handle(self%shared))
    allocate (character(kind=c_char, len=needed) :: buffer)
    if (stat == neml2_ok) stat = c_model_describe(buffer, needed, needed, c_handle(self%shared))
    text = buffer(:len(buffer) - 1)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine model_describe

  ! The same of the artifact at `path`, of which no package is loaded.
  subroutine neml2_artifact_describe(path, text, stat, device, dtype, errmsg)
    character(*), intent(in) :: path
    character(:), allocatable, intent(out) :: text
    integer(int32), intent(out) :: stat
    character(*), intent(in), optional :: device, dtype
    character(:), allocatable, intent(out), optional :: errmsg
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer, c_path, c_device, c_dtype
    integer(int64) :: needed
    needed = 1
    c_path = c_text(path)
    c_device = c_text(device, "cpu")
    c_dtype = c_text(dtype, "float64")
    stat = c_artifact_describe(nothing, 0_int64, needed, c_path, c_device, c_dtype)
    allocate (character(kind=c_char, len=needed) :: buffer)
    if (stat == neml2_ok) stat = c_artifact_describe(buffer, needed, needed, c_path, c_device, c_dtype)
    text = buffer(:len(buffer) - 1)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine neml2_artifact_describe

  ! The stored value of a parameter, in the order of memory; `shape`, in Fortran's order, is empty for a scalar.
  subroutine model_get_parameter(self, name, values, stat, shape, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), allocatable, intent(out) :: values(:)
    integer(int32), intent(out) :: stat
    integer(int64), allocatable, intent(out), optional :: shape(:)
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: tensor, data, sizes
    integer(int64) :: ndim
    integer(int32) :: dtype
    real(real64), pointer :: view(:)

    tensor = c_null_ptr
    allocate (values(0))
    if (present(shape)) allocate (shape(0))
    stat = c_model_parameter_get(tensor, c_handle(self%shared), c_text(name))
    if (stat == neml2_ok) stat = c_tensor_dtype(dtype, tensor)
    if (stat == neml2_ok) stat = c_tensor_shape(ndim, sizes, c_null_ptr, tensor)
    if (stat == neml2_ok) stat = c_tensor_data(data, tensor)
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat == neml2_ok .and. dtype /= float64) then
      stat = neml2_error_dtype
      if (present(errmsg)) errmsg = "parameter '"//trim(name)//"' is not of type float64"
    end if
    if (stat == neml2_ok) then
      associate (extents => reversed(sizes, ndim))
        if (product(extents) > 0) then
          call c_f_pointer(data, view, [product(extents)])
          values = view
        end if
        if (present(shape)) shape = extents
      end associate
    end if
    call c_tensor_free(tensor)
  end subroutine model_get_parameter

  subroutine set_parameter_0(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), target :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call set_parameter(self, name, c_loc(value), [integer(int64) ::], stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine set_parameter_0

  subroutine set_parameter_1(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), target, contiguous :: value(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call set_parameter(self, name, c_loc(value), shape(value, int64), stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine set_parameter_1

  subroutine set_parameter_2(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), target, contiguous :: value(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call set_parameter(self, name, c_loc(value), shape(value, int64), stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine set_parameter_2

  subroutine set_parameter_3(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), target, contiguous :: value(:, :, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call set_parameter(self, name, c_loc(value), shape(value, int64), stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine set_parameter_3

  ! Replace the stored value of a parameter by a copy of `value`: its base shape, or that followed by an extent for the
  ! points, one value each.
  subroutine set_parameter(self, name, value, extents, stat, message)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: value
    integer(int64), intent(in) :: extents(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    type(c_ptr) :: tensor
    integer(int64) :: ndim
    ndim = size(extents)
    tensor = c_null_ptr
    stat = c_tensor_wrap(tensor, value, float64, ndim, extents(ndim:1:-1), c_null_ptr, c_null_ptr, c_null_ptr)
    if (stat == neml2_ok) stat = c_model_parameter_set(c_handle(self%shared), c_text(name), tensor)
    message = message_of(stat)
    call c_tensor_free(tensor)
  end subroutine set_parameter

  subroutine set_option_number(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in) :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    stat = c_option_set_number(c_handle(self%shared), c_text(name), value)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine set_option_number

  subroutine set_option_text(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name, value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    stat = c_option_set_text(c_handle(self%shared), c_text(name), c_text(value))
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine set_option_text

  ! The value of an option is not touched on failure.
  subroutine get_option_number(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(inout) :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    stat = c_option_get_number(value, c_handle(self%shared), c_text(name))
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine get_option_number

  subroutine get_option_text(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    character(:), allocatable, intent(inout) :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: text
    text = c_null_ptr
    stat = c_option_get_text(text, c_handle(self%shared), c_text(name))
    if (stat == neml2_ok) value = text_at(text)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine get_option_text

  ! Drop this reference; the model is freed with the last one. Freeing twice does nothing.
  impure elemental subroutine model_free(self)
    class(neml2_model), intent(inout) :: self
    call release(self%shared, c_model_free)
  end subroutine model_free

  impure elemental subroutine model_final(self)
    type(neml2_model), intent(inout) :: self
    call release(self%shared, c_model_free)
  end subroutine model_final

  impure elemental subroutine model_assign(left, right)
    class(neml2_model), intent(inout) :: left
    class(neml2_model), intent(in) :: right
    if (associated(left%shared, right%shared)) return
    call release(left%shared, c_model_free)
    left%shared => retained(right%shared)
  end subroutine model_assign

  subroutine model_take(self, loaded)
    class(neml2_model), intent(inout) :: self
    type(c_ptr), intent(in) :: loaded
    call release(self%shared, c_model_free)
    allocate (self%shared)
    self%shared%c = loaded
  end subroutine model_take

  ! ------------------------------------------------------------------------------------------
  ! Calls
  ! ------------------------------------------------------------------------------------------

  ! A call of `model` without bindings. What was created before is replaced on success and kept on failure.
  subroutine call_create(self, model, stat, errmsg)
    class(neml2_call), intent(inout) :: self
    class(neml2_model), intent(in) :: model
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: created
    created = c_null_ptr
    stat = c_call_create(created, c_handle(model%shared))
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat /= neml2_ok) return
    call release(self%shared, c_call_free)
    allocate (self%shared)
    self%shared%c = created
    call list_extents(self%shared%extents, model)
  end subroutine call_create

  ! All that a call of `model` can bind. The sizes are kept here because the call may outlive the model.
  subroutine list_extents(extents, model)
    type(extent), allocatable, intent(out) :: extents(:)
    class(neml2_model), intent(in) :: model
    integer(int64) :: variables(neml2_input:neml2_parameter), derivatives(neml2_input:neml2_parameter)
    integer(int32) :: kind, stat
    integer :: k
    derivatives = 0
    do kind = neml2_input, neml2_parameter
      call model%variable_count(kind, variables(kind), stat)
      if (kind /= neml2_output) call model%derivative_count(kind, derivatives(kind), stat)
    end do
    ! Inputs and outputs have values, directions and their images; parameters have values and adjoints.
    allocate (extents(3 * sum(variables(:neml2_output)) + 2 * variables(neml2_parameter) + sum(derivatives) &
                      + size(report_names)))
    k = 0
    call list_variables(neml2_input, [neml2_input, tangent, adjoint])
    call list_variables(neml2_output, [neml2_output, jvp, cotangent])
    call list_variables(neml2_parameter, [neml2_parameter, parameter_adjoint])
    call list_derivatives(neml2_input, derivative)
    call list_derivatives(neml2_parameter, parameter_derivative)
    do kind = neml2_report_status, neml2_report_suggested_cut
      call list(report, trim(report_names(kind)), [integer(int64) ::])
    end do

  contains

    subroutine list(role, name, shape)
      integer(int32), intent(in) :: role
      character(*), intent(in) :: name
      integer(int64), intent(in) :: shape(:)
      k = k + 1
      extents(k)%role = role
      extents(k)%name = name
      extents(k)%point_size = product(shape)
    end subroutine list

    subroutine list_variables(kind, roles)
      integer(int32), intent(in) :: kind, roles(:)
      character(:), allocatable :: name
      integer(int64), allocatable :: shape(:)
      integer(int64) :: i
      integer :: r
      do i = 1, variables(kind)
        call model%variable_name(kind, i, name, stat)
        call model%variable_shape(kind, i, shape, stat)
        do r = 1, size(roles)
          call list(roles(r), name, shape)
        end do
      end do
    end subroutine list_variables

    subroutine list_derivatives(kind, role)
      integer(int32), intent(in) :: kind, role
      character(:), allocatable :: of, by
      integer(int64), allocatable :: shape(:)
      integer(int64) :: i, output, variable
      do i = 1, derivatives(kind)
        call model%derivative_info(kind, i, output, variable, stat, shape)
        call model%variable_name(neml2_output, output, of, stat)
        call model%variable_name(kind, variable, by, stat)
        call list(role, of//":"//by, shape)
      end do
    end subroutine list_derivatives
  end subroutine list_extents

  ! The place of what can be bound in the list of a call; 0 where there is none.
  pure integer function extent_index(shared, role, name) result(k)
    type(shared_handle), pointer, intent(in) :: shared
    integer(int32), intent(in) :: role
    character(*), intent(in) :: name
    if (associated(shared)) then
      do k = 1, size(shared%extents)
        if (shared%extents(k)%role == role .and. shared%extents(k)%name == name) return
      end do
    end if
    k = 0
  end function extent_index

  ! A parameter may go by the last component of its name, where that is unique: its full name, which the list of a call
  ! has. The library refuses a name that is not unique.
  function full_name(shared, name) result(full)
    type(shared_handle), pointer, intent(in) :: shared
    character(*), intent(in) :: name
    character(:), allocatable :: full
    integer :: k
    full = trim(name)
    if (extent_index(shared, neml2_parameter, name) > 0 .or. .not. associated(shared)) return
    do k = 1, size(shared%extents)
      associate (known => shared%extents(k))
        if (known%role /= neml2_parameter) cycle
        if (known%name(index(known%name, ".", back=.true.) + 1:) == name) full = known%name
      end associate
    end do
  end function full_name

  subroutine bind_input_0(self, name, value, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_input, self, name, c_loc(value), 1_int64, 0_int64, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine bind_input_0

  subroutine bind_input_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_input, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_input_1

  subroutine bind_input_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_input, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_input_2

  subroutine bind_input_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_input, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_input_3

  subroutine bind_output_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_output, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_output_1

  subroutine bind_output_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_output, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_output_2

  subroutine bind_output_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_output, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_output_3

  subroutine bind_parameter_0(self, name, value, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_parameter, self, name, c_loc(value), 1_int64, 0_int64, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine bind_parameter_0

  subroutine bind_parameter_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_parameter, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_parameter_1

  subroutine bind_parameter_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_parameter, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_parameter_2

  subroutine bind_parameter_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(neml2_parameter, self, name, c_loc(array), size(array, kind=int64), &
              point_stride(shape(array, int64)), stat, message, stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_parameter_3

  ! The tangent of an input. One that is not bound is zero.
  subroutine bind_tangent_0(self, name, value, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(tangent, self, name, &
              c_loc(value), 1_int64, 0_int64, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine bind_tangent_0

  subroutine bind_tangent_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(tangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_tangent_1

  subroutine bind_tangent_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(tangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_tangent_2

  subroutine bind_tangent_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(tangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_tangent_3

  ! The derivative of an output along the tangents.
  subroutine bind_jvp_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(jvp, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_jvp_1

  subroutine bind_jvp_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(jvp, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_jvp_2

  subroutine bind_jvp_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(jvp, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_jvp_3

  ! The cotangent of an output. One that is not bound is zero.
  subroutine bind_cotangent_0(self, name, value, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(cotangent, self, name, &
              c_loc(value), 1_int64, 0_int64, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine bind_cotangent_0

  subroutine bind_cotangent_1(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(cotangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_cotangent_1

  subroutine bind_cotangent_2(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(cotangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_cotangent_2

  subroutine bind_cotangent_3(self, name, array, stat, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(cotangent, self, name, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_cotangent_3

  ! The derivative of an output with respect to an input or, with `of_parameter`, a parameter. Its array is (variable,
  ! output, point), or (output, variable, point) with the order neml2_input_first.
  subroutine bind_derivative_1(self, output, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: output, variable
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_derivative, derivative, is_true(of_parameter)), self, output, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first, variable=variable)
    if (present(errmsg)) errmsg = message
  end subroutine bind_derivative_1

  subroutine bind_derivative_2(self, output, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: output, variable
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_derivative, derivative, is_true(of_parameter)), self, output, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first, variable=variable)
    if (present(errmsg)) errmsg = message
  end subroutine bind_derivative_2

  subroutine bind_derivative_3(self, output, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: output, variable
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_derivative, derivative, is_true(of_parameter)), self, output, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first, variable=variable)
    if (present(errmsg)) errmsg = message
  end subroutine bind_derivative_3

  ! The adjoint of an input or, with `of_parameter`, a parameter: of each point or, with a stride of 0 or as a scalar,
  ! the sum over all points that did not fail.
  subroutine bind_adjoint_0(self, variable, value, stat, of_parameter, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: variable
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_adjoint, adjoint, is_true(of_parameter)), self, variable, &
              c_loc(value), 1_int64, 0_int64, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine bind_adjoint_0

  subroutine bind_adjoint_1(self, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: variable
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_adjoint, adjoint, is_true(of_parameter)), self, variable, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_adjoint_1

  subroutine bind_adjoint_2(self, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: variable
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_adjoint, adjoint, is_true(of_parameter)), self, variable, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_adjoint_2

  subroutine bind_adjoint_3(self, variable, array, stat, of_parameter, stride, first, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: variable
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call bind(merge(parameter_adjoint, adjoint, is_true(of_parameter)), self, variable, &
              c_loc(array), size(array, kind=int64), point_stride(shape(array, int64)), stat, message, &
              stride, first)
    if (present(errmsg)) errmsg = message
  end subroutine bind_adjoint_3

  ! The order of the components in the blocks of derivatives: neml2_output_first, the default, is (variable, output,
  ! point) here; neml2_input_first is (output, variable, point), the order of DDSDDE.
  subroutine call_set_block_order(self, order, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: order
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    stat = c_call_set_block_order(c_handle(self%shared), order)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_set_block_order

  ! Bind the array that receives what became of each point: neml2_ok, neml2_non_finite, neml2_not_converged or
  ! neml2_singular.
  subroutine call_bind_status(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(neml2_report_status, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_status

  ! Bind the array that receives the Newton steps made at each point.
  subroutine call_bind_iterations(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(neml2_report_iterations, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_iterations

  ! Bind the array that receives the last residual norm of each point.
  subroutine call_bind_residual_norm(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(neml2_report_residual_norm, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_residual_norm

  ! Bind the array that receives the residual norms of each point, (iteration, point), from the initial guess on and NaN
  ! after the last: its first extent is the option miters or more.
  subroutine call_bind_residual_history(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(neml2_report_residual_history, self, c_loc(array), size(array, 2, int64), stat, size(array, 1, int64))
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_residual_history

  ! Bind the array that receives by what to multiply the increment of each point before another try; 1 where it
  ! converged.
  subroutine call_bind_suggested_cut(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(neml2_report_suggested_cut, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_suggested_cut

  subroutine run_int32(self, npoints, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call run(self, int(npoints, int64), stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine run_int32

  ! Evaluate `npoints` material points. `stat` is the greatest status of any point, or an error. The outputs of points
  ! that are neml2_not_converged or neml2_singular are left as they were.
  subroutine run_int64(self, npoints, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call run(self, npoints, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine run_int64

  subroutine run(self, npoints, stat, message)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    call check_points(self, npoints, stat, message)
    if (stat /= neml2_ok) return
    stat = c_call_run(c_handle(self%shared), npoints)
    message = message_of(stat)
  end subroutine run

  ! The library sees no extents: an array that is too short must be found here.
  subroutine check_points(self, npoints, stat, message)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer :: k
    stat = neml2_ok
    message = ""
    if (.not. associated(self%shared)) return
    do k = 1, size(self%shared%extents)
      associate (array => self%shared%extents(k))
        if (array%points >= npoints) cycle
        stat = neml2_error_shape
        message = "The array of "//role_name(array%role)//" '"//array%name//"' holds "//decimal(array%points) &
                  //" points; the run is of "//decimal(npoints)//"."
        return
      end associate
    end do
  end subroutine check_points

  ! Drop this reference; the call is freed with the last one. Freeing twice does nothing.
  impure elemental subroutine call_free(self)
    class(neml2_call), intent(inout) :: self
    call release(self%shared, c_call_free)
  end subroutine call_free

  impure elemental subroutine call_final(self)
    type(neml2_call), intent(inout) :: self
    call release(self%shared, c_call_free)
  end subroutine call_final

  impure elemental subroutine call_assign(left, right)
    class(neml2_call), intent(inout) :: left
    class(neml2_call), intent(in) :: right
    if (associated(left%shared, right%shared)) return
    call release(left%shared, c_call_free)
    left%shared => retained(right%shared)
  end subroutine call_assign

  ! Bind an array by the name of a variable or, for a derivative, of an output and of a variable.
  subroutine bind(role, self, name, array, length, default_stride, stat, message, stride, first, variable)
    integer(int32), intent(in) :: role
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: array
    integer(int64), intent(in) :: length, default_stride
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer, intent(in), optional :: stride, first
    character(*), intent(in), optional :: variable
    character(:), allocatable :: known
    character(kind=c_char, len=:), allocatable :: c_name
    real(real64), pointer :: values(:)
    type(c_ptr) :: start, c
    integer(int64) :: distance, before, points
    integer :: k

    select case (role)
    case (derivative)
      known = trim(name)//":"//trim(variable)
    case (parameter_derivative)
      known = trim(name)//":"//full_name(self%shared, variable)
    case (neml2_parameter, parameter_adjoint)
      known = full_name(self%shared, name)
    case default
      known = trim(name)
    end select

    distance = default_stride
    if (present(stride)) distance = stride
    before = 0
    if (present(first)) before = first - 1_int64
    if (before < 0) then
      stat = neml2_error_argument
      message = "'first' of "//role_name(role)//" '"//known//"' is counted from 1, not "//decimal(before + 1)//"."
      return
    end if

    points = huge(points)
    k = extent_index(self%shared, role, known)
    if (k > 0) points = points_held(length - before, self%shared%extents(k)%point_size, distance)
    ! An empty array is that of a block without points.
    if (points == 0 .and. length > 0) then
      stat = neml2_error_shape
      message = "The array of "//role_name(role)//" '"//known//"' holds not one point: one has " &
                //decimal(self%shared%extents(k)%point_size)//" values, and from 'first' on there are " &
                //decimal(max(length - before, 0_int64))//"."
      return
    end if

    start = array
    if (before > 0 .and. before < length) then
      call c_f_pointer(array, values, [length])
      start = c_loc(values(before + 1))
    end if
    c = c_handle(self%shared)
    c_name = c_text(name)
    select case (role)
    case (neml2_input)
      stat = c_call_bind_input(c, c_name, start, float64, distance)
    case (neml2_output)
      stat = c_call_bind_output(c, c_name, start, float64, distance)
    case (neml2_parameter)
      stat = c_call_bind_parameter(c, c_name, start, float64, distance)
    case (tangent)
      stat = c_call_bind_tangent(c, c_name, start, float64, distance)
    case (cotangent)
      stat = c_call_bind_cotangent(c, c_name, start, float64, distance)
    case (jvp)
      stat = c_call_bind_jvp(c, c_name, start, float64, distance)
    case (adjoint)
      stat = c_call_bind_adjoint(c, neml2_input, c_name, start, float64, distance)
    case (parameter_adjoint)
      stat = c_call_bind_adjoint(c, neml2_parameter, c_name, start, float64, distance)
    case (derivative)
      stat = c_call_bind_derivative(c, c_name, neml2_input, c_text(variable), start, float64, distance)
    case default
      stat = c_call_bind_derivative(c, c_name, neml2_parameter, c_text(variable), start, float64, distance)
    end select
    message = message_of(stat)
    if (stat == neml2_ok .and. k > 0) self%shared%extents(k)%points = points
  end subroutine bind

  subroutine bind_report(kind, self, array, points, stat, stride)
    integer(int32), intent(in) :: kind
    class(neml2_call), intent(in) :: self
    type(c_ptr), intent(in) :: array
    integer(int64), intent(in) :: points
    integer(int32), intent(out) :: stat
    integer(int64), intent(in), optional :: stride
    integer(int64) :: distance
    integer :: k
    distance = 1
    if (present(stride)) distance = stride
    stat = c_call_bind_report(c_handle(self%shared), kind, array, distance)
    k = extent_index(self%shared, report, report_names(kind))
    if (stat == neml2_ok .and. k > 0) self%shared%extents(k)%points = points
  end subroutine bind_report

  ! How many points of `point_size` values lie `stride` apart in `length` values.
  pure integer(int64) function points_held(length, point_size, stride) result(points)
    integer(int64), intent(in) :: length, point_size, stride
    if (length < point_size) then
      points = 0
    else if (stride <= 0) then
      points = huge(points)
    else
      points = 1 + (length - point_size) / stride
    end if
  end function points_held

  pure integer(int64) function point_stride(extents)
    integer(int64), intent(in) :: extents(:)
    point_stride = product(extents(:size(extents) - 1))
  end function point_stride

  ! ------------------------------------------------------------------------------------------
  ! Evaluation with tensors
  !
  ! An array of tensors has one for each input, output, parameter or derivative, in the order of the model; one that is
  ! not set is missing or, of a direction, zero or, of a parameter, the stored value. Shapes are (point shape...,
  ! batch...), and all batches broadcast. What stands in an array of results is replaced, also where points failed,
  ! which are NaN then, and kept where stat is negative.
  ! ------------------------------------------------------------------------------------------

  ! Evaluate a model.
  subroutine model_forward(self, inputs, outputs, stat, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: outputs(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(neml2_output, self, inputs, stat, message, outputs, parameters=parameters, report=report)
    if (present(errmsg)) errmsg = message
  end subroutine model_forward

  ! The derivatives of the outputs along one direction; that of an output without any is not set.
  subroutine model_jvp(self, inputs, tangents, jvps, stat, outputs, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), tangents(:)
    type(neml2_tensor), intent(inout) :: jvps(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(jvp, self, inputs, stat, message, outputs, jvps, tangents, parameters, report)
    if (present(errmsg)) errmsg = message
  end subroutine model_jvp

  ! The transpose of that: the adjoints of the inputs, which have the shapes of the inputs.
  subroutine model_vjp(self, inputs, cotangents, adjoints, stat, outputs, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), cotangents(:)
    type(neml2_tensor), intent(inout) :: adjoints(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(adjoint, self, inputs, stat, message, outputs, adjoints, cotangents, parameters, report)
    if (present(errmsg)) errmsg = message
  end subroutine model_vjp

  ! All derivatives with respect to inputs, of shape (variable..., output..., batch...), without the batch where all
  ! points have the same one.
  subroutine model_jacobian(self, inputs, blocks, stat, outputs, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: blocks(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(derivative, self, inputs, stat, message, outputs, blocks, parameters=parameters, report=report)
    if (present(errmsg)) errmsg = message
  end subroutine model_jacobian

  ! All derivatives with respect to parameters.
  subroutine model_param_jacobian(self, inputs, blocks, stat, outputs, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: blocks(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(parameter_derivative, self, inputs, stat, message, outputs, blocks, parameters=parameters, report=report)
    if (present(errmsg)) errmsg = message
  end subroutine model_param_jacobian

  ! The adjoints of the parameters, which have the shapes of the parameters.
  subroutine model_param_vjp(self, inputs, cotangents, adjoints, stat, outputs, parameters, report, errmsg)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), cotangents(:)
    type(neml2_tensor), intent(inout) :: adjoints(:)
    integer(int32), intent(out) :: stat
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call evaluate(parameter_adjoint, self, inputs, stat, message, outputs, adjoints, cotangents, parameters, report)
    if (present(errmsg)) errmsg = message
  end subroutine model_param_vjp

  ! Call the function of the library that finds what has the role `what`.
  subroutine evaluate(what, self, inputs, stat, message, outputs, results, directions, parameters, report)
    integer(int32), intent(in) :: what
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    type(neml2_tensor), intent(inout), optional :: outputs(:), results(:)
    type(neml2_tensor), intent(in), optional :: directions(:), parameters(:)
    type(neml2_report), intent(inout), optional :: report
    type(c_ptr), allocatable, target :: given(:), along(:), overrides(:), values(:), found(:)
    type(c_ptr), target :: reported
    type(c_ptr) :: c_report, c_model

    stat = neml2_ok
    call list_handles(self, neml2_input, inputs, given, stat, message)
    call list_handles(self, merge(tangent, cotangent, what == jvp), directions, along, stat, message)
    call list_handles(self, neml2_parameter, parameters, overrides, stat, message)
    call list_handles(self, neml2_output, outputs, values, stat, message)
    call list_handles(self, what, results, found, stat, message)
    if (stat /= neml2_ok) return

    if (allocated(values)) values = c_null_ptr
    if (allocated(found)) found = c_null_ptr
    reported = c_null_ptr
    c_report = c_null_ptr
    if (present(report)) c_report = c_loc(reported)
    c_model = c_handle(self%shared)
    select case (what)
    case (neml2_output)
      stat = c_model_forward(address(values), c_report, c_model, address(given), address(overrides))
    case (jvp)
      stat = c_model_jvp(address(values), address(found), c_report, c_model, address(given), address(along), &
                         address(overrides))
    case (adjoint)
      stat = c_model_vjp(address(values), address(found), c_report, c_model, address(given), address(along), &
                         address(overrides))
    case (parameter_adjoint)
      stat = c_model_param_vjp(address(values), address(found), c_report, c_model, address(given), address(along), &
                               address(overrides))
    case (derivative)
      stat = c_model_jacobian(address(values), address(found), c_report, c_model, address(given), address(overrides))
    case default
      stat = c_model_param_jacobian(address(values), address(found), c_report, c_model, address(given), &
                                    address(overrides))
    end select
    message = message_of(stat)
    if (stat < neml2_ok) return
    call take_handles(outputs, values)
    call take_handles(results, found)
    if (present(report)) then
      call release(report%shared, c_report_free)
      allocate (report%shared)
      report%shared%c = reported
    end if
  end subroutine evaluate

  ! The handles of an array of tensors, if it is there, which must have one for each of a role.
  subroutine list_handles(model, role, tensors, handles, stat, message)
    class(neml2_model), intent(in) :: model
    integer(int32), intent(in) :: role
    type(neml2_tensor), intent(in), optional :: tensors(:)
    type(c_ptr), allocatable, intent(out) :: handles(:)
    integer(int32), intent(inout) :: stat
    character(:), allocatable, intent(inout) :: message
    character(:), allocatable :: name
    integer(int64) :: expected, i
    if (stat /= neml2_ok .or. .not. present(tensors)) return
    select case (role)
    case (neml2_input, tangent, adjoint)
      call model%variable_count(neml2_input, expected, stat)
    case (neml2_output, jvp, cotangent)
      call model%variable_count(neml2_output, expected, stat)
    case (neml2_parameter, parameter_adjoint)
      call model%variable_count(neml2_parameter, expected, stat)
    case (derivative)
      call model%derivative_count(neml2_input, expected, stat)
    case default
      call model%derivative_count(neml2_parameter, expected, stat)
    end select
    message = message_of(stat)
    if (stat == neml2_ok .and. size(tensors) /= expected) then
      stat = neml2_error_shape
      name = trim(role_names(role))//" "
      message = "The model has "//decimal(expected)//" "//name(:index(name, " ") - 1)//"s; the array for them has " &
                //decimal(size(tensors, kind=int64))//" tensors."
    end if
    if (stat /= neml2_ok) return
    allocate (handles(expected + 1)) ! one to point to where there is none
    do i = 1, expected
      handles(i) = c_handle(tensors(i)%shared)
    end do
  end subroutine list_handles

  subroutine take_handles(tensors, handles)
    type(neml2_tensor), intent(inout), optional :: tensors(:)
    type(c_ptr), allocatable, intent(in) :: handles(:)
    integer :: i
    if (.not. present(tensors)) return
    do i = 1, size(tensors)
      call tensor_take(tensors(i), handles(i))
    end do
  end subroutine take_handles

  ! NULL where an array is not there.
  function address(handles) result(first)
    type(c_ptr), allocatable, target, intent(in) :: handles(:)
    type(c_ptr) :: first
    first = c_null_ptr
    if (allocated(handles)) first = c_loc(handles)
  end function address

  subroutine wrap_0(self, value, stat, errmsg)
    class(neml2_tensor), intent(inout) :: self
    real(real64), intent(in), pointer :: value
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call wrap(self, c_loc(value), [integer(int64) ::], stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine wrap_0

  subroutine wrap_1(self, array, stat, errmsg)
    class(neml2_tensor), intent(inout) :: self
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call wrap(self, c_loc(array), shape(array, int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine wrap_1

  subroutine wrap_2(self, array, stat, errmsg)
    class(neml2_tensor), intent(inout) :: self
    real(real64), intent(in), pointer, contiguous :: array(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call wrap(self, c_loc(array), shape(array, int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine wrap_2

  subroutine wrap_3(self, array, stat, errmsg)
    class(neml2_tensor), intent(inout) :: self
    real(real64), intent(in), pointer, contiguous :: array(:, :, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call wrap(self, c_loc(array), shape(array, int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine wrap_3

  ! A tensor over an array, which must have the TARGET attribute and stay where it is until the tensor is freed.
  subroutine wrap(self, array, extents, stat)
    class(neml2_tensor), intent(inout) :: self
    type(c_ptr), intent(in) :: array
    integer(int64), intent(in) :: extents(:)
    integer(int32), intent(out) :: stat
    type(c_ptr) :: tensor
    integer(int64) :: ndim
    ndim = size(extents)
    tensor = c_null_ptr
    stat = c_tensor_wrap(tensor, array, float64, ndim, extents(ndim:1:-1), c_null_ptr, c_null_ptr, c_null_ptr)
    if (stat == neml2_ok) call tensor_take(self, tensor)
  end subroutine wrap

  ! Whether there is a tensor.
  pure logical function tensor_is_set(self)
    class(neml2_tensor), intent(in) :: self
    tensor_is_set = associated(self%shared)
  end function tensor_is_set

  ! The shape in Fortran's order.
  subroutine tensor_shape(self, shape, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int64), allocatable, intent(out) :: shape(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: sizes
    integer(int64) :: ndim
    ndim = 0
    sizes = c_null_ptr
    stat = c_tensor_shape(ndim, sizes, c_null_ptr, c_handle(self%shared))
    if (stat /= neml2_ok) ndim = 0
    shape = reversed(sizes, ndim)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine tensor_shape

  ! The values where they are, in the order of memory. The pointer holds until the tensor is freed; null on failure.
  subroutine values_real64(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    real(real64), pointer, intent(out) :: values(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    type(c_ptr) :: data
    integer(int64) :: count
    values => null()
    call find_values(self, float64, "real64", data, count, stat, message)
    if (present(errmsg)) errmsg = message
    if (stat /= neml2_ok) return
    values => no_real64
    if (count > 0) call c_f_pointer(data, values, [count])
  end subroutine values_real64

  subroutine values_int32(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int32), pointer, intent(out) :: values(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    type(c_ptr) :: data
    integer(int64) :: count
    values => null()
    call find_values(self, int32_values, "int32", data, count, stat, message)
    if (present(errmsg)) errmsg = message
    if (stat /= neml2_ok) return
    values => no_int32
    if (count > 0) call c_f_pointer(data, values, [count])
  end subroutine values_int32

  subroutine find_values(self, dtype, type_name, data, count, stat, message)
    class(neml2_tensor), intent(in) :: self
    integer(int32), intent(in) :: dtype
    character(*), intent(in) :: type_name
    type(c_ptr), intent(out) :: data
    integer(int64), intent(out) :: count
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer(int64), allocatable :: extents(:)
    integer(int32) :: own
    count = 0
    call self%shape(extents, stat)
    if (stat == neml2_ok) stat = c_tensor_dtype(own, c_handle(self%shared))
    if (stat == neml2_ok) stat = c_tensor_data(data, c_handle(self%shared))
    message = message_of(stat)
    if (stat /= neml2_ok) return
    count = product(extents)
    if (own == dtype) return
    stat = neml2_error_dtype
    message = "The values of the tensor are not of type "//type_name//"."
  end subroutine find_values

  ! Drop this reference; the tensor is freed with the last one.
  impure elemental subroutine tensor_free(self)
    class(neml2_tensor), intent(inout) :: self
    call release(self%shared, c_tensor_free)
  end subroutine tensor_free

  impure elemental subroutine tensor_final(self)
    type(neml2_tensor), intent(inout) :: self
    call release(self%shared, c_tensor_free)
  end subroutine tensor_final

  impure elemental subroutine tensor_assign(left, right)
    class(neml2_tensor), intent(inout) :: left
    class(neml2_tensor), intent(in) :: right
    if (associated(left%shared, right%shared)) return
    call release(left%shared, c_tensor_free)
    left%shared => retained(right%shared)
  end subroutine tensor_assign

  ! Own a handle of the library; NULL sets nothing.
  subroutine tensor_take(self, handle)
    class(neml2_tensor), intent(inout) :: self
    type(c_ptr), intent(in) :: handle
    call release(self%shared, c_tensor_free)
    if (.not. c_associated(handle)) return
    allocate (self%shared)
    self%shared%c = handle
  end subroutine tensor_take

  ! The tensor of a kind of report, neml2_report_status and the others, of shape (batch...).
  subroutine report_get(self, kind, tensor, stat, errmsg)
    class(neml2_report), intent(in) :: self
    integer(int32), intent(in) :: kind
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: handle
    handle = c_null_ptr
    stat = c_report_get(handle, c_handle(self%shared), kind)
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat == neml2_ok) call tensor_take(tensor, handle)
  end subroutine report_get

  ! The last iterate of an unknown, counted from 1, of points that failed; NaN at the others.
  subroutine report_unknown(self, index, tensor, stat, errmsg)
    class(neml2_report), intent(in) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: handle
    handle = c_null_ptr
    stat = c_report_unknown(handle, c_handle(self%shared), index - 1)
    if (present(errmsg)) errmsg = message_of(stat)
    if (stat == neml2_ok) call tensor_take(tensor, handle)
  end subroutine report_unknown

  impure elemental subroutine report_free(self)
    class(neml2_report), intent(inout) :: self
    call release(self%shared, c_report_free)
  end subroutine report_free

  impure elemental subroutine report_final(self)
    type(neml2_report), intent(inout) :: self
    call release(self%shared, c_report_free)
  end subroutine report_final

  impure elemental subroutine report_assign(left, right)
    class(neml2_report), intent(inout) :: left
    class(neml2_report), intent(in) :: right
    if (associated(left%shared, right%shared)) return
    call release(left%shared, c_report_free)
    left%shared => retained(right%shared)
  end subroutine report_assign

  ! ------------------------------------------------------------------------------------------
  ! Handles and text
  ! ------------------------------------------------------------------------------------------

  function c_handle(shared) result(handle)
    type(shared_handle), pointer, intent(in) :: shared
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (associated(shared)) handle = shared%c
  end function c_handle

  function retained(shared) result(same)
    type(shared_handle), pointer, intent(in) :: shared
    type(shared_handle), pointer :: same
    same => shared
    if (associated(same)) same%uses = same%uses + 1
  end function retained

  subroutine release(shared, c_free)
    type(shared_handle), pointer, intent(inout) :: shared
    interface
      subroutine c_free(handle) bind(c)
        import :: c_ptr
        type(c_ptr), intent(inout) :: handle
      end subroutine
    end interface
    if (.not. associated(shared)) return
    shared%uses = shared%uses - 1
    if (shared%uses > 0) then
      nullify (shared)
    else
      call c_free(shared%c)
      deallocate (shared)
    end if
  end subroutine release

  ! The message of a call that has just returned `stat`; empty where it succeeded.
  !
  ! An optional errmsg is assigned where it is declared, and never passed on to another optional argument: gfortran
  ! loses the new length on the way back.
  function message_of(stat) result(message)
    integer(int32), intent(in) :: stat
    character(:), allocatable :: message
    message = ""
    if (stat /= neml2_ok) call neml2_error_message(message)
  end function message_of

  subroutine read_error(c_read, text)
    procedure(c_error_message) :: c_read
    character(:), allocatable, intent(out) :: text
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: capacity, needed
    integer(int32) :: stat
    stat = c_read(nothing, 0_int64, capacity)
    allocate (character(kind=c_char, len=capacity) :: buffer)
    if (stat == neml2_ok) stat = c_read(buffer, capacity, needed)
    text = buffer(:len(buffer) - 1)
  end subroutine read_error

  pure function role_name(role) result(name)
    integer(int32), intent(in) :: role
    character(:), allocatable :: name
    name = "the "//trim(role_names(role))
  end function role_name

  pure logical function is_true(option)
    logical, intent(in), optional :: option
    is_true = .false.
    if (present(option)) is_true = option
  end function is_true

  pure function decimal(number) result(text)
    integer(int64), intent(in) :: number
    character(:), allocatable :: text
    character(20) :: digits
    write (digits, "(i0)") number
    text = trim(digits)
  end function decimal

  ! Text as C reads it, without the blanks at the end.
  pure function c_text(text, default) result(terminated)
    character(*), intent(in), optional :: text
    character(*), intent(in), optional :: default
    character(kind=c_char, len=:), allocatable :: terminated
    if (present(text)) then
      terminated = trim(text)//c_null_char
    else if (present(default)) then
      terminated = default//c_null_char
    else
      terminated = c_null_char
    end if
  end function c_text

  ! The text at a C pointer; empty where it is null.
  function text_at(pointer) result(text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer(int64) :: i
    text = ""
    if (.not. c_associated(pointer)) return
    call c_f_pointer(pointer, letters, [c_strlen(pointer)])
    deallocate (text)
    allocate (character(len=size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function text_at

  ! C's sizes in Fortran's order.
  function reversed(sizes, n) result(extents)
    type(c_ptr), intent(in) :: sizes
    integer(int64), intent(in) :: n
    integer(int64), allocatable :: extents(:)
    integer(c_int64_t), pointer :: values(:)
    allocate (extents(n))
    if (n == 0) return
    call c_f_pointer(sizes, values, [n])
    extents = values(n:1:-1)
  end function reversed

  ! ------------------------------------------------------------------------------------------
  ! Solves
  ! ------------------------------------------------------------------------------------------

  subroutine begin_int32(self, evaluation, npoints, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    class(neml2_call), intent(in) :: evaluation
    integer(int32), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call solve_begin(self, evaluation, int(npoints, int64), stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine begin_int32

  ! Begin a solve of `npoints` points with what is bound in `evaluation`, as its `run` would. What was begun before is
  ! abandoned on success and kept on failure.
  subroutine begin_int64(self, evaluation, npoints, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    class(neml2_call), intent(in) :: evaluation
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call solve_begin(self, evaluation, npoints, stat, message)
    if (present(errmsg)) errmsg = message
  end subroutine begin_int64

  subroutine solve_begin(self, evaluation, npoints, stat, message)
    class(neml2_solve), intent(inout) :: self
    class(neml2_call), intent(in) :: evaluation
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    type(c_ptr) :: begun
    call check_points(evaluation, npoints, stat, message)
    if (stat /= neml2_ok) return
    begun = c_null_ptr
    stat = c_solve_begin_call(begun, c_handle(evaluation%shared), npoints)
    message = message_of(stat)
    if (stat /= neml2_ok) return
    call release(self%shared, c_solve_free)
    allocate (self%shared)
    self%shared%c = begun
  end subroutine solve_begin

  ! Go on to the next system; `more` is false where there is none left. The last one must have been accepted.
  subroutine solve_next(self, more, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    logical, intent(out) :: more
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: system
    system = c_null_ptr
    stat = c_solve_next(system, c_handle(self%shared))
    if (present(errmsg)) errmsg = message_of(stat)
    more = c_associated(system)
    if (stat == neml2_ok) self%shared%system = system
  end subroutine solve_next

  ! The numbers that a point has in a vector, the points, and the unknowns of the current system. No system: an error.
  subroutine solve_size(self, n, npoints, stat, nunknowns, errmsg)
    class(neml2_solve), intent(in) :: self
    integer(int64), intent(out) :: n, npoints
    integer(int32), intent(out) :: stat
    integer(int64), intent(out), optional :: nunknowns
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int64) :: count
    n = 0
    npoints = 0
    count = 0
    stat = c_system_size(npoints, n, count, c_system(self%shared))
    if (present(nunknowns)) nunknowns = count
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine solve_size

  ! Where unknown `index` of the system stands: `unknown` is its position among the model's of kind neml2_unknown, and
  ! its values are `pieces` pieces of `piece_size` numbers, the first from `first` on and each `piece_stride` after the
  ! one before. Positions are counted from 1.
  subroutine solve_layout(self, index, unknown, first, pieces, piece_stride, piece_size, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(out) :: unknown, first, pieces, piece_stride, piece_size
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    unknown = -1
    first = -1
    pieces = 0
    piece_stride = 0
    piece_size = 0
    stat = c_system_layout(unknown, first, pieces, piece_stride, piece_size, c_system(self%shared), index - 1)
    unknown = unknown + 1
    first = first + 1
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine solve_layout

  ! The initial guess, from the predictor of the model.
  subroutine solve_guess(self, u, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(inout), contiguous :: u(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok) then
      stat = c_system_guess(u, c_system(self%shared))
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_guess

  ! The residual r(u).
  subroutine solve_residual(self, u, r, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: r(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok) call check_vector(self%shared, shape(r, int64), "r", stat, message)
    if (stat == neml2_ok) then
      stat = c_system_residual(r, c_system(self%shared), u)
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_residual

  ! The Newton step du at `u`. `singular` receives, per point, 1 where the Jacobian is singular, else 0.
  subroutine solve_step(self, u, du, stat, singular, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: du(:, :)
    integer(int32), intent(out) :: stat
    integer(int32), intent(inout), contiguous, optional :: singular(:)
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok) call check_vector(self%shared, shape(du, int64), "du", stat, message)
    if (stat == neml2_ok .and. present(singular)) &
      call check_flags(self%shared, size(singular, kind=int64), "singular", stat, message)
    if (stat == neml2_ok) then
      stat = c_system_step(du, singular, c_system(self%shared), u)
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_step

  ! The Jacobian at `u`: a(j, i, p) is the derivative of residual i with respect to number j of point p.
  subroutine solve_jacobian(self, u, a, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: a(:, :, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok .and. any(shape(a) /= [size(u, 1), shape(u)])) then
      stat = neml2_error_shape
      message = "The array 'a' must be ("//decimal(size(u, 1, int64))//", "//decimal(size(u, 1, int64))//", " &
                //decimal(size(u, 2, int64))//")."
    end if
    if (stat == neml2_ok) then
      stat = c_system_jacobian(a, c_system(self%shared), u)
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_jacobian

  ! The product y of the Jacobian at `u` with `v`.
  subroutine solve_matvec(self, u, v, y, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(in), contiguous :: v(:, :)
    real(real64), intent(inout), contiguous :: y(:, :)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok) call check_vector(self%shared, shape(v, int64), "v", stat, message)
    if (stat == neml2_ok) call check_vector(self%shared, shape(y, int64), "y", stat, message)
    if (stat == neml2_ok) then
      stat = c_system_matvec(y, c_system(self%shared), u, v)
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_matvec

  ! Take `u` as the solution. `status` (all is well unless it is given) says for each point neml2_ok,
  ! neml2_not_converged or neml2_singular; `iterations` is for the report.
  subroutine solve_accept(self, u, stat, status, iterations, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    integer(int32), intent(out) :: stat
    integer(int32), intent(in), contiguous, optional :: status(:), iterations(:)
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: message
    call check_vector(self%shared, shape(u, int64), "u", stat, message)
    if (stat == neml2_ok .and. present(status)) &
      call check_flags(self%shared, size(status, kind=int64), "status", stat, message)
    if (stat == neml2_ok .and. present(iterations)) &
      call check_flags(self%shared, size(iterations, kind=int64), "iterations", stat, message)
    if (stat == neml2_ok) then
      stat = c_system_accept(c_system(self%shared), u, status, iterations)
      message = message_of(stat)
    end if
    if (present(errmsg)) errmsg = message
  end subroutine solve_accept

  ! End a solve after its last system: the arrays of the call are written, with the status that `run` would have.
  subroutine solve_finish(self, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    type(c_ptr) :: solve
    solve = c_handle(self%shared)
    stat = c_solve_end(c_null_ptr, c_null_ptr, solve)
    if (present(errmsg)) errmsg = message_of(stat)
    if (.not. associated(self%shared)) return
    self%shared%c = solve ! null, unless it was an error
    if (.not. c_associated(solve)) call release(self%shared, c_solve_free)
  end subroutine solve_finish

  ! Drop this reference; with the last one a solve that is not finished is abandoned. Freeing twice does nothing.
  impure elemental subroutine solve_free(self)
    class(neml2_solve), intent(inout) :: self
    call release(self%shared, c_solve_free)
  end subroutine solve_free

  impure elemental subroutine solve_final(self)
    type(neml2_solve), intent(inout) :: self
    call release(self%shared, c_solve_free)
  end subroutine solve_final

  impure elemental subroutine solve_assign(left, right)
    class(neml2_solve), intent(inout) :: left
    class(neml2_solve), intent(in) :: right
    if (associated(left%shared, right%shared)) return
    call release(left%shared, c_solve_free)
    left%shared => retained(right%shared)
  end subroutine solve_assign

  function c_system(shared) result(system)
    type(shared_handle), pointer, intent(in) :: shared
    type(c_ptr) :: system
    system = c_null_ptr
    if (associated(shared)) system = shared%system
  end function c_system

  ! The library sees no extents: vectors are (n, npoints).
  subroutine check_vector(shared, extents, name, stat, message)
    type(shared_handle), pointer, intent(in) :: shared
    integer(int64), intent(in) :: extents(2)
    character(*), intent(in) :: name
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer(int64) :: n, npoints, nunknowns
    stat = c_system_size(npoints, n, nunknowns, c_system(shared))
    message = message_of(stat)
    if (stat /= neml2_ok) return
    if (all(extents == [n, npoints])) return
    stat = neml2_error_shape
    message = "The array '"//name//"' must be ("//decimal(n)//", "//decimal(npoints)//"); it is (" &
              //decimal(extents(1))//", "//decimal(extents(2))//")."
  end subroutine check_vector

  ! Arrays of one number per point.
  subroutine check_flags(shared, length, name, stat, message)
    type(shared_handle), pointer, intent(in) :: shared
    integer(int64), intent(in) :: length
    character(*), intent(in) :: name
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer(int64) :: n, npoints, nunknowns
    stat = c_system_size(npoints, n, nunknowns, c_system(shared))
    message = message_of(stat)
    if (stat /= neml2_ok .or. length == npoints) return
    stat = neml2_error_shape
    message = "The array '"//name//"' must have one number per point, "//decimal(npoints)//"; it has " &
              //decimal(length)//"."
  end subroutine check_flags
end module neml2_capi
