! The Fortran face of neml2_capi: compiled material models from Fortran 2018, over the C ABI of neml2_capi.h alone.
!
!
! A FIRST PROGRAM
!
! Elasticity, for 8 material points:
!
! >>> first.f90
!     program first
!       use, intrinsic :: iso_fortran_env, only: int32, real64
!       use neml2_capi, only: neml2_call, neml2_model, neml2_ok, neml2_view
!       implicit none
!       type(neml2_model) :: model
!       type(neml2_call) :: evaluation
!       real(real64), target :: strain(6, 8), stress(6, 8) ! Mandel: xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy
!       character(:), allocatable :: errmsg
!       integer(int32) :: stat
!
!       strain = 0
!       strain(1, :) = 1e-3_real64
!       call model%load("aoti/elasticity", stat, errmsg)
!       if (stat == neml2_ok) call evaluation%create(model, stat, errmsg)
!       if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(strain), stat, errmsg)
!       if (stat == neml2_ok) call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg)
!       if (stat == neml2_ok) call evaluation%run(8, stat, errmsg)
!       if (stat == neml2_ok) then
!         print "(6es14.6)", stress(:, 1)
!       else
!         print "(a)", errmsg
!       end if
!     end program first
! <<<
!
! Compile the module with your program and its options, because module files fit one compiler only:
!
!     gfortran -fopenmp DIR/include/neml2_capi_c.f90 DIR/include/neml2_capi.f90 first.f90 \
!       -L DIR/lib -Wl,-rpath,DIR/lib -lneml2_capi
!
! or, with CMake, find_package(neml2_capi) and link neml2_capi::fortran. neml2_capi_experimental.f90, compiled after
! them, has what may change in any release: graphs, operators, schedulers. A host with other threads than OpenMP's
! compiles with -frecursive.
!
!
! A FINITE-ELEMENT HOST
!
! needs a neml2_model, which all threads share, and in each thread a neml2_call. A call binds arrays by name once, and
! evaluates the points in them any number of times, where they are:
!
!     call evaluation%bind_input("strain~1", neml2_view(old_strain))           ! x~1: x at the previous step
!     call evaluation%bind_output("stress", neml2_view(state(1:6, :)))         ! variables may share one array of state,
!     call evaluation%bind_output("plastic_strain", neml2_view(state(7, :)))   ! here state(7, n)
!     call evaluation%bind_input("t", neml2_view(time))                        ! a scalar is one value for all points
!     call evaluation%bind_input("stress~1", neml2_view(zero), stride=0)       ! so is an array with a stride of 0
!     call evaluation%bind_parameter("elasticity.E", neml2_view(modulus))      ! in this call; set_parameter for all
!     call evaluation%bind_derivative("stress", "strain", neml2_view(tangent)) ! (strain, stress, point)
!     call evaluation%set_block_order(neml2_input_first)                       ! (stress, strain, point), as DDSDDE
!     call evaluation%bind_report(neml2_report_status, neml2_view(status))     ! of each point; there are more reports
!     call evaluation%run(n, stat)
!     if (stat > 0) ...                                                        ! some points failed: cut the step
!
! More advanced: directional derivatives (bind_tangent with bind_jvp, bind_cotangent with bind_adjoint); evaluation with
! tensors of any batch shape (neml2_model%forward, jvp, vjp, jacobian); a Newton loop of your own (neml2_solve).
! neml2_log_next takes messages of the solvers.
!
!
! CONVENTIONS
!
! Status      Every procedure that can fail has the optional arguments `stat` and `errmsg`. stat = 0 is success;
!             positive is recoverable: some points failed, and the others hold good results; negative is fatal: the
!             request was wrong, and nothing was changed. errmsg says what was wrong, what was expected and what to do,
!             and is empty on success. Without stat the program stops with the message if something fails, as ALLOCATE
!             does; a value or a derivative that is not finite is no failure, but stat is then neml2_non_finite.
!             neml2_error_message gives the last error of the thread, too, and neml2_get_error_message with character
!             variables of fixed length; success does not clear it. What fails leaves its other arguments as they were,
!             unless said otherwise.
! Shapes      C's (n, 6) is Fortran's (6, n): the same memory, never copied. Shapes are given in Fortran's order.
!             Variables, options, unknowns and elements of an array are counted from 1.
! Arrays      neml2_view(array) looks at an array of any rank and kind, without a copy. The array has the TARGET or the
!             POINTER attribute; the compiler refuses one without, and an expression. Its kind is the variable's: real64
!             or, in a model of float32, real32; for integers of a model, int64 or int32. Another kind is
!             neml2_error_dtype. It is read and written where it is until another is bound. neml2_view() without an
!             array, or of a null pointer, takes the binding back.
!             `stride` is the distance from one point to the next in elements: the product of all extents but the
!             last unless it is given; with 0 there is one value for all points or, of an adjoint, their sum. An array
!             (6, quadrature point, element) has stride=6. `first` is the position of the first value in the array.
!             A section with gaps may be bound if the values of a point lie side by side, and the points at one
!             distance: state(1:6, :), state(7, :), strain(:, 2, :). A call remembers how many points an array holds: a
!             run of more is neml2_error_shape, and touches nothing.
! Ownership   Objects are freed with their last copy: `b = a` makes another name for the same object, and `free` drops
!             one. There are subroutines to create objects and no functions, for gfortran does not finalize their
!             results. Variables of the main program live until its end; `free` them to see a clean valgrind.
!             Objects as components: `b%model = a%model` shares as above; give a type of yours that contains objects an
!             assignment(=) which does so for each, as tests/fortran/test_handles.f90 does. After its intrinsic assignment
!             by gfortran 12 an object may never be freed. A component that is an array of objects must be allocatable:
!             the programs of gfortran 12 crash if its extents are fixed.
!             Copies that Fortran makes bit by bit keep nothing alive: firstprivate(a), allocate (b, source=a), the
!             elements of [list, a]. They may be used as long as the original is there, and freed, created or assigned
!             at any time, which leaves the original alone. `list = [list, a]` gives `list` no more room: allocate
!             another, more = [list, a], and call move_alloc(more, list). What stands left of b = a must exist:
!             allocate (b) before. To change the order of an array of objects, exchange two at a time by a third: in
!             a = a(n:1:-1) what is freed first is still needed.
!             OpenMP: each thread creates or assigns its private(a), and frees it before the region ends, for gfortran
!             12 does not. What is created in the copy of a section with gaps that a dummy array(n) is, or taken from a
!             thread by lastprivate, may never be freed.
! Threads     A loaded model may be called from many threads at once, a call, a tensor, a report and a solve by one at a
!             time. Threads of OpenMP may make and drop copies of one object at once if this module is compiled with
!             -fopenmp, too; others one at a time. Creating a call makes no copy of the model. Errors are kept per thread.
! Floating    Traps, rounding and flush-to-zero are set to their defaults inside the library and restored on return:
!   point     hosts that are compiled with -ffpe-trap can call.
! Not here    DLPack, which is for exchange with C and Python: see neml2_capi.h.
!
! The procedures are in neml2_capi_internal, which is for neml2_capi_experimental.f90, too; use neml2_capi.
module neml2_capi_internal
  use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_f_procpointer, c_funloc, c_intptr_t, c_loc, &
                                         c_null_char, c_null_funptr, real32 => c_float
  use neml2_capi_c
  implicit none(type, external)
  public

  ! What an array can be bound as beside the roles of neml2_capi.h.
  integer(int32), parameter :: derivative = neml2_parameter_adjoint + 1
  integer(int32), parameter :: parameter_derivative = neml2_parameter_adjoint + 2
  integer(int32), parameter :: report = neml2_parameter_adjoint + 3
  integer(int32), parameter :: input_derivative = neml2_parameter_adjoint + 4
  integer(int32), parameter :: input_parameter_derivative = neml2_parameter_adjoint + 5

  ! As messages name them.
  character(*), parameter :: role_names(neml2_input:input_parameter_derivative) = &
    [character(16) :: "input", "output", "parameter", "unknown", "tangent of", "jvp of", "cotangent of", "adjoint of", &
                      "adjoint of", "derivative", "derivative", "report", "input derivative", &
                      "input derivative"]
  character(*), parameter :: report_names(neml2_report_status:neml2_report_rescue_solves) = &
    [character(16) :: "status", "iterations", "residual norm", "residual history", "suggested cut", &
                      "rescue solves"]
  character(*), parameter :: kind_names(neml2_float64:neml2_int32) = &
    [character(6) :: "real64", "real32", "int64", "int32"]
  integer(int64), parameter :: bytes(neml2_float64:neml2_int32) = [8, 4, 8, 4]

  ! An array of the host as it lies in memory. Extents and strides, in elements, are not allocated if it is a null
  ! pointer, nor are the strides if they are not known.
  type :: neml2_view
    private
    type(c_ptr) :: base = c_null_ptr
    integer(int32) :: dtype = neml2_float64
    logical :: dense = .true.
    integer(int64), allocatable :: extents(:), strides(:)
  end type neml2_view

  ! What a call knows of an array that it can bind: the values of one point, and the points that it holds. A derivative
  ! has the name "output:variable".
  type :: extent
    integer(int32) :: role
    character(:), allocatable :: name
    integer(int64) :: point_size = 1
    integer(int64) :: points = huge(0_int64) ! no limit before an array is bound
    ! Elements from a point and from a step to the next, and the elements behind the first point.
    integer(int64) :: distance = 0, step = 0, room = huge(0_int64)
  end type extent

  ! A handle of the C library, and the number of Fortran objects that refer to it.
  type :: shared_handle
    type(c_ptr) :: c = c_null_ptr
    procedure(free_handle), pointer, nopass :: free => null()
    integer :: uses = 1
    type(extent), allocatable :: extents(:) ! of a call, all that can be bound,
    integer(int64) :: points = huge(0_int64) ! and the points that all its arrays hold
    integer(int64) :: component_stride = 1 ! of its arrays, from one value of a point to the next
    type(c_ptr) :: system = c_null_ptr ! of a solve, the current one
    integer(int64) :: outputs = 0 ! of a solve with tensors, how many it gives
  end type shared_handle

  ! An object refers to a handle, and the last one that does frees it. Compilers copy objects bit by bit,
  ! and gfortran leaves private ones of OpenMP unset. So a handle counts only if the mark fits, and a reference is given
  ! back only at the place that it was counted at: none is given back twice, and one that was moved bit by bit, as a copy
  ! that is written over its original, never. valgrind tells of the unset mark that is read.
  type :: object
    private
    type(shared_handle), pointer :: shared => null()
    integer(c_intptr_t) :: mark = 0 ! the complement of the address in `shared`; 0 if there is no handle
    integer(c_intptr_t) :: place = 0 ! the address of the object itself
  contains
    procedure :: is_set => object_is_set
    procedure :: free => object_free
    final :: object_final
  end type object

  ! A compiled material model. Any number of threads may evaluate it at once.
  type, extends(object) :: neml2_model
  contains
    ! begin generated: neml2_model
    procedure :: is_loaded => model_is_loaded
    procedure :: variable_find => model_variable_find
    procedure :: option_info => model_option_info
    procedure :: bound_info => model_bound_info
    procedure :: load => model_load
    procedure :: runtime => model_runtime
    procedure :: device => model_device
    procedure :: dtype => model_dtype
    procedure :: variable_count => model_variable_count
    procedure :: variable_name => model_variable_name
    procedure :: variable_shape => model_variable_shape
    procedure :: variable_dtype => model_variable_dtype
    procedure :: derivative_count => model_derivative_count
    procedure :: derivative_info => model_derivative_info
    procedure :: history_count => model_history_count
    procedure :: history_info => model_history_info
    procedure :: bound_count => model_bound_count
    procedure :: describe => model_describe
    procedure :: checksum => model_checksum
    procedure :: option_count => model_option_count
    procedure :: parameter_tensor => model_parameter_tensor
    procedure :: forward => model_forward
    procedure :: forward_with => model_forward_with
    procedure :: jvp => model_jvp
    procedure :: vjp => model_vjp
    procedure :: jacobian => model_jacobian
    procedure :: param_jacobian => model_param_jacobian
    procedure :: param_vjp => model_param_vjp
    generic :: assignment(=) => model_assign
    generic :: set_parameter => set_parameter_real64, set_parameter_real32
    generic :: get_parameter => get_parameter_real64, get_parameter_real32
    generic :: set_option => set_option_number, set_option_text
    generic :: get_option => get_option_number, get_option_text
    procedure, private :: model_assign
    procedure, private :: set_parameter_real64, set_parameter_real32
    procedure, private :: get_parameter_real64, get_parameter_real32
    procedure, private :: set_option_number, set_option_text
    procedure, private :: get_option_number, get_option_text
    ! end generated
  end type neml2_model

  ! An array of any rank: of the host, wrapped without a copy, or a result.
  type, extends(object) :: neml2_tensor
  contains
    ! begin generated: neml2_tensor
    procedure :: create => tensor_create
    procedure :: wrap => tensor_wrap
    procedure :: shape => tensor_shape
    procedure :: dtype => tensor_dtype
    procedure :: device => tensor_device
    generic :: assignment(=) => tensor_assign
    generic :: values => values_real64, values_real32, values_int64, values_int32
    generic :: copy => copy_real64, copy_real32, copy_int64, copy_int32
    procedure, private :: tensor_assign
    procedure, private :: values_real64, values_real32, values_int64, values_int32
    procedure, private :: copy_real64, copy_real32, copy_int64, copy_int32
    ! end generated
  end type neml2_tensor

  ! The report of one evaluation with tensors.
  type, extends(object) :: neml2_report
  contains
    ! begin generated: neml2_report
    procedure :: get => report_get
    procedure :: unknown => report_unknown
    generic :: assignment(=) => report_assign
    procedure, private :: report_assign
    ! end generated
  end type neml2_report

  ! Arrays of the host, bound to the variables of a model by name; one per thread. It keeps the model alive.
  type, extends(object) :: neml2_call
  contains
    ! begin generated: neml2_call
    procedure :: create => call_create
    procedure :: bind_report => call_bind_report
    procedure :: save_state => call_save_state
    procedure :: load_state => call_load_state
    procedure :: run_steps => call_run_steps
    procedure :: bind_input => call_bind_input
    procedure :: bind_output => call_bind_output
    procedure :: bind_parameter => call_bind_parameter
    procedure :: bind_tangent => call_bind_tangent
    procedure :: bind_jvp => call_bind_jvp
    procedure :: bind_cotangent => call_bind_cotangent
    procedure :: bind_derivative => call_bind_derivative
    procedure :: bind_adjoint => call_bind_adjoint
    procedure :: set_block_order => call_set_block_order
    generic :: assignment(=) => call_assign
    generic :: run => run_int64, run_int32
    procedure, private :: call_assign
    procedure, private :: run_int64, run_int32
    ! end generated
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
  type, extends(object) :: neml2_solve
  contains
    ! begin generated: neml2_solve
    procedure :: next => solve_next
    procedure :: finish => solve_finish
    procedure :: size => solve_size
    procedure :: layout => solve_layout
    procedure :: guess => solve_guess
    procedure :: residual => solve_residual
    procedure :: step => solve_step
    procedure :: jacobian => solve_jacobian
    procedure :: matvec => solve_matvec
    procedure :: accept => solve_accept
    generic :: assignment(=) => solve_assign
    generic :: begin => begin_int64, begin_tensors, begin_int32
    procedure, private :: solve_assign
    procedure, private :: begin_int64, begin_tensors, begin_int32
    ! end generated
  end type neml2_solve

  abstract interface
    ! A solver of yours for neml2_model%forward_with: it is called for each system, and must accept it. With a negative
    ! stat the evaluation ends with that status. `system` is valid until it returns.
    subroutine neml2_solver(system, stat)
      import
      type(neml2_solve), intent(inout) :: system
      integer(int32), intent(out) :: stat
    end subroutine
  end interface

  abstract interface
    ! A function of yours: shall an evaluation end?
    logical function neml2_interrupt()
    end function
  end interface

  ! How an array of any rank and kind lies in memory: the compiler refuses one without TARGET or POINTER.
  interface neml2_view
    procedure :: view_real64, view_real32, view_int64, view_int32, view_nothing
  end interface neml2_view

  ! What values() points to if there are none.
  real(real64), target :: no_number = 0

  abstract interface
    subroutine free_handle(handle) bind(c)
      import
      type(c_ptr), intent(inout), optional :: handle
    end subroutine
    integer(int32) function read_text(buffer, capacity, needed) bind(c)
      import
      character(kind=c_char), intent(inout), optional :: buffer(*)
      integer(int64), value :: capacity
      integer(int64), intent(inout), optional :: needed
    end function
  end interface

