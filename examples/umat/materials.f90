! A material: an artifact, and where UMAT finds what it needs.
module umat_materials
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use neml2_capi, only: neml2_input, neml2_model, neml2_ok, neml2_output, neml2_parameter
  use umat_conventions, only: item_size
  use umat_hosts, only: find_host, host, material_of
  use umat_mapping, only: lower_case, mapping, read_mapping
  implicit none(type, external)
  private
  public :: load_material, material, slot, stress_slot

  ! Where a variable of the mapping stands in an array of a workspace.
  type :: slot
    integer :: first = 0, last = 0
  end type slot

  type :: material
    character(80) :: name = ""
    type(mapping) :: mapping
    type(host) :: host
    type(neml2_model) :: model
    type(slot), allocatable :: states(:), parameters(:)
    integer :: nstatv = 0, nprops = 0, nfields = 0 ! what UMAT must be given at least
    logical :: has_rates = .false., has_old_stress = .false. ! inputs are the time and the stress of the beginning
  end type material

  type(slot), parameter :: stress_slot = slot(1, 6)

contains

  ! The material that the host calls `name`; `errmsg` is empty on success.
  subroutine load_material(name, pnewdt, m, errmsg)
    character(*), intent(in) :: name
    real(real64), intent(in) :: pnewdt
    type(material), intent(inout) :: m
    character(:), allocatable, intent(out) :: errmsg
    character(:), allocatable :: folder, message, path
    integer(int32) :: stat

    m%name = name
    call mapping_folder(folder, errmsg)
    if (errmsg == "") call read_mapping(folder//lower_case(material_of(name))//".nml", m%mapping, errmsg)
    if (errmsg == "") call find_host(trim(m%mapping%host), pnewdt, m%host, errmsg)
    if (errmsg == "") call check_host(m, errmsg)
    if (errmsg == "") then
      path = trim(m%mapping%artifact)
      if (path(1:1) /= "/") path = folder//path
      call m%model%load(path, stat=stat, errmsg=message)
      if (stat /= neml2_ok) errmsg = message
    end if
    if (errmsg == "") call set_options(m, errmsg)
    if (errmsg == "") call place_states(m, errmsg)
    if (errmsg == "") call place_parameters(m, errmsg)
    if (errmsg == "") m%nfields = maxval([0, m%mapping%fields%first])
    if (errmsg == "") m%has_rates = has_input(m, trim(m%mapping%time)//"~1")
    if (errmsg == "") m%has_old_stress = has_input(m, trim(m%mapping%stress)//"~1")
  end subroutine load_material

  logical function has_input(m, name)
    type(material), intent(in) :: m
    character(*), intent(in) :: name
    integer(int64) :: index
    integer(int32) :: stat
    character(:), allocatable :: errmsg
    call m%model%variable_find(neml2_input, name, index, stat=stat, errmsg=errmsg)
    has_input = stat == neml2_ok .and. index > 0
  end function has_input

  ! Refuse a mapping that names what the host does not pass.
  subroutine check_host(m, errmsg)
    type(material), intent(in) :: m
    character(:), allocatable, intent(out) :: errmsg
    integer :: k
    errmsg = ""
    do k = 1, size(m%mapping%fields)
      if (m%host%has_fields .or. m%mapping%fields(k)%first == 0) cycle ! passed, or a constant
      errmsg = "The input '"//trim(m%mapping%fields(k)%name)//"' is a predefined field, which "//trim(m%host%name) &
               //" does not pass: give it a constant value in the mapping (&field, value)."
      return
    end do
  end subroutine check_host

  subroutine set_options(m, errmsg)
    type(material), intent(inout) :: m
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

  ! Where the states stand in STATEV and in a workspace.
  subroutine place_states(m, errmsg)
    type(material), intent(inout) :: m
    character(:), allocatable, intent(out) :: errmsg
    logical, allocatable :: taken(:)
    integer :: k, length, site, end

    errmsg = ""
    allocate (m%states(size(m%mapping%states)))
    allocate (taken(10000), source=.false.)
    end = stress_slot%last
    do k = 1, size(m%states)
      associate (state => m%mapping%states(k), place => m%states(k))
        call length_of(m%model, neml2_output, state%name, length, site, errmsg)
        if (errmsg /= "") return
        if (item_size(state%kind) == 0) then
          errmsg = "The state '"//trim(state%name)//"' has the kind '"//trim(state%kind) &
                   //"'; it can be scalar, vector, symmetric or tensor."
        else if (site /= item_size(state%kind)) then
          errmsg = "The state '"//trim(state%name)//"' has "//decimal(site)//" values, and one of the kind '" &
                   //trim(state%kind)//"' has "//decimal(item_size(state%kind)) &
                   //". The kind says how DROT turns it: scalar, vector, symmetric or tensor."
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
    type(material), intent(inout) :: m
    character(:), allocatable, intent(out) :: errmsg
    integer :: k, length, site, end

    errmsg = ""
    allocate (m%parameters(size(m%mapping%parameters)))
    end = 0
    do k = 1, size(m%parameters)
      associate (parameter => m%mapping%parameters(k))
        call length_of(m%model, neml2_parameter, parameter%name, length, site, errmsg)
        if (errmsg /= "") return
        m%parameters(k) = slot(end + 1, end + length)
        end = end + length
        m%nprops = max(m%nprops, parameter%first + length - 1)
      end associate
    end do
  end subroutine place_parameters

  ! How many values an output or a parameter has at one point, and at one of its sites.
  subroutine length_of(model, kind, name, length, site, errmsg)
    type(neml2_model), intent(in) :: model
    integer(int32), intent(in) :: kind
    character(*), intent(in) :: name
    integer, intent(out) :: length, site
    character(:), allocatable, intent(out) :: errmsg
    integer(int64), allocatable :: shape(:)
    integer(int64) :: index, sites
    integer(int32) :: stat

    length = 0
    site = 0
    errmsg = ""
    call model%variable_find(kind, trim(name), index, stat=stat, errmsg=errmsg)
    if (stat == neml2_ok .and. index == 0) then
      errmsg = "The artifact has no "//trim(merge("output   ", "parameter", kind == neml2_output))//" '" &
               //trim(name)//"'."
      return
    end if
    if (stat == neml2_ok) call model%variable_shape(kind, index, shape, stat=stat, errmsg=errmsg, sub_ndim=sites)
    if (stat /= neml2_ok) return
    length = int(product(shape))
    site = int(product(shape(:size(shape) - sites)))
  end subroutine length_of

  pure function decimal(number)
    integer, intent(in) :: number
    character(:), allocatable :: decimal
    character(12) :: text
    write (text, "(i0)") number
    decimal = trim(text)
  end function decimal
end module umat_materials
