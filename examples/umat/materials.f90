! The materials of an analysis: loaded when first asked for, by whichever thread comes first, and kept to the end.
!
! A thread takes a workspace, evaluates, and gives it back. Taking and giving back are under the lock; the evaluation
! is not, so that there are as many workspaces of a material as threads that evaluated it at once.
module umat_materials
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_call, neml2_input, neml2_input_first, neml2_model, neml2_ok, neml2_output, neml2_parameter
  use umat_conventions, only: item_size
  use umat_lock, only: lock, unlock
  use umat_mapping, only: mapping, read_mapping, variable
  implicit none(type, external)
  private
  public :: give_back, material, slot, take, workspace

  ! Where a variable of the mapping stands in an array of a workspace.
  type :: slot
    integer :: first = 0, last = 0
  end type slot

  type :: material
    character(80) :: name = ""
    type(mapping) :: mapping
    type(neml2_model) :: model
    type(slot), allocatable :: states(:), parameters(:)
    integer :: nstatv = 0, nprops = 0, nfields = 0 ! what UMAT must be given at least
    type(workspace), pointer :: idle => null()
    type(material), pointer :: next => null()
  end type material

  ! The arrays of one evaluation, all in the model's notation, and the call that they are bound to. `state` begins with
  ! the stress; then come the states in the order of the mapping.
  type :: workspace
    type(neml2_call) :: evaluation
    real(real64) :: strain(6, 1) = 0, old_strain(6, 1) = 0
    real(real64) :: time = 0, old_time = 0, temperature = 0, old_temperature = 0
    real(real64), allocatable :: state(:, :), old_state(:, :), fields(:, :), old_fields(:, :), parameters(:, :)
    real(real64) :: tangent(6, 6, 1) = 0 ! (stress, strain)
    real(real64) :: cut(1) = 1
    type(material), pointer :: material => null()
    type(workspace), pointer :: next => null()
  end type workspace

  type(slot), parameter :: stress_slot = slot(1, 6)

  type(material), pointer, save :: materials => null()

