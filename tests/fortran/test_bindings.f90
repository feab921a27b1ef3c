! What is bound can be taken back: by name, or with a null pointer.
program test_bindings
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_missing, neml2_error_name, neml2_error_shape, neml2_model, neml2_ok, &
                        neml2_report_residual_norm, neml2_report_status, neml2_view
  implicit none(type, external)
  integer, parameter :: n = 4
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, n), stress(6, n), block(6, 6, n), along(6, n), image(6, n), modulus
  real(real64), pointer :: nothing
  integer(int32), target :: status(n)
  integer(int32), pointer :: no_status(:)
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  call load(model, "elasticity")
  call model%set_parameter("elasticity.E", young)
  strain = some_strains(n)
  along = strain
  modulus = 1e3_real64
  call evaluation%create(model)
  call evaluation%bind_input("strain", neml2_view(strain))
  call evaluation%bind_output("stress", neml2_view(stress))
  call inputs_and_outputs()
  call parameters()
  call derivatives()
  call directions()
  call reports()
  call what_is_not_there()
  call options_are_listed()
  call finish()

contains

  subroutine run()
    stress = -1
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine run

  subroutine nothing_to_write()
    stress = -1
    call evaluation%run(n, stat, errmsg)
    call check(stat == neml2_error_missing .and. says(errmsg, "could write"), "nothing is bound to be written")
    call check(all(abs(stress + 1) <= 0), "an output is not written any more")
  end subroutine nothing_to_write

  subroutine inputs_and_outputs()
    real(real64), target :: short(6, n - 1)
    call evaluation%bind_input("strain", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check(stat == neml2_error_missing .and. says(errmsg, "strain"), "an input is missing again")
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_output("stress", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call nothing_to_write()
    ! an array that is too short is no limit once it is gone
    call evaluation%bind_output("stress", neml2_view(short))
    call evaluation%run(n, stat)
    call check(stat == neml2_error_shape, "too short")
    call evaluation%bind_output("stress", neml2_view())
    call nothing_to_write()
    call evaluation%bind_output("stress", neml2_view(stress))
  end subroutine inputs_and_outputs

  subroutine parameters()
    call evaluation%bind_parameter("E", neml2_view(modulus), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(near(stress, hooke(modulus, strain)), "an override")
    call evaluation%bind_parameter("E", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(near(stress, hooke(young, strain)), "the stored value")
    nothing => null()
    call evaluation%bind_parameter("elasticity.E", neml2_view(modulus))
    call evaluation%bind_parameter("elasticity.E", neml2_view(nothing), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(near(stress, hooke(young, strain)), "a null pointer does the same")
  end subroutine parameters

  subroutine derivatives()
    call evaluation%bind_derivative("stress", "strain", neml2_view(block))
    call evaluation%bind_derivative("stress", "strain", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    block = -1
    call run()
    call check(all(abs(block + 1) <= 0), "a block is not written any more")
  end subroutine derivatives

  subroutine directions()
    call evaluation%bind_tangent("strain", neml2_view(along))
    call evaluation%bind_jvp("stress", neml2_view(image))
    call run()
    call check(near(image, hooke(young, along)), "along a tangent")
    call evaluation%bind_tangent("strain", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(all(abs(image) <= 0), "which is zero when it is gone")
    call evaluation%bind_jvp("stress", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_cotangent("stress", neml2_view(along))
    call evaluation%bind_adjoint("strain", neml2_view(image))
    call run()
    call check(near(image, hooke(young, along)), "the adjoint")
    call evaluation%bind_cotangent("stress", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(all(abs(image) <= 0), "of nothing")
    image = -1
    call evaluation%bind_adjoint("strain", neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(all(abs(image + 1) <= 0), "an adjoint is not written any more")
  end subroutine directions

  subroutine reports()
    call evaluation%bind_report(neml2_report_status, neml2_view(status(:2)))
    call evaluation%run(n, stat)
    call check(stat == neml2_error_shape, "too short a status")
    call evaluation%bind_report(neml2_report_status, neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    status = -1
    no_status => null()
    call evaluation%bind_report(neml2_report_status, neml2_view(status))
    call evaluation%bind_report(neml2_report_status, neml2_view(no_status), stat, errmsg)
    call check_ok(stat, errmsg)
    call run()
    call check(all(status == -1), "a status is not written any more")
    call evaluation%bind_report(neml2_report_residual_norm, neml2_view(), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_report(9_int32, neml2_view(), stat, errmsg)
    call check(stat < 0 .and. len(errmsg) > 0, "no such report")
  end subroutine reports

  subroutine what_is_not_there()
    type(neml2_call) :: empty
    call evaluation%bind_input("strian", neml2_view(), stat, errmsg)
    call check(stat == neml2_error_name .and. says(errmsg, "strian"), "an unknown name")
    call empty%bind_input("strain", neml2_view(), stat)
    call check(stat < 0, "no call")
    call empty%bind_report(neml2_report_status, neml2_view(), stat)
    call check(stat < 0, "nor a report of it")
    call run()
    call check(near(stress, hooke(young, strain)), "all is as it was")
  end subroutine what_is_not_there

  subroutine options_are_listed()
    integer(int64) :: count, i
    character(:), allocatable :: name, choices, text
    real(real64) :: least, greatest, number
    integer :: numbers, texts
    count = 0
    call model%option_count(count, stat, errmsg)
    call check_ok(stat, errmsg)
    numbers = 0
    texts = 0
    do i = 1, count
      call model%option_info(i, name, stat, errmsg, least, greatest, choices)
      call check_ok(stat, errmsg)
      if (len(choices) == 0) then
        numbers = numbers + 1
        call model%get_option(name, number, stat)
        call check(stat == neml2_ok .and. number >= least .and. number <= greatest, name//" lies within its bounds")
      else
        texts = texts + 1
        call model%get_option(name, text, stat)
        call check(stat == neml2_ok .and. (choices == "*" .or. says(" "//choices//" ", " "//text//" ")), &
                   name//" is one of its choices")
      end if
    end do
    call check(numbers >= 10 .and. texts == 5, "numbers, and five texts")
  end subroutine options_are_listed
end program test_bindings
