! The mapping file of a material: which variable of the artifact is which argument of UMAT. It is a Fortran namelist;
! `neml2-capi umat ARTIFACT` drafts it, with comments.
!
!   &material  artifact = 'combined_hardening', strain = 'strain', stress = 'stress', time = 't', temperature = '' /
!   &state     name = 'X1', kind = 'symmetric', statev = 2 /     where its values begin in STATEV
!   &parameter name = 'E', props = 1 /                           where its values begin in PROPS
!   &field     name = 'porosity', predef = 1 /                   an input that is a predefined field
!   &field     name = 'porosity', value = 0.2 /                  an input that is a constant
!   &option    name = 'miters', value = 25 /                     of the solver; see neml2_capi.h
!
! &material may say host = 'abaqus' or 'calculix', see hosts.f90; PNEWDT tells them apart where it does not. It may name
! outputs that are energies per volume, stored_energy for SSE and dissipated_energy for SPD.
! `artifact` is relative to the file. All groups but the first may be repeated, and may be missing. Each begins a line.
module umat_mapping
  use, intrinsic :: ieee_arithmetic, only: ieee_positive_inf, ieee_value
  use, intrinsic :: iso_fortran_env, only: iostat_end, real64
  implicit none(type, external)
  private
  public :: lower_case, mapping, read_mapping, variable

  integer, parameter :: name_length = 256, path_length = 4096

  ! A variable of the model and where it is in an array of UMAT.
  type :: variable
    character(name_length) :: name = ""
    character(16) :: kind = "" ! of a state: see umat_conventions
    integer :: first = 0
    real(real64) :: value = 0 ! of an option, or of a field that is a constant, whose `first` is 0
  end type variable

  type :: mapping
    character(path_length) :: artifact = ""
    character(name_length) :: strain = "", stress = "", time = "", temperature = "", host = ""
    character(name_length) :: stored_energy = "", dissipated_energy = ""
    type(variable), allocatable :: states(:), parameters(:), fields(:), options(:)
  end type mapping

  character(*), parameter :: groups(5) = [character(9) :: "material", "state", "parameter", "field", "option"]
  character(*), parameter :: blanks = " "//achar(9)//achar(13) ! tabs, and the ends of lines of Windows

