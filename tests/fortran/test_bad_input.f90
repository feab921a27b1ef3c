! Bad input: the error names the variable and says what was expected, and the model is usable afterwards.
program test_bad_input
  use, intrinsic :: ieee_arithmetic, only: ieee_is_nan, ieee_quiet_nan, ieee_value
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_dtype, neml2_error_missing, neml2_error_name, &
                        neml2_error_shape, neml2_error_subject, neml2_model, neml2_non_finite, neml2_ok, &
                        neml2_report_status, neml2_view
  implicit none(type, external)
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, 3), stress(6, 3)
  real(real32), target :: single(6, 3)
  integer(int32), target :: status(3), numbers(6, 3)
  integer(int64), target :: counts(6, 3)
  integer(int32) :: stat
  character(:), allocatable :: errmsg, subject

  call load(model, "elasticity")
  strain = some_strains(3)
  stress = 0
  single = 0
  counts = 0
  numbers = 0
  call evaluation%create(model, stat)
  call evaluation%bind_output("stress", neml2_view(stress), stat)

  ! missing input
  call evaluation%run(3, stat, errmsg)
  call check(stat == neml2_error_missing .and. says(errmsg, "strain"), "a missing input is named")
  call neml2_error_subject(subject)
  call check(subject == "strain", "the error is about strain")
  call check(all(abs(stress) <= 0), "nothing was written")

  ! unknown input
  call evaluation%bind_input("strian", neml2_view(strain), stat, errmsg=errmsg)
  call check(stat == neml2_error_name .and. says(errmsg, "did you mean 'strain'"), "unknown input")

  ! unlike kinds
  call evaluation%bind_input("strain", neml2_view(numbers), stat, errmsg)
  call check(stat == neml2_error_dtype .and. says(errmsg, "int32") .and. says(errmsg, "float64"), "int32 for float64")
  call evaluation%bind_input("strain", neml2_view(counts), stat, errmsg)
  call check(stat == neml2_error_dtype .and. says(errmsg, "int64"), "int64 for float64")
  call evaluation%bind_output("stress", neml2_view(single), stat, errmsg)
  call check(stat == neml2_error_dtype .and. says(errmsg, "float32"), "float32 for float64")
  call evaluation%bind_parameter("elasticity.E", neml2_view(counts), stat, errmsg)
  call check(stat == neml2_error_dtype .and. says(errmsg, "elasticity.E"), "an integer modulus")

  ! points that overlap
  call evaluation%bind_output("stress", neml2_view(stress), stat, stride=5, errmsg=errmsg)
  call check(stat == neml2_error_shape .and. says(errmsg, "stress"), "points that overlap")

  call evaluation%bind_input("strain", neml2_view(strain), stat)
  call evaluation%bind_report(neml2_report_status, neml2_view(status), stat, errmsg)
  call check_ok(stat, errmsg)
  call evaluation%run(3, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(near(stress, hooke(young, strain)), "usable afterwards")
  call evaluation%run(-1, stat, errmsg)
  call check(stat == neml2_error_argument, "a negative number of points")

  ! NaN
  strain(1, 2) = ieee_value(1.0_real64, ieee_quiet_nan)
  call evaluation%run(3, stat, errmsg)
  call check(stat == neml2_non_finite, "NaN is reported")
  call check(all(status == [neml2_ok, neml2_non_finite, neml2_ok]), "at its point alone")
  call check(ieee_is_nan(stress(1, 2)) .and. .not. ieee_is_nan(stress(1, 3)), "and passed on")
  call finish()
end program test_bad_input
