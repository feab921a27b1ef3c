! What packages say of their inputs and outputs, packages in memory, and runs without guards; the argument is the folder
! of the packages of tests/models/signatures.py.
program test_signatures
  use, intrinsic :: iso_fortran_env, only: int8, int32, int64, real64
  use checks, only: check, check_ok, finish, says
  use neml2_capi, only: neml2_error_argument, neml2_error_artifact, neml2_float64, neml2_ok, neml2_runtime_builtin, &
                        neml2_tensor, neml2_view
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)
  type(neml2_graph) :: graph
  integer(int32) :: stat
  character(:), allocatable :: errmsg
  character(4096) :: folder

  if (command_argument_count() /= 1) stop 77  ! nothing to test: skipped
  call get_command_argument(1, folder)
  call a_package_may_be_in_memory()
  call inputs_and_outputs_are_described()
  call guards_can_be_left_out()
  call finish()

contains

  subroutine a_package_may_be_in_memory()
    integer(int8), allocatable :: content(:)
    integer :: unit, bytes
    open (newunit=unit, file=trim(folder)//"/named.pt2", access="stream", form="unformatted", action="read")
    inquire (unit, size=bytes)
    allocate (content(bytes))
    read (unit) content
    close (unit)
    call graph%load_bytes(content(:bytes / 2), stat, errmsg)
    call check(stat == neml2_error_artifact .and. says(errmsg, "truncated"), errmsg)
    call graph%load_bytes(content, stat, errmsg, runtime=neml2_runtime_builtin)
    call check_ok(stat, errmsg)
    if (stat /= neml2_ok) call finish()
  end subroutine a_package_may_be_in_memory

  subroutine inputs_and_outputs_are_described()
    character(:), allocatable :: name, in_spec, out_spec
    integer(int64), allocatable :: order(:), extents(:)
    integer(int32) :: dtype
    dtype = -1
    call graph%input_layout(2_int64, name, order, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(name == "old" .and. all(order == [2, 1]), "the second input")
    call graph%output_info(1_int64, name, dtype, extents, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(name == "stress" .and. dtype == neml2_float64 .and. all(extents == [3, -1]), "the stress")
    call graph%output_info(4_int64, name, dtype, extents, stat, errmsg)
    call check(name == "solved" .and. dtype == 0 .and. size(extents) == 3, "of an operator outside of the package")
    call graph%output_info(5_int64, stat=stat, errmsg=errmsg)
    call check(stat == neml2_error_argument, "no fifth one")
    call graph%call_spec(in_spec, out_spec, stat, errmsg)
    call check(says(in_spec, "temperature") .and. says(out_spec, "solved"), "the call specification")
  end subroutine inputs_and_outputs_are_described

  ! The package takes columns side by side, which are the rows of an array here.
  subroutine guards_can_be_left_out()
    type(neml2_graph) :: columns
    type(neml2_tensor) :: inputs(1), outputs(1)
    real(real64), target :: array(3, 2)
    real(real64), allocatable :: guarded(:), unguarded(:)
    integer(int64), allocatable :: order(:)
    array = reshape([1, 2, 3, 4, 5, 6], [3, 2])
    call columns%load(trim(folder)//"/columns.pt2", stat, errmsg)
    call check_ok(stat, errmsg)
    call columns%input_layout(1_int64, order=order)
    call check(all(order == [1, 2]), "the other order")
    call inputs(1)%wrap(neml2_view(array), stat, errmsg)
    call check_ok(stat, errmsg)
    call columns%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(guarded)
    call check(all(abs(guarded - sin(reshape(array, [6])) - 1) < 1e-14_real64), "sines and one")
    call columns%run(inputs, outputs, stat, errmsg, guards=.false.)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(unguarded)
    call check(any(abs(unguarded - guarded) > 0.1_real64), "read in the order that the package wants")
    call columns%run(inputs(:0), outputs, stat, errmsg, guards=.false.)
    call check(stat == neml2_error_argument, "one input is missing")
  end subroutine guards_can_be_left_out
end program test_signatures
