! A network on libtorch, from Fortran: network PACKAGE FILE SIZE... Prints its output for the float32 numbers in the
! file. The sizes are in the order of torch, the batch first.
program network
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32
  use checks, only: check_ok, finish
  use neml2_capi, only: neml2_float32, neml2_runtime_libtorch, neml2_tensor
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)
  character(4096) :: package, file, text
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer(int64), allocatable :: extents(:)
  real(real32), pointer :: values(:)
  real(real32), allocatable :: results(:)
  type(neml2_graph) :: graph
  type(neml2_tensor) :: inputs(1), outputs(1)
  integer :: i, unit

  call get_command_argument(1, package)
  call get_command_argument(2, file)
  allocate (extents(command_argument_count() - 2))
  do i = 1, size(extents)
    call get_command_argument(i + 2, text)
    read (text, *) extents(size(extents) + 1 - i)
  end do
  call inputs(1)%create(extents, stat, errmsg, dtype=neml2_float32)
  call check_ok(stat, errmsg)
  call inputs(1)%values(values, stat, errmsg)
  call check_ok(stat, errmsg)
  open (newunit=unit, file=trim(file), access="stream", form="unformatted", status="old", action="read")
  read (unit) values
  close (unit)
  call graph%load(trim(package), stat, errmsg, runtime=neml2_runtime_libtorch)
  call check_ok(stat, errmsg)
  call graph%run(inputs, outputs, stat, errmsg)
  call check_ok(stat, errmsg)
  call outputs(1)%copy(results, stat, errmsg)
  call check_ok(stat, errmsg)
  print "(es16.8e3)", results
  call finish()
end program network
