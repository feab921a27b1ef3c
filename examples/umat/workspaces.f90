! The arrays of one evaluation, all in the model's notation, and the call that they are bound to.
module umat_workspaces
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_call, neml2_input, neml2_input_first, neml2_ok, neml2_report_suggested_cut, neml2_view
  use umat_materials, only: material, stress_slot
  implicit none(type, external)
  private
  public :: create_workspace, workspace

  ! `state` begins with the stress; then come the states in the order of the mapping.
  type :: workspace
    type(material), pointer :: material => null()
    type(neml2_call) :: evaluation
    real(real64) :: strain(6, 1) = 0, old_strain(6, 1) = 0
    real(real64) :: time = 0, old_time = 0, temperature = 0, old_temperature = 0
    real(real64), allocatable :: state(:, :), old_state(:, :), fields(:, :), old_fields(:, :), parameters(:, :)
    real(real64), allocatable :: constants(:) ! of the fields of the mapping
    real(real64) :: tangent(6, 6, 1) = 0 ! (stress, strain)
    real(real64) :: cut(1) = 1, stored(1) = 0, dissipated(1) = 0
    type(workspace), pointer :: next => null() ! of those that wait; see umat_pool
  end type workspace

contains

  ! A workspace of its own for a material; `errmsg` is empty on success.
  subroutine create_workspace(m, work, errmsg)
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

    work%constants = m%mapping%fields%value

    call work%evaluation%create(m%model, stat=stat, errmsg=errmsg)
    ! The stress first: where its name is wrong, its history seems to be an input without a meaning.
    if (stat == neml2_ok) call work%evaluation%bind_output(trim(m%mapping%stress), neml2_view(work%state), &
      stat=stat, errmsg=errmsg)
    if (stat == neml2_ok) call bind_inputs(work, m, errmsg)
    if (errmsg == "") call bind_outputs(work, m, errmsg)
    if (errmsg /= "") then
      deallocate (work)
      work => null()
    end if
  end subroutine create_workspace

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
        call work%evaluation%bind_parameter(trim(m%mapping%parameters(k)%name), neml2_view(work%parameters), &
          stat=stat, stride=0, &
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
          call evaluation%bind_input(name, neml2_view(work%strain), stat=stat, errmsg=errmsg)
        else if (name == before(map%strain)) then
          call evaluation%bind_input(name, neml2_view(work%old_strain), stat=stat, errmsg=errmsg)
        else if (name == map%time) then
          call evaluation%bind_input(name, neml2_view(work%time), stat=stat, errmsg=errmsg)
        else if (name == before(map%time)) then
          call evaluation%bind_input(name, neml2_view(work%old_time), stat=stat, errmsg=errmsg)
        else if (name == map%temperature) then
          call evaluation%bind_input(name, neml2_view(work%temperature), stat=stat, errmsg=errmsg)
        else if (name == before(map%temperature) .and. .not. m%host%has_old_temperature) then
          errmsg = "The input '"//name//"' is the temperature at the beginning of an increment, which " &
                   //trim(m%host%name)//" does not pass: use a law of the temperature at its end."
        else if (name == before(map%temperature)) then
          call evaluation%bind_input(name, neml2_view(work%old_temperature), stat=stat, errmsg=errmsg)
        else if (name == before(map%stress)) then
          call evaluation%bind_input(name, neml2_view(work%old_state), stat=stat, errmsg=errmsg)
        else
          do k = 1, size(map%states)
            ! An input of the output's own name is the first guess of its solve.
            if (name /= before(map%states(k)%name) .and. name /= map%states(k)%name) cycle
            call evaluation%bind_input(name, neml2_view(work%old_state), stat=stat, first=m%states(k)%first, &
              errmsg=errmsg)
            return
          end do
          do k = 1, size(map%fields)
            if (name /= map%fields(k)%name) cycle
            call bind_field(name, k, work%fields)
            return
          end do
          do k = 1, size(map%fields)
            if (name /= before(map%fields(k)%name)) cycle
            call bind_field(name, k, work%old_fields)
            return
          end do
          errmsg = "The artifact's input '"//name//"' is not in the mapping file. It can be strain, time or " &
                   //"temperature of &material, a predefined field or a constant (&field), or the history of a &state."
        end if
      end associate
    end subroutine bind_input

    ! The k-th field of the mapping: a constant, or one of the predefined fields.
    subroutine bind_field(name, k, fields)
      character(*), intent(in) :: name
      integer, intent(in) :: k
      real(real64), intent(inout), target :: fields(:, :)
      associate (first => m%mapping%fields(k)%first)
        if (first == 0) then
          call work%evaluation%bind_input(name, neml2_view(work%constants), stat=stat, stride=0, first=k, errmsg=errmsg)
        else
          call work%evaluation%bind_input(name, neml2_view(fields), stat=stat, first=first, errmsg=errmsg)
        end if
      end associate
    end subroutine bind_field

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

    stat = neml2_ok
    errmsg = ""
    associate (evaluation => work%evaluation, map => m%mapping)
      do k = 1, size(map%states)
        call evaluation%bind_output(trim(map%states(k)%name), neml2_view(work%state), stat=stat, &
          first=m%states(k)%first, &
                                    errmsg=errmsg)
        if (stat /= neml2_ok) return
      end do
      if (map%stored_energy /= "") call evaluation%bind_output(trim(map%stored_energy), neml2_view(work%stored), &
        stat=stat, &
                                                               errmsg=errmsg)
      if (stat == neml2_ok .and. map%dissipated_energy /= "") &
        call evaluation%bind_output(trim(map%dissipated_energy), neml2_view(work%dissipated), stat=stat, errmsg=errmsg)
      if (stat /= neml2_ok) return
      call evaluation%set_block_order(neml2_input_first, stat=stat, errmsg=errmsg)
      if (stat == neml2_ok) call evaluation%bind_report(neml2_report_suggested_cut, neml2_view(work%cut), &
        stat=stat, errmsg=errmsg)
      if (stat == neml2_ok) call evaluation%bind_derivative(trim(map%stress), trim(map%strain), &
        neml2_view(work%tangent), &
                                                            stat=stat, errmsg=errmsg)
    end associate
  end subroutine bind_outputs
end module umat_workspaces
