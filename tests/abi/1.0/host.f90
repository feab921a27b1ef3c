! A host as of ABI 1.0 in Fortran, built with the module of that time. A later library must run it unchanged.
program host
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real64
  use neml2_capi, only: neml2_abi_version, neml2_call, neml2_error_file, neml2_float64, neml2_input, &
                        neml2_input_first, neml2_model, neml2_ok, neml2_output, neml2_report, neml2_report_status, &
                        neml2_tensor, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 3
  real(real64), parameter :: young = 200e3_real64, poisson = 0.3_real64
  integer :: failures = 0

  call evaluate()
  if (failures > 0) error stop 1

contains

  subroutine evaluate()
    real(real64), target :: strain(6, n), stress(6, n), tangent(6, 6, n)
    integer(int32), target :: status(n)
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    type(neml2_tensor) :: inputs(1), outputs(1)
    type(neml2_report) :: report
    real(real64) :: threads
    real(real64), allocatable :: copied(:)
    character(:), allocatable :: folder, name, errmsg
    integer(int64) :: count
    integer(int32) :: dtype, stat
    integer :: i, p

    print "(a, i0)", "runs with ", neml2_abi_version()
    call check(neml2_abi_version()/1000 == 1, "the major version is 1")
    strain = reshape([((1e-3_real64*(1 + 0.1_real64*p)/(i + 1), i=1, 6), p=1, n)], [6, n])
    call model%load("/nothing/here", stat=stat, errmsg=errmsg)
    call check(stat == neml2_error_file, "a missing artifact is an error with its status")
    folder = of_environment("NEML2_TEST_ARTIFACTS")
    call model%load(folder//"/elasticity", stat, errmsg)
    call check_ok(stat, errmsg)
    call model%dtype(dtype)
    call check(dtype == neml2_float64, "the model computes in float64")
    call model%variable_count(neml2_input, count)
    call check(count == 1, "the model has one input")
    call model%variable_name(neml2_output, 1_int64, name)
    call check(name == "stress", "the output is the stress")
    call model%set_option("threads", 1._real64, stat, errmsg)
    call check_ok(stat, errmsg)
    call model%get_option("threads", threads)
    call check(abs(threads - 1) < 0.5_real64, "an option is what it was set to")

    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%bind_derivative("stress", "strain", neml2_view(tangent))
    call evaluation%set_block_order(neml2_input_first)
    call evaluation%bind_report(neml2_report_status, neml2_view(status))
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(all(status == neml2_ok), "every point succeeded")
    call check(near(stress, hooke(young, strain)), "the stress equals Hooke's law")
    do p = 1, n
      call check(near(reshape(matmul(tangent(:, :, p), strain(:, p)), [6, 1]), stress(:, p:p)), &
                 "the tangent gives the stress")
    end do

    call inputs(1)%wrap(neml2_view(strain), stat=stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call model%forward(inputs, outputs, report=report, stat=stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(copied)
    call check(near(reshape(copied, [6, n]), hooke(young, strain)), "a tensor has the stress, too")

    call model%set_parameter("elasticity.E", young/2, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young/2, strain)), "half of Young's modulus, half of the stress")
  end subroutine evaluate

  function of_environment(name) result(value)
    character(*), intent(in) :: name
    character(:), allocatable :: value
    integer :: length
    call get_environment_variable(name, length=length)
    allocate (character(length) :: value)
    call get_environment_variable(name, value)
  end function of_environment

  pure function hooke(e, strain) result(stress)
    real(real64), intent(in) :: e, strain(:, :)
    real(real64) :: stress(size(strain, 1), size(strain, 2))
    integer :: p
    stress = e/(1 + poisson)*strain
    do p = 1, size(strain, 2)
      stress(:3, p) = stress(:3, p) + e*poisson/((1 + poisson)*(1 - 2*poisson))*sum(strain(:3, p))
    end do
  end function hooke

  pure logical function near(found, expected)
    real(real64), intent(in) :: found(:, :), expected(:, :)
    near = maxval(abs(found - expected)) <= 1e-12_real64*maxval(abs(expected))
  end function near

  subroutine check_ok(stat, errmsg)
    integer(int32), intent(in) :: stat
    character(:), allocatable, intent(in) :: errmsg
    if (stat == neml2_ok) return
    call check(.false., errmsg)
  end subroutine check_ok

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    failures = failures + 1
    write (error_unit, "(2a)") "failed: ", what
  end subroutine check
end program host
