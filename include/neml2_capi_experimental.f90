! What may change in any release, beside neml2_capi.f90: graphs, libtorch, operators, streams and schedulers, over
! neml2_capi_experimental.h. The conventions of neml2_capi.f90 hold here, too. Compile this file after it.
module neml2_capi_experimental
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_f_procpointer, c_funloc, c_loc, c_null_char, &
                                         c_null_funptr, int8 => c_int8_t
  use neml2_capi_internal
  implicit none(type, external)
  private
  public :: neml2_operator, neml2_operator_call
  ! begin generated: public
  public :: neml2_graph, neml2_scheduler, neml2_call_memory_set, neml2_call_bind_input_derivative
  public :: neml2_libtorch_suggest, neml2_libtorch_open, neml2_operator_declare, neml2_stream_set, neml2_call_wait
  public :: neml2_operator_register, neml2_operator_unregister, neml2_model_points
  ! end generated

  ! begin generated: constants
  ! Kind of an argument; a list of integers is INTEGER. NONE: it was not given.
  integer(int32), parameter, public :: neml2_argument_none = 0
  integer(int32), parameter, public :: neml2_argument_tensor = 1
  integer(int32), parameter, public :: neml2_argument_integer = 2
  integer(int32), parameter, public :: neml2_argument_real = 3
  integer(int32), parameter, public :: neml2_argument_boolean = 4
  integer(int32), parameter, public :: neml2_argument_text = 5

  ! One more runtime: Newton's method and the chain rule, too, run by operators of libtorch. A model on CUDA always uses
  ! it; on the CPU it is for trying it out.
  integer(int32), parameter, public :: neml2_runtime_tensors = 3

  ! Kinds of pointers to arrays: an address on the device (on CUDA; on OpenCL of shared virtual memory), or a cl_mem of
  ! OpenCL, whose first element is the array's (a part of one is a sub-buffer).
  integer(int32), parameter, public :: neml2_memory_addresses = 0
  integer(int32), parameter, public :: neml2_memory_buffers = 1
  ! end generated

  ! The structures of neml2_capi_experimental.h, with their size.
  ! begin generated: structures
  type, bind(c) :: c_graph_info
    integer(int64) :: size = 40
    type(c_ptr) :: in_spec = c_null_ptr
    type(c_ptr) :: out_spec = c_null_ptr
    integer(int32) :: device = 0
    integer(int32) :: device_index = 0
    integer(int32) :: runtime = 0
    integer(int32) :: reserved = 0
  end type c_graph_info

  type, bind(c) :: c_graph_variable_info
    integer(int64) :: size = 56
    type(c_ptr) :: name = c_null_ptr
    integer(int64) :: ndim = 0
    type(c_ptr) :: least = c_null_ptr
    type(c_ptr) :: greatest = c_null_ptr
    type(c_ptr) :: order = c_null_ptr
    integer(int32) :: dtype = 0
    integer(int32) :: kind = 0
  end type c_graph_variable_info

  type, bind(c) :: c_argument_info
    integer(int64) :: size = 32
    type(c_ptr) :: name = c_null_ptr
    integer(int64) :: count = 0
    integer(int32) :: kind = 0
    integer(int32) :: reserved = 0
  end type c_argument_info

  type, bind(c) :: c_call_memory
    integer(int64) :: size = 32
    type(c_ptr) :: queue = c_null_ptr
    integer(int64) :: component_stride = 0
    integer(int32) :: kind = 0
    integer(int32) :: reserved = 0
  end type c_call_memory

  type, bind(c) :: c_device
    integer(int64) :: size = 48
    integer(int64) :: batch_size = 0
    integer(int64) :: capacity = 0
    real(real64) :: priority = 0
    integer(int32) :: device = 0
    integer(int32) :: device_index = 0
    integer(int32) :: runtime = 0
    integer(int32) :: reserved = 0
  end type c_device
  ! end generated

  ! One AOTInductor package: tensors in, tensors out. Any number of threads may run it at once.
  type, extends(object) :: neml2_graph
  contains
    ! begin generated: neml2_graph
    procedure :: is_loaded => graph_is_loaded
    procedure :: arity => graph_arity
    procedure :: input_layout => graph_input_layout
    procedure :: output_info => graph_output_info
    procedure :: run => graph_run
    procedure :: set_constants => graph_set_constants
    procedure :: load => graph_load
    procedure :: load_bytes => graph_load_bytes
    procedure :: runtime => graph_runtime
    procedure :: device => graph_device
    procedure :: input_info => graph_input_info
    procedure :: call_spec => graph_call_spec
    procedure :: constant_count => graph_constant_count
    procedure :: get_constant => graph_get_constant
    generic :: assignment(=) => graph_assign
    procedure, private :: graph_assign
    ! end generated
  end type neml2_graph

  ! Devices over which a model spreads its points; in neml2_capi_experimental.h see "Schedulers":
  !
  !     call scheduler%create()
  !     call scheduler%add(neml2_device_cpu, 512)
  !     call scheduler%add(neml2_device_cuda, 4096, capacity=8192, priority=2.0_real64)
  !     call model%load("aoti/viscoplastic", stat, scheduler=scheduler)
  type, extends(object) :: neml2_scheduler
  contains
    ! begin generated: neml2_scheduler
    procedure :: keep_rank => scheduler_keep_rank
    procedure :: create => scheduler_create
    procedure :: count => scheduler_count
    procedure :: info => scheduler_info
    generic :: assignment(=) => scheduler_assign
    generic :: add => add_int64, add_int32
    procedure, private :: scheduler_assign
    procedure, private :: add_int64, add_int32
    ! end generated
  end type neml2_scheduler

  ! What a subroutine that is an operator is given, until it returns. Arguments are counted from 1, in the order of the
  ! schema. In neml2_capi_experimental.h see "Operators".
  type :: neml2_operator_call
    private
    type(c_ptr) :: c = c_null_ptr
  contains
    ! begin generated: neml2_operator_call
    procedure :: size => operator_size
    procedure :: set_output => operator_set_output
    procedure :: find => operator_find
    procedure :: argument_info => operator_argument_info
    generic :: get => get_tensor, get_real64, get_logical, get_text, get_int64
    generic :: get_list => get_list_tensors, get_list_real64, get_list_int64
    procedure, private :: get_tensor, get_real64, get_logical, get_text, get_int64
    procedure, private :: get_list_tensors, get_list_real64, get_list_int64
    ! end generated
  end type neml2_operator_call

  abstract interface
    ! An operator of yours. It gives all outputs, or sets another stat than neml2_ok: see
    ! neml2_capi_experimental.h. It may run on
    ! several threads at once.
    subroutine neml2_operator(arguments, stat)
      import
      type(neml2_operator_call), intent(inout) :: arguments
      integer(int32), intent(out) :: stat
    end subroutine
  end interface

  interface
    ! The functions of neml2_capi_experimental.h.
    ! begin generated: interfaces
    integer(int32) function c_graph_open(out, source) bind(c, name="neml2_graph_open")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_source), intent(in), optional :: source
    end function
    integer(int32) function c_graph_check(runtime, source) bind(c, name="neml2_graph_check")
      import
      integer(int32), intent(inout), optional :: runtime
      type(c_source), intent(in), optional :: source
    end function
    subroutine c_graph_free(graph) bind(c, name="neml2_graph_free")
      import
      type(c_ptr), intent(inout), optional :: graph
    end subroutine
    integer(int32) function c_graph_inspect(out, graph) bind(c, name="neml2_graph_inspect")
      import
      type(c_graph_info), intent(inout), optional :: out
      type(c_ptr), value :: graph
    end function
    integer(int32) function c_graph_variable_count(out, graph, kind) bind(c, name="neml2_graph_variable_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: graph
      integer(int32), value :: kind
    end function
    integer(int32) function c_graph_variable_inspect(out, graph, kind, index) bind(c, &
      name="neml2_graph_variable_inspect")
      import
      type(c_graph_variable_info), intent(inout), optional :: out
      type(c_ptr), value :: graph
      integer(int32), value :: kind
      integer(int64), value :: index
    end function
    integer(int32) function c_graph_run(outputs, noutputs, graph, inputs, ninputs) bind(c, name="neml2_graph_run")
      import
      type(c_ptr), intent(inout), optional :: outputs(*)
      integer(int64), value :: noutputs, ninputs
      type(c_ptr), value :: graph
      type(c_ptr), intent(in), optional :: inputs(*)
    end function
    integer(int32) function c_graph_run_unguarded(outputs, noutputs, graph, inputs, ninputs) bind(c, &
      name="neml2_graph_run_unguarded")
      import
      type(c_ptr), intent(inout), optional :: outputs(*)
      integer(int64), value :: noutputs, ninputs
      type(c_ptr), value :: graph
      type(c_ptr), intent(in), optional :: inputs(*)
    end function
    integer(int32) function c_graph_constant_count(out, graph) bind(c, name="neml2_graph_constant_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: graph
    end function
    integer(int32) function c_graph_constant_get(out, name, graph, index) bind(c, name="neml2_graph_constant_get")
      import
      type(c_ptr), intent(inout), optional :: out, name
      type(c_ptr), value :: graph
      integer(int64), value :: index
    end function
    integer(int32) function c_graph_constant_set(graph, count, names, values, share) bind(c, &
      name="neml2_graph_constant_set")
      import
      type(c_ptr), value :: graph
      integer(int64), value :: count
      type(c_ptr), intent(in), optional :: names(*), values(*)
      integer(int32), value :: share
    end function
    integer(int32) function c_libtorch_suggest(place) bind(c, name="neml2_libtorch_suggest")
      import
      character(kind=c_char), intent(in), optional :: place(*)
    end function
    integer(int32) function c_libtorch_open(path, version) bind(c, name="neml2_libtorch_open")
      import
      type(c_ptr), intent(inout), optional :: path, version
    end function
    integer(int32) function c_operator_declare(schema) bind(c, name="neml2_operator_declare")
      import
      character(kind=c_char), intent(in), optional :: schema(*)
    end function
    integer(int32) function c_operator_register(schema, function, context) bind(c, name="neml2_operator_register")
      import
      character(kind=c_char), intent(in), optional :: schema(*)
      type(c_funptr), value :: function
      type(c_ptr), value :: context
    end function
    integer(int32) function c_operator_unregister(name) bind(c, name="neml2_operator_unregister")
      import
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_operator_call_count(out, call, kind) bind(c, name="neml2_operator_call_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int32), value :: kind
    end function
    integer(int32) function c_operator_call_find(out, call, name) bind(c, name="neml2_operator_call_find")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: call
      character(kind=c_char), intent(in), optional :: name(*)
    end function
    integer(int32) function c_operator_call_inspect(out, call, index) bind(c, name="neml2_operator_call_inspect")
      import
      type(c_argument_info), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: index
    end function
    integer(int32) function c_operator_call_get_tensors(out, call, index) bind(c, &
      name="neml2_operator_call_get_tensors")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: index
    end function
    integer(int32) function c_operator_call_get_integers(out, call, index) bind(c, &
      name="neml2_operator_call_get_integers")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: index
    end function
    integer(int32) function c_operator_call_get_reals(out, call, index) bind(c, name="neml2_operator_call_get_reals")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: index
    end function
    integer(int32) function c_operator_call_get_text(out, call, index) bind(c, name="neml2_operator_call_get_text")
      import
      type(c_ptr), intent(inout), optional :: out
      type(c_ptr), value :: call
      integer(int64), value :: index
    end function
    integer(int32) function c_operator_call_set_output(call, index, tensor) bind(c, &
      name="neml2_operator_call_set_output")
      import
      type(c_ptr), value :: call
      integer(int64), value :: index
      type(c_ptr), intent(inout), optional :: tensor
    end function
    integer(int32) function c_stream_set(index, stream) bind(c, name="neml2_stream_set")
      import
      integer(int32), value :: index
      type(c_ptr), value :: stream
    end function
    integer(int32) function c_call_bind_input_derivative(call, input, kind, variable, data, dtype, point_stride) &
      bind(c, name="neml2_call_bind_input_derivative")
      import
      type(c_ptr), value :: call, data
      character(kind=c_char), intent(in), optional :: input(*), variable(*)
      integer(int32), value :: kind, dtype
      integer(int64), value :: point_stride
    end function
    integer(int32) function c_call_memory_set(call, memory) bind(c, name="neml2_call_memory_set")
      import
      type(c_ptr), value :: call
      type(c_call_memory), intent(in), optional :: memory
    end function
    integer(int32) function c_call_wait(call) bind(c, name="neml2_call_wait")
      import
      type(c_ptr), value :: call
    end function
    integer(int32) function c_xla_handler_get(out) bind(c, name="neml2_xla_handler_get")
      import
      type(c_ptr), intent(inout), optional :: out
    end function
    integer(int32) function c_scheduler_create(out) bind(c, name="neml2_scheduler_create")
      import
      type(c_ptr), intent(inout), optional :: out
    end function
    integer(int32) function c_scheduler_add(scheduler, device) bind(c, name="neml2_scheduler_add")
      import
      type(c_ptr), value :: scheduler
      type(c_device), intent(in), optional :: device
    end function
    integer(int32) function c_scheduler_count(out, scheduler) bind(c, name="neml2_scheduler_count")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: scheduler
    end function
    integer(int32) function c_scheduler_inspect(out, scheduler, index) bind(c, name="neml2_scheduler_inspect")
      import
      type(c_device), intent(inout), optional :: out
      type(c_ptr), value :: scheduler
      integer(int64), value :: index
    end function
    integer(int32) function c_scheduler_keep_rank(scheduler, local_rank, local_size) bind(c, &
      name="neml2_scheduler_keep_rank")
      import
      type(c_ptr), value :: scheduler
      integer(int64), value :: local_rank, local_size
    end function
    subroutine c_scheduler_free(scheduler) bind(c, name="neml2_scheduler_free")
      import
      type(c_ptr), intent(inout), optional :: scheduler
    end subroutine
    integer(int32) function c_model_points(out, model, index) bind(c, name="neml2_model_points")
      import
      integer(int64), intent(inout), optional :: out
      type(c_ptr), value :: model
      integer(int64), value :: index
    end function
    ! end generated
  end interface

contains

  ! begin generated: handles
  impure elemental subroutine graph_assign(left, right)
    class(neml2_graph), intent(inout) :: left
    class(neml2_graph), intent(in) :: right
    call share(left, right)
  end subroutine graph_assign

  impure elemental subroutine scheduler_assign(left, right)
    class(neml2_scheduler), intent(inout) :: left
    class(neml2_scheduler), intent(in) :: right
    call share(left, right)
  end subroutine scheduler_assign
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! libtorch
  !
  ! What the built-in runtime lacks, libtorch has; the section libtorch of neml2_capi_experimental.h says more.
  ! ------------------------------------------------------------------------------------------

  ! The arrays of a call are on the device of its model from now on, and its work goes to `queue`: see "Arrays on a device" in
  ! neml2_capi_experimental.h. `kind` is neml2_memory_addresses unless given, `component_stride` 1. All that is bound is
  ! taken back. c_null_ptr is the default stream of CUDA; without a queue arrays are on the host again.
  subroutine neml2_call_memory_set(self, stat, errmsg, queue, kind, component_stride)
    class(neml2_call), intent(in) :: self
    type(c_ptr), intent(in), optional :: queue
    integer(int32), intent(in), optional :: kind
    integer(int64), intent(in), optional :: component_stride
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_call_memory) :: given
    if (present(queue)) then
      given%queue = queue
      if (present(kind)) given%kind = kind
      if (present(component_stride)) given%component_stride = component_stride
      outcome = c_call_memory_set(c_handle(self), given)
    else
      outcome = c_call_memory_set(c_handle(self))
    end if
    if (outcome == neml2_ok) call forget(self, given%component_stride)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_call_memory_set

  ! Bind the derivative of an input with respect to an input or, with `of_parameter`, a parameter, which is read:
  ! (variable, input, point), or one value for all points with a stride of 0. See "Derivatives through steps" in
  ! neml2_capi_experimental.h.
  subroutine neml2_call_bind_input_derivative(self, input, variable, array, stat, errmsg, of_parameter, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: input, variable
    type(neml2_view), intent(in) :: array
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    character(:), allocatable :: by, known
    integer(int64) :: distance, points, point_size, room
    integer(int32) :: outcome, kind, role
    type(c_ptr) :: start
    integer :: k
    kind = merge(neml2_parameter, neml2_input, is_true(of_parameter))
    role = merge(input_parameter_derivative, input_derivative, is_true(of_parameter))
    by = trim(variable)
    if (is_true(of_parameter)) call find_full_name(self, variable, by)
    known = trim(input)//":"//by
    point_size = point_size_of(self, neml2_input, input) * point_size_of(self, kind, by)
    call place(self, array, role_name(role)//" '"//known//"'", known, first, stride, point_size, start, distance, &
               points, room, outcome)
    if (outcome == neml2_ok) &
      outcome = c_call_bind_input_derivative(c_handle(self), c_text(input), kind, c_text(variable), start, &
                                             dtype_of(array), distance)
    if (outcome == neml2_ok) then
      call add_extent(self, role, known, k)
      call remember(self, k, points, distance, 0_int64, room)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_call_bind_input_derivative

  ! begin generated: libtorch
  ! Suggest the place of libtorch, in case nothing else names it: libtorch_cpu.so or the folder that holds it.
  != neml2_libtorch_suggest
  subroutine neml2_libtorch_suggest(place, stat, errmsg)
    character(*), intent(in) :: place
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_libtorch_suggest(c_text(place))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_libtorch_suggest

  ! Open libtorch, unless it is, and tell its file and its version: neml2_error_file if there is none,
  ! neml2_error_unsupported if it lacks something.
  != neml2_libtorch_open -> path, version
  subroutine neml2_libtorch_open(path, version, stat, errmsg)
    character(:), allocatable, intent(inout) :: path, version
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_path, c_version
    c_path = c_null_ptr
    c_version = c_null_ptr
    outcome = c_libtorch_open(c_path, c_version)
    if (outcome == neml2_ok) then
      call read_c(c_path, path)
      call read_c(c_version, version)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_libtorch_open

  ! Tell the schema of a custom operator, before a package that calls it is loaded for libtorch.
  != neml2_operator_declare
  subroutine neml2_operator_declare(schema, stat, errmsg)
    character(*), intent(in) :: schema
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_operator_declare(c_text(schema))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_operator_declare

  ! Put this thread's work on CUDA device `index` on `stream`, a cudaStream_t; c_null_ptr: on torch's current stream.
  != neml2_stream_set
  subroutine neml2_stream_set(index, stream, stat, errmsg)
    integer(int32), intent(in) :: index
    type(c_ptr), intent(in) :: stream
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_stream_set(index, stream)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_stream_set

  ! Wait for the runs of a call over memory of a device: the greatest status of a point in all of them since the last wait.
  != neml2_call_wait
  subroutine neml2_call_wait(self, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_call_wait(c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_call_wait
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Operators
  ! ------------------------------------------------------------------------------------------

  ! What the library calls for all operators: the context is the subroutine.
  function call_operator(context, arguments) result(stat) bind(c)
    type(c_ptr), value :: context, arguments
    integer(int32) :: stat
    procedure(neml2_operator), pointer :: given
    type(neml2_operator_call) :: view
    call c_f_procpointer(transfer(context, c_null_funptr), given)
    stat = neml2_ok
    view%c = arguments
    call given(view, stat)
  end function call_operator

  ! How many arguments the schema has, and how many tensors are to be given.
  subroutine operator_size(self, narguments, noutputs, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(inout) :: narguments, noutputs
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_operator_call_count(narguments, self%c, neml2_input)
    if (outcome == neml2_ok) outcome = c_operator_call_count(noutputs, self%c, neml2_output)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine operator_size

  ! The values of an argument that is not None, and its length: tensors, unless it is of a kind of number.
  subroutine read_argument(self, index, dtype, values, count, outcome)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int32), intent(in) :: dtype
    type(c_ptr), intent(out) :: values
    integer(int64), intent(out) :: count
    integer(int32), intent(out) :: outcome
    type(c_argument_info) :: info
    character(:), allocatable :: name
    values = c_null_ptr
    outcome = c_operator_call_inspect(info, self%c, index - 1)
    count = abs(info%count)
    if (outcome /= neml2_ok) return
    select case (dtype)
    case (neml2_float64)
      outcome = c_operator_call_get_reals(values, self%c, index - 1)
    case (neml2_int64)
      outcome = c_operator_call_get_integers(values, self%c, index - 1)
    case (neml2_uint8)
      outcome = c_operator_call_get_text(values, self%c, index - 1)
    case default
      outcome = c_operator_call_get_tensors(values, self%c, index - 1)
    end select
    if (outcome /= neml2_ok .or. c_associated(values)) return
    call read_c(info%name, name)
    outcome = raised(neml2_error_missing, name, &
                     "The argument '"//name//"' is None: ask argument_info before its value.")
  end subroutine read_argument

  ! A tensor. Its values are not to be written, and are gone when the operator returns.
  subroutine get_tensor(self, index, tensor, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: values
    type(c_ptr), pointer :: handles(:)
    integer(int64) :: count
    call read_argument(self, index, 0_int32, values, count, outcome)
    if (outcome == neml2_ok) then
      call c_f_pointer(values, handles, [1])
      call share_tensor(handles(1), tensor, outcome)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_tensor

  subroutine get_real64(self, index, number, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    real(real64), intent(inout) :: number
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    real(real64), allocatable :: list(:)
    call self%get_list(index, list, outcome)
    if (outcome == neml2_ok) number = list(1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_real64

  subroutine get_logical(self, index, truth, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    logical, intent(inout) :: truth
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64) :: number
    call self%get(index, number, outcome)
    if (outcome == neml2_ok) truth = number /= 0
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_logical

  subroutine get_text(self, index, text, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout) :: text
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: values
    integer(int64) :: count
    call read_argument(self, index, neml2_uint8, values, count, outcome)
    if (outcome == neml2_ok) call read_c(values, text)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_text

  ! A list of tensors; one that is None is not set.
  subroutine get_list_tensors(self, index, tensors, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), allocatable, intent(inout) :: tensors(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: values
    type(c_ptr), pointer :: handles(:)
    integer(int64) :: count, i
    call read_argument(self, index, 0_int32, values, count, outcome)
    if (outcome == neml2_ok) then
      if (allocated(tensors)) deallocate (tensors)
      allocate (tensors(count))
      call c_f_pointer(values, handles, [count])
      do i = 1, count
        if (outcome == neml2_ok .and. c_associated(handles(i))) call share_tensor(handles(i), tensors(i), outcome)
      end do
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_list_tensors

  subroutine get_list_real64(self, index, list, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    real(real64), allocatable, intent(inout) :: list(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: values
    real(real64), pointer :: numbers(:)
    integer(int64) :: count
    call read_argument(self, index, neml2_float64, values, count, outcome)
    if (outcome == neml2_ok) then
      call c_f_pointer(values, numbers, [count])
      list = numbers
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_list_real64

  ! Give an output. Its values are copied: the tensor stays yours.
  subroutine operator_set_output(self, index, tensor, stat, errmsg)
    class(neml2_operator_call), intent(inout) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), intent(in) :: tensor
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: given
    given = c_null_ptr
    outcome = c_tensor_share(given, c_handle(tensor))
    if (outcome == neml2_ok) outcome = c_operator_call_set_output(self%c, index - 1, given)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine operator_set_output

  ! Another handle to a tensor.
  subroutine share_tensor(handle, tensor, outcome)
    type(c_ptr), intent(in) :: handle
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out) :: outcome
    type(c_ptr) :: other
    other = c_null_ptr
    outcome = c_tensor_share(other, handle)
    if (outcome == neml2_ok) call take(tensor, other, c_tensor_free)
  end subroutine share_tensor

  ! begin generated: operators
  ! Register a subroutine for the packages that are loaded from now on: one of a module, not one that another procedure
  ! contains.
  != neml2_operator_register
  subroutine neml2_operator_register(schema, procedure, stat, errmsg)
    character(*), intent(in) :: schema
    procedure(neml2_operator) :: procedure
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_operator_register(c_text(schema), c_funloc(call_operator), transfer(c_funloc(procedure), c_null_ptr))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_operator_register

  ! Unregister an operator by its name, "mylib::scale.overload": when this returns, no thread is in the subroutine.
  != neml2_operator_unregister
  subroutine neml2_operator_unregister(name, stat, errmsg)
    character(*), intent(in) :: name
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_operator_unregister(c_text(name))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_operator_unregister

  ! The position of an argument.
  != operator_find: operator_call_find -> index = out + 1
  subroutine operator_find(self, name, index, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    character(*), intent(in) :: name
    integer(int64), intent(inout) :: index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64) :: c_index
    outcome = c_operator_call_find(c_index, self%c, c_text(name))
    if (outcome == neml2_ok) index = c_index + 1
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine operator_find

  ! The name of an argument, what it is (neml2_argument_none and so on), and its length if it is a list, else -1.
  != operator_argument_info: operator_call_inspect -> name, kind, count
  subroutine operator_argument_info(self, index, name, kind, count, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout) :: name
    integer(int32), intent(inout) :: kind
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_argument_info) :: info
    outcome = c_operator_call_inspect(info, self%c, index - 1)
    if (outcome == neml2_ok) then
      call read_c(info%name, name)
      kind = info%kind
      count = info%count
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine operator_argument_info

  != get: also(int64)

  subroutine get_int64(self, index, number, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(inout) :: number
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64), allocatable :: list(:)
    call self%get_list(index, list, outcome)
    if (outcome == neml2_ok) number = list(1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_int64

  != get_list: also(int64)

  subroutine get_list_int64(self, index, list, stat, errmsg)
    class(neml2_operator_call), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), allocatable, intent(inout) :: list(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: values
    integer(int64), pointer :: numbers(:)
    integer(int64) :: count
    call read_argument(self, index, neml2_int64, values, count, outcome)
    if (outcome == neml2_ok) then
      call c_f_pointer(values, numbers, [count])
      list = numbers
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_list_int64
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Graphs
  !
  ! Inputs are checked: neml2_error_argument for their number, neml2_error_shape, neml2_error_dtype.
  ! ------------------------------------------------------------------------------------------

  ! Whether a graph has been loaded, and not been freed.
  pure logical function graph_is_loaded(self)
    class(neml2_graph), intent(in) :: self
    graph_is_loaded = self%is_set()
  end function graph_is_loaded

  ! How many tensors the graph takes and returns.
  subroutine graph_arity(self, ninputs, noutputs, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(inout) :: ninputs, noutputs
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_graph_variable_count(ninputs, c_handle(self), neml2_input)
    if (outcome == neml2_ok) outcome = c_graph_variable_count(noutputs, c_handle(self), neml2_output)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_arity

  ! The name of an input, and its axes from the outermost to the innermost one in memory, if its elements lie side by
  ! side: n, ..., 2, 1 if the array is one as Fortran has it. The name is what the author of the package gave, if
  ! the package tells, else one that torch made up, such as "arg0_1".
  subroutine graph_input_layout(self, index, name, order, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout), optional :: name
    integer(int64), allocatable, intent(inout), optional :: order(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_variable_info) :: info
    integer(int64), pointer :: c_axes(:)
    outcome = c_graph_variable_inspect(info, c_handle(self), neml2_input, index - 1)
    if (outcome == neml2_ok) then
      if (present(name)) call read_c(info%name, name)
      if (present(order)) then
        call c_f_pointer(info%order, c_axes, [info%ndim])
        order = info%ndim - c_axes
      end if
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_input_layout

  ! The name of an output, its element type and extents, as far as the package tells: -1 for an extent that depends on
  ! the inputs. What an operator outside of the package returns may have the element type 0; `extents` is not allocated
  ! then.
  subroutine graph_output_info(self, index, name, dtype, extents, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout), optional :: name
    integer(int32), intent(inout), optional :: dtype
    integer(int64), allocatable, intent(inout), optional :: extents(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_variable_info) :: info
    outcome = c_graph_variable_inspect(info, c_handle(self), neml2_output, index - 1)
    if (outcome == neml2_ok) then
      if (present(name)) call read_c(info%name, name)
      if (present(dtype)) dtype = info%dtype
      if (present(extents)) then
        if (allocated(extents)) deallocate (extents)
        if (info%ndim >= 0) extents = reversed(info%least, info%ndim)
      end if
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_output_info

  ! Run the graph. Results may share storage with the inputs and with one another, and need not lie side by side:
  ! neml2_tensor%copy reads them all. With `guards` .false. the inputs are not checked, except for their number, and not
  ! copied if they lie in memory otherwise than the package wants: those that do not fit give wrong results, or end
  ! the process.
  subroutine graph_run(self, inputs, outputs, stat, errmsg, guards)
    class(neml2_graph), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: outputs(:)
    logical, intent(in), optional :: guards
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    logical :: guarded
    type(c_ptr), allocatable :: given(:), results(:)
    call read_handles(inputs, given)
    allocate (results(size(outputs) + 1))
    results = c_null_ptr
    guarded = .true.
    if (present(guards)) guarded = guards
    if (guarded) then
      outcome = c_graph_run(results, size(outputs, kind=int64), c_handle(self), given, size(inputs, kind=int64))
    else
      outcome = c_graph_run_unguarded(results, size(outputs, kind=int64), c_handle(self), given, &
                                      size(inputs, kind=int64))
    end if
    if (outcome == neml2_ok) call take_handles(outputs, results)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_run

  ! Replace constants, values(i) for names(i), all at once, while the graph may be running: a run uses the values that
  ! it began with. The tensors are copied; with `share` their memory is used, and must not be written any more.
  ! neml2_error_name, neml2_error_dtype or neml2_error_shape if one does not fit, and nothing is replaced.
  subroutine graph_set_constants(self, names, values, stat, errmsg, share)
    class(neml2_graph), intent(in) :: self
    character(*), intent(in) :: names(:)
    type(neml2_tensor), intent(in) :: values(:)
    logical, intent(in), optional :: share
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome, shared
    character(len(names) + 1, c_char), allocatable, target :: texts(:)
    type(c_ptr), allocatable :: handles(:), pointers(:)
    integer :: i
    shared = 0
    if (present(share)) shared = merge(1, 0, share)
    call read_handles(values, handles)
    allocate (texts(size(values)), pointers(size(values) + 1))
    pointers = c_null_ptr
    do i = 1, min(size(values), size(names))
      texts(i) = trim(names(i)) // c_null_char
      pointers(i) = c_loc(texts(i))
    end do
    outcome = c_graph_constant_set(c_handle(self), size(values, kind=int64), pointers, handles, shared)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_set_constants

  ! begin generated: graphs
  ! Load a package (.pt2). What it needs and is not there is named. `device` is that of the package unless given, and
  ! `runtime` neml2_runtime_auto.
  != graph_load: graph_open -> self, path, [device], [device_index], [runtime]
  subroutine graph_load(self, path, stat, errmsg, device, device_index, runtime)
    class(neml2_graph), intent(inout) :: self
    character(*), intent(in) :: path
    integer(int32), intent(in), optional :: device, device_index, runtime
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_self
    type(c_source) :: source
    character(kind=c_char, len=:), allocatable, target :: c_path
    c_self = c_null_ptr
    c_path = c_text(path)
    source%path = c_loc(c_path)
    if (present(device)) source%device = device
    if (present(device_index)) source%device_index = device_index
    if (present(runtime)) source%runtime = runtime
    outcome = c_graph_open(c_self, source)
    if (outcome == neml2_ok) call take(self, c_self, c_graph_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_load

  ! Load a package whose file has been read: its bytes, which are not needed any more then.
  != graph_load_bytes: graph_open -> self, content, [device], [device_index], [runtime]
  subroutine graph_load_bytes(self, content, stat, errmsg, device, device_index, runtime)
    class(neml2_graph), intent(inout) :: self
    integer(int8), target, intent(in), contiguous :: content(:)
    integer(int32), intent(in), optional :: device, device_index, runtime
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_self
    type(c_source) :: source
    c_self = c_null_ptr
    source%content = c_loc(content)
    source%content_size = size(content, kind=int64)
    if (present(device)) source%device = device
    if (present(device_index)) source%device_index = device_index
    if (present(runtime)) source%runtime = runtime
    outcome = c_graph_open(c_self, source)
    if (outcome == neml2_ok) call take(self, c_self, c_graph_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_load_bytes

  ! Runtime of the graph: neml2_runtime_builtin or neml2_runtime_libtorch.
  != graph_runtime: graph_inspect -> runtime
  subroutine graph_runtime(self, runtime, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int32), intent(inout) :: runtime
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_info) :: info
    outcome = c_graph_inspect(info, c_handle(self))
    if (outcome == neml2_ok) runtime = info%runtime
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_runtime

  ! Device of the inputs and outputs of the graph: neml2_device_cpu or neml2_device_cuda, and which of the CUDA devices.
  != graph_device: graph_inspect -> type = device, index = device_index
  subroutine graph_device(self, type, index, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int32), intent(inout) :: type, index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_info) :: info
    outcome = c_graph_inspect(info, c_handle(self))
    if (outcome == neml2_ok) then
      type = info%device
      index = info%device_index
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_device

  ! Layout that an input was compiled for: its element type, and the least and the greatest extent of each axis.
  != graph_input_info: graph_variable_inspect(neml2_input) -> dtype, least, greatest
  subroutine graph_input_info(self, index, dtype, least, greatest, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int32), intent(inout) :: dtype
    integer(int64), allocatable, intent(inout) :: least(:), greatest(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_variable_info) :: info
    outcome = c_graph_variable_inspect(info, c_handle(self), neml2_input, index - 1)
    if (outcome == neml2_ok) then
      dtype = info%dtype
      least = reversed(info%least, info%ndim)
      greatest = reversed(info%greatest, info%ndim)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_input_info

  ! How arguments and results are made of tensors: torch's pytree specifications in JSON, or empty.
  != graph_call_spec: graph_inspect -> in_spec, out_spec
  subroutine graph_call_spec(self, in_spec, out_spec, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    character(:), allocatable, intent(inout) :: in_spec, out_spec
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_graph_info) :: info
    outcome = c_graph_inspect(info, c_handle(self))
    if (outcome == neml2_ok) then
      call read_c(info%in_spec, in_spec)
      call read_c(info%out_spec, out_spec)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_call_spec

  != graph_constant_count -> count
  ! Count the constants (weights, buffers) of the graph. A package of neml2_capi.export.package() has all. In others,
  ! the compiler turns some into numbers in the code: constants of 8 elements or fewer, and constants whose elements are
  ! all equal.
  subroutine graph_constant_count(self, count, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_graph_constant_count(count, c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_constant_count

  ! A copy of a constant, and its name in the module that was compiled, such as "layers.0.weight".
  != graph_get_constant: graph_constant_get -> value, name?
  subroutine graph_get_constant(self, index, value, name, stat, errmsg)
    class(neml2_graph), intent(in) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), intent(inout) :: value
    character(:), allocatable, intent(inout), optional :: name
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_value, c_name
    c_value = c_null_ptr
    c_name = c_null_ptr
    outcome = c_graph_constant_get(c_value, c_name, c_handle(self), index - 1)
    if (outcome == neml2_ok) then
      call take(value, c_value, c_tensor_free)
      if (present(name)) call read_c(c_name, name)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine graph_get_constant
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Schedulers
  !
  ! neml2_error_argument for a number out of its bounds, and if no scheduler was created.
  ! ------------------------------------------------------------------------------------------

  ! Add neml2_device_cpu, or neml2_device_cuda with the `device_index` 0 unless given. `batch_size` is the number of
  ! points of a sub-batch; 0, for a single device only, is no bound. `capacity` is the number of points that the
  ! device may be given at once: twice batch_size, unless given. Of devices with capacity left the one of the greatest
  ! `priority`, else 1, gets the next sub-batch. `runtime` is as for a model.
  subroutine add_int64(self, device, batch_size, stat, errmsg, capacity, priority, runtime, device_index)
    class(neml2_scheduler), intent(inout) :: self
    integer(int32), intent(in) :: device
    integer(int64), intent(in) :: batch_size
    integer(int64), intent(in), optional :: capacity
    real(real64), intent(in), optional :: priority
    integer(int32), intent(in), optional :: runtime, device_index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_device) :: given
    given%device = device
    given%batch_size = batch_size
    given%priority = 1
    if (present(capacity)) given%capacity = capacity
    if (present(priority)) given%priority = priority
    if (present(runtime)) given%runtime = runtime
    if (present(device_index)) given%device_index = device_index
    outcome = c_scheduler_add(c_handle(self), given)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine add_int64

  ! For a process of many on one node, as MPI's, `local_rank` from 0 of `local_size`: keep one device, by that number
  ! modulo their count. neml2_error_argument if there are fewer processes than devices.
  subroutine scheduler_keep_rank(self, local_rank, local_size, stat, errmsg)
    class(neml2_scheduler), intent(inout) :: self
    integer(int32), intent(in) :: local_rank, local_size
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_scheduler_keep_rank(c_handle(self), int(local_rank, int64), int(local_size, int64))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine scheduler_keep_rank

  ! begin generated: schedulers
  ! A scheduler without devices.
  != scheduler_create -> self
  subroutine scheduler_create(self, stat, errmsg)
    class(neml2_scheduler), intent(inout) :: self
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_self
    c_self = c_null_ptr
    outcome = c_scheduler_create(c_self)
    if (outcome == neml2_ok) call take(self, c_self, c_scheduler_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine scheduler_create

  != scheduler_count -> count
  ! Count the devices.
  subroutine scheduler_count(self, count, stat, errmsg)
    class(neml2_scheduler), intent(in) :: self
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_scheduler_count(count, c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine scheduler_count

  ! Inspect the device that was added, with the capacity that it has.
  != scheduler_info: scheduler_inspect -> device, [batch_size], [capacity], [priority], [runtime], [device_index]
  subroutine scheduler_info(self, index, device, stat, errmsg, batch_size, capacity, priority, runtime, device_index)
    class(neml2_scheduler), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int32), intent(inout) :: device
    integer(int64), intent(inout), optional :: batch_size, capacity
    real(real64), intent(inout), optional :: priority
    integer(int32), intent(inout), optional :: runtime, device_index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_device) :: info
    outcome = c_scheduler_inspect(info, c_handle(self), index - 1)
    if (outcome == neml2_ok) then
      device = info%device
      if (present(batch_size)) batch_size = info%batch_size
      if (present(capacity)) capacity = info%capacity
      if (present(priority)) priority = info%priority
      if (present(runtime)) runtime = info%runtime
      if (present(device_index)) device_index = info%device_index
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine scheduler_info

  != add: also(int32)

  subroutine add_int32(self, device, batch_size, stat, errmsg, capacity, priority, runtime, device_index)
    class(neml2_scheduler), intent(inout) :: self
    integer(int32), intent(in) :: device
    integer(int32), intent(in) :: batch_size
    integer(int32), intent(in), optional :: capacity
    real(real64), intent(in), optional :: priority
    integer(int32), intent(in), optional :: runtime, device_index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_device) :: given
    given%device = device
    given%batch_size = batch_size
    given%priority = 1
    if (present(capacity)) given%capacity = capacity
    if (present(priority)) given%priority = priority
    if (present(runtime)) given%runtime = runtime
    if (present(device_index)) given%device_index = device_index
    outcome = c_scheduler_add(c_handle(self), given)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine add_int32

  ! How many points a device of a model's scheduler has evaluated since the model was loaded.
  != neml2_model_points -> count
  subroutine neml2_model_points(self, index, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_points(count, c_handle(self), index - 1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_model_points
  ! end generated

end module neml2_capi_experimental
