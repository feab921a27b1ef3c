! What packages run on. Where NEML2_CAPI_LIBTORCH is set, libtorch runs them, too.
program test_runtimes
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: artifact, check, check_ok, finish, hooke, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_file, neml2_error_name, neml2_graph, &
                        neml2_libtorch_find, neml2_libtorch_suggest, neml2_model, neml2_ok, neml2_operator_declare
  implicit none(type, external)
  integer, parameter :: n = 4
  integer(int32) :: stat
  character(:), allocatable :: errmsg, path, version
  integer :: length

  call they_run_on("auto", "builtin")
  call they_run_on("builtin", "builtin")
  call what_is_wrong_is_told()
  call get_environment_variable("NEML2_CAPI_LIBTORCH", length=length)
  if (length > 0) then
    call they_run_on("libtorch", "libtorch")
    call neml2_libtorch_find(path, version, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(index(path, "libtorch_cpu.so") > 0 .and. index(version, "2.") == 1, "the libtorch that runs")
  else
    call neml2_libtorch_suggest("/no/such/folder", stat, errmsg)
    call check_ok(stat, errmsg)
    call neml2_libtorch_find(path, version, stat, errmsg)
    call check(stat == neml2_error_file .and. says(errmsg, "NEML2_CAPI_LIBTORCH"), "no libtorch")
  end if
  call finish()

contains

  subroutine they_run_on(wanted, expected)
    character(*), intent(in) :: wanted, expected
    type(neml2_model) :: model
    type(neml2_graph) :: graph
    type(neml2_call) :: evaluation
    character(:), allocatable :: taken
    real(real64), target :: strain(6, n), stress(6, n)
    call model%load_stub(artifact("elasticity_aoti.i"), "elasticity", stat, errmsg, runtime=wanted)
    call check_ok(stat, errmsg)
    call model%load(artifact("elasticity"), stat, errmsg, runtime=wanted)
    call check_ok(stat, errmsg)
    call model%runtime(taken, stat, errmsg)
    call check(stat == neml2_ok .and. taken == expected, "a model on "//expected)
    call graph%load(artifact("elasticity/cpu/float64/elasticity.pt2"), stat, errmsg, runtime=wanted)
    call check_ok(stat, errmsg)
    call graph%runtime(taken, stat, errmsg)
    call check(stat == neml2_ok .and. taken == expected, "a graph on "//expected)
    strain = some_strains(n)
    call evaluation%create(model)
    call evaluation%bind_input("strain", strain)
    call evaluation%bind_output("stress", stress)
    call evaluation%run(int(n, int64), stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "Hooke's law on "//expected)
  end subroutine they_run_on

  subroutine what_is_wrong_is_told()
    type(neml2_graph) :: graph
    call graph%load(artifact("elasticity/cpu/float64/elasticity.pt2"), stat, errmsg, runtime="torch")
    call check(stat == neml2_error_name .and. says(errmsg, "builtin, libtorch"), "no runtime of this name")
    call graph%runtime(path, stat, errmsg)
    call check(stat == neml2_error_argument, "no graph, no runtime")
    call neml2_operator_declare("scale", stat, errmsg)
    call check(stat == neml2_error_argument, "no schema")
    call neml2_operator_declare("mylib::scale(Tensor x) -> Tensor", stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine what_is_wrong_is_told
end program test_runtimes
