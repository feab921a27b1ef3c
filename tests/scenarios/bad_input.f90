! Wrong requests: each is refused with its subject, and leaves the model as it was.
program bad_input
  use, intrinsic :: ieee_arithmetic, only: ieee_set_halting_mode, ieee_usual
  use, intrinsic :: iso_fortran_env, only: int32, output_unit, real32, real64
  use checks, only: check, check_ok, hooke, load, near, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_dtype, neml2_error_file, neml2_error_missing, &
                        neml2_error_name, neml2_error_shape, neml2_error_status, neml2_error_subject, neml2_model, &
                        neml2_view
  use scenario, only: check_elasticity, elastic_strains, finish_scenario, wanted_traps
  implicit none(type, external)
  type(neml2_model) :: model, nothing
  type(neml2_call) :: evaluation, without_input
  real(real64), target :: strain(6, 1), stress(6, 1)
  real(real32), target :: single(6, 1)
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call ieee_set_halting_mode(ieee_usual, wanted_traps())
  strain = elastic_strains(1)
  single = real(strain, real32)
  stress = 0
  call load(model, "elasticity")
  call evaluation%create(model)
  call evaluation%bind_input("strain", neml2_view(strain))
  call evaluation%bind_output("stress", neml2_view(stress), stat, errmsg)
  call check_ok(stat, errmsg)
  call without_input%create(model)
  call without_input%bind_output("stress", neml2_view(stress), stat, errmsg)
  call check_ok(stat, errmsg)

  ! The library keeps the error.
  call evaluation%bind_input("strian", neml2_view(strain), stat=stat)
  call refused(neml2_error_name)
  call evaluation%bind_input("strain", neml2_view(single), stat=stat)
  call refused(neml2_error_dtype)
  call evaluation%bind_output("stress", neml2_view(stress), stride=5, stat=stat)
  call refused(neml2_error_shape)
  call without_input%run(1, stat=stat)
  call refused(neml2_error_missing)
  call model%set_option("chunk", -1.0_real64, stat=stat)
  call refused(neml2_error_argument)
  call model%set_parameter("elasticity.nu", 1.0_real64, stat=stat)
  call refused(neml2_error_name)
  call nothing%load("/nothing/here", stat=stat)
  call refused(neml2_error_file)

  call check(.not. nothing%is_loaded() .and. all(abs(stress) <= 0), "what was refused wrote nothing")
  call evaluation%run(1, stat, errmsg)
  call check_ok(stat, errmsg)
  call check(near(stress, hooke(young, strain)), "and changed nothing that was bound")

  call evaluation%free()
  call without_input%free()
  call model%free()
  deallocate (errmsg) ! or valgrind finds a byte
  call finish_scenario()

contains

  subroutine refused(expected)
    integer(int32), intent(in) :: expected
    character(:), allocatable :: subject
    call neml2_error_subject(subject)
    call check(neml2_error_status() == expected, "the status of an error about "//subject)
    write (output_unit, "(a, i0, 2a)") "error ", neml2_error_status(), " ", subject
    call check_elasticity(model)
  end subroutine refused
end program bad_input
