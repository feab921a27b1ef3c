! Elasticity through calls equals Hooke's law, however the host keeps its arrays.
program test_elasticity
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_abi_version, neml2_call, neml2_error_shape, neml2_input, neml2_model, neml2_ok, &
                        neml2_output, neml2_parameter, neml2_tensor, neml2_version, neml2_view
  implicit none(type, external)
  type(neml2_model) :: model
  character(:), allocatable :: errmsg
  integer(int32) :: stat
  integer :: i
  integer, parameter :: sizes(5) = [1, 2, 7, 1000, 0]

  call load(model, "elasticity")
  call check(neml2_abi_version() > 0, "the library has an ABI version")
  call check(len(neml2_version()) > 0, "and a release")
  do i = 1, size(sizes)
    call calls_match_closed_form(sizes(i))
  end do
  call variables_interleave()
  call points_may_have_two_axes()
  call a_scalar_extent_is_one_value_for_all()
  call output_may_be_the_array_of_an_input()
  call parameters()
  call a_call_may_bring_its_own_parameter()
  call variables_are_listed()
  call finish()

contains

  subroutine calls_match_closed_form(n)
    integer, intent(in) :: n
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), stress(6, n)
    strain = some_strains(n)
    stress = 0
    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain", neml2_view(strain), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "the stress equals Hooke's law")
  end subroutine calls_match_closed_form

  ! Strain and stress of a point stand in one column of 14 numbers; what lies between them stays.
  subroutine variables_interleave()
    integer, parameter :: n = 7
    type(neml2_call) :: evaluation
    real(real64), target :: state(14, n)
    state = -1
    state(1:6, :) = some_strains(n)
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(state), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(state), stat, first=8, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(int(n, int64), stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(state(8:13, :), hooke(young, some_strains(n))), "interleaved stress")
    call check(all(state(7, :) < 0) .and. all(state(14, :) < 0), "what lies between is not written")
    call evaluation%bind_output("stress", neml2_view(state), stat, first=1000, errmsg=errmsg)
    call check(stat == neml2_error_shape .and. says(errmsg, "stress"), "first lies outside")
  end subroutine variables_interleave

  ! Arrays (6, quadrature point, element).
  subroutine points_may_have_two_axes()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 4, 3), stress(6, 4, 3)
    strain = reshape(some_strains(12), shape(strain))
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat, stride=6, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(stress), stat, stride=6, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(12, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(reshape(stress, [6, 12]), hooke(young, some_strains(12))), "two axes of points")
  end subroutine points_may_have_two_axes

  subroutine a_scalar_extent_is_one_value_for_all()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6), stress(6, 3)
    strain = reshape(some_strains(1), [6])
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat, stride=0, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg=errmsg)
    call evaluation%run(3, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, spread(strain, 2, 3))), "one strain for all points")
  end subroutine a_scalar_extent_is_one_value_for_all

  subroutine output_may_be_the_array_of_an_input()
    integer, parameter :: n = 300
    type(neml2_call) :: evaluation
    real(real64), target :: values(6, n)
    values = some_strains(n)
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(values), stat)
    call evaluation%bind_output("stress", neml2_view(values), stat)
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(values, hooke(young, some_strains(n))), "in place")
  end subroutine output_may_be_the_array_of_an_input

  real(real64) function modulus_seen()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 1), stress(6, 1)
    real(real64) :: expected(6, 1)
    strain = some_strains(1)
    stress = 0
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    call evaluation%run(1, stat, errmsg)
    call check_ok(stat, errmsg)
    expected = hooke(1.0_real64, strain)
    modulus_seen = stress(1, 1) / expected(1, 1)
  end function modulus_seen

  subroutine parameters()
    type(neml2_tensor) :: tensor
    real(real64), pointer :: view(:)
    real(real64), allocatable :: values(:)
    integer(int64), allocatable :: extents(:)
    call model%set_parameter("elasticity.E", 100e3_real64, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(abs(modulus_seen() - 100e3_real64) < 1e-6_real64, "half the modulus is half the stress")
    call model%get_parameter("elasticity.E", values, stat, errmsg, shape=extents)
    call check_ok(stat, errmsg)
    call check(size(values) == 1 .and. size(extents) == 0, "a scalar parameter has no extents")
    call check(abs(values(1) - 100e3_real64) <= 0, "the value that was set")

    call model%set_parameter("elasticity.E", [1e3_real64, 2e3_real64, 3e3_real64], stat, errmsg)
    call check_ok(stat, errmsg)
    call model%get_parameter("elasticity.E", values, stat, errmsg, shape=extents)
    call check(size(values) == 3 .and. size(extents) == 1, "one value per point")

    call model%set_parameter("elasticity.E", 1e3_real64)
    call model%parameter_tensor("elasticity.E", tensor, stat, errmsg)
    call check_ok(stat, errmsg)
    call tensor%values(view, stat, errmsg)
    call check_ok(stat, errmsg)
    view = 2e3_real64
    call check(abs(modulus_seen() - 2e3_real64) < 1e-6_real64, "a write through the tensor takes effect")
    call model%parameter_tensor("elasticity.nu", tensor, stat)
    call check(stat < 0 .and. tensor%is_set(), "what fails keeps what was there")

    call model%set_parameter("elasticity.nu", 0.2_real64, stat, errmsg)
    call check(stat < 0 .and. says(errmsg, "elasticity.nu"), "an unknown parameter is named")
    call model%set_parameter("elasticity.E", young, stat, errmsg)
    call check(abs(modulus_seen() - young) < 1e-6_real64, "as before")
  end subroutine parameters

  subroutine a_call_may_bring_its_own_parameter()
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 2), stress(6, 2), moduli(2), modulus
    strain = some_strains(2)
    moduli = [1e3_real64, 2e3_real64]
    modulus = 3e3_real64
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
    call evaluation%bind_parameter("elasticity.E", neml2_view(moduli), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(2, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress(:, 2:), hooke(2e3_real64, strain(:, 2:))), "one modulus per point")
    call evaluation%bind_parameter("elasticity.E", neml2_view(modulus), stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%run(2, stat, errmsg)
    call check(near(stress, hooke(modulus, strain)), "one modulus for all points")
  end subroutine a_call_may_bring_its_own_parameter

  subroutine variables_are_listed()
    integer(int32), parameter :: kinds(3) = [neml2_input, neml2_output, neml2_parameter]
    character(*), parameter :: names(3) = [character(12) :: "strain", "stress", "elasticity.E"]
    character(:), allocatable :: name, type
    integer(int64), allocatable :: extents(:)
    integer(int64) :: count, position, sub_ndim
    integer :: k
    do k = 1, 3
      call model%variable_count(kinds(k), count, stat, errmsg)
      call check_ok(stat, errmsg)
      call check(count == 1, "one of each kind")
      call model%variable_find(kinds(k), names(k), position, stat, errmsg)
      call check(stat == neml2_ok .and. position == 1, "found at 1")
      call model%variable_name(kinds(k), 1_int64, name, stat, errmsg, type=type)
      call check(stat == neml2_ok .and. name == trim(names(k)), "its name")
      sub_ndim = -1
      call model%variable_shape(kinds(k), 1_int64, extents, stat, errmsg, sub_ndim)
      call check(stat == neml2_ok .and. sub_ndim == 0, "no sub-batch axes")
      if (k < 3) call check(type == "SR2" .and. size(extents) == 1 .and. all(extents == 6), "an SR2 has six values")
      if (k == 3) call check(size(extents) == 0, "E is a scalar")
    end do
    call model%variable_find(neml2_input, "strian", position, stat, errmsg)
    call check(stat < 0 .and. position == 0 .and. says(errmsg, "strian"), "what is not there is at 0")
  end subroutine variables_are_listed
end program test_elasticity
