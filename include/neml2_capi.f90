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
! Handles   neml2_model and neml2_call are freed with their last copy: `b = a` makes another name for the same object.
!           The copies are counted without a lock: make and drop them on one thread. A thread needs a call of its own,
!           and no copy of the model. In types of yours, hold them by pointer or assign them one by one
!           (`b%model = a%model`): in `b = a` gfortran 12 finalizes a component once too often.
! Not here  Of the C header: tensors, graphs, evaluation out of place with its report and residual history, the list of
!           the options, and the element types of models and variables. What is bound is real64.
module neml2_capi
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_f_pointer, c_int32_t, c_int64_t, c_loc, &
                                         c_null_char, c_null_ptr, c_ptr, c_size_t
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  implicit none(type, external)
  private

  public :: neml2_model, neml2_call
  public :: neml2_abi_version, neml2_version, neml2_error_message, neml2_error_subject

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

  integer(int32), parameter :: float64 = 1
  integer(int32), parameter :: report_status = 0
  integer(int32), parameter :: report_iterations = 1
  integer(int32), parameter :: report_residual_norm = 2

  ! The arrays of a report, in the order of their kinds, as messages name them.
  integer(int32), parameter :: report = 3
  character(*), parameter :: report_names(0:2) = [character(13) :: "status", "iterations", "residual norm"]

  ! What a call knows of the array of a variable or report: the values of one point, and the points that it holds.
  type :: extent
    integer(int32) :: kind
    character(:), allocatable :: name
    integer(int64) :: point_size = 1
    integer(int64) :: points = huge(0_int64) ! no limit before an array is bound
  end type extent

  ! A handle of the C library, the number of Fortran objects that refer to it and, of a call, all that can be bound.
  type :: shared_handle
    type(c_ptr) :: c = c_null_ptr
    integer :: uses = 1
    type(extent), allocatable :: extents(:)
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

  ! Arrays of the host, bound to the variables of a model by name; one per thread. It keeps the model alive.
  !
  ! In bind_input, bind_output and bind_parameter an array has any rank up to 3. `stride` is the distance from one point
  ! to the next in elements: the product of all extents but the last unless it is given, 0 for a scalar, which is one
  ! value for all points. `first` is the position in the array, counted from 1, of the first value: with it,
  ! variables interleave in one array of state.
  type :: neml2_call
    private
    type(shared_handle), pointer :: shared => null()
  contains
    procedure :: create => call_create
    generic :: bind_input => bind_input_0, bind_input_1, bind_input_2, bind_input_3
    generic :: bind_output => bind_output_1, bind_output_2, bind_output_3
    generic :: bind_parameter => bind_parameter_0, bind_parameter_1, bind_parameter_2, bind_parameter_3
    procedure :: bind_status => call_bind_status
    procedure :: bind_iterations => call_bind_iterations
    procedure :: bind_residual_norm => call_bind_residual_norm
    generic :: run => run_int32, run_int64
    procedure :: free => call_free
    generic :: assignment(=) => call_assign
    procedure, private :: bind_input_0, bind_input_1, bind_input_2, bind_input_3
    procedure, private :: bind_output_1, bind_output_2, bind_output_3
    procedure, private :: bind_parameter_0, bind_parameter_1, bind_parameter_2, bind_parameter_3
    procedure, private :: run_int32, run_int64
    procedure, private :: call_assign
    final :: call_final
  end type neml2_call

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

    function c_strlen(text) bind(c, name="strlen") result(length)
      import :: c_ptr, c_size_t
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

  ! The three functions that bind an array to a variable have one signature.
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

  ! How many variables of a kind (neml2_input, neml2_output, neml2_parameter) there are.
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
    integer(int64), allocatable :: sizes(:)
    integer(int64) :: counts(neml2_input:neml2_parameter), i
    integer(int32) :: kind, stat
    integer :: k
    do kind = neml2_input, neml2_parameter
      call model%variable_count(kind, counts(kind), stat)
    end do
    allocate (extents(sum(counts) + size(report_names)))
    k = 0
    do kind = neml2_input, neml2_parameter
      do i = 1, counts(kind)
        k = k + 1
        extents(k)%kind = kind
        call model%variable_name(kind, i, extents(k)%name, stat)
        call model%variable_shape(kind, i, sizes, stat)
        extents(k)%point_size = product(sizes)
      end do
    end do
    do kind = report_status, report_residual_norm
      k = k + 1
      extents(k)%kind = report
      extents(k)%name = trim(report_names(kind))
    end do
  end subroutine list_extents

  ! The place of a variable or report in the list of a call; 0 where there is none.
  pure integer function extent_index(shared, kind, name) result(k)
    type(shared_handle), pointer, intent(in) :: shared
    integer(int32), intent(in) :: kind
    character(*), intent(in) :: name
    if (associated(shared)) then
      do k = 1, size(shared%extents)
        if (shared%extents(k)%kind == kind .and. shared%extents(k)%name == name) return
      end do
    end if
    k = 0
  end function extent_index

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

  ! Bind the array that receives what became of each point: neml2_ok, neml2_non_finite, neml2_not_converged or
  ! neml2_singular.
  subroutine call_bind_status(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(report_status, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_status

  ! Bind the array that receives the Newton steps made at each point.
  subroutine call_bind_iterations(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(report_iterations, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_iterations

  ! Bind the array that receives the last residual norm of each point.
  subroutine call_bind_residual_norm(self, array, stat, errmsg)
    class(neml2_call), intent(in) :: self
    real(real64), intent(in), pointer, contiguous :: array(:)
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    call bind_report(report_residual_norm, self, c_loc(array), size(array, kind=int64), stat)
    if (present(errmsg)) errmsg = message_of(stat)
  end subroutine call_bind_residual_norm

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

  ! The library sees no extents: an array that is too short must be found here.
  subroutine run(self, npoints, stat, message)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer :: k
    if (associated(self%shared)) then
      do k = 1, size(self%shared%extents)
        associate (array => self%shared%extents(k))
          if (array%points >= npoints) cycle
          stat = neml2_error_shape
          message = "The array of "//kind_name(array%kind)//" '"//array%name//"' holds "//decimal(array%points) &
                    //" points; the run is of "//decimal(npoints)//"."
          return
        end associate
      end do
    end if
    stat = c_call_run(c_handle(self%shared), npoints)
    message = message_of(stat)
  end subroutine run

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

  subroutine bind(kind, self, name, array, length, default_stride, stat, message, stride, first)
    integer(int32), intent(in) :: kind
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(c_ptr), intent(in) :: array
    integer(int64), intent(in) :: length, default_stride
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: message
    integer, intent(in), optional :: stride, first
    real(real64), pointer :: values(:)
    type(c_ptr) :: start
    integer(int64) :: distance, before, points
    integer :: k

    distance = default_stride
    if (present(stride)) distance = stride
    before = 0
    if (present(first)) before = first - 1_int64
    if (before < 0) then
      stat = neml2_error_argument
      message = "'first' of "//kind_name(kind)//" '"//trim(name)//"' is counted from 1, not "//decimal(before + 1)//"."
      return
    end if

    points = huge(points)
    k = extent_index(self%shared, kind, name)
    if (k > 0) points = points_held(length - before, self%shared%extents(k)%point_size, distance)
    ! An empty array is that of a block without points.
    if (points == 0 .and. length > 0) then
      stat = neml2_error_shape
      message = "The array of "//kind_name(kind)//" '"//trim(name)//"' holds not one point: one has " &
                //decimal(self%shared%extents(k)%point_size)//" values, and from 'first' on there are " &
                //decimal(max(length - before, 0_int64))//"."
      return
    end if

    start = array
    if (before > 0 .and. before < length) then
      call c_f_pointer(array, values, [length])
      start = c_loc(values(before + 1))
    end if
    select case (kind)
    case (neml2_input)
      stat = c_call_bind_input(c_handle(self%shared), c_text(name), start, float64, distance)
    case (neml2_output)
      stat = c_call_bind_output(c_handle(self%shared), c_text(name), start, float64, distance)
    case default
      stat = c_call_bind_parameter(c_handle(self%shared), c_text(name), start, float64, distance)
    end select
    message = message_of(stat)
    if (stat == neml2_ok .and. k > 0) self%shared%extents(k)%points = points
  end subroutine bind

  subroutine bind_report(kind, self, array, length, stat)
    integer(int32), intent(in) :: kind
    class(neml2_call), intent(in) :: self
    type(c_ptr), intent(in) :: array
    integer(int64), intent(in) :: length
    integer(int32), intent(out) :: stat
    integer :: k
    stat = c_call_bind_report(c_handle(self%shared), kind, array, 1_int64)
    k = extent_index(self%shared, report, report_names(kind))
    if (stat == neml2_ok .and. k > 0) self%shared%extents(k)%points = length
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

  pure function kind_name(kind) result(name)
    integer(int32), intent(in) :: kind
    character(:), allocatable :: name
    character(*), parameter :: names(neml2_input:report) = [character(9) :: "input", "output", "parameter", "report"]
    name = trim(names(kind))
  end function kind_name

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
end module neml2_capi