contains

  ! Read a mapping file; `errmsg` is empty on success.
  subroutine read_mapping(file, m, errmsg)
    character(*), intent(in) :: file
    type(mapping), intent(out) :: m
    character(:), allocatable, intent(out) :: errmsg
    character(512) :: problem
    integer :: unit, error

    open (newunit=unit, file=file, status="old", action="read", iostat=error, iomsg=problem)
    if (error /= 0) then
      errmsg = "The mapping file cannot be read: "//trim(problem)//". UMAT looks for <material name in lower " &
               //"case>.nml in the folder that the environment variable NEML2_UMAT_PATH names. " &
               //"To draft one: neml2-capi umat ARTIFACT --output "//file
      return
    end if
    call check_groups(unit, errmsg)
    if (errmsg == "") call read_material(unit, m, errmsg)
    if (errmsg == "") call read_variables(unit, "state", m%states, errmsg)
    if (errmsg == "") call read_variables(unit, "parameter", m%parameters, errmsg)
    if (errmsg == "") call read_variables(unit, "field", m%fields, errmsg)
    if (errmsg == "") call read_variables(unit, "option", m%options, errmsg)
    close (unit)
    if (errmsg /= "") errmsg = file//": "//errmsg
  end subroutine read_mapping

  ! A namelist READ passes over what it does not look for, and takes the end of the file for the end of a group. What is
  ! misspelt, not ended or the second in its line would never be seen.
  subroutine check_groups(unit, errmsg)
    integer, intent(in) :: unit
    character(:), allocatable, intent(out) :: errmsg
    character(:), allocatable :: group
    character(path_length) :: line
    integer :: error
    errmsg = ""
    group = ""
    do
      read (unit, "(a)", iostat=error) line
      if (error /= 0) exit
      call check_line(line, group, errmsg)
      if (errmsg /= "") return
    end do
    if (group /= "") errmsg = "The group &"//group//" has no / at its end."
  end subroutine check_groups

  ! `group` is the one that the line begins in, and then the one that it ends in; empty outside of all.
  subroutine check_line(line, group, errmsg)
    character(*), intent(in) :: line
    character(:), allocatable, intent(inout) :: group, errmsg
    character(:), allocatable :: word
    character(1) :: c, quote
    integer :: i, first
    first = verify(line, blanks)
    quote = ""
    do i = 1, len_trim(line)
      c = line(i:i)
      if (quote /= "") then
        if (c == quote) quote = ""
      else if (c == "!") then
        exit
      else if (c == "&") then
        word = lower_case(line(i + 1:i + scan(line(i + 1:)//" ", blanks//"/") - 1))
        if (group /= "" .and. word == "end") then
          group = ""
        else if (group /= "") then
          errmsg = "The group &"//group//" has no / at its end."
        else if (i /= first) then
          errmsg = "The group &"//word//" must begin a line of its own."
        else if (.not. any(word == groups)) then
          errmsg = "There is no group &"//word//"; it can be &material, &state, &parameter, &field or &option."
        else
          group = word
        end if
      else if (group /= "") then
        if (c == "'" .or. c == '"') quote = c
        if (c == "/") group = ""
      else if (i == first) then
        errmsg = "The line '"//trim(line)//"' is in no group: a comment begins with !, a group with &."
      end if
      if (errmsg /= "") return
    end do
    if (quote /= "") errmsg = "In &"//group//" a text has no quote at its end: "//trim(line)
  end subroutine check_line

  subroutine read_material(unit, m, errmsg)
    integer, intent(in) :: unit
    type(mapping), intent(inout) :: m
    character(:), allocatable, intent(out) :: errmsg
    character(path_length) :: artifact
    character(name_length) :: strain, stress, time, temperature, host, stored_energy, dissipated_energy
    namelist /material/ artifact, strain, stress, time, temperature, host, stored_energy, dissipated_energy
    character(512) :: problem
    integer :: error

    artifact = ""
    strain = "strain"
    stress = "stress"
    time = ""
    temperature = ""
    host = ""
    stored_energy = ""
    dissipated_energy = ""
    rewind (unit)
    read (unit, nml=material, iostat=error, iomsg=problem)
    errmsg = ""
    if (error == iostat_end) errmsg = "The group &material is missing, or has no / at its end."
    if (error /= 0 .and. error /= iostat_end) errmsg = "&material cannot be read: "//trim(problem)
    if (error == 0 .and. artifact == "") errmsg = "&material does not name the artifact."
    m%artifact = artifact
    m%strain = strain
    m%stress = stress
    m%time = time
    m%temperature = temperature
    m%host = host
    m%stored_energy = stored_energy
    m%dissipated_energy = dissipated_energy
    if (errmsg /= "") return
    read (unit, nml=material, iostat=error, iomsg=problem)
    if (error == 0) errmsg = "The group &material is there twice."
  end subroutine read_material

  ! All groups of one kind, in the order of the file.
  subroutine read_variables(unit, group, variables, errmsg)
    integer, intent(in) :: unit
    character(*), intent(in) :: group
    type(variable), allocatable, intent(out) :: variables(:)
    character(:), allocatable, intent(out) :: errmsg
    type(variable) :: next
    character(512) :: problem
    integer :: error

    allocate (variables(0))
    errmsg = ""
    rewind (unit)
    do
      call read_variable(unit, group, next, error, problem)
      if (error == iostat_end) return
      if (error /= 0) then
        errmsg = "&"//group//" cannot be read: "//trim(problem)
      else if (next%name == "") then
        errmsg = "A group &"//group//" has no name."
      else if (group == "field" .and. next%first == 0 .and. abs(next%value) <= huge(next%value)) then
        continue ! a constant
      else if (next%first < 1) then
        errmsg = "'"//trim(next%name)//"' needs a place, counted from 1: "//place_of(group)//"."
      else if (any(variables%name == next%name)) then
        errmsg = "There are two groups &"//group//" of '"//trim(next%name)//"'."
      end if
      if (errmsg /= "") return
      variables = [variables, next]
    end do
  end subroutine read_variables

  subroutine read_variable(unit, group, next, error, problem)
    integer, intent(in) :: unit
    character(*), intent(in) :: group
    type(variable), intent(out) :: next
    integer, intent(out) :: error
    character(*), intent(out) :: problem
    character(name_length) :: name
    character(16) :: kind
    integer :: statev, props, predef
    real(real64) :: value
    namelist /state/ name, kind, statev
    namelist /parameter/ name, props
    namelist /field/ name, predef, value
    namelist /option/ name, value

    name = ""
    kind = "scalar"
    statev = 0
    props = 0
    predef = 0
    value = merge(ieee_value(value, ieee_positive_inf), 0.0_real64, group == "field") ! not given
    problem = ""
    select case (group)
    case ("state")
      read (unit, nml=state, iostat=error, iomsg=problem)
      next%first = statev
    case ("parameter")
      read (unit, nml=parameter, iostat=error, iomsg=problem)
      next%first = props
    case ("field")
      read (unit, nml=field, iostat=error, iomsg=problem)
      next%first = predef
      if (predef /= 0 .and. abs(value) <= huge(value)) then
        error = 1
        problem = "'"//trim(name)//"' has a value and a predef: it is either a constant or a predefined field."
      end if
    case default
      read (unit, nml=option, iostat=error, iomsg=problem)
      next%first = 1
    end select
    next%name = name
    next%kind = kind
    next%value = value
  end subroutine read_variable

  pure function lower_case(text) result(lower)
    character(*), intent(in) :: text
    character(len(text)) :: lower
    integer :: i
    lower = text
    do i = 1, len(text)
      if (text(i:i) >= "A" .and. text(i:i) <= "Z") lower(i:i) = achar(iachar(text(i:i)) + 32)
    end do
  end function lower_case

  pure function place_of(group)
    character(*), intent(in) :: group
    character(:), allocatable :: place_of
    select case (group)
    case ("state"); place_of = "statev = <its first value in STATEV>"
    case ("parameter"); place_of = "props = <its first value in PROPS>"
    case default; place_of = "predef = <the number of the predefined field>, or value = <a constant>"
    end select
  end function place_of
end module umat_mapping
