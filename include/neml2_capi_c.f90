! The constants, structures and functions of neml2_capi.h, for neml2_capi.f90: compile this first.
! If a function takes an address, an argument that is absent is NULL.
module neml2_capi_c
  use, intrinsic :: iso_c_binding, only: &
    c_char, c_funptr, c_null_ptr, c_ptr, c_size_t, &
    int32 => c_int32_t, int64 => c_int64_t, real64 => c_double
  implicit none(type, external)
  public

  ! begin generated: constants
  ! Status of a call. Those that are not negative are also the statuses of one material point.
  integer(int32), parameter, public :: neml2_ok = 0
  integer(int32), parameter, public :: neml2_non_finite = 1
  integer(int32), parameter, public :: neml2_not_converged = 2
  integer(int32), parameter, public :: neml2_singular = 3
  integer(int32), parameter, public :: neml2_out_of_bounds = 4
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
  integer(int32), parameter, public :: neml2_error_interrupted = -12

  ! Cause of a failure that a program may cure, if the status alone does not tell it.
  integer(int32), parameter, public :: neml2_cause_none = 0
  integer(int32), parameter, public :: neml2_cause_libtorch_missing = 1
  integer(int32), parameter, public :: neml2_cause_schema_unknown = 2
  integer(int32), parameter, public :: neml2_cause_matrix_singular = 3
  integer(int32), parameter, public :: neml2_cause_of_host = 1000

  ! Element types. In a structure, 0 is the usual one.
  integer(int32), parameter, public :: neml2_float64 = 1
  integer(int32), parameter, public :: neml2_float32 = 2
  integer(int32), parameter, public :: neml2_int64 = 3
  integer(int32), parameter, public :: neml2_int32 = 4
  integer(int32), parameter, public :: neml2_int16 = 5
  integer(int32), parameter, public :: neml2_int8 = 6
  integer(int32), parameter, public :: neml2_uint8 = 7
  integer(int32), parameter, public :: neml2_bool = 8
  integer(int32), parameter, public :: neml2_float16 = 9
  integer(int32), parameter, public :: neml2_bfloat16 = 10

  ! Kind of device, by the numbers of DLPack. In a structure, 0 is the CPU. Arrays of a model on OpenCL are the host's:
  ! see neml2_model_open().
  integer(int32), parameter, public :: neml2_device_cpu = 1
  integer(int32), parameter, public :: neml2_device_cuda = 2
  integer(int32), parameter, public :: neml2_device_opencl = 4

  ! Runtime of packages. BUILTIN needs nothing else. LIBTORCH uses the libtorch of an installed torch. AUTO takes, for
  ! each package, the built-in runtime if it has every function that the package calls, else libtorch.
  integer(int32), parameter, public :: neml2_runtime_auto = 0
  integer(int32), parameter, public :: neml2_runtime_builtin = 1
  integer(int32), parameter, public :: neml2_runtime_libtorch = 2

  ! Role of a variable or of an array. The first four are the *kinds* of variables; implicit segments solve for the
  ! unknowns. An array that is bound to a call has one of these roles: neml2_input read; every input must be bound when
  ! the call runs. A host of NEML2's runtime may bind a guess of an unknown that is not an input: it is accepted and not
  ! read, because a predictor gives the guess. neml2_output written, if it is bound. It may be the very array of an
  ! input, with the same stride, or one that overlaps no other: arrays of one stride may interleave, arrays of unequal
  ! strides must lie apart. An output over its own history (`x` over `x~1`) is changed for the points that succeeded: to
  ! retry, restore your own copy first. neml2_parameter read instead of the stored value, in this call only: one for all
  ! points or one for each neml2_tangent read: the direction of an input; zero if it is not bound neml2_jvp written: the
  ! derivative of an output along the tangents, see neml2_model_jvp(). Through an implicit model it costs about one more
  ! Newton step; in a call that binds derivative blocks, too, it is their product, the same up to round-off.
  ! neml2_cotangent read: the cotangent of an output; zero if it is not bound neml2_adjoint written: the adjoint of an
  ! input, see neml2_model_vjp(). With a point stride of 0 it is the sum over all points that did not fail.
  ! neml2_parameter_adjoint written: the adjoint of a parameter, in the same way
  integer(int32), parameter, public :: neml2_input = 0
  integer(int32), parameter, public :: neml2_output = 1
  integer(int32), parameter, public :: neml2_parameter = 2
  integer(int32), parameter, public :: neml2_unknown = 3
  integer(int32), parameter, public :: neml2_tangent = 4
  integer(int32), parameter, public :: neml2_jvp = 5
  integer(int32), parameter, public :: neml2_cotangent = 6
  integer(int32), parameter, public :: neml2_adjoint = 7
  integer(int32), parameter, public :: neml2_parameter_adjoint = 8

  ! Hypothesis of an element: which components of the strain and of the stress it has. The other strains are zero, or
  ! they are solved for at each point so that their stresses vanish. The section on opening has both.
  integer(int32), parameter, public :: neml2_tridimensional = 0
  integer(int32), parameter, public :: neml2_plane_strain = 1
  integer(int32), parameter, public :: neml2_axisymmetrical = 2
  integer(int32), parameter, public :: neml2_generalised_plane_strain = 3
  integer(int32), parameter, public :: neml2_plane_stress = 4
  integer(int32), parameter, public :: neml2_uniaxial = 5
  integer(int32), parameter, public :: neml2_beam = 6
  integer(int32), parameter, public :: neml2_plane_beam = 7
  integer(int32), parameter, public :: neml2_shell = 8
  integer(int32), parameter, public :: neml2_axisymmetrical_generalised_plane_strain = 9

  ! Strain that a law of small strain is given under large deformation, and what its stress T then is. C = F^T F.
  ! neml2_strain_logarithmic ln(C) / 2, and T is conjugate to it (Miehe, Apel, Lambrecht, Comput. Methods Appl. Mech.
  ! Eng. 191 (2002) 3383). Hencky's elasticity, and the plasticity of metals neml2_strain_green_lagrange (C - 1) / 2,
  ! and T is the second Piola-Kirchhoff stress. St. Venant-Kirchhoff's elasticity neml2_strain_corotational ln(U) of F =
  ! R U, and T = R^T sigma R is Cauchy's stress in axes that turn with R
  integer(int32), parameter, public :: neml2_strain_of_law = 0
  integer(int32), parameter, public :: neml2_strain_logarithmic = 1
  integer(int32), parameter, public :: neml2_strain_green_lagrange = 2
  integer(int32), parameter, public :: neml2_strain_corotational = 3

  ! Stress that a model with a strain measure gives: the output pk1_stress (3, 3), P = J sigma F^-T; or the symmetric
  ! cauchy_stress, sigma; pk2_stress, F^-1 P; kirchhoff_stress, J sigma.
  integer(int32), parameter, public :: neml2_stress_pk1 = 0
  integer(int32), parameter, public :: neml2_stress_cauchy = 1
  integer(int32), parameter, public :: neml2_stress_pk2 = 2
  integer(int32), parameter, public :: neml2_stress_kirchhoff = 3

  ! The order of the components in a block: the output's before the variable's, or the other way round.
  integer(int32), parameter, public :: neml2_output_first = 0
  integer(int32), parameter, public :: neml2_input_first = 1

  ! Quantities that an evaluation can report of each material point.
  integer(int32), parameter, public :: neml2_report_status = 0
  integer(int32), parameter, public :: neml2_report_iterations = 1
  integer(int32), parameter, public :: neml2_report_residual_norm = 2
  integer(int32), parameter, public :: neml2_report_residual_history = 3
  integer(int32), parameter, public :: neml2_report_suggested_cut = 4
  integer(int32), parameter, public :: neml2_report_rescue_solves = 5

  ! Levels; a channel has the records up to its own.
  integer(int32), parameter, public :: neml2_log_silent = 0
  integer(int32), parameter, public :: neml2_log_warning = 1
  integer(int32), parameter, public :: neml2_log_info = 2
  integer(int32), parameter, public :: neml2_log_debug = 3

  ! The size of a buffer that holds any message with its terminating zero; longer messages are cut.
  integer(int32), parameter, public :: neml2_log_length = 1024
  ! end generated

  ! begin generated: structures
  type, bind(c) :: c_source
    integer(int64) :: size = 104
    type(c_ptr) :: path = c_null_ptr
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: content = c_null_ptr
    integer(int64) :: content_size = 0
    type(c_ptr) :: scheduler = c_null_ptr
    integer(int32) :: dtype = 0
    integer(int32) :: device = 0
    integer(int32) :: device_index = 0
    integer(int32) :: runtime = 0
    integer(int32) :: strain_measure = 0
    integer(int32) :: stress_measure = 0
    integer(int32) :: material_axes = 0
    integer(int32) :: hypothesis = 0
    type(c_ptr) :: strain = c_null_ptr
    type(c_ptr) :: stress = c_null_ptr
    type(c_ptr) :: kernels = c_null_ptr
  end type c_source

  type, bind(c) :: c_model_info
    integer(int64) :: size = 24
    integer(int32) :: dtype = 0
    integer(int32) :: device = 0
    integer(int32) :: device_index = 0
    integer(int32) :: runtime = 0
  end type c_model_info

  type, bind(c) :: c_variable_info
    integer(int64) :: size = 56
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: type = c_null_ptr
    integer(int64) :: ndim = 0
    integer(int64) :: sub_ndim = 0
    type(c_ptr) :: shape = c_null_ptr
    integer(int32) :: dtype = 0
    integer(int32) :: kind = 0
  end type c_variable_info

  type, bind(c) :: c_derivative_info
    integer(int64) :: size = 48
    integer(int64) :: output = 0
    integer(int64) :: variable = 0
    integer(int64) :: ndim = 0
    type(c_ptr) :: shape = c_null_ptr
    integer(int32) :: batched = 0
    integer(int32) :: kind = 0
  end type c_derivative_info

  type, bind(c) :: c_history_info
    integer(int64) :: size = 40
    integer(int64) :: input = 0
    integer(int64) :: age = 0
    integer(int64) :: output = 0
    integer(int64) :: current = 0
  end type c_history_info

  type, bind(c) :: c_bound_info
    integer(int64) :: size = 48
    integer(int64) :: variable = 0
    integer(int64) :: ncomponents = 0
    type(c_ptr) :: lower = c_null_ptr
    type(c_ptr) :: upper = c_null_ptr
    integer(int32) :: kind = 0
    integer(int32) :: physical = 0
  end type c_bound_info

  type, bind(c) :: c_tensor_info
    integer(int64) :: size = 56
    type(c_ptr) :: data = c_null_ptr
    integer(int64) :: ndim = 0
    type(c_ptr) :: shape = c_null_ptr
    type(c_ptr) :: strides = c_null_ptr
    integer(int32) :: dtype = 0
    integer(int32) :: device = 0
    integer(int32) :: device_index = 0
    integer(int32) :: row_major = 0
  end type c_tensor_info

  type, bind(c) :: c_option_info
    integer(int64) :: size = 40
    type(c_ptr) :: name = c_null_ptr
    type(c_ptr) :: choices = c_null_ptr
    real(real64) :: least = 0
    real(real64) :: greatest = 0
  end type c_option_info

  type, bind(c) :: c_system_info
    integer(int64) :: size = 32
    integer(int64) :: npoints = 0
    integer(int64) :: n = 0
    integer(int64) :: nunknowns = 0
  end type c_system_info

  type, bind(c) :: c_unknown_info
    integer(int64) :: size = 48
    integer(int64) :: unknown = 0
    integer(int64) :: offset = 0
    integer(int64) :: pieces = 0
    integer(int64) :: piece_stride = 0
    integer(int64) :: piece_size = 0
  end type c_unknown_info
  ! end generated

  interface
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
    end function
    ! begin generated: interfaces
    integer(int32) function c_abi_version() bind(c, name="neml2_abi_version")
      import
    end function
    type(c_ptr) function c_version() bind(c, name="neml2_version")
      import
    end function
    integer(int32) function c_error_status() bind(c, name="neml2_error_status")
      import
    end function
    integer(int32) function c_error_cause() bind(c, name="neml2_error_cause")
      import
    end function
    integer(int32) function c_error_message(buffer, capacity, needed) bind(c, name="neml2_error_message")
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
    end function
    integer(int32) function c_error_subject(buffer, capacity, needed) bind(c, name="neml2_error_subject")
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
    end function
    integer(int32) function c_error_count(out) bind(c, name="neml2_error_count")
      import
      integer(int64), intent(inout), optional :: out
    end function
    integer(int32) function c_error_get(status, cause, buffer, capacity, needed, index) bind(c, name="neml2_error_get")
      import
      integer(int32), intent(inout), optional :: status, cause
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity, index
      integer(int64), intent(inout), optional :: needed
    end function
    integer(int32) function c_error_record(status, cause, subject, message) bind(c, name="neml2_error_record")
      import
      integer(int32), value :: status, cause
      character(kind=c_char), intent(in), optional :: subject(*), message(*)
    end function
    integer(int32) function c_model_open(out, source) bind(c, name="neml2_model_open")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_source), intent(in), optional :: source
    end function
    subroutine c_model_free(model) bind(c, name="neml2_model_free")
      import
      type(c_ptr), intent(inout), optional :: model
    end subroutine
    integer(int32) function c_model_inspect(out, model) bind(c, name="neml2_model_inspect")
      import
      type(c_model_info), intent(inout), optional :: out
      type(c_ptr), value :: model
    end function
    integer(int32) function c_model_variable_count(out, model, kind) bind(c, name="neml2_model_variable_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int32), value :: kind
    end function
    integer(int32) function c_model_variable_find(out, model, kind, name) bind(c, name="neml2_model_variable_find")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int32), value :: kind
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_model_variable_inspect(out, model, kind, index) bind(c, &
      name="neml2_model_variable_inspect")
      import
      type(c_variable_info), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int32), value :: kind
      integer(int64), value :: index
    end function
    integer(int32) function c_model_derivative_count(out, model, kind) bind(c, name="neml2_model_derivative_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int32), value :: kind
    end function
    integer(int32) function c_model_derivative_inspect(out, model, kind, index) bind(c, &
      name="neml2_model_derivative_inspect")
      import
      type(c_derivative_info), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int32), value :: kind
      integer(int64), value :: index
    end function
    integer(int32) function c_model_history_count(out, model) bind(c, name="neml2_model_history_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
    end function
    integer(int32) function c_model_history_inspect(out, model, index) bind(c, name="neml2_model_history_inspect")
      import
      type(c_history_info), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int64), value :: index
    end function
    integer(int32) function c_model_bound_count(out, model) bind(c, name="neml2_model_bound_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
    end function
    integer(int32) function c_model_bound_inspect(out, model, index) bind(c, name="neml2_model_bound_inspect")
      import
      type(c_bound_info), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int64), value :: index
    end function
    integer(int32) function c_model_describe(buffer, capacity, needed, model) bind(c, name="neml2_model_describe")
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
      type(c_ptr), value :: model
    end function
    integer(int32) function c_model_checksum(buffer, capacity, needed, model) bind(c, name="neml2_model_checksum")
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
      type(c_ptr), value :: model
    end function
    integer(int32) function c_source_describe(buffer, capacity, needed, source) bind(c, name="neml2_source_describe")
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
      type(c_source), intent(in), optional :: source
    end function
    integer(int32) function c_call_create(out, model) bind(c, name="neml2_call_create")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: model
    end function
    integer(int32) function c_call_bind(call, role, name, data, dtype, point_stride) bind(c, name="neml2_call_bind")
      import
      type(c_ptr), value :: call, data
      integer(int32), value :: role, dtype
      character(kind=c_char), intent(in), optional :: name(*)
      integer(int64), value :: point_stride
    end function
    integer(int32) function c_call_run(call, npoints) bind(c, name="neml2_call_run")
      import
      type(c_ptr), value :: call
      integer(int64), value :: npoints
    end function
    integer(int32) function c_call_state_save(call, path, npoints, step, time) bind(c, name="neml2_call_state_save")
      import
      type(c_ptr), value :: call
      character(kind=c_char), intent(in), optional :: path(*)
      integer(int64), value :: npoints, step
      real(real64), value :: time
    end function
    integer(int32) function c_call_state_load(step, time, call, path, npoints) bind(c, name="neml2_call_state_load")
      import
      integer(int64), intent(inout), optional :: step
      real(real64), intent(inout), optional :: time
      type(c_ptr), value :: call
      character(kind=c_char), intent(in), optional :: path(*)
      integer(int64), value :: npoints
    end function
    subroutine c_call_free(call) bind(c, name="neml2_call_free")
      import
      type(c_ptr), intent(inout), optional :: call
    end subroutine
    integer(int32) function c_call_bind_derivative(call, kind, output, variable, data, dtype, point_stride) bind(c, &
      name="neml2_call_bind_derivative")
      import
      type(c_ptr), value :: call, data
      integer(int32), value :: kind, dtype
      character(kind=c_char), intent(in), optional :: output(*), variable(*)
      integer(int64), value :: point_stride
    end function
    integer(int32) function c_call_block_order_set(call, order) bind(c, name="neml2_call_block_order_set")
      import
      type(c_ptr), value :: call
      integer(int32), value :: order
    end function
    integer(int32) function c_call_bind_report(call, kind, data, point_stride) bind(c, name="neml2_call_bind_report")
      import
      type(c_ptr), value :: call, data
      integer(int32), value :: kind
      integer(int64), value :: point_stride
    end function
    integer(int32) function c_call_step_stride_set(call, role, name, step_stride) bind(c, &
      name="neml2_call_step_stride_set")
      import
      type(c_ptr), value :: call
      integer(int32), value :: role
      character(kind=c_char), intent(in), optional :: name(*)
      integer(int64), value :: step_stride
    end function
    integer(int32) function c_call_derivative_step_stride_set(call, kind, output, variable, step_stride) bind(c, &
      name="neml2_call_derivative_step_stride_set")
      import
      type(c_ptr), value :: call
      integer(int32), value :: kind
      character(kind=c_char), intent(in), optional :: output(*), variable(*)
      integer(int64), value :: step_stride
    end function
    integer(int32) function c_call_report_step_stride_set(call, kind, step_stride) bind(c, &
      name="neml2_call_report_step_stride_set")
      import
      type(c_ptr), value :: call
      integer(int32), value :: kind
      integer(int64), value :: step_stride
    end function
    integer(int32) function c_call_run_steps(made, call, npoints, nsteps) bind(c, name="neml2_call_run_steps")
      import
      integer(int64), intent(inout), optional :: made
      type(c_ptr), value :: call
      integer(int64), value :: npoints, nsteps
    end function
    integer(int32) function c_tensor_create(out, dtype, ndim, shape) bind(c, name="neml2_tensor_create")
      import
      type(c_ptr), intent(inout), optional :: out
      integer(int32), value :: dtype
      integer(int64), value :: ndim
      integer(int64), intent(in), optional :: shape(*)
    end function
    integer(int32) function c_tensor_wrap(out, data, dtype, ndim, shape, strides, deleter, context) bind(c, &
      name="neml2_tensor_wrap")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: data, context
      integer(int32), value :: dtype
      integer(int64), value :: ndim
      integer(int64), intent(in), optional :: shape(*), strides(*)
      type(c_funptr), value :: deleter
    end function
    integer(int32) function c_tensor_share(out, tensor) bind(c, name="neml2_tensor_share")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: tensor
    end function
    integer(int32) function c_tensor_from_dlpack(out, managed) bind(c, name="neml2_tensor_from_dlpack")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: managed
    end function
    integer(int32) function c_tensor_to_dlpack(managed, tensor) bind(c, name="neml2_tensor_to_dlpack")
      import
      type(c_ptr), intent(inout), optional :: managed
      type(c_ptr), value :: tensor
    end function
    integer(int32) function c_tensor_inspect(out, tensor) bind(c, name="neml2_tensor_inspect")
      import
      type(c_tensor_info), intent(inout), optional :: out
      type(c_ptr), value :: tensor
    end function
    subroutine c_tensor_free(tensor) bind(c, name="neml2_tensor_free")
      import
      type(c_ptr), intent(inout), optional :: tensor
    end subroutine
    integer(int32) function c_model_forward(outputs, report, model, inputs, parameters) bind(c, &
      name="neml2_model_forward")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), report
      type(c_ptr), value :: model
      type(c_ptr), intent(in), optional :: inputs(*), parameters(*)
    end function
    integer(int32) function c_model_jvp(outputs, jvps, report, model, inputs, tangents, parameters) bind(c, &
      name="neml2_model_jvp")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), jvps(*), report
      type(c_ptr), value :: model
      type(c_ptr), intent(in), optional :: inputs(*), tangents(*), parameters(*)
    end function
    integer(int32) function c_model_vjp(outputs, adjoints, report, model, kind, inputs, cotangents, parameters) &
      bind(c, name="neml2_model_vjp")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), adjoints(*), report
      type(c_ptr), value :: model
      integer(int32), value :: kind
      type(c_ptr), intent(in), optional :: inputs(*), cotangents(*), parameters(*)
    end function
    integer(int32) function c_model_jacobian(outputs, blocks, report, model, kind, inputs, parameters) bind(c, &
      name="neml2_model_jacobian")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), blocks(*), report
      type(c_ptr), value :: model
      integer(int32), value :: kind
      type(c_ptr), intent(in), optional :: inputs(*), parameters(*)
    end function
    integer(int32) function c_report_get(out, report, kind) bind(c, name="neml2_report_get")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: report
      integer(int32), value :: kind
    end function
    integer(int32) function c_report_get_unknown(out, report, index) bind(c, name="neml2_report_get_unknown")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: report
      integer(int64), value :: index
    end function
    subroutine c_report_free(report) bind(c, name="neml2_report_free")
      import
      type(c_ptr), intent(inout), optional :: report
    end subroutine
    integer(int32) function c_model_parameter_get(out, model, name) bind(c, name="neml2_model_parameter_get")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_model_parameter_set(model, name, value) bind(c, name="neml2_model_parameter_set")
      import
      type(c_ptr), value :: model, value
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_model_option_count(out, model) bind(c, name="neml2_model_option_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
    end function
    integer(int32) function c_model_option_inspect(out, model, index) bind(c, name="neml2_model_option_inspect")
      import
      type(c_option_info), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int64), value :: index
    end function
    integer(int32) function c_model_option_set_number(model, name, value) bind(c, name="neml2_model_option_set_number")
      import
      type(c_ptr), value :: model
      character(kind=c_char), intent(in), optional :: name(*)
      real(real64), value :: value
    end function
    integer(int32) function c_model_option_get_number(out, model, name) bind(c, name="neml2_model_option_get_number")
      import
      real(real64), intent(inout), optional :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_model_option_set_text(model, name, value) bind(c, name="neml2_model_option_set_text")
      import
      type(c_ptr), value :: model
      character(kind=c_char), intent(in), optional :: name(*), value(*)
    end function
    integer(int32) function c_model_option_get_text(out, model, name) bind(c, name="neml2_model_option_get_text")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: model
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_solve_begin(out, model, inputs, parameters) bind(c, name="neml2_solve_begin")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: model
      type(c_ptr), intent(in), optional :: inputs(*), parameters(*)
    end function
    integer(int32) function c_solve_begin_call(out, call, npoints) bind(c, name="neml2_solve_begin_call")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: npoints
    end function
    integer(int32) function c_solve_next(system, solve) bind(c, name="neml2_solve_next")
      import
      type(c_ptr), intent(inout), optional :: system
      type(c_ptr), value :: solve
    end function
    integer(int32) function c_solve_end(outputs, report, solve) bind(c, name="neml2_solve_end")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), report, solve
    end function
    subroutine c_solve_free(solve) bind(c, name="neml2_solve_free")
      import
      type(c_ptr), intent(inout), optional :: solve
    end subroutine
    integer(int32) function c_system_inspect(out, system) bind(c, name="neml2_system_inspect")
      import
      type(c_system_info), intent(inout), optional :: out
      type(c_ptr), value :: system
    end function
    integer(int32) function c_system_unknown_inspect(out, system, index) bind(c, name="neml2_system_unknown_inspect")
      import
      type(c_unknown_info), intent(inout), optional :: out
      type(c_ptr), value :: system
      integer(int64), value :: index
    end function
    integer(int32) function c_system_guess(u, system) bind(c, name="neml2_system_guess")
      import
      real(real64), intent(inout), optional :: u(*)
      type(c_ptr), value :: system
    end function
    integer(int32) function c_system_residual(r, system, u) bind(c, name="neml2_system_residual")
      import
      real(real64), intent(inout), optional :: r(*)
      type(c_ptr), value :: system
      real(real64), intent(in), optional :: u(*)
    end function
    integer(int32) function c_system_step(du, singular, system, u) bind(c, name="neml2_system_step")
      import
      real(real64), intent(inout), optional :: du(*)
      integer(int32), intent(inout), optional :: singular(*)
      type(c_ptr), value :: system
      real(real64), intent(in), optional :: u(*)
    end function
    integer(int32) function c_system_jacobian(a, system, u) bind(c, name="neml2_system_jacobian")
      import
      real(real64), intent(inout), optional :: a(*)
      type(c_ptr), value :: system
      real(real64), intent(in), optional :: u(*)
    end function
    integer(int32) function c_system_matvec(y, system, u, v) bind(c, name="neml2_system_matvec")
      import
      real(real64), intent(inout), optional :: y(*)
      type(c_ptr), value :: system
      real(real64), intent(in), optional :: u(*), v(*)
    end function
    integer(int32) function c_system_accept(system, u, status, iterations) bind(c, name="neml2_system_accept")
      import
      type(c_ptr), value :: system
      real(real64), intent(in), optional :: u(*)
      integer(int32), intent(in), optional :: status(*), iterations(*)
    end function
    integer(int32) function c_solve_run(outputs, report, model, inputs, parameters, solver, context) bind(c, &
      name="neml2_solve_run")
      import
      type(c_ptr), intent(inout), optional :: outputs(*), report
      type(c_ptr), value :: model, context
      type(c_ptr), intent(in), optional :: inputs(*), parameters(*)
      type(c_funptr), value :: solver
    end function
    integer(int32) function c_log_level_set(channel, level) bind(c, name="neml2_log_level_set")
      import
      character(kind=c_char), intent(in), optional :: channel(*)
      integer(int32), value :: level
    end function
    integer(int32) function c_log_level_get(out, channel) bind(c, name="neml2_log_level_get")
      import
      integer(int32), intent(inout), optional :: out
      character(kind=c_char), intent(in), optional :: channel(*)
    end function
    integer(int32) function c_log_count(out) bind(c, name="neml2_log_count")
      import
      integer(int64), intent(inout), optional :: out
    end function
    integer(int32) function c_log_next(level, channel, buffer, capacity, needed) bind(c, name="neml2_log_next")
      import
      integer(int32), intent(inout), optional :: level
      type(c_ptr), intent(inout), optional :: channel
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
    end function
    integer(int32) function c_interrupt_set(asked, context) bind(c, name="neml2_interrupt_set")
      import
      type(c_funptr), value :: asked
      type(c_ptr), value :: context
    end function
    ! end generated
  end interface
end module neml2_capi_c