contains

  ! ------------------------------------------------------------------------------------------
  ! Version and errors
  ! ------------------------------------------------------------------------------------------

  ! The release of the library, for example "1.0.0".
  function neml2_version() result(version)
    character(:), allocatable :: version
    call read_c(c_version(), version)
  end function neml2_version

  ! What the status does not tell of it: neml2_cause_none and the others.
  integer(int32) function neml2_error_cause() result(cause)
    cause = c_error_cause()
  end function neml2_error_cause

  ! The ABI of the library that is loaded: 1000 * major + minor.
  integer(int32) function neml2_abi_version() result(version)
    version = c_abi_version()
  end function neml2_abi_version

  ! The status of this thread's last failed call; neml2_ok if none failed yet.
  integer(int32) function neml2_error_status() result(status)
    status = c_error_status()
  end function neml2_error_status

  ! How many errors this thread's last failed call met: 1, or more if devices of a scheduler failed side by side; 0
  ! if none failed yet.
  integer(int64) function neml2_error_count() result(count)
    count = 0
    if (c_error_count(count) /= neml2_ok) count = 0
  end function neml2_error_count

  ! The message of this thread's last failed call: what was wrong, what was expected and what to do.
  subroutine neml2_error_message(message)
    character(:), allocatable, intent(out) :: message
    call read(c_error_message, message)
  end subroutine neml2_error_message

  ! The name of the variable, parameter, option, segment, file or argument that the last error is about; empty if
  ! there is none.
  subroutine neml2_error_subject(subject)
    character(:), allocatable, intent(out) :: subject
    call read(c_error_subject, subject)
  end subroutine neml2_error_subject

  ! The message of the last error in a variable of fixed length: padded with blanks, or cut.
  subroutine neml2_get_error_message(text)
    character(*), intent(out) :: text
    character(:), allocatable :: message
    call neml2_error_message(message)
    text = message
  end subroutine neml2_get_error_message

  ! The same for what the last error is about.
  subroutine neml2_get_error_subject(text)
    character(*), intent(out) :: text
    character(:), allocatable :: subject
    call neml2_error_subject(subject)
    text = subject
  end subroutine neml2_get_error_subject

  ! Record an error of this thread that a solver of yours found, so that it is read like the others. `status` is not
  ! neml2_ok; `cause`, if it is given, is a number of yours from neml2_cause_of_host on.
  subroutine neml2_error_record(status, subject, message, cause)
    integer(int32), intent(in) :: status
    character(*), intent(in) :: subject, message
    integer(int32), intent(in), optional :: cause
    integer(int32) :: outcome, given
    given = neml2_cause_none
    if (present(cause)) given = cause
    outcome = c_error_record(status, given, c_text(subject), c_text(message))
  end subroutine neml2_error_record

  ! The message of a call that has just returned `outcome`; empty if it succeeded.
  !
  ! An errmsg is passed on only if it is present, to an argument that is not optional: gfortran 12 loses the length of
  ! an optional one on the way back. So each procedure with an errmsg ends in the same two lines.
  subroutine tell(outcome, message)
    integer(int32), intent(in) :: outcome
    character(:), allocatable, intent(out) :: message
    if (outcome == neml2_ok) then
      message = ""
    else
      call neml2_error_message(message)
    end if
  end subroutine tell

  ! As ALLOCATE does: if there is no stat, an error, or points that failed, end the program with the message.
  subroutine conclude(outcome, stat)
    integer(int32), intent(in) :: outcome
    integer(int32), intent(out), optional :: stat
    character(:), allocatable :: message
    if (present(stat)) then
      stat = outcome
    else if (outcome < neml2_ok .or. outcome > neml2_non_finite) then
      call neml2_error_message(message)
      error stop message
    end if
  end subroutine conclude

  ! Record an error that is found here, before the library is asked: extents, which the C functions do not see.
  function raised(status, subject, message) result(outcome)
    integer(int32), intent(in) :: status
    character(*), intent(in) :: subject, message
    integer(int32) :: outcome
    outcome = c_error_record(status, neml2_cause_none, c_text(subject), c_text(message))
  end function raised

  subroutine read(c_read, text)
    procedure(read_text) :: c_read
    character(:), allocatable, intent(out) :: text
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: capacity, needed
    integer(int32) :: outcome
    outcome = c_read(nothing, 0_int64, capacity)
    allocate (character(kind=c_char, len=capacity) :: buffer)
    if (outcome == neml2_ok) outcome = c_read(buffer, capacity, needed)
    text = buffer(:len(buffer) - 1)
  end subroutine read

  ! begin generated: errors
  ! The status, the message and the cause of one of the neml2_error_count() errors, which are in the order of their
  ! points. The status of the call is positive if all of theirs are. neml2_error_argument if there are fewer.
  != neml2_error_get -> status, message, [cause]
  subroutine neml2_error_get(index, status, message, stat, errmsg, cause)
    integer(int64), intent(in) :: index
    integer(int32), intent(inout) :: status
    character(:), allocatable, intent(inout) :: message
    integer(int32), intent(inout), optional :: cause
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: needed
    needed = 1
    outcome = c_error_get(status, cause, nothing, 0_int64, needed, index - 1)
    if (outcome == neml2_ok) then
      allocate (character(kind=c_char, len=needed) :: buffer)
      outcome = c_error_get(status, cause, buffer, needed, needed, index - 1)
    end if
    if (outcome == neml2_ok) message = buffer(:len(buffer) - 1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_error_get
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Log
  !
  ! What the library has to tell of its work waits in a queue; the section Log of neml2_capi.h says more:
  !
  !     call neml2_log_level_set("newton", neml2_log_debug)
  !     call evaluation%run(n, stat)
  !     do
  !       call neml2_log_next(level, channel, message)
  !       if (level == neml2_log_silent) exit
  !       print "(3a)", channel, ": ", message
  !     end do
  ! ------------------------------------------------------------------------------------------

  ! How many records wait.
  integer(int64) function neml2_log_count() result(count)
    count = 0
    if (c_log_count(count) /= neml2_ok) count = 0
  end function neml2_log_count

  ! Take the oldest record. `level` is neml2_log_silent, and the texts are empty, if none waits.
  subroutine neml2_log_next(level, channel, message)
    integer(int32), intent(out) :: level
    character(:), allocatable, intent(out) :: channel, message
    character(kind=c_char) :: buffer(neml2_log_length)
    type(c_ptr) :: name
    integer(int64) :: i
    level = neml2_log_silent
    name = c_null_ptr
    buffer = c_null_char
    if (c_log_next(level, name, buffer, size(buffer, kind=int64)) /= neml2_ok) level = neml2_log_silent
    call read_c(name, channel)
    message = repeat(" ", findloc(buffer, c_null_char, dim=1) - 1)
    do i = 1, len(message)
      message(i:i) = buffer(i)
    end do
  end subroutine neml2_log_next

  ! begin generated: log
  ! Set the level of a channel, "newton" for example, or of "all": neml2_error_name, neml2_error_argument.
  != neml2_log_level_set
  subroutine neml2_log_level_set(channel, level, stat, errmsg)
    character(*), intent(in) :: channel
    integer(int32), intent(in) :: level
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_log_level_set(c_text(channel), level)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_log_level_set

  ! The level of a channel; of "all", the greatest that one has. neml2_error_name.
  != neml2_log_level_get -> level
  subroutine neml2_log_level_get(channel, level, stat, errmsg)
    character(*), intent(in) :: channel
    integer(int32), intent(inout) :: level
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_log_level_get(level, c_text(channel))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_log_level_get
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Interrupting
  ! ------------------------------------------------------------------------------------------

  ! Passes the question on to the function in Fortran.
  function ask_host(context) result(answer) bind(c)
    type(c_ptr), value :: context
    integer(int32) :: answer
    procedure(neml2_interrupt), pointer :: asked
    call c_f_procpointer(transfer(context, c_null_funptr), asked)
    answer = merge(1_int32, 0_int32, asked())
  end function ask_host

  ! begin generated: interrupting
  ! Set the function that long evaluations ask, on the threads that evaluate, whether to end with neml2_error_interrupted:
  ! one of a module, not one that another procedure contains.
  != neml2_interrupt_set
  subroutine neml2_interrupt_set(asked, stat, errmsg)
    procedure(neml2_interrupt) :: asked
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_interrupt_set(c_funloc(ask_host), transfer(c_funloc(asked), c_null_ptr))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_interrupt_set
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Handles
  ! ------------------------------------------------------------------------------------------

  ! Whether there is an object, and not an empty one.
  pure elemental logical function object_is_set(self)
    class(object), intent(in) :: self
    object_is_set = self%mark /= 0
    if (object_is_set) object_is_set = self%mark == not(transfer(c_loc(self%shared), self%mark))
  end function object_is_set

  ! Drop this reference; the object is freed with the last one. Freeing twice does nothing.
  impure elemental subroutine object_free(self)
    class(object), intent(inout) :: self
    call drop(self)
  end subroutine object_free

  impure elemental subroutine object_final(self)
    type(object), intent(inout) :: self
    call drop(self)
  end subroutine object_final

  ! Own a handle of the library instead of the one before; NULL sets nothing.
  subroutine take(self, handle, free)
    class(object), intent(inout) :: self
    type(c_ptr), intent(in) :: handle
    procedure(free_handle) :: free
    type(shared_handle), pointer :: shared
    call drop(self)
    if (.not. c_associated(handle)) return
    allocate (shared)
    shared%c = handle
    shared%free => free
    call hold(self, shared)
  end subroutine take

  ! A copy of nothing is nothing.
  subroutine share(left, right)
    class(object), intent(inout) :: left
    class(object), intent(in) :: right
    type(shared_handle), pointer :: shared
    if (.not. right%is_set()) then
      call drop(left)
      return
    end if
    shared => right%shared
    !$omp atomic update seq_cst
    shared%uses = shared%uses + 1
    call drop(left)
    call hold(left, shared)
  end subroutine share

  ! Refer to a handle, whose uses count this one.
  subroutine hold(self, shared)
    class(object), target, intent(inout) :: self
    type(shared_handle), pointer, intent(in) :: shared
    self%shared => shared
    self%mark = not(transfer(c_loc(shared), self%mark))
    self%place = transfer(c_loc(self%mark), self%place)
  end subroutine hold

  ! Whether this object was counted, and is no copy bit by bit of another.
  logical function is_counted(self)
    class(object), target, intent(in) :: self
    is_counted = self%is_set() .and. self%place == transfer(c_loc(self%mark), self%place)
  end function is_counted

  subroutine drop(self)
    class(object), intent(inout) :: self
    integer :: uses
    if (is_counted(self)) then
      !$omp atomic capture seq_cst
      self%shared%uses = self%shared%uses - 1
      uses = self%shared%uses
      !$omp end atomic
      if (uses == 0) then
        if (c_associated(self%shared%c)) call self%shared%free(self%shared%c)
        deallocate (self%shared)
      end if
    end if
    self%shared => null()
    self%mark = 0
    self%place = 0
  end subroutine drop

  ! NULL if there is no object, which the library refuses.
  function c_handle(self) result(handle)
    class(object), intent(in) :: self
    type(c_ptr) :: handle
    handle = c_null_ptr
    if (self%is_set()) handle = self%shared%c
  end function c_handle

  ! begin generated: handles
  impure elemental subroutine model_assign(left, right)
    class(neml2_model), intent(inout) :: left
    class(neml2_model), intent(in) :: right
    call share(left, right)
  end subroutine model_assign

  impure elemental subroutine tensor_assign(left, right)
    class(neml2_tensor), intent(inout) :: left
    class(neml2_tensor), intent(in) :: right
    call share(left, right)
  end subroutine tensor_assign

  impure elemental subroutine report_assign(left, right)
    class(neml2_report), intent(inout) :: left
    class(neml2_report), intent(in) :: right
    call share(left, right)
  end subroutine report_assign

  impure elemental subroutine call_assign(left, right)
    class(neml2_call), intent(inout) :: left
    class(neml2_call), intent(in) :: right
    call share(left, right)
  end subroutine call_assign

  impure elemental subroutine solve_assign(left, right)
    class(neml2_solve), intent(inout) :: left
    class(neml2_solve), intent(in) :: right
    call share(left, right)
  end subroutine solve_assign
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Models
  !
  ! What takes an index fails with neml2_error_argument beyond the end; what takes a name with neml2_error_name if
  ! there is none; and all with neml2_error_argument if no model is loaded.
  ! ------------------------------------------------------------------------------------------

  ! Open what is on the devices of a scheduler.
  subroutine choose(source, scheduler, outcome)
    type(c_source), intent(inout) :: source
    class(object), intent(in), optional :: scheduler
    integer(int32), intent(inout) :: outcome
    if (.not. present(scheduler)) return
    source%scheduler = c_handle(scheduler)
    if (.not. scheduler%is_set()) &
      outcome = raised(neml2_error_argument, "scheduler", "The scheduler was not created: call create first.")
  end subroutine choose

  ! Whether a model has been loaded, and not been freed.
  pure logical function model_is_loaded(self)
    class(neml2_model), intent(in) :: self
    model_is_loaded = self%is_set()
  end function model_is_loaded

  ! The position of a variable among its kind; if there is none of this name, 0 and neml2_error_name.
  subroutine model_variable_find(self, kind, name, index, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    character(*), intent(in) :: name
    integer(int64), intent(out) :: index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    index = -1
    outcome = c_model_variable_find(index, c_handle(self), kind, c_text(name))
    index = index + 1
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_variable_find

  ! The name of an option; the least and the greatest value of a number; or of a text, what it can be, separated by
  ! blanks, or "*" for any text; it is empty for a number.
  subroutine model_option_info(self, index, name, stat, errmsg, least, greatest, choices)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout) :: name
    real(real64), intent(inout), optional :: least, greatest
    character(:), allocatable, intent(inout), optional :: choices
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_option_info) :: info
    outcome = c_model_option_inspect(info, c_handle(self), index - 1)
    if (outcome == neml2_ok) then
      call read_c(info%name, name)
      if (present(choices)) call read_c(info%choices, choices)
      if (present(least) .and. .not. c_associated(info%choices)) least = info%least
      if (present(greatest) .and. .not. c_associated(info%choices)) greatest = info%greatest
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_option_info

  ! Replace the stored value of a parameter by a copy of `value`: its base shape, or that followed by an extent for the
  ! points, one value each. Calls that already run keep the value they began with.
  subroutine set_parameter_real64(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), target, intent(in) :: value(..)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_tensor) :: tensor
    outcome = wrap(tensor, neml2_view(value))
    if (outcome == neml2_ok) outcome = c_model_parameter_set(c_handle(self), c_text(name), c_handle(tensor))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine set_parameter_real64

  ! The stored value of a parameter, in array element order; `shape` is empty for a scalar.
  subroutine get_parameter_real64(self, name, values, stat, errmsg, shape)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), allocatable, intent(inout) :: values(:)
    integer(int64), allocatable, intent(inout), optional :: shape(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_tensor) :: tensor
    call self%parameter_tensor(name, tensor, outcome)
    if (outcome == neml2_ok) call tensor%copy(values, outcome)
    if (outcome == neml2_ok .and. present(shape)) call tensor%shape(shape, outcome)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_parameter_real64

  ! The kind, neml2_input or neml2_parameter, and the position of a variable, and its bounds component by component, which
  ! are infinite where there is none.
  subroutine model_bound_info(self, index, kind, variable, stat, errmsg, lower, upper, physical)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int32), intent(inout) :: kind
    integer(int64), intent(inout) :: variable
    real(real64), allocatable, intent(inout), optional :: lower(:), upper(:)
    logical, intent(inout), optional :: physical
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_bound_info) :: info
    real(real64), pointer :: side(:)
    outcome = c_model_bound_inspect(info, c_handle(self), index - 1)
    if (outcome == neml2_ok) then
      kind = info%kind
      variable = info%variable + 1
      call c_f_pointer(info%lower, side, [info%ncomponents])
      if (present(lower)) lower = side
      call c_f_pointer(info%upper, side, [info%ncomponents])
      if (present(upper)) upper = side
      if (present(physical)) physical = info%physical /= 0
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_bound_info

  ! begin generated: models
  ! Load the artifact at `path`, the folder that holds metadata.json, or the model `name` of a HIT stub, the
  ! <name>_aoti.i file that neml2-compile writes beside it. `dtype` is neml2_float64, `device` neml2_device_cpu and
  ! `runtime` neml2_runtime_auto unless given; with a `scheduler`, which has one device at least, its devices are taken,
  ! and later changes of it do not count. A `strain_measure`, neml2_strain_logarithmic for example, goes around a law of
  ! small strain, with the stress of `stress_measure`; `material_axes` turn tensors by an input of each point. Under a
  ! `hypothesis`, neml2_plane_stress for example, strain and stress have its components only. The `strain`
  ! and the `stress` are found unless given. What was loaded before is replaced on success and kept on failure:
  ! neml2_error_file if a file is missing, neml2_error_artifact if it is not what it should be,
  ! neml2_error_unsupported if it was not compiled for this device, type or processor.
  != model_load: model_open -> self, path, [name], [dtype], [device], [device_index], [runtime], [scheduler],
  !=   [strain_measure], [stress_measure], [material_axes], [hypothesis], [strain], [stress]
  subroutine model_load(self, path, stat, errmsg, name, dtype, device, device_index, runtime, scheduler, &
      strain_measure, stress_measure, material_axes, hypothesis, strain, stress)
    class(neml2_model), intent(inout) :: self
    character(*), intent(in) :: path
    character(*), intent(in), optional :: name, strain, stress
    integer(int32), intent(in), optional :: dtype, device, device_index, runtime, strain_measure, stress_measure, &
      material_axes, hypothesis
    class(object), intent(in), optional :: scheduler
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_self
    type(c_source) :: source
    character(kind=c_char, len=:), allocatable, target :: c_path, c_name, c_strain, c_stress
    c_self = c_null_ptr
    c_path = c_text(path)
    source%path = c_loc(c_path)
    if (present(name)) c_name = c_text(name)
    if (present(name)) source%name = c_loc(c_name)
    if (present(dtype)) source%dtype = dtype
    if (present(device)) source%device = device
    if (present(device_index)) source%device_index = device_index
    if (present(runtime)) source%runtime = runtime
    if (present(strain_measure)) source%strain_measure = strain_measure
    if (present(stress_measure)) source%stress_measure = stress_measure
    if (present(material_axes)) source%material_axes = material_axes
    if (present(hypothesis)) source%hypothesis = hypothesis
    if (present(strain)) c_strain = c_text(strain)
    if (present(strain)) source%strain = c_loc(c_strain)
    if (present(stress)) c_stress = c_text(stress)
    if (present(stress)) source%stress = c_loc(c_stress)
    outcome = neml2_ok
    call choose(source, scheduler, outcome)
    if (outcome == neml2_ok) outcome = c_model_open(c_self, source)
    if (outcome == neml2_ok) call take(self, c_self, c_model_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_load

  ! Runtime of the packages of the model: neml2_runtime_builtin, or neml2_runtime_libtorch if one of them does.
  != model_runtime: model_inspect -> runtime
  subroutine model_runtime(self, runtime, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(inout) :: runtime
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_model_info) :: info
    outcome = c_model_inspect(info, c_handle(self))
    if (outcome == neml2_ok) runtime = info%runtime
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_runtime

  ! Device of the inputs, parameters and results of the model: neml2_device_cpu or neml2_device_cuda, and which of the
  ! CUDA devices.
  != model_device: model_inspect -> type = device, index = device_index
  subroutine model_device(self, type, index, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(inout) :: type, index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_model_info) :: info
    outcome = c_model_inspect(info, c_handle(self))
    if (outcome == neml2_ok) then
      type = info%device
      index = info%device_index
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_device

  ! The element type of the model's floating-point variables: neml2_float64 or neml2_float32.
  != model_dtype: model_inspect -> dtype
  subroutine model_dtype(self, dtype, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(inout) :: dtype
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_model_info) :: info
    outcome = c_model_inspect(info, c_handle(self))
    if (outcome == neml2_ok) dtype = info%dtype
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_dtype

  ! How many variables of a kind (neml2_input, neml2_output, neml2_parameter, neml2_unknown) there are.
  != model_variable_count -> count
  subroutine model_variable_count(self, kind, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_variable_count(count, c_handle(self), kind)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_variable_count

  ! The name of a variable and its mathematical type as NEML2 names it ("SR2", "Scalar"; empty for parameters).
  != model_variable_name: model_variable_inspect -> name, [type]
  subroutine model_variable_name(self, kind, index, name, stat, errmsg, type)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    character(:), allocatable, intent(inout) :: name
    character(:), allocatable, intent(inout), optional :: type
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_variable_info) :: info
    outcome = c_model_variable_inspect(info, c_handle(self), kind, index - 1)
    if (outcome == neml2_ok) then
      call read_c(info%name, name)
      if (present(type)) call read_c(info%type, type)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_variable_name

  ! The shape of a variable at one point, (base axes..., sub-batch axes...), of which the last `sub_ndim` are sub-batch
  ! axes; empty for a scalar.
  != model_variable_shape: model_variable_inspect -> shape, [sub_ndim]
  subroutine model_variable_shape(self, kind, index, shape, stat, errmsg, sub_ndim)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    integer(int64), allocatable, intent(inout) :: shape(:)
    integer(int64), intent(inout), optional :: sub_ndim
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_variable_info) :: info
    outcome = c_model_variable_inspect(info, c_handle(self), kind, index - 1)
    if (outcome == neml2_ok) then
      shape = reversed(info%shape, info%ndim)
      if (present(sub_ndim)) sub_ndim = info%sub_ndim
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_variable_shape

  ! The element type of a variable, one of neml2_float64 and the others.
  != model_variable_dtype: model_variable_inspect -> dtype
  subroutine model_variable_dtype(self, kind, index, dtype, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    integer(int32), intent(inout) :: dtype
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_variable_info) :: info
    outcome = c_model_variable_inspect(info, c_handle(self), kind, index - 1)
    if (outcome == neml2_ok) dtype = info%dtype
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_variable_dtype

  != model_derivative_count -> count
  ! Count the derivatives that were compiled with respect to inputs (`kind` neml2_input) or parameters
  ! (neml2_parameter).
  subroutine model_derivative_count(self, kind, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_derivative_count(count, c_handle(self), kind)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_derivative_count

  ! The positions of the output and the variable of a derivative; the shape of its block at one point, (variable...,
  ! output...); and whether each point has its own, else one is that of all.
  != model_derivative_info: model_derivative_inspect -> output + 1, variable + 1, [shape], [batched /= 0]
  subroutine model_derivative_info(self, kind, index, output, variable, stat, errmsg, shape, batched)
    class(neml2_model), intent(in) :: self
    integer(int32), intent(in) :: kind
    integer(int64), intent(in) :: index
    integer(int64), intent(inout) :: output, variable
    integer(int64), allocatable, intent(inout), optional :: shape(:)
    logical, intent(inout), optional :: batched
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_derivative_info) :: info
    outcome = c_model_derivative_inspect(info, c_handle(self), kind, index - 1)
    if (outcome == neml2_ok) then
      output = info%output + 1
      variable = info%variable + 1
      if (present(shape)) shape = reversed(info%shape, info%ndim)
      if (present(batched)) batched = info%batched /= 0
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_derivative_info

  != model_history_count -> count
  ! Count the inputs that are history: `x~1`, `x~2` and so on, the values of `x` one and two steps before.
  subroutine model_history_count(self, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_history_count(count, c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_history_count

  ! The positions of an input x~age, and of the output x or the input x that it becomes; 0 if there is none.
  != model_history_info: model_history_inspect -> input + 1, [age], [output + 1], [current + 1]
  subroutine model_history_info(self, index, input, stat, errmsg, age, output, current)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(inout) :: input
    integer(int64), intent(inout), optional :: age, output, current
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_history_info) :: info
    outcome = c_model_history_inspect(info, c_handle(self), index - 1)
    if (outcome == neml2_ok) then
      input = info%input + 1
      if (present(age)) age = info%age
      if (present(output)) output = info%output + 1
      if (present(current)) current = info%current + 1
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_history_info

  != model_bound_count -> count
  ! Count the bounds of inputs and parameters that the artifact has: see the section on bounds.
  subroutine model_bound_count(self, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_bound_count(count, c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_bound_count

  ! Describe the model by a JSON document: see neml2_source_describe in neml2_capi.h.
  != model_describe -> text
  subroutine model_describe(self, text, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(:), allocatable, intent(inout) :: text
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: needed
    needed = 1
    outcome = c_model_describe(nothing, 0_int64, needed, c_handle(self))
    if (outcome == neml2_ok) then
      allocate (character(kind=c_char, len=needed) :: buffer)
      outcome = c_model_describe(buffer, needed, needed, c_handle(self))
    end if
    if (outcome == neml2_ok) text = buffer(:len(buffer) - 1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_describe

  ! Tell the SHA-256 of what the artifact computes: see neml2_model_checksum in neml2_capi.h.
  != model_checksum -> text
  subroutine model_checksum(self, text, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(:), allocatable, intent(inout) :: text
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: needed
    needed = 1
    outcome = c_model_checksum(nothing, 0_int64, needed, c_handle(self))
    if (outcome == neml2_ok) then
      allocate (character(kind=c_char, len=needed) :: buffer)
      outcome = c_model_checksum(buffer, needed, needed, c_handle(self))
    end if
    if (outcome == neml2_ok) text = buffer(:len(buffer) - 1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_checksum

  ! The same of the artifact at `path`, of which no package is loaded. The arguments are those of neml2_model%load.
  != neml2_source_describe -> path, text, [name], [dtype], [device], [device_index]
  subroutine neml2_source_describe(path, text, stat, errmsg, name, dtype, device, device_index)
    character(*), intent(in) :: path
    character(:), allocatable, intent(inout) :: text
    character(*), intent(in), optional :: name
    integer(int32), intent(in), optional :: dtype, device, device_index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    character(kind=c_char) :: nothing(1)
    character(kind=c_char, len=:), allocatable :: buffer
    integer(int64) :: needed
    type(c_source) :: source
    character(kind=c_char, len=:), allocatable, target :: c_path, c_name
    needed = 1
    c_path = c_text(path)
    source%path = c_loc(c_path)
    if (present(name)) c_name = c_text(name)
    if (present(name)) source%name = c_loc(c_name)
    if (present(dtype)) source%dtype = dtype
    if (present(device)) source%device = device
    if (present(device_index)) source%device_index = device_index
    outcome = c_source_describe(nothing, 0_int64, needed, source)
    if (outcome == neml2_ok) then
      allocate (character(kind=c_char, len=needed) :: buffer)
      outcome = c_source_describe(buffer, needed, needed, source)
    end if
    if (outcome == neml2_ok) text = buffer(:len(buffer) - 1)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_source_describe

  ! How many options there are; neml2_capi.h lists them under "Options".
  != model_option_count -> count
  subroutine model_option_count(self, count, stat, errmsg)
    class(neml2_model), intent(in) :: self
    integer(int64), intent(inout) :: count
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_option_count(count, c_handle(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_option_count

  ! Set an option: a number, which is real64, or a text. Calls that already run keep the value they began with.
  != set_option_number: model_option_set_number
  subroutine set_option_number(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(in) :: value
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_option_set_number(c_handle(self), c_text(name), value)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine set_option_number

  != set_option_text: model_option_set_text
  ! Set a text to one of its choices; anything else is ARGUMENT. A text that may be anything is copied, and kept as long
  ! as the process lives.
  subroutine set_option_text(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name, value
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_option_set_text(c_handle(self), c_text(name), c_text(value))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine set_option_text

  ! Read an option.
  != get_option_number: model_option_get_number -> value
  subroutine get_option_number(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), intent(inout) :: value
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_model_option_get_number(value, c_handle(self), c_text(name))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_option_number

  != get_option_text: model_option_get_text -> value
  ! Read a text. Borrowed, never freed.
  subroutine get_option_text(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    character(:), allocatable, intent(inout) :: value
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_value
    c_value = c_null_ptr
    outcome = c_model_option_get_text(c_value, c_handle(self), c_text(name))
    if (outcome == neml2_ok) call read_c(c_value, value)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_option_text

  ! The stored value of a parameter as a tensor that shares its storage: (base shape..., batch...). A write through it
  ! takes effect from the next evaluation on, and must not coincide with one on another thread.
  != model_parameter_tensor: model_parameter_get -> tensor
  subroutine model_parameter_tensor(self, name, tensor, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_tensor
    c_tensor = c_null_ptr
    outcome = c_model_parameter_get(c_tensor, c_handle(self), c_text(name))
    if (outcome == neml2_ok) call take(tensor, c_tensor, c_tensor_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_parameter_tensor

  != set_parameter: also(real32)

  subroutine set_parameter_real32(self, name, value, stat, errmsg)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real32), target, intent(in) :: value(..)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_tensor) :: tensor
    outcome = wrap(tensor, neml2_view(value))
    if (outcome == neml2_ok) outcome = c_model_parameter_set(c_handle(self), c_text(name), c_handle(tensor))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine set_parameter_real32

  != get_parameter: also(real32)

  subroutine get_parameter_real32(self, name, values, stat, errmsg, shape)
    class(neml2_model), intent(in) :: self
    character(*), intent(in) :: name
    real(real32), allocatable, intent(inout) :: values(:)
    integer(int64), allocatable, intent(inout), optional :: shape(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_tensor) :: tensor
    call self%parameter_tensor(name, tensor, outcome)
    if (outcome == neml2_ok) call tensor%copy(values, outcome)
    if (outcome == neml2_ok .and. present(shape)) call tensor%shape(shape, outcome)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine get_parameter_real32
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Calls
  !
  ! When an array is bound: neml2_error_name if the model has no such variable;
  ! neml2_error_dtype if it has another element type; neml2_error_shape if points would overlap, if not one
  ! fits, if a section has gaps within a point, or if `step_stride` is negative; neml2_error_argument if there is no
  ! call, or `first` is less than 1. The binding before is kept then. Values are in the units of the artifact, tensors
  ! in Mandel notation. Once a binding is taken back, an input is missing, an output or a derivative is not written, a
  ! parameter is the stored one, and a direction is zero.
  ! ------------------------------------------------------------------------------------------

  ! A call of `model` without bindings. What was created before is replaced on success and kept on failure.
  subroutine call_create(self, model, stat, errmsg)
    class(neml2_call), intent(inout) :: self
    class(neml2_model), intent(in) :: model
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: created
    created = c_null_ptr
    outcome = c_call_create(created, c_handle(model))
    if (outcome == neml2_ok) then
      call take(self, created, c_call_free)
      call list_extents(self%shared%extents, model)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_create

  ! Bind an array that receives what became of each point: (point), or for neml2_report_residual_history, which has the
  ! residual norms from the initial guess on and NaN after the last, (iteration, point), with the option miters or more
  ! as its first extent. neml2_report_status, neml2_report_iterations and neml2_report_rescue_solves are of int32, the
  ! others of real64.
  subroutine call_bind_report(self, kind, array, stat, errmsg, stride, step_stride)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: kind
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, step_stride
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome, dtype
    dtype = merge(neml2_int32, neml2_float64, any(kind == [neml2_report_status, neml2_report_iterations, &
                                                           neml2_report_rescue_solves]))
    if (kind < lbound(report_names, 1) .or. kind > ubound(report_names, 1)) then
      outcome = raised(neml2_error_argument, "kind", "There is no report of the kind "//decimal(int(kind, int64))//".")
    else if (allocated(array%extents) .and. array%dtype /= dtype) then
      outcome = raised(neml2_error_dtype, trim(report_names(kind)), "The array of the report '" &
                       //trim(report_names(kind))//"' must be of type "//trim(kind_names(dtype))//".")
    else if (.not. is_bindable(array, kind)) then
      outcome = raised(neml2_error_shape, trim(report_names(kind)), "The array of the residual history is a section " &
                       //"with gaps: bind a whole array, because the option miters says how many values are written.")
    else
      outcome = bind(self, report, report_names(kind), array, stride, step_stride=step_stride, kind=kind)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_report

  ! How many values of the residual history are written is known only when the call runs: it must have no gaps.
  pure logical function is_bindable(array, kind)
    type(neml2_view), intent(in) :: array
    integer(int32), intent(in) :: kind
    is_bindable = .true.
    if (kind == neml2_report_residual_history .and. allocated(array%extents)) is_bindable = lies_dense(array)
  end function is_bindable

  subroutine run_int64(self, npoints, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = check_points(self, int(npoints, int64))
    if (outcome == neml2_ok) outcome = c_call_run(c_handle(self), int(npoints, int64))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine run_int64

  ! Write the state of `npoints` points to a file, by which a run is continued: the inputs that are history. `step` and
  ! `time` are yours.
  subroutine call_save_state(self, path, npoints, step, time, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: path
    integer, intent(in) :: npoints, step
    real(real64), intent(in) :: time
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = check_points(self, int(npoints, int64))
    if (outcome == neml2_ok) &
      outcome = c_call_state_save(c_handle(self), c_text(path), int(npoints, int64), int(step, int64), time)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_save_state

  ! Read what save_state() wrote into the arrays of the inputs that are history. `step` and `time` receive what was given
  ! then.
  subroutine call_load_state(self, path, npoints, step, time, stat, errmsg)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: path
    integer, intent(in) :: npoints
    integer, intent(inout) :: step
    real(real64), intent(inout) :: time
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64) :: reached
    outcome = check_points(self, int(npoints, int64))
    if (outcome == neml2_ok) &
      outcome = c_call_state_load(reached, time, c_handle(self), c_text(path), int(npoints, int64))
    if (outcome == neml2_ok) step = int(reached)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_load_state

  ! Bind an array by the name of a variable or, for a derivative, of an output and of a variable.
  integer(int32) function bind(self, role, name, array, stride, first, step_stride, variable, kind) result(outcome)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: role
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first, step_stride
    character(*), intent(in), optional :: variable
    integer(int32), intent(in), optional :: kind ! of a report
    character(:), allocatable :: known
    character(kind=c_char, len=:), allocatable :: c_name
    integer(int64) :: distance, points, point_size, room, step
    type(c_ptr) :: start, c
    integer :: k

    select case (role)
    case (derivative)
      known = trim(name)//":"//trim(variable)
    case (parameter_derivative)
      call find_full_name(self, variable, known)
      known = trim(name)//":"//known
    case (neml2_parameter, neml2_parameter_adjoint)
      call find_full_name(self, name, known)
    case default
      known = trim(name)
    end select
    k = extent_index(self, role, known)
    point_size = point_size_of(self, role, known)
    if (present(kind)) then
      ! The option miters says how many values are written at each point: never more than fit into its distance.
      if (kind == neml2_report_residual_history) point_size = distance_of(array, stride)
    end if
    call place(self, array, role_name(role)//" '"//known//"'", known, first, stride, point_size, start, distance, &
               points, room, outcome)
    step = 0
    if (present(step_stride)) step = step_stride
    ! Refuses all that it can before it replaces the binding.
    if (outcome == neml2_ok .and. step < 0) &
      outcome = raised(neml2_error_shape, known, "The step stride of "//role_name(role)//" '"//known &
                       //"' must be 0 or more; got "//decimal(step)//".")
    if (outcome /= neml2_ok) return

    c = c_handle(self)
    c_name = c_text(name)
    select case (role)
    case (derivative)
      outcome = c_call_bind_derivative(c, neml2_input, c_name, c_text(variable), start, array%dtype, distance)
    case (parameter_derivative)
      outcome = c_call_bind_derivative(c, neml2_parameter, c_name, c_text(variable), start, array%dtype, distance)
    case (report)
      outcome = c_call_bind_report(c, kind, start, distance)
    case default
      outcome = c_call_bind(c, role, c_name, start, array%dtype, distance)
    end select
    if (outcome == neml2_ok .and. k > 0) call remember(self, k, points, distance, step, room)
    if (outcome == neml2_ok .and. step > 0 .and. c_associated(start)) then
      select case (role)
      case (derivative)
        outcome = c_call_derivative_step_stride_set(c, neml2_input, c_name, c_text(variable), step)
      case (parameter_derivative)
        outcome = c_call_derivative_step_stride_set(c, neml2_parameter, c_name, c_text(variable), step)
      case (report)
        outcome = c_call_report_step_stride_set(c, kind, step)
      case default
        outcome = c_call_step_stride_set(c, role, c_name, step)
      end select
    end if
  end function bind

  ! How many points the array of extent k holds, and where those of a step lie.
  subroutine remember(self, k, points, distance, step, room)
    class(neml2_call), intent(in) :: self
    integer, intent(in) :: k
    integer(int64), intent(in) :: points, distance, step, room
    self%shared%extents(k)%points = points
    self%shared%extents(k)%distance = distance
    self%shared%extents(k)%step = step
    self%shared%extents(k)%room = room
    self%shared%points = minval(self%shared%extents%points)
  end subroutine remember

  ! Forget how many points the arrays hold, when all bindings were taken back.
  subroutine forget(self, component_stride)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: component_stride
    integer :: k
    do k = 1, size(self%shared%extents)
      call remember(self, k, huge(0_int64), 0_int64, 0_int64, huge(0_int64))
    end do
    self%shared%component_stride = max(component_stride, 1_int64)
  end subroutine forget

  ! From one point to the next: the product of all extents but the last unless a stride is given.
  pure integer(int64) function distance_of(array, stride) result(distance)
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride
    distance = 0
    if (present(stride)) then
      distance = stride
    else if (allocated(array%extents)) then
      if (size(array%extents) > 0) distance = product(array%extents(:size(array%extents) - 1))
    end if
  end function distance_of

  ! Find the first value of the first point, the distance to the next point, the number of points, and the elements
  ! behind those of the first point; NULL and no limits for an array that is not there.
  subroutine place(self, array, what, subject, first, stride, point_size, start, distance, points, room, outcome)
    class(neml2_call), intent(in) :: self
    type(neml2_view), intent(in) :: array
    character(*), intent(in) :: what, subject
    integer(int64), intent(in) :: point_size
    integer, intent(in), optional :: first, stride
    type(c_ptr), intent(out) :: start
    integer(int64), intent(out) :: distance, points, room
    integer(int32), intent(out) :: outcome
    integer(int64) :: before, length, between, reach

    start = c_null_ptr
    before = 0
    if (present(first)) before = first - 1_int64
    distance = 0
    points = huge(points)
    room = huge(room)
    outcome = neml2_ok
    if (before < 0) &
      outcome = raised(neml2_error_argument, subject, &
                       "'first' of "//what//" is counted from 1, not "//decimal(before + 1)//".")
    if (outcome /= neml2_ok .or. .not. allocated(array%extents)) return

    if (lies_dense(array)) then
      length = product(array%extents)
      distance = distance_of(array, stride)
      reach = reach_of(self, point_size, distance)
      if (point_size > 0) points = points_held(length - before, reach, distance)
      room = length - before - reach
    else
      call find_points(array, length, between, points)
      room = (points - 1) * between
      distance = between
      if (present(stride)) distance = stride
      reach = reach_of(self, point_size, distance)
      if (before + reach > length .or. between < 0 .or. (distance /= 0 .and. distance /= between)) then
        outcome = raised(neml2_error_shape, subject, &
                         "The array of "//what//" is a section with gaps ("//trim(shown(array))//"), which can be " &
                         //"bound where the values of a point lie side by side and the points at one distance. Bind " &
                         //"the whole array with 'first' and 'stride', or a copy.")
        return
      end if
      if (distance == 0) points = huge(points)
    end if
    ! An empty array is that of a block without points.
    if (points == 0 .and. length > 0) then
      outcome = raised(neml2_error_shape, subject, &
                       "The array of "//what//" holds not one point: one has "//decimal(point_size) &
                       //" values, and from 'first' on there are "//decimal(max(length - before, 0_int64))//".")
      return
    end if
    start = array%base
    if (before < length) start = pointer_at(address_of(array%base) + before * bytes(array%dtype))
  end subroutine place

  ! Of a section with gaps: how many values lie side by side from its first on, the distance of the places where they
  ! do, negative if there is none, and their number.
  pure subroutine find_points(array, length, between, points)
    type(neml2_view), intent(in) :: array
    integer(int64), intent(out) :: length, between, points
    integer(int64) :: next
    integer :: i
    length = 1
    between = -1
    points = 1
    next = 0
    if (.not. allocated(array%strides)) return
    do i = 1, size(array%extents)
      if (array%extents(i) == 1) cycle
      if (between < 0 .and. array%strides(i) == length) then
        length = length * array%extents(i)
      else if (between < 0 .and. array%strides(i) > 0) then
        between = array%strides(i)
        next = between * array%extents(i)
        points = array%extents(i)
      else if (array%strides(i) == next .and. between > 0) then
        next = next * array%extents(i)
        points = points * array%extents(i)
      else
        between = -1
        return
      end if
    end do
  end subroutine find_points

  ! How many elements there are from the first value of a point to its last.
  pure integer(int64) function reach_of(self, point_size, distance) result(reach)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: point_size, distance
    reach = point_size
    if (distance == 0 .or. point_size < 1 .or. .not. self%is_set()) return
    reach = 1 + (point_size - 1) * self%shared%component_stride
  end function reach_of

  ! How many points of `reach` elements lie `stride` apart in `length` elements.
  pure integer(int64) function points_held(length, reach, stride) result(points)
    integer(int64), intent(in) :: length, reach, stride
    if (length < reach) then
      points = 0
    else if (stride <= 0) then
      points = huge(points)
    else
      points = 1 + (length - reach) / stride
    end if
  end function points_held

  ! The library sees no extents: an array that is too short must be found here.
  integer(int32) function check_points(self, npoints) result(outcome)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints
    integer :: k
    outcome = neml2_ok
    if (.not. self%is_set()) return
    if (npoints <= self%shared%points) return
    do k = 1, size(self%shared%extents)
      associate (array => self%shared%extents(k))
        if (array%points >= npoints) cycle
        outcome = raised(neml2_error_shape, array%name, &
                         "The array of "//role_name(array%role)//" '"//array%name//"' holds "//decimal(array%points) &
                         //" points; the run is of "//decimal(npoints)//". Where an array has several axes of " &
                         //"points, bind it with 'stride', the distance from one point to the next.")
        return
      end associate
    end do
  end function check_points

  ! Evaluate `nsteps` steps of `npoints` material points: the same, to the bit, as `run` for one step after another, with
  ! history carried. It ends before the first step in which a point is not neml2_ok; stat is the greatest status of that
  ! step, and `made` the number of steps before it. Arrays are bound with a `step_stride`, the distance from one step to the
  ! next in elements; those without one are the same in all steps or, if they are written, hold the last one. In
  ! neml2_capi.h see "Steps".
  subroutine call_run_steps(self, npoints, nsteps, made, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer, intent(in) :: npoints, nsteps
    integer(int64), intent(out), optional :: made
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64) :: steps
    steps = 0
    outcome = check_steps(self, int(npoints, int64), int(nsteps, int64))
    if (outcome == neml2_ok) outcome = c_call_run_steps(steps, c_handle(self), int(npoints, int64), int(nsteps, int64))
    if (present(made)) made = steps
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_run_steps

  integer(int32) function check_steps(self, npoints, nsteps) result(outcome)
    class(neml2_call), intent(in) :: self
    integer(int64), intent(in) :: npoints, nsteps
    integer(int64) :: left
    integer :: k
    outcome = check_points(self, npoints)
    if (outcome /= neml2_ok .or. npoints <= 0 .or. nsteps <= 0 .or. .not. self%is_set()) return
    do k = 1, size(self%shared%extents)
      associate (array => self%shared%extents(k))
        if (array%step <= 0) cycle
        left = array%room - (npoints - 1) * array%distance
        if ((nsteps - 1) <= left / array%step) cycle
        outcome = raised(neml2_error_shape, array%name, &
                         "The array of "//role_name(array%role)//" '"//array%name//"' holds " &
                         //decimal(merge(0_int64, 1 + left / array%step, left < 0))//" steps of "//decimal(npoints) &
                         //" points; the run is of "//decimal(nsteps)//".")
        return
      end associate
    end do
  end function check_steps

  ! All that a call of `model` can bind. The sizes are kept here because the call may outlive the model.
  subroutine list_extents(extents, model)
    type(extent), allocatable, intent(out) :: extents(:)
    class(neml2_model), intent(in) :: model
    integer(int64) :: variables(neml2_input:neml2_parameter), derivatives(neml2_input:neml2_parameter)
    integer(int32) :: kind
    integer :: k
    derivatives = 0
    do kind = neml2_input, neml2_parameter
      call model%variable_count(kind, variables(kind))
      if (kind /= neml2_output) call model%derivative_count(kind, derivatives(kind))
    end do
    ! Inputs and outputs have values, directions and their images; parameters have values and adjoints.
    allocate (extents(3 * sum(variables(:neml2_output)) + 2 * variables(neml2_parameter) + sum(derivatives) &
                      + size(report_names)))
    k = 0
    call list_variables(neml2_input, [neml2_input, neml2_tangent, neml2_adjoint])
    call list_variables(neml2_output, [neml2_output, neml2_jvp, neml2_cotangent])
    call list_variables(neml2_parameter, [neml2_parameter, neml2_parameter_adjoint])
    call list_derivatives(neml2_input, derivative)
    call list_derivatives(neml2_parameter, parameter_derivative)
    do kind = neml2_report_status, neml2_report_rescue_solves
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
        call model%variable_name(kind, i, name)
        call model%variable_shape(kind, i, shape)
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
        call model%derivative_info(kind, i, output, variable, shape=shape)
        call model%variable_name(neml2_output, output, of)
        call model%variable_name(kind, variable, by)
        call list(role, of//":"//by, shape)
      end do
    end subroutine list_derivatives
  end subroutine list_extents

  ! The place of what can be bound in the list of a call; 0 if there is none.
  pure integer function extent_index(self, role, name) result(k)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: role
    character(*), intent(in) :: name
    if (self%is_set()) then
      do k = 1, size(self%shared%extents)
        if (self%shared%extents(k)%role == role .and. self%shared%extents(k)%name == name) return
      end do
    end if
    k = 0
  end function extent_index

  ! How many values a point has; 0 if the name is unknown, which the library will say.
  pure integer(int64) function point_size_of(self, role, name) result(point_size)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: role
    character(*), intent(in) :: name
    integer :: k
    k = extent_index(self, role, name)
    point_size = 0
    if (k > 0) point_size = self%shared%extents(k)%point_size
  end function point_size_of

  ! Find the place of what can be bound in the list of a call, or make one.
  subroutine add_extent(self, role, name, k)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: role
    character(*), intent(in) :: name
    integer, intent(out) :: k
    type(extent), allocatable :: more(:)
    k = extent_index(self, role, name)
    if (k > 0) return
    k = size(self%shared%extents) + 1
    allocate (more(k))
    more(:k - 1) = self%shared%extents
    more(k)%role = role
    more(k)%name = name
    call move_alloc(more, self%shared%extents)
  end subroutine add_extent

  ! A parameter may go by the last component of its name, if that is unique: its full name, which the list of a call
  ! has. The library refuses a name that is not unique.
  subroutine find_full_name(self, name, full)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    character(:), allocatable, intent(out) :: full
    integer :: k
    full = trim(name)
    if (extent_index(self, neml2_parameter, name) > 0 .or. .not. self%is_set()) return
    do k = 1, size(self%shared%extents)
      associate (known => self%shared%extents(k))
        if (known%role /= neml2_parameter) cycle
        if (known%name(index(known%name, ".", back=.true.) + 1:) == name) full = known%name
      end associate
    end do
  end subroutine find_full_name

  ! begin generated: calls
  ! Bind an input. Every input must be bound when the call runs.
  != call_bind_input: bind(neml2_input) -> name
  subroutine call_bind_input(self, name, array, stat, errmsg, stride, first, step_stride)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first, step_stride
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_input, name, array, stride, first, step_stride)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_input

  ! Bind an output: the very array of an input, with the same stride, or one that overlaps no other. One that is not
  ! bound is not written; a stride of 0 is an error.
  != call_bind_output: bind(neml2_output) -> name
  subroutine call_bind_output(self, name, array, stat, errmsg, stride, first, step_stride)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first, step_stride
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_output, name, array, stride, first, step_stride)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_output

  ! Bind a parameter to values that replace the stored one in this call.
  != call_bind_parameter: bind(neml2_parameter) -> name
  subroutine call_bind_parameter(self, name, array, stat, errmsg, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_parameter, name, array, stride, first)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_parameter

  ! Bind the tangent of an input. One that is not bound is zero.
  != call_bind_tangent: bind(neml2_tangent) -> name
  subroutine call_bind_tangent(self, name, array, stat, errmsg, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_tangent, name, array, stride, first)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_tangent

  ! Bind the derivative of an output along the tangents.
  != call_bind_jvp: bind(neml2_jvp) -> name
  subroutine call_bind_jvp(self, name, array, stat, errmsg, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_jvp, name, array, stride, first)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_jvp

  ! Bind the cotangent of an output. One that is not bound is zero.
  != call_bind_cotangent: bind(neml2_cotangent) -> name
  subroutine call_bind_cotangent(self, name, array, stat, errmsg, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: name
    type(neml2_view), intent(in) :: array
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, neml2_cotangent, name, array, stride, first)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_cotangent

  ! Bind the derivative of an output with respect to an input or, with `of_parameter`, a parameter: (variable, output,
  ! point), or (output, variable, point) with the order neml2_input_first. neml2_error_unsupported if it was not
  ! compiled.
  != call_bind_derivative: bind(derivative, parameter_derivative) -> output, variable
  subroutine call_bind_derivative(self, output, variable, array, stat, errmsg, of_parameter, stride, first, step_stride)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: output, variable
    type(neml2_view), intent(in) :: array
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first, step_stride
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, merge(parameter_derivative, derivative, is_true(of_parameter)), output, array, stride, first, &
      step_stride, variable=variable)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_derivative

  ! Bind the adjoint of an input or, with `of_parameter`, a parameter: of each point or, with a stride of 0 or as a
  ! scalar, the sum over all points that did not fail.
  != call_bind_adjoint: bind(neml2_adjoint, neml2_parameter_adjoint) -> variable
  subroutine call_bind_adjoint(self, variable, array, stat, errmsg, of_parameter, stride, first)
    class(neml2_call), intent(in) :: self
    character(*), intent(in) :: variable
    type(neml2_view), intent(in) :: array
    logical, intent(in), optional :: of_parameter
    integer, intent(in), optional :: stride, first
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = bind(self, merge(neml2_parameter_adjoint, neml2_adjoint, is_true(of_parameter)), variable, array, &
      stride, first)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_bind_adjoint

  ! The order of the components in the blocks of derivatives: neml2_output_first, the default, is (variable, output,
  ! point) here; neml2_input_first is (output, variable, point), the order of DDSDDE.
  != call_set_block_order: call_block_order_set
  subroutine call_set_block_order(self, order, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: order
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = c_call_block_order_set(c_handle(self), order)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine call_set_block_order

  != run: also(int32)

  subroutine run_int32(self, npoints, stat, errmsg)
    class(neml2_call), intent(in) :: self
    integer(int32), intent(in) :: npoints
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = check_points(self, int(npoints, int64))
    if (outcome == neml2_ok) outcome = c_call_run(c_handle(self), int(npoints, int64))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine run_int32
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! How an array lies in memory
  ! ------------------------------------------------------------------------------------------

  ! No array: it takes a binding back.
  function view_nothing() result(seen)
    type(neml2_view) :: seen
    seen%dtype = neml2_float64
  end function view_nothing

  function view_real64(array) result(seen)
    real(real64), pointer, intent(in) :: array(..)
    type(neml2_view) :: seen
    seen%dtype = neml2_float64
    if (.not. associated(array)) return
    call look(seen, neml2_float64, array)
    if (seen%dense) return
    select rank (array)
    rank (1)
      call measure(seen, 1, array(lbound(array, 1) + 1:))
    rank (2)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:))
    rank (3)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:))
    rank (4)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:, :))
      call measure(seen, 4, array(:, :, :, lbound(array, 4) + 1:))
    end select
  end function view_real64

  ! Fill in what does not depend on the kind. The strides of an array with gaps are left to be measured.
  subroutine look(seen, dtype, array)
    type(neml2_view), intent(out) :: seen
    integer(int32), intent(in) :: dtype
    type(*), target, intent(in) :: array(..)
    integer :: i
    seen%dtype = dtype
    allocate (seen%extents(rank(array))) ! gfortran 11 loses the length of shape(array)
    do i = 1, rank(array)
      seen%extents(i) = size(array, i, int64)
    end do
    seen%base = c_loc(array)
    seen%dense = is_contiguous(array) .or. product(seen%extents) <= 1
    if (.not. seen%dense .and. rank(array) > 4) return
    allocate (seen%strides(rank(array)), source=1_int64)
    do i = 2, rank(array)
      seen%strides(i) = seen%strides(i - 1) * seen%extents(i - 1)
    end do
  end subroutine look

  ! The stride of an axis, from the address of what lies beyond the first element.
  subroutine measure(seen, axis, beyond)
    type(neml2_view), intent(inout) :: seen
    integer, intent(in) :: axis
    type(*), target, intent(in) :: beyond(..)
    if (seen%extents(axis) > 1) &
      seen%strides(axis) = (address_of(c_loc(beyond)) - address_of(seen%base)) / bytes(seen%dtype)
  end subroutine measure

  pure integer(int32) function dtype_of(array) result(dtype)
    type(neml2_view), intent(in) :: array
    dtype = array%dtype
  end function dtype_of

  pure integer(int64) function address_of(pointer)
    type(c_ptr), intent(in) :: pointer
    address_of = transfer(pointer, address_of)
  end function address_of

  pure type(c_ptr) function pointer_at(address)
    integer(int64), intent(in) :: address
    pointer_at = transfer(address, pointer_at)
  end function pointer_at

  ! Whether the elements lie side by side: strides of axes of one element, which gfortran's
  ! is_contiguous counts, do not matter.
  pure logical function lies_dense(array) result(dense)
    type(neml2_view), intent(in) :: array
    integer(int64) :: run
    integer :: i
    dense = array%dense .or. product(array%extents) == 0
    if (dense .or. .not. allocated(array%strides)) return
    run = 1
    do i = 1, size(array%extents)
      if (array%extents(i) /= 1 .and. array%strides(i) /= run) return
      run = run * array%extents(i)
    end do
    dense = .true.
  end function lies_dense

  ! Extents and strides of a section, for a message; with blanks at the end.
  pure function shown(array) result(text)
    type(neml2_view), intent(in) :: array
    character(64 + 2 * 22 * 15) :: text
    if (allocated(array%strides)) then
      text = "extents "//trim(listed(array%extents))//", strides "//listed(array%strides)
    else
      text = "extents "//trim(listed(array%extents))//"; the strides of more than 4 axes are not known"
    end if
  end function shown

  ! begin generated: views
  != view: also(real32, int64, int32)

  function view_real32(array) result(seen)
    real(real32), pointer, intent(in) :: array(..)
    type(neml2_view) :: seen
    seen%dtype = neml2_float32
    if (.not. associated(array)) return
    call look(seen, neml2_float32, array)
    if (seen%dense) return
    select rank (array)
    rank (1)
      call measure(seen, 1, array(lbound(array, 1) + 1:))
    rank (2)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:))
    rank (3)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:))
    rank (4)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:, :))
      call measure(seen, 4, array(:, :, :, lbound(array, 4) + 1:))
    end select
  end function view_real32

  function view_int64(array) result(seen)
    integer(int64), pointer, intent(in) :: array(..)
    type(neml2_view) :: seen
    seen%dtype = neml2_int64
    if (.not. associated(array)) return
    call look(seen, neml2_int64, array)
    if (seen%dense) return
    select rank (array)
    rank (1)
      call measure(seen, 1, array(lbound(array, 1) + 1:))
    rank (2)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:))
    rank (3)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:))
    rank (4)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:, :))
      call measure(seen, 4, array(:, :, :, lbound(array, 4) + 1:))
    end select
  end function view_int64

  function view_int32(array) result(seen)
    integer(int32), pointer, intent(in) :: array(..)
    type(neml2_view) :: seen
    seen%dtype = neml2_int32
    if (.not. associated(array)) return
    call look(seen, neml2_int32, array)
    if (seen%dense) return
    select rank (array)
    rank (1)
      call measure(seen, 1, array(lbound(array, 1) + 1:))
    rank (2)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:))
    rank (3)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:))
    rank (4)
      call measure(seen, 1, array(lbound(array, 1) + 1:, :, :, :))
      call measure(seen, 2, array(:, lbound(array, 2) + 1:, :, :))
      call measure(seen, 3, array(:, :, lbound(array, 3) + 1:, :))
      call measure(seen, 4, array(:, :, :, lbound(array, 4) + 1:))
    end select
  end function view_int32
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Evaluation with tensors
  !
  ! An array of tensors has one for each input, output, parameter or derivative, in the order of the model; one that is
  ! not set is missing or, of a direction, zero or, of a parameter, the stored value. Shapes are (point shape...,
  ! batch...), and all batches broadcast. What stands in an array of results is replaced, also if points failed,
  ! which are NaN then, and kept if stat is negative: neml2_error_missing without an input, neml2_error_shape if a
  ! shape is wrong, batches do not broadcast or an array has too few or too many tensors, neml2_error_dtype,
  ! neml2_error_unsupported if a derivative was not compiled.
  ! ------------------------------------------------------------------------------------------

  ! The handles of an array of tensors, if it is there, which must have one for each of a role.
  subroutine list_handles(model, role, tensors, handles, outcome)
    class(neml2_model), intent(in) :: model
    integer(int32), intent(in) :: role
    type(neml2_tensor), intent(in), optional :: tensors(:)
    type(c_ptr), allocatable, intent(out) :: handles(:)
    integer(int32), intent(inout) :: outcome
    character(:), allocatable :: name
    integer(int64) :: expected
    if (outcome /= neml2_ok .or. .not. present(tensors)) return
    select case (role)
    case (neml2_input, neml2_tangent, neml2_adjoint)
      call model%variable_count(neml2_input, expected, outcome)
    case (neml2_output, neml2_jvp, neml2_cotangent)
      call model%variable_count(neml2_output, expected, outcome)
    case (neml2_parameter, neml2_parameter_adjoint)
      call model%variable_count(neml2_parameter, expected, outcome)
    case (derivative)
      call model%derivative_count(neml2_input, expected, outcome)
    case default
      call model%derivative_count(neml2_parameter, expected, outcome)
    end select
    if (outcome /= neml2_ok) return
    if (size(tensors) /= expected) then
      name = trim(role_names(role))//" "
      name = name(:index(name, " ") - 1)
      outcome = raised(neml2_error_shape, name//"s", &
                       "The model has "//decimal(expected)//" "//name//"s; the array for them has " &
                       //decimal(size(tensors, kind=int64))//" tensors.")
    else
      call read_handles(tensors, handles)
    end if
  end subroutine list_handles

  ! One more than there are tensors: to point to where there is none.
  subroutine read_handles(tensors, handles)
    type(neml2_tensor), intent(in) :: tensors(:)
    type(c_ptr), allocatable, intent(out) :: handles(:)
    integer :: i
    allocate (handles(size(tensors) + 1))
    handles = c_null_ptr
    do i = 1, size(tensors)
      handles(i) = c_handle(tensors(i))
    end do
  end subroutine read_handles

  subroutine take_handles(tensors, handles)
    type(neml2_tensor), intent(inout), optional :: tensors(:)
    type(c_ptr), allocatable, intent(in) :: handles(:)
    integer :: i
    if (.not. present(tensors)) return
    do i = 1, size(tensors)
      call take(tensors(i), handles(i), c_tensor_free)
    end do
  end subroutine take_handles

  ! A new tensor of zeros; `dtype` is neml2_float64 unless given.
  subroutine tensor_create(self, shape, stat, errmsg, dtype)
    class(neml2_tensor), intent(inout) :: self
    integer(int64), intent(in) :: shape(:)
    integer(int32), intent(in), optional :: dtype
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome, element
    type(c_ptr) :: tensor
    integer(int64) :: sizes(size(shape)), ndim
    tensor = c_null_ptr
    ndim = size(shape)
    element = neml2_float64
    if (present(dtype)) element = dtype
    sizes = shape(ndim:1:-1)
    outcome = c_tensor_create(tensor, element, ndim, sizes)
    if (outcome == neml2_ok) call take(self, tensor, c_tensor_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine tensor_create

  ! A tensor over an array of any rank, which must stay where it is until the tensor is freed. Sections with gaps, of up
  ! to 4 axes, keep them.
  subroutine tensor_wrap(self, array, stat, errmsg)
    class(neml2_tensor), intent(inout) :: self
    type(neml2_view), intent(in) :: array
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = wrap(self, array)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine tensor_wrap

  integer(int32) function wrap(self, array) result(outcome)
    class(neml2_tensor), intent(inout) :: self
    type(neml2_view), intent(in) :: array
    type(c_ptr) :: tensor
    integer(int64) :: sizes(15), steps(15), ndim
    if (.not. allocated(array%extents)) then
      outcome = raised(neml2_error_argument, "array", "The array to wrap is a null pointer.")
    else if (.not. allocated(array%strides)) then
      outcome = raised(neml2_error_shape, "array", &
                       "The array to wrap is a section with gaps ("//trim(shown(array))//").")
    else
      tensor = c_null_ptr
      ndim = size(array%extents)
      sizes(:ndim) = array%extents(ndim:1:-1)
      steps(:ndim) = array%strides(ndim:1:-1)
      outcome = c_tensor_wrap(tensor, array%base, array%dtype, ndim, sizes, steps, c_null_funptr, c_null_ptr)
      if (outcome == neml2_ok) call take(self, tensor, c_tensor_free)
    end if
  end function wrap

  ! The values where they are, in the order of memory; `matrix(1:6, 1:n) => values` gives them a shape. The pointer
  ! holds until the tensor is freed; it is null on failure: neml2_error_dtype if the values are of another type,
  ! neml2_error_shape if they have gaps.
  subroutine values_real64(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    real(real64), pointer, intent(out) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    values => null()
    call find_values(self, neml2_float64, array, outcome)
    if (outcome == neml2_ok) outcome = need_dense(array)
    if (outcome == neml2_ok) call c_f_pointer(array%base, values, [product(array%extents)])
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine values_real64

  ! A copy of the values in array element order, wherever they lie in memory.
  subroutine copy_real64(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    real(real64), allocatable, intent(inout) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    integer(int64), allocatable :: positions(:)
    real(real64), pointer :: all(:)
    call find_values(self, neml2_float64, array, outcome)
    if (outcome == neml2_ok) then
      call find_positions(array, positions)
      call c_f_pointer(array%base, all, [max(maxval(positions), 0_int64)])
      values = all(positions)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine copy_real64

  ! Layout of the values of a tensor, as of an array of the host.
  subroutine find_values(self, dtype, array, outcome)
    class(neml2_tensor), intent(in) :: self
    integer(int32), intent(in) :: dtype
    type(neml2_view), intent(out) :: array
    integer(int32), intent(out) :: outcome
    type(c_tensor_info) :: info
    array%dtype = dtype
    outcome = c_tensor_inspect(info, c_handle(self))
    if (outcome /= neml2_ok) return
    array%dtype = info%dtype
    array%extents = reversed(info%shape, info%ndim)
    array%base = info%data
    if (product(array%extents) == 0) array%base = c_loc(no_number)
    array%strides = reversed(info%strides, info%ndim)
    if (info%device /= neml2_device_cpu) then
      outcome = raised(neml2_error_unsupported, "values", &
                       "The tensor is on a CUDA device: hand it to what computes there.")
      return
    end if
    array%dense = .false.
    array%dense = lies_dense(array)
    if (array%dtype /= dtype) &
      outcome = raised(neml2_error_dtype, "values", &
                       "The values of the tensor are not of type "//trim(kind_names(dtype))//".")
  end subroutine find_values

  integer(int32) function need_dense(array) result(outcome)
    type(neml2_view), intent(in) :: array
    outcome = neml2_ok
    if (.not. array%dense) &
      outcome = raised(neml2_error_shape, "values", "The values of the tensor do not lie side by side (" &
                       //trim(shown(array))//"). Read them with 'copy'.")
  end function need_dense

  ! Where the elements of an array stand from its first on, in array element order.
  pure subroutine find_positions(array, positions)
    type(neml2_view), intent(in) :: array
    integer(int64), allocatable, intent(out) :: positions(:)
    integer(int64) :: done, i
    integer :: axis
    allocate (positions(product(array%extents)), source=1_int64)
    done = 1
    if (size(positions) == 0) return
    do axis = 1, size(array%extents)
      do i = 1, array%extents(axis) - 1
        positions(i * done + 1:(i + 1) * done) = positions(:done) + i * array%strides(axis)
      end do
      done = done * array%extents(axis)
    end do
  end subroutine find_positions

  ! begin generated: evaluation
  ! Evaluate a model.
  != model_forward -> inputs, outputs, [parameters], [report]
  subroutine model_forward(self, inputs, outputs, stat, errmsg, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_report, c_inputs(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_forward(c_outputs, c_report, c_handle(self), c_inputs, c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_forward

  ! The same with a solver of yours instead of the built-in one.
  != model_forward_with: solve_run -> inputs, outputs, [parameters], [report]
  subroutine model_forward_with(self, solver, inputs, outputs, stat, errmsg, parameters, report)
    class(neml2_model), intent(in) :: self
    procedure(neml2_solver) :: solver
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_report, c_inputs(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    if (outcome == neml2_ok) outcome = c_solve_run(c_outputs, c_report, c_handle(self), c_inputs, c_parameters, &
      c_funloc(call_solver), transfer(c_funloc(solver), c_null_ptr))
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_forward_with

  ! The derivatives of the outputs along one direction; that of an output without any is not set.
  != model_jvp -> inputs, tangents, jvps, [outputs], [parameters], [report]
  subroutine model_jvp(self, inputs, tangents, jvps, stat, errmsg, outputs, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), tangents(:)
    type(neml2_tensor), intent(inout) :: jvps(:)
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_jvps(:), c_report, c_inputs(:), c_tangents(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_tangent, tangents, c_tangents, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    call list_handles(self, neml2_jvp, jvps, c_jvps, outcome)
    if (allocated(c_jvps)) c_jvps = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_jvp(c_outputs, c_jvps, c_report, c_handle(self), c_inputs, c_tangents, &
      c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      call take_handles(jvps, c_jvps)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_jvp

  ! The transpose of that: the adjoints of the inputs, which have the shapes of the inputs.
  != model_vjp: model_vjp(neml2_input) -> inputs, cotangents, adjoints, [outputs], [parameters], [report]
  subroutine model_vjp(self, inputs, cotangents, adjoints, stat, errmsg, outputs, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), cotangents(:)
    type(neml2_tensor), intent(inout) :: adjoints(:)
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_adjoints(:), c_report, c_inputs(:), c_cotangents(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_cotangent, cotangents, c_cotangents, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    call list_handles(self, neml2_adjoint, adjoints, c_adjoints, outcome)
    if (allocated(c_adjoints)) c_adjoints = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_vjp(c_outputs, c_adjoints, c_report, c_handle(self), neml2_input, &
      c_inputs, c_cotangents, c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      call take_handles(adjoints, c_adjoints)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_vjp

  ! All derivatives with respect to inputs, of shape (variable..., output..., batch...), without the batch if all
  ! points have the same one.
  != model_jacobian: model_jacobian(neml2_input) -> inputs, blocks, [outputs], [parameters], [report]
  subroutine model_jacobian(self, inputs, blocks, stat, errmsg, outputs, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: blocks(:)
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_blocks(:), c_report, c_inputs(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    call list_handles(self, derivative, blocks, c_blocks, outcome)
    if (allocated(c_blocks)) c_blocks = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_jacobian(c_outputs, c_blocks, c_report, c_handle(self), neml2_input, &
      c_inputs, c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      call take_handles(blocks, c_blocks)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_jacobian

  ! All derivatives with respect to parameters.
  != model_param_jacobian: model_jacobian(neml2_parameter) -> inputs, blocks, [outputs], [parameters], [report]
  subroutine model_param_jacobian(self, inputs, blocks, stat, errmsg, outputs, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(inout) :: blocks(:)
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_blocks(:), c_report, c_inputs(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    call list_handles(self, parameter_derivative, blocks, c_blocks, outcome)
    if (allocated(c_blocks)) c_blocks = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_jacobian(c_outputs, c_blocks, c_report, c_handle(self), &
      neml2_parameter, c_inputs, c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      call take_handles(blocks, c_blocks)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_param_jacobian

  ! The adjoints of the parameters, which have the shapes of the parameters.
  != model_param_vjp: model_vjp(neml2_parameter) -> inputs, cotangents, adjoints, [outputs], [parameters], [report]
  subroutine model_param_vjp(self, inputs, cotangents, adjoints, stat, errmsg, outputs, parameters, report)
    class(neml2_model), intent(in) :: self
    type(neml2_tensor), intent(in) :: inputs(:), cotangents(:)
    type(neml2_tensor), intent(inout) :: adjoints(:)
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: c_outputs(:), c_adjoints(:), c_report, c_inputs(:), c_cotangents(:), c_parameters(:)
    if (present(report)) c_report = c_null_ptr
    outcome = neml2_ok
    call list_handles(self, neml2_input, inputs, c_inputs, outcome)
    call list_handles(self, neml2_cotangent, cotangents, c_cotangents, outcome)
    call list_handles(self, neml2_parameter, parameters, c_parameters, outcome)
    call list_handles(self, neml2_output, outputs, c_outputs, outcome)
    if (allocated(c_outputs)) c_outputs = c_null_ptr
    call list_handles(self, neml2_parameter_adjoint, adjoints, c_adjoints, outcome)
    if (allocated(c_adjoints)) c_adjoints = c_null_ptr
    if (outcome == neml2_ok) outcome = c_model_vjp(c_outputs, c_adjoints, c_report, c_handle(self), neml2_parameter, &
      c_inputs, c_cotangents, c_parameters)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, c_outputs)
      call take_handles(adjoints, c_adjoints)
      if (present(report)) call take(report, c_report, c_report_free)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine model_param_vjp

  ! The shape in Fortran's order, and the strides in elements.
  != tensor_shape: tensor_inspect -> shape, [strides]
  subroutine tensor_shape(self, shape, stat, errmsg, strides)
    class(neml2_tensor), intent(in) :: self
    integer(int64), allocatable, intent(inout) :: shape(:)
    integer(int64), allocatable, intent(inout), optional :: strides(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_tensor_info) :: info
    outcome = c_tensor_inspect(info, c_handle(self))
    if (outcome == neml2_ok) then
      shape = reversed(info%shape, info%ndim)
      if (present(strides)) strides = reversed(info%strides, info%ndim)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine tensor_shape

  ! The element type, one of neml2_float64 and the others.
  != tensor_dtype: tensor_inspect -> dtype
  subroutine tensor_dtype(self, dtype, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int32), intent(inout) :: dtype
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_tensor_info) :: info
    outcome = c_tensor_inspect(info, c_handle(self))
    if (outcome == neml2_ok) dtype = info%dtype
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine tensor_dtype

  ! Device of the memory of the tensor: neml2_device_cpu or neml2_device_cuda, and which of the CUDA devices.
  != tensor_device: tensor_inspect -> type = device, index = device_index
  subroutine tensor_device(self, type, index, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int32), intent(inout) :: type, index
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_tensor_info) :: info
    outcome = c_tensor_inspect(info, c_handle(self))
    if (outcome == neml2_ok) then
      type = info%device
      index = info%device_index
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine tensor_device

  ! The tensor of a kind of report, neml2_report_status and the others, of shape (batch...).
  != report_get -> tensor
  subroutine report_get(self, kind, tensor, stat, errmsg)
    class(neml2_report), intent(in) :: self
    integer(int32), intent(in) :: kind
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_tensor
    c_tensor = c_null_ptr
    outcome = c_report_get(c_tensor, c_handle(self), kind)
    if (outcome == neml2_ok) call take(tensor, c_tensor, c_tensor_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine report_get

  ! The last iterate of an unknown if the solve failed, (point shape..., batch...); NaN at the points that did not.
  != report_unknown: report_get_unknown -> tensor
  subroutine report_unknown(self, index, tensor, stat, errmsg)
    class(neml2_report), intent(in) :: self
    integer(int64), intent(in) :: index
    type(neml2_tensor), intent(inout) :: tensor
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: c_tensor
    c_tensor = c_null_ptr
    outcome = c_report_get_unknown(c_tensor, c_handle(self), index - 1)
    if (outcome == neml2_ok) call take(tensor, c_tensor, c_tensor_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine report_unknown

  != values: also(real32, int64, int32)

  subroutine values_real32(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    real(real32), pointer, intent(out) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    values => null()
    call find_values(self, neml2_float32, array, outcome)
    if (outcome == neml2_ok) outcome = need_dense(array)
    if (outcome == neml2_ok) call c_f_pointer(array%base, values, [product(array%extents)])
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine values_real32

  subroutine values_int64(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int64), pointer, intent(out) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    values => null()
    call find_values(self, neml2_int64, array, outcome)
    if (outcome == neml2_ok) outcome = need_dense(array)
    if (outcome == neml2_ok) call c_f_pointer(array%base, values, [product(array%extents)])
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine values_int64

  subroutine values_int32(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int32), pointer, intent(out) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    values => null()
    call find_values(self, neml2_int32, array, outcome)
    if (outcome == neml2_ok) outcome = need_dense(array)
    if (outcome == neml2_ok) call c_f_pointer(array%base, values, [product(array%extents)])
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine values_int32

  != copy: also(real32, int64, int32)

  subroutine copy_real32(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    real(real32), allocatable, intent(inout) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    integer(int64), allocatable :: positions(:)
    real(real32), pointer :: all(:)
    call find_values(self, neml2_float32, array, outcome)
    if (outcome == neml2_ok) then
      call find_positions(array, positions)
      call c_f_pointer(array%base, all, [max(maxval(positions), 0_int64)])
      values = all(positions)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine copy_real32

  subroutine copy_int64(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int64), allocatable, intent(inout) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    integer(int64), allocatable :: positions(:)
    integer(int64), pointer :: all(:)
    call find_values(self, neml2_int64, array, outcome)
    if (outcome == neml2_ok) then
      call find_positions(array, positions)
      call c_f_pointer(array%base, all, [max(maxval(positions), 0_int64)])
      values = all(positions)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine copy_int64

  subroutine copy_int32(self, values, stat, errmsg)
    class(neml2_tensor), intent(in) :: self
    integer(int32), allocatable, intent(inout) :: values(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(neml2_view) :: array
    integer(int64), allocatable :: positions(:)
    integer(int32), pointer :: all(:)
    call find_values(self, neml2_int32, array, outcome)
    if (outcome == neml2_ok) then
      call find_positions(array, positions)
      call c_f_pointer(array%base, all, [max(maxval(positions), 0_int64)])
      values = all(positions)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine copy_int32
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Solves
  !
  ! neml2_error_argument if nothing was begun, or if there is no system; neml2_error_shape if a vector is not
  ! (n, npoints).
  ! ------------------------------------------------------------------------------------------

  subroutine begin_int64(self, evaluation, npoints, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    class(neml2_call), intent(in) :: evaluation
    integer(int64), intent(in) :: npoints
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: begun
    begun = c_null_ptr
    outcome = check_points(evaluation, int(npoints, int64))
    if (outcome == neml2_ok) outcome = c_solve_begin_call(begun, c_handle(evaluation), int(npoints, int64))
    if (outcome == neml2_ok) call take(self, begun, c_solve_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine begin_int64

  subroutine begin_tensors(self, model, inputs, stat, errmsg, parameters)
    class(neml2_solve), intent(inout) :: self
    class(neml2_model), intent(in) :: model
    type(neml2_tensor), intent(in) :: inputs(:)
    type(neml2_tensor), intent(in), optional :: parameters(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: given(:), overrides(:)
    type(c_ptr) :: begun
    begun = c_null_ptr
    outcome = neml2_ok
    call list_handles(model, neml2_input, inputs, given, outcome)
    call list_handles(model, neml2_parameter, parameters, overrides, outcome)
    if (outcome == neml2_ok) outcome = c_solve_begin(begun, c_handle(model), given, overrides)
    if (outcome == neml2_ok) then
      call take(self, begun, c_solve_free)
      call model%variable_count(neml2_output, self%shared%outputs)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine begin_tensors

  ! Go on to the next system. The last one must have been accepted. `more` is false if there is none left,
  ! and on failure.
  subroutine solve_next(self, more, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    logical, intent(out) :: more
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: system
    system = c_null_ptr
    outcome = c_solve_next(system, c_handle(self))
    more = c_associated(system)
    if (outcome == neml2_ok) self%shared%system = system
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_next

  ! End a solve after its last system, with the status that the evaluation would have. The arrays of a call are written;
  ! a solve that began with tensors gives its results, and takes `outputs`.
  subroutine solve_finish(self, stat, errmsg, outputs, report)
    class(neml2_solve), intent(inout) :: self
    type(neml2_tensor), intent(inout), optional :: outputs(:)
    type(neml2_report), intent(inout), optional :: report
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr), allocatable :: values(:), reported
    type(c_ptr) :: solve
    solve = c_handle(self)
    outcome = neml2_ok
    if (present(outputs)) then
      allocate (values(size(outputs) + 1))
      values = c_null_ptr
      if (self%is_set()) then
        if (size(outputs) /= self%shared%outputs) &
          outcome = raised(neml2_error_shape, "outputs", "The solve gives "//decimal(self%shared%outputs) &
                           //" outputs as tensors; the array for them has "//decimal(size(outputs, kind=int64))//".")
      end if
    end if
    if (present(report)) reported = c_null_ptr
    if (outcome == neml2_ok) outcome = c_solve_end(values, reported, solve)
    if (outcome >= neml2_ok) then
      call take_handles(outputs, values)
      if (present(report)) call take(report, reported, c_report_free)
      self%shared%c = solve ! null: it was consumed
      call drop(self)
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_finish

  function c_system(self) result(system)
    class(neml2_solve), intent(in) :: self
    type(c_ptr) :: system
    system = c_null_ptr
    if (self%is_set()) system = self%shared%system
  end function c_system

  ! The library sees no extents: vectors are (n, npoints), a Jacobian (n, n, npoints), flags (npoints).
  subroutine check_vector(self, extents, name, outcome)
    class(neml2_solve), intent(in) :: self
    integer(int64), intent(in) :: extents(:)
    character(*), intent(in) :: name
    integer(int32), intent(inout) :: outcome
    integer(int64), allocatable :: expected(:)
    type(c_system_info) :: info
    if (outcome /= neml2_ok) return
    outcome = c_system_inspect(info, c_system(self))
    if (outcome /= neml2_ok) return
    allocate (expected(size(extents)), source=info%n)
    expected(size(extents)) = info%npoints
    if (any(extents /= expected)) &
      outcome = raised(neml2_error_shape, name, &
                       "The array '"//name//"' must be "//trim(listed(expected))//"; it is " &
                       //trim(listed(extents))//".")
  end subroutine check_vector

  ! What the library calls for a solver of neml2_model%forward_with: the context is the subroutine.
  function call_solver(context, system) result(stat) bind(c)
    type(c_ptr), value :: context, system
    integer(int32) :: stat
    procedure(neml2_solver), pointer :: given
    type(neml2_solve) :: view ! without a handle, it has only a system
    type(shared_handle), pointer :: shared
    call c_f_procpointer(transfer(context, c_null_funptr), given)
    allocate (shared)
    shared%system = system
    call hold(view, shared)
    call given(view, stat)
  end function call_solver

  ! begin generated: solves
  ! The numbers that a point has in a vector, the points, and the unknowns of the current system.
  != solve_size: system_inspect -> n, npoints, [nunknowns]
  subroutine solve_size(self, n, npoints, stat, errmsg, nunknowns)
    class(neml2_solve), intent(in) :: self
    integer(int64), intent(inout) :: n, npoints
    integer(int64), intent(inout), optional :: nunknowns
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_system_info) :: info
    outcome = c_system_inspect(info, c_system(self))
    if (outcome == neml2_ok) then
      n = info%n
      npoints = info%npoints
      if (present(nunknowns)) nunknowns = info%nunknowns
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_size

  ! Place of unknown `index` of the system: `unknown` is its position among the model's of kind neml2_unknown, and
  ! its values are `pieces` pieces of `piece_size` numbers, the first from `first` on and each `piece_stride` after the
  ! one before.
  != solve_layout: system_unknown_inspect -> unknown + 1, first = offset + 1, pieces, piece_stride, piece_size
  subroutine solve_layout(self, index, unknown, first, pieces, piece_stride, piece_size, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    integer(int64), intent(in) :: index
    integer(int64), intent(inout) :: unknown, first, pieces, piece_stride, piece_size
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_unknown_info) :: info
    outcome = c_system_unknown_inspect(info, c_system(self), index - 1)
    if (outcome == neml2_ok) then
      unknown = info%unknown + 1
      first = info%offset + 1
      pieces = info%pieces
      piece_stride = info%piece_stride
      piece_size = info%piece_size
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_layout

  ! The initial guess, from the predictor of the model.
  != solve_guess: system_guess -> u
  subroutine solve_guess(self, u, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(inout), contiguous :: u(:, :)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    if (outcome == neml2_ok) outcome = c_system_guess(u, c_system(self))
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_guess

  ! The residual r(u).
  != solve_residual: system_residual -> u, r
  subroutine solve_residual(self, u, r, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: r(:, :)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    call check_vector(self, shape(r, int64), "r", outcome)
    if (outcome == neml2_ok) outcome = c_system_residual(r, c_system(self), u)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_residual

  ! The Newton step du at `u`. `singular` receives, per point, 1 if the Jacobian is singular, else 0.
  != solve_step: system_step -> u, du, [singular]
  subroutine solve_step(self, u, du, stat, errmsg, singular)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: du(:, :)
    integer(int32), intent(inout), contiguous, optional :: singular(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    call check_vector(self, shape(du, int64), "du", outcome)
    if (present(singular)) call check_vector(self, shape(singular, int64), "singular", outcome)
    if (outcome == neml2_ok) outcome = c_system_step(du, singular, c_system(self), u)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_step

  ! The Jacobian at `u`: a(j, i, p) is the derivative of residual i with respect to number j of point p.
  ! neml2_error_unsupported if the artifact has no package for it.
  != solve_jacobian: system_jacobian -> u, a
  subroutine solve_jacobian(self, u, a, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    real(real64), intent(inout), contiguous :: a(:, :, :)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    call check_vector(self, shape(a, int64), "a", outcome)
    if (outcome == neml2_ok) outcome = c_system_jacobian(a, c_system(self), u)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_jacobian

  ! The product y of the Jacobian at `u` with `v`.
  != solve_matvec: system_matvec -> u, v, y
  subroutine solve_matvec(self, u, v, y, stat, errmsg)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :), v(:, :)
    real(real64), intent(inout), contiguous :: y(:, :)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    call check_vector(self, shape(v, int64), "v", outcome)
    call check_vector(self, shape(y, int64), "y", outcome)
    if (outcome == neml2_ok) outcome = c_system_matvec(y, c_system(self), u, v)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_matvec

  ! Take `u` as the solution. `status` says for each point neml2_ok, neml2_not_converged or neml2_singular; without
  ! it a point far above the tolerances of the model failed. `iterations` is for the report.
  != solve_accept: system_accept -> u, [status], [iterations]
  subroutine solve_accept(self, u, stat, errmsg, status, iterations)
    class(neml2_solve), intent(in) :: self
    real(real64), intent(in), contiguous :: u(:, :)
    integer(int32), intent(in), contiguous, optional :: status(:), iterations(:)
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    outcome = neml2_ok
    call check_vector(self, shape(u, int64), "u", outcome)
    if (present(status)) call check_vector(self, shape(status, int64), "status", outcome)
    if (present(iterations)) call check_vector(self, shape(iterations, int64), "iterations", outcome)
    if (outcome == neml2_ok) outcome = c_system_accept(c_system(self), u, status, iterations)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine solve_accept

  != begin: also(int32)

  subroutine begin_int32(self, evaluation, npoints, stat, errmsg)
    class(neml2_solve), intent(inout) :: self
    class(neml2_call), intent(in) :: evaluation
    integer(int32), intent(in) :: npoints
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    type(c_ptr) :: begun
    begun = c_null_ptr
    outcome = check_points(evaluation, int(npoints, int64))
    if (outcome == neml2_ok) outcome = c_solve_begin_call(begun, c_handle(evaluation), int(npoints, int64))
    if (outcome == neml2_ok) call take(self, begun, c_solve_free)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine begin_int32
  ! end generated

  ! ------------------------------------------------------------------------------------------
  ! Text and shapes
  !
  ! No function that threads may call has a result of deferred length: gfortran 12 keeps its length in a static
  ! variable.
  ! ------------------------------------------------------------------------------------------

  pure function role_name(role) result(name)
    integer(int32), intent(in) :: role
    character(4 + len_trim(role_names(role))) :: name
    name = "the "//role_names(role)
  end function role_name

  pure logical function is_true(option)
    logical, intent(in), optional :: option
    is_true = .false.
    if (present(option)) is_true = option
  end function is_true

  pure integer function width(number)
    integer(int64), intent(in) :: number
    character(20) :: digits
    write (digits, "(i0)") number
    width = len_trim(digits)
  end function width

  pure function decimal(number) result(text)
    integer(int64), intent(in) :: number
    character(width(number)) :: text
    write (text, "(i0)") number
  end function decimal

  ! With blanks at the end.
  pure function listed(numbers) result(text)
    integer(int64), intent(in) :: numbers(:)
    character(22 * 15) :: text
    integer :: i
    text = "("
    do i = 1, size(numbers)
      if (i > 1) text = trim(text)//", "//decimal(numbers(i))
      if (i == 1) text = trim(text)//decimal(numbers(i))
    end do
    text = trim(text)//")"
  end function listed

  ! Text as C reads it, without the blanks at the end.
  pure function c_text(text) result(terminated)
    character(*), intent(in) :: text
    character(kind=c_char, len=len_trim(text) + 1) :: terminated
    terminated = trim(text)//c_null_char
  end function c_text

  ! The text at a C pointer; empty if it is null.
  subroutine read_c(pointer, text)
    type(c_ptr), intent(in) :: pointer
    character(:), allocatable, intent(inout) :: text
    character(kind=c_char), pointer :: letters(:)
    integer(int64) :: i
    text = ""
    if (.not. c_associated(pointer)) return
    call c_f_pointer(pointer, letters, [c_strlen(pointer)])
    text = repeat(" ", size(letters))
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end subroutine read_c

  ! C's sizes in Fortran's order.
  function reversed(sizes, n) result(extents)
    type(c_ptr), intent(in) :: sizes
    integer(int64), intent(in) :: n
    integer(int64), allocatable :: extents(:)
    integer(int64), pointer :: values(:)
    allocate (extents(n))
    if (n == 0) return
    call c_f_pointer(sizes, values, [n])
    extents = values(n:1:-1)
  end function reversed

end module neml2_capi_internal

! What hosts use.
module neml2_capi
  use neml2_capi_internal
  implicit none(type, external)
  private
  public :: neml2_view, neml2_solver, neml2_interrupt
  ! begin generated: public
  public :: neml2_model, neml2_tensor, neml2_report, neml2_call, neml2_solve, neml2_version, neml2_error_cause
  public :: neml2_abi_version, neml2_error_status, neml2_error_count, neml2_error_message, neml2_error_subject
  public :: neml2_get_error_message, neml2_get_error_subject, neml2_error_record, neml2_error_get, neml2_log_count
  public :: neml2_log_next, neml2_log_level_set, neml2_log_level_get, neml2_interrupt_set, neml2_source_describe
  public :: neml2_ok, neml2_non_finite, neml2_not_converged, neml2_singular, neml2_out_of_bounds
  public :: neml2_error_argument, neml2_error_name, neml2_error_missing, neml2_error_shape, neml2_error_dtype
  public :: neml2_error_file, neml2_error_artifact, neml2_error_unsupported, neml2_error_runtime, neml2_error_memory
  public :: neml2_error_internal, neml2_error_interrupted, neml2_cause_none, neml2_cause_libtorch_missing
  public :: neml2_cause_schema_unknown, neml2_cause_matrix_singular, neml2_cause_of_host, neml2_float64
  public :: neml2_float32, neml2_int64, neml2_int32, neml2_int16, neml2_int8, neml2_uint8, neml2_bool, neml2_float16
  public :: neml2_bfloat16, neml2_device_cpu, neml2_device_cuda, neml2_device_opencl, neml2_runtime_auto
  public :: neml2_runtime_builtin, neml2_runtime_libtorch, neml2_input, neml2_output, neml2_parameter, neml2_unknown
  public :: neml2_tangent, neml2_jvp, neml2_cotangent, neml2_adjoint, neml2_parameter_adjoint, neml2_tridimensional
  public :: neml2_plane_strain, neml2_axisymmetrical, neml2_generalised_plane_strain, neml2_plane_stress
  public :: neml2_uniaxial, neml2_beam, neml2_plane_beam, neml2_shell, neml2_axisymmetrical_generalised_plane_strain
  public :: neml2_strain_of_law, neml2_strain_logarithmic, neml2_strain_green_lagrange, neml2_strain_corotational
  public :: neml2_stress_pk1, neml2_stress_cauchy, neml2_stress_pk2, neml2_stress_kirchhoff, neml2_output_first
  public :: neml2_input_first, neml2_report_status, neml2_report_iterations, neml2_report_residual_norm
  public :: neml2_report_residual_history, neml2_report_suggested_cut, neml2_report_rescue_solves, neml2_log_silent
  public :: neml2_log_warning, neml2_log_info, neml2_log_debug, neml2_log_length
  ! end generated
end module neml2_capi

! --------------------------------------------------------------------------------------------
! Symmetric tensors as NEML2 stores them, from and to the forms that others have
!
!     use neml2_mandel, only: from_voigt, to_voigt
!     mandel = from_voigt(strain, shear="engineering", order="abaqus")
!
! Mandel notation is xx, yy, zz, sqrt(2) yz, sqrt(2) xz, sqrt(2) xy. Each function takes one tensor, or many whose points
! are the last axis. `shear` is "tensor" for components of the tensor, as of a stress, or "engineering" for twice these,
! as of a strain. `order` is "voigt" for shears yz, xz, xy, the default, or "abaqus" for xy, xz, yz, also of LS-DYNA and
! CalculiX. What is neither ends the program.
! --------------------------------------------------------------------------------------------
module neml2_mandel
  use, intrinsic :: iso_fortran_env, only: real64
  implicit none(type, external)
  private
  public :: from_tensor, to_tensor, from_voigt, to_voigt

  real(real64), parameter :: root = sqrt(2.0_real64)
  real(real64), parameter :: factor(6) = [1.0_real64, 1.0_real64, 1.0_real64, root, root, root]
  integer, parameter :: row(6) = [1, 2, 3, 2, 1, 1], column(6) = [1, 2, 3, 3, 3, 2]

  ! The Mandel vector (6[, n]) of tensors (3, 3[, n]); of those that are not symmetric, that of the symmetric part.
  interface from_tensor
    procedure :: from_one_tensor, from_tensors
  end interface
  ! The symmetric tensors (3, 3[, n]) of Mandel vectors (6[, n]).
  interface to_tensor
    procedure :: to_one_tensor, to_tensors
  end interface
  ! The Mandel vectors (6[, n]) of six components (6[, n]).
  interface from_voigt
    procedure :: from_one_voigt, from_voigts
  end interface
  ! The six components (6[, n]) of Mandel vectors (6[, n]).
  interface to_voigt
    procedure :: to_one_voigt, to_voigts
  end interface

contains

  pure function from_one_tensor(tensor) result(mandel)
    real(real64), intent(in) :: tensor(3, 3)
    real(real64) :: mandel(6)
    integer :: i
    mandel = [(factor(i) * (tensor(row(i), column(i)) + tensor(column(i), row(i))) / 2, i=1, 6)]
  end function from_one_tensor

  pure function from_tensors(tensors) result(mandel)
    real(real64), intent(in) :: tensors(:, :, :)
    real(real64) :: mandel(6, size(tensors, 3))
    integer :: p
    do p = 1, size(tensors, 3)
      mandel(:, p) = from_one_tensor(tensors(:, :, p))
    end do
  end function from_tensors

  pure function to_one_tensor(mandel) result(tensor)
    real(real64), intent(in) :: mandel(6)
    real(real64) :: tensor(3, 3)
    integer :: i
    do i = 1, 6
      tensor(row(i), column(i)) = mandel(i) / factor(i)
      tensor(column(i), row(i)) = mandel(i) / factor(i)
    end do
  end function to_one_tensor

  pure function to_tensors(mandel) result(tensors)
    real(real64), intent(in) :: mandel(:, :)
    real(real64) :: tensors(3, 3, size(mandel, 2))
    integer :: p
    do p = 1, size(mandel, 2)
      tensors(:, :, p) = to_one_tensor(mandel(:, p))
    end do
  end function to_tensors

  pure function from_one_voigt(voigt, shear, order) result(mandel)
    real(real64), intent(in) :: voigt(6)
    character(*), intent(in) :: shear
    character(*), intent(in), optional :: order
    real(real64) :: mandel(6)
    mandel = voigt(places(order)) * factor / doubled(shear)
  end function from_one_voigt

  pure function from_voigts(voigt, shear, order) result(mandel)
    real(real64), intent(in) :: voigt(:, :)
    character(*), intent(in) :: shear
    character(*), intent(in), optional :: order
    real(real64) :: mandel(6, size(voigt, 2))
    integer :: p
    do p = 1, size(voigt, 2)
      mandel(:, p) = from_one_voigt(voigt(:, p), shear, order)
    end do
  end function from_voigts

  pure function to_one_voigt(mandel, shear, order) result(voigt)
    real(real64), intent(in) :: mandel(6)
    character(*), intent(in) :: shear
    character(*), intent(in), optional :: order
    real(real64) :: voigt(6)
    voigt(places(order)) = mandel * doubled(shear) / factor
  end function to_one_voigt

  pure function to_voigts(mandel, shear, order) result(voigt)
    real(real64), intent(in) :: mandel(:, :)
    character(*), intent(in) :: shear
    character(*), intent(in), optional :: order
    real(real64) :: voigt(6, size(mandel, 2))
    integer :: p
    do p = 1, size(mandel, 2)
      voigt(:, p) = to_one_voigt(mandel(:, p), shear, order)
    end do
  end function to_voigts

  ! Positions of the components of an order in Mandel notation.
  pure function places(order)
    character(*), intent(in), optional :: order
    integer :: places(6)
    places = [1, 2, 3, 4, 5, 6]
    if (.not. present(order)) return
    select case (order)
    case ("voigt")
    case ("abaqus"); places = [1, 2, 3, 6, 5, 4]
    case default; error stop "neml2_mandel: order must be 'voigt' or 'abaqus'"
    end select
  end function places

  ! By what components of the tensor are multiplied.
  pure function doubled(shear)
    character(*), intent(in) :: shear
    real(real64) :: doubled(6)
    doubled = 1
    select case (shear)
    case ("tensor")
    case ("engineering"); doubled(4:) = 2
    case default; error stop "neml2_mandel: shear must be 'tensor' or 'engineering'"
    end select
  end function doubled
end module neml2_mandel

! --------------------------------------------------------------------------------------------
! The history of points, carried from step to step: what a model reads as `x~1` of its own outputs and of the forces
!
!     use neml2_history, only: neml2_state
!     type(neml2_state) :: state
!
!     call state%create(model, n)
!     call state%bind(evaluation)                    ! and bind what has no history yourself
!     do step = 1, steps
!       strain => state%now("strain")                ! (6, n): to be written for a force, and read for an output
!       strain = ...
!       call evaluation%run(n, stat)                 ! as often as the host iterates
!       call state%advance()                         ! at the end of the step: what is now becomes old
!     end do
!
! All begins at zero. The arrays are the state's, and stay where they are until it is freed, after the last run: by `free`,
! or at the end of its procedure. A step that failed moves nothing, and may be tried again. `saved = state` copies all
! values; `state = saved` puts them back where calls are bound. What is wrong ends the program with a message.
! --------------------------------------------------------------------------------------------
module neml2_history
  use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc, c_null_ptr, c_ptr
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_call, neml2_float64, neml2_input, neml2_model, neml2_output, neml2_view
  use neml2_capi_internal, only: c_handle, is_counted, object, take
  implicit none(type, external)
  private
  public :: neml2_state

  type :: carried
    character(:), allocatable :: name
    logical :: is_output = .false.
    logical :: is_read(0:9) = .false. ! by age
    real(real64), allocatable :: values(:, :, :) ! (size, n, 0:ages); 0 is now
  end type carried

  type :: history
    type(carried), allocatable :: items(:)
  end type history

  ! Its handle is the address of a history.
  type, extends(object) :: neml2_state
  contains
    procedure :: create
    procedure :: bind
    procedure :: now
    procedure :: old
    procedure :: advance
    generic :: assignment(=) => copy
    procedure, private :: copy
  end type neml2_state

contains

  ! Make the history of `n` points of a model of real64, at zero.
  subroutine create(self, model, n)
    class(neml2_state), intent(inout) :: self
    class(neml2_model), intent(in) :: model
    integer, intent(in) :: n
    character(:), allocatable :: name
    integer(int64), allocatable :: extents(:)
    integer(int64) :: count, index, input, age, output, current
    integer(int32) :: dtype
    integer :: k
    type(history), pointer :: made
    if (n < 0) error stop "neml2_state: create expects a number of points of 0 or more"
    allocate (made)
    allocate (made%items(0))
    call take(self, c_loc(made), free_history)
    call model%history_count(count)
    do index = 1, count
      call model%history_info(index, input, age=age, output=output, current=current)
      if (output < 1 .and. current < 1) cycle ! the model says nothing of its value now
      if (output > 0) call model%variable_name(neml2_output, output, name)
      if (output < 1) call model%variable_name(neml2_input, current, name)
      call model%variable_shape(neml2_input, input, extents)
      call model%variable_dtype(neml2_input, input, dtype)
      if (dtype /= neml2_float64) error stop "neml2_state: the history of '"//name//"' is not of real64; carry it yourself"
      k = position_of(made, name)
      if (k == 0) call add_item(made, name, output > 0, k)
      associate (item => made%items(k))
        if (age > ubound(item%is_read, 1)) error stop "neml2_state: '"//name//"' is remembered for more steps than it holds"
        item%is_read(age) = .true.
        if (allocated(item%values)) then
          if (age <= ubound(item%values, 3)) cycle
          deallocate (item%values)
        end if
        allocate (item%values(product(extents), n, 0:age), source=0.0_real64)
      end associate
    end do
  end subroutine create

  ! Bind all that has a history, now and before.
  subroutine bind(self, evaluation)
    class(neml2_state), intent(in) :: self
    class(neml2_call), intent(in) :: evaluation
    real(real64), pointer :: values(:, :)
    character(12) :: suffix
    integer :: k, age
    type(history), pointer :: own
    own => history_of(self)
    do k = 1, size(own%items)
      do age = 0, ubound(own%items(k)%values, 3)
        values => own%items(k)%values(:, :, age)
        suffix = ""
        if (age > 0) write (suffix, "(a, i0)") "~", age
        if (age == 0 .and. own%items(k)%is_output) then
          call evaluation%bind_output(own%items(k)%name, neml2_view(values))
        else if (age == 0 .or. own%items(k)%is_read(age)) then
          call evaluation%bind_input(own%items(k)%name//trim(suffix), neml2_view(values))
        end if
      end do
    end do
  end subroutine bind

  ! The values of `x` now, (size, n).
  function now(self, name) result(values)
    class(neml2_state), intent(in) :: self
    character(*), intent(in) :: name
    real(real64), pointer :: values(:, :)
    type(history), pointer :: own
    own => history_of(self)
    values => own%items(known(own, name))%values(:, :, 0)
  end function now

  ! The values of `x` at the step before, or `age` steps before: to begin elsewhere than at zero.
  function old(self, name, age) result(values)
    class(neml2_state), intent(in) :: self
    character(*), intent(in) :: name
    integer, intent(in), optional :: age
    real(real64), pointer :: values(:, :)
    integer :: k, steps
    type(history), pointer :: own
    own => history_of(self)
    k = known(own, name)
    steps = 1
    if (present(age)) steps = age
    if (steps < 1 .or. steps > ubound(own%items(k)%values, 3)) &
      error stop "neml2_state: the model does not remember '"//name//"' for so many steps"
    values => own%items(k)%values(:, :, steps)
  end function old

  ! Make what is now old.
  subroutine advance(self)
    class(neml2_state), intent(inout) :: self
    integer :: k, age
    type(history), pointer :: own
    own => history_of(self)
    do k = 1, size(own%items)
      do age = ubound(own%items(k)%values, 3), 1, -1
        own%items(k)%values(:, :, age) = own%items(k)%values(:, :, age - 1)
      end do
    end do
  end subroutine advance

  ! Copy the values of another state. Arrays that fit are kept, so that calls stay bound to them.
  subroutine copy(left, right)
    class(neml2_state), intent(inout) :: left
    class(neml2_state), intent(in) :: right
    type(history), pointer :: to, from
    integer :: k
    if (.not. right%is_set()) then
      call left%free()
      return
    end if
    from => history_of(right)
    if (is_counted(left)) then
      to => history_of(left)
      if (are_alike(to, from)) then
        do k = 1, size(to%items)
          to%items(k)%values(:, :, :) = from%items(k)%values
        end do
        return
      end if
    end if
    allocate (to)
    to = from
    call take(left, c_loc(to), free_history)
  end subroutine copy

  ! Whether two histories are of the same variables and of as many points.
  logical function are_alike(left, right)
    type(history), intent(in) :: left, right
    integer :: k
    are_alike = size(left%items) == size(right%items)
    if (.not. are_alike) return
    do k = 1, size(left%items)
      are_alike = left%items(k)%name == right%items(k)%name
      if (are_alike) are_alike = all(shape(left%items(k)%values) == shape(right%items(k)%values))
      if (.not. are_alike) return
    end do
  end function are_alike

  function history_of(self) result(own)
    class(neml2_state), intent(in) :: self
    type(history), pointer :: own
    if (.not. self%is_set()) error stop "neml2_state: the state was not created: call create first"
    call c_f_pointer(c_handle(self), own)
  end function history_of

  subroutine free_history(handle) bind(c)
    type(c_ptr), intent(inout), optional :: handle
    type(history), pointer :: own
    if (.not. present(handle)) return
    call c_f_pointer(handle, own)
    deallocate (own)
    handle = c_null_ptr
  end subroutine free_history

  subroutine add_item(own, name, is_output, k)
    type(history), intent(inout) :: own
    character(*), intent(in) :: name
    logical, intent(in) :: is_output
    integer, intent(out) :: k
    type(carried), allocatable :: more(:)
    k = size(own%items) + 1
    allocate (more(k))
    more(:k - 1) = own%items
    more(k)%name = name
    more(k)%is_output = is_output
    call move_alloc(more, own%items)
  end subroutine add_item

  ! Position of a name among the items, or 0.
  pure integer function position_of(own, name) result(k)
    type(history), intent(in) :: own
    character(*), intent(in) :: name
    do k = size(own%items), 1, -1
      if (own%items(k)%name == name) return
    end do
  end function position_of

  integer function known(own, name) result(k)
    type(history), intent(in) :: own
    character(*), intent(in) :: name
    character(:), allocatable :: names
    integer :: i
    k = position_of(own, name)
    if (k > 0) return
    names = ""
    do i = 1, size(own%items)
      names = names//" "//own%items(i)%name
    end do
    error stop "neml2_state: there is no '"//name//"'; there are:"//names
  end function known
end module neml2_history
