! What packages run on. If NEML2_CAPI_LIBTORCH is set, libtorch runs them, too.
program test_runtimes
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: artifact, check, check_ok, finish, hooke, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_file, neml2_model, neml2_ok, &
                        neml2_runtime_auto, neml2_runtime_builtin, neml2_runtime_libtorch, neml2_view
  use neml2_capi_experimental, only: neml2_graph, neml2_libtorch_open, neml2_libtorch_suggest, &
                                     neml2_operator_declare
  implicit none(type, external)
  integer, parameter :: n = 4
  integer(int32) :: stat
  character(:), allocatable :: errmsg, path, version
  integer :: length

  call they_run_on(neml2_runtime_auto, neml2_runtime_builtin, "builtin")
  call they_run_on(neml2_runtime_builtin, neml2_runtime_builtin, "builtin")
  call what_is_wrong_is_told()
  call get_environment_variable("NEML2_CAPI_LIBTORCH", length=length)
  if (length > 0) then
    call they_run_on(neml2_runtime_libtorch, neml2_runtime_libtorch, "libtorch")
    call neml2_libtorch_open(path, version, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(index(path, "libtorch_cpu.so") > 0 .and. index(version, "2.") == 1, "the libtorch that runs")
  else
    call neml2_libtorch_suggest("/no/such/folder", stat, errmsg)
    call check_ok(stat, errmsg)
    call neml2_libtorch_open(path, version, stat, errmsg)
    call check(stat == neml2_error_file .and. says(errmsg, "NEML2_CAPI_LIBTORCH"), "no libtorch")
  end if
  call finish()

contains

  subroutine they_run_on(wanted, expected, name)
    integer(int32), intent(in) :: wanted, expected
    character(*), intent(in) :: name
    type(neml2_model) :: model
    type(neml2_graph) :: graph
    type(neml2_call) :: evaluation
    integer(int32) :: taken
    real(real64), target :: strain(6, n), stress(6, n)
    call model%load(artifact("elasticity_aoti.i"), stat, errmsg, name="elasticity", runtime=wanted)
    call check_ok(stat, errmsg)
    call model%load(artifact("elasticity"), stat, errmsg, runtime=wanted)
    call check_ok(stat, errmsg)
    call model%runtime(taken, stat, errmsg)
    call check(stat == neml2_ok .and. taken == expected, "a model on "//name)
    call graph%load(artifact("elasticity/cpu/float64/elasticity.pt2"), stat, errmsg, runtime=wanted)
    call check_ok(stat, errmsg)
    call graph%runtime(taken, stat, errmsg)
    call check(stat == neml2_ok .and. taken == expected, "a graph on "//name)
    strain = some_strains(n)
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%run(int(n, int64), stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "Hooke's law on "//name)
  end subroutine they_run_on

  subroutine what_is_wrong_is_told()
    type(neml2_graph) :: graph
    integer(int32) :: taken
    call graph%load(artifact("elasticity/cpu/float64/elasticity.pt2"), stat, errmsg, runtime=4)
    call check(stat == neml2_error_argument .and. says(errmsg, "NEML2_RUNTIME_AUTO"), "no such runtime")
    taken = -1
    call graph%runtime(taken, stat, errmsg)
    call check(stat == neml2_error_argument .and. taken == -1, "no graph, no runtime")
    call neml2_operator_declare("scale", stat, errmsg)
    call check(stat == neml2_error_argument, "no schema")
    call neml2_operator_declare("mylib::scale(Tensor x) -> Tensor", stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine what_is_wrong_is_told
end program test_runtimes