contains

  ! A workspace of the material that Abaqus calls `name`; `errmsg` is empty on success.
  subroutine take(name, work, errmsg)
    character(*), intent(in) :: name
    type(workspace), pointer, intent(out) :: work
    character(:), allocatable, intent(out) :: errmsg
    type(material), pointer :: m

    work => null()
    errmsg = ""
    call lock()
    m => materials
    do while (associated(m))
      if (m%name == name) exit
      m => m%next
    end do
    if (.not. associated(m)) call load(name, m, errmsg)
    if (errmsg == "") then
      if (associated(m%idle)) then
        work => m%idle
        m%idle => work%next
      else
        call create(m, work, errmsg)
      end if
    end if
    call unlock()
  end subroutine take

  subroutine give_back(work)
    type(workspace), pointer, intent(inout) :: work
    call lock()
    work%next => work%material%idle
    work%material%idle => work
    call unlock()
    work => null()
  end subroutine give_back

  ! ------------------------------------------------------------------------------------------
  ! Loading, under the lock
  ! ------------------------------------------------------------------------------------------

  subroutine load(name, m, errmsg)
    character(*), intent(in) :: name
    type(material), pointer, intent(out) :: m
    character(:), allocatable, intent(out) :: errmsg
    character(:), allocatable :: folder, message, path
    integer(int32) :: stat

    allocate (m)
    m%name = name
    call mapping_folder(folder, errmsg)
    if (errmsg == "") call read_mapping(folder//lower_case(trim(name))//".nml", m%mapping, errmsg)
    if (errmsg == "") then
      path = trim(m%mapping%artifact)
      if (path(1:1) /= "/") path = folder//path
      call m%model%load(path, stat=stat, errmsg=message)
      if (stat /= neml2_ok) errmsg = message
    end if
    if (errmsg == "") call set_options(m, errmsg)
    if (errmsg == "") call place_states(m, errmsg)
    if (errmsg == "") call place_parameters(m, errmsg)
    if (errmsg /= "") then
      deallocate (m)
      return
    end if
    m%nfields = maxval([0, m%mapping%fields%first])
    m%next => materials
    materials => m
  end subroutine load

  subroutine set_options(m, errmsg)
    type(material), pointer, intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    integer(int32) :: stat
    integer :: k
    errmsg = ""
    do k = 1, size(m%mapping%options)
      associate (option => m%mapping%options(k))
        call m%model%set_option(trim(option%name), option%value, stat=stat, errmsg=errmsg)
      end associate
      if (stat /= neml2_ok) return
    end do
  end subroutine set_options

  ! Ends with a slash.
  subroutine mapping_folder(folder, errmsg)
    character(:), allocatable, intent(out) :: folder, errmsg
    integer :: length
    errmsg = ""
    call get_environment_variable("NEML2_UMAT_PATH", length=length)
    allocate (character(len=length) :: folder)
    if (length == 0) then
      errmsg = "The environment variable NEML2_UMAT_PATH is not set. It names the folder of the mapping files."
      return
    end if
    call get_environment_variable("NEML2_UMAT_PATH", folder)
    folder = folder//"/"
  end subroutine mapping_folder

  pure function lower_case(text) result(lower)
    character(*), intent(in) :: text
    character(len(text)) :: lower
    integer :: i
    lower = text
    do i = 1, len(text)
      if (text(i:i) >= "A" .and. text(i:i) <= "Z") lower(i:i) = achar(iachar(text(i:i)) + 32)
    end do
  end function lower_case

  ! Where the states stand in STATEV and in a workspace.
  subroutine place_states(m, errmsg)
    type(material), pointer, intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    logical, allocatable :: taken(:)
    integer :: k, length, end

    errmsg = ""
    allocate (m%states(size(m%mapping%states)))
    allocate (taken(10000), source=.false.)
    end = stress_slot%last
    do k = 1, size(m%states)
      associate (state => m%mapping%states(k), place => m%states(k))
        call length_of(m%model, neml2_output, state%name, length, errmsg)
        if (errmsg /= "") return
        if (item_size(state%kind) == 0) then
          errmsg = "The state '"//trim(state%name)//"' has the kind '"//trim(state%kind) &
                   //"'; it can be scalar, vector, symmetric or tensor."
        else if (mod(length, item_size(state%kind)) /= 0) then
          errmsg = "The state '"//trim(state%name)//"' has "//decimal(length)//" values, and one of the kind '" &
                   //trim(state%kind)//"' has "//decimal(item_size(state%kind))//"."
        else if (state%first + length - 1 > size(taken)) then
          errmsg = "The state '"//trim(state%name)//"' ends beyond STATEV("//decimal(size(taken))//")."
        else if (any(taken(state%first:state%first + length - 1))) then
          errmsg = "The state '"//trim(state%name)//"', STATEV("//decimal(state%first)//":" &
                   //decimal(state%first + length - 1)//"), overlaps another."
        end if
        if (errmsg /= "") return
        taken(state%first:state%first + length - 1) = .true.
        if (state%name == m%mapping%stress) then
          place = stress_slot
        else
          place = slot(end + 1, end + length)
          end = place%last
        end if
        m%nstatv = max(m%nstatv, state%first + length - 1)
      end associate
    end do
  end subroutine place_states

  ! Where the parameters stand in a workspace.
  subroutine place_parameters(m, errmsg)
    type(material), pointer, intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    integer :: k, length, end

    errmsg = ""
    allocate (m%parameters(size(m%mapping%parameters)))
    end = 0
    do k = 1, size(m%parameters)
      associate (parameter => m%mapping%parameters(k))
        call length_of(m%model, neml2_parameter, parameter%name, length, errmsg)
        if (errmsg /= "") return
        m%parameters(k) = slot(end + 1, end + length)
        end = end + length
        m%nprops = max(m%nprops, parameter%first + length - 1)
      end associate
    end do
  end subroutine place_parameters

  ! How many values an output or a parameter has at one point.
  subroutine length_of(model, kind, name, length, errmsg)
    type(neml2_model), intent(in) :: model
    integer(int32), intent(in) :: kind
    character(*), intent(in) :: name
    integer, intent(out) :: length
    character(:), allocatable, intent(out) :: errmsg
    integer(int64), allocatable :: shape(:)
    integer(int64) :: index
    integer(int32) :: stat

    length = 0
    errmsg = ""
    call model%variable_find(kind, trim(name), index, stat=stat, errmsg=errmsg)
    if (stat == neml2_ok .and. index == 0) then
      errmsg = "The artifact has no "//trim(merge("output   ", "parameter", kind == neml2_output))//" '" &
               //trim(name)//"'."
      return
    end if
    if (stat == neml2_ok) call model%variable_shape(kind, index, shape, stat=stat, errmsg=errmsg)
    if (stat == neml2_ok) length = int(product(shape))
  end subroutine length_of

  pure function decimal(number)
    integer, intent(in) :: number
    character(:), allocatable :: decimal
    character(12) :: text
    write (text, "(i0)") number
    decimal = trim(text)
  end function decimal

  ! ------------------------------------------------------------------------------------------
  ! Workspaces, under the lock
  ! ------------------------------------------------------------------------------------------

  subroutine create(m, work, errmsg)
    type(material), pointer, intent(in) :: m
    type(workspace), pointer, intent(out) :: work
    character(:), allocatable, intent(out) :: errmsg
    integer :: nstate, nparameters
    integer(int32) :: stat

    nstate = maxval([stress_slot%last, m%states%last])
    nparameters = maxval([0, m%parameters%last])
    allocate (work)
    work%material => m
    allocate (work%state(nstate, 1), work%old_state(nstate, 1), source=0.0_real64)
    allocate (work%parameters(nparameters, 1), source=0.0_real64)
    allocate (work%fields(m%nfields, 1), work%old_fields(m%nfields, 1), source=0.0_real64)

    call work%evaluation%create(m%model, stat=stat, errmsg=errmsg)
    if (stat == neml2_ok) call bind_inputs(work, m, errmsg)
    if (errmsg == "") call bind_outputs(work, m, errmsg)
    if (errmsg /= "") deallocate (work)
  end subroutine create

  ! Every input of the model is something that UMAT is given, or the mapping is wrong.
  subroutine bind_inputs(work, m, errmsg)
    type(workspace), pointer, intent(in) :: work
    type(material), pointer, intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    character(:), allocatable :: name
    integer(int64) :: i, inputs
    integer(int32) :: stat
    integer :: k

    call m%model%variable_count(neml2_input, inputs, stat=stat, errmsg=errmsg)
    do i = 1, inputs
      call m%model%variable_name(neml2_input, i, name, stat=stat, errmsg=errmsg)
      call bind_input(name)
      if (errmsg /= "") return
    end do
    do k = 1, size(m%parameters)
      associate (place => m%parameters(k))
        call work%evaluation%bind_parameter(trim(m%mapping%parameters(k)%name), work%parameters, stat=stat, stride=0, &
                                            first=place%first, errmsg=errmsg)
      end associate
      if (errmsg /= "") return
    end do

  contains

    subroutine bind_input(name)
      character(*), intent(in) :: name
      integer :: k
      associate (evaluation => work%evaluation, map => m%mapping)
        if (name == map%strain) then
          call evaluation%bind_input(name, work%strain, stat=stat, errmsg=errmsg)
        else if (name == before(map%strain)) then
          call evaluation%bind_input(name, work%old_strain, stat=stat, errmsg=errmsg)
        else if (name == map%time) then
          call evaluation%bind_input(name, work%time, stat=stat, errmsg=errmsg)
        else if (name == before(map%time)) then
          call evaluation%bind_input(name, work%old_time, stat=stat, errmsg=errmsg)
        else if (name == map%temperature) then
          call evaluation%bind_input(name, work%temperature, stat=stat, errmsg=errmsg)
        else if (name == before(map%temperature)) then
          call evaluation%bind_input(name, work%old_temperature, stat=stat, errmsg=errmsg)
        else if (name == before(map%stress)) then
          call evaluation%bind_input(name, work%old_state, stat=stat, errmsg=errmsg)
        else
          do k = 1, size(map%states)
            ! An input of the output's own name is the first guess of its solve.
            if (name /= before(map%states(k)%name) .and. name /= map%states(k)%name) cycle
            call evaluation%bind_input(name, work%old_state, stat=stat, first=m%states(k)%first, errmsg=errmsg)
            return
          end do
          do k = 1, size(map%fields)
            if (name == map%fields(k)%name) then
              call evaluation%bind_input(name, work%fields, stat=stat, first=map%fields(k)%first, errmsg=errmsg)
              return
            else if (name == before(map%fields(k)%name)) then
              call evaluation%bind_input(name, work%old_fields, stat=stat, first=map%fields(k)%first, errmsg=errmsg)
              return
            end if
          end do
          errmsg = "The artifact's input '"//name//"' is not in the mapping file. It can be strain, time or " &
                   //"temperature of &material, a predefined field (&field), or the history of a &state."
        end if
      end associate
    end subroutine bind_input

    pure function before(name)
      character(*), intent(in) :: name
      character(:), allocatable :: before
      before = trim(name)//"~1"
    end function before
  end subroutine bind_inputs

  subroutine bind_outputs(work, m, errmsg)
    type(workspace), pointer, intent(in) :: work
    type(material), pointer, intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    integer(int32) :: stat
    integer :: k

    associate (evaluation => work%evaluation, map => m%mapping)
      call evaluation%bind_output(trim(map%stress), work%state, stat=stat, errmsg=errmsg)
      do k = 1, size(map%states)
        if (stat /= neml2_ok) return
        call evaluation%bind_output(trim(map%states(k)%name), work%state, stat=stat, first=m%states(k)%first, &
                                    errmsg=errmsg)
      end do
      if (stat == neml2_ok) call evaluation%set_block_order(neml2_input_first, stat=stat, errmsg=errmsg)
      if (stat == neml2_ok) call evaluation%bind_suggested_cut(work%cut, stat=stat, errmsg=errmsg)
      if (stat == neml2_ok) call evaluation%bind_derivative(trim(map%stress), trim(map%strain), work%tangent, &
                                                            stat=stat, errmsg=errmsg)
    end associate
  end subroutine bind_outputs
end module umat_materials
