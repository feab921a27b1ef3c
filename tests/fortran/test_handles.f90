! Models and calls are freed once, with their last copy, and an error never stops the program.
program test_handles
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: artifact, check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_file, neml2_error_message, neml2_error_name, &
                        neml2_model, neml2_ok
  implicit none(type, external)

  type :: material
    type(neml2_model) :: model
    integer :: number = 0
  end type material

  integer :: i

  do i = 1, 3
    call copies_share_one_model()
    call components_are_assigned()
    call arrays_are_finalized()
    call a_call_outlives_its_model()
    call what_fails_keeps_what_was_there()
    call an_empty_handle_is_an_error()
  end do
  call finish()

contains

  subroutine evaluate(model)
    type(neml2_model), intent(in) :: model
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 2), stress(6, 2)
    integer(int32) :: stat
    character(:), allocatable :: errmsg
    strain = some_strains(2)
    call evaluation%create(model, stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_input("strain", strain, stat)
    call evaluation%bind_output("stress", stress, stat)
    call evaluation%run(2, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "the model still gives right results")
  end subroutine evaluate

  subroutine copies_share_one_model()
    type(neml2_model) :: a, b, c
    call load(a, "elasticity")
    b = a
    b = b
    c = b
    call a%free()
    call check(.not. a%is_loaded() .and. b%is_loaded(), "only one name is gone")
    call a%free()
    call evaluate(b)
    b = a
    call check(.not. b%is_loaded(), "a copy of nothing is nothing")
    call evaluate(c)
  end subroutine copies_share_one_model

  ! One by one: see the introduction of the module.
  subroutine components_are_assigned()
    type(material) :: a, b
    type(material), allocatable :: list(:)
    call load(a%model, "elasticity")
    b%model = a%model
    allocate (list(2))
    list(1)%model = a%model
    list(2)%model = list(1)%model
    call a%model%free()
    call evaluate(b%model)
    deallocate (list)
    call evaluate(b%model)
  end subroutine components_are_assigned

  subroutine arrays_are_finalized()
    type(neml2_model), allocatable :: models(:)
    type(neml2_model) :: last
    allocate (models(3))
    call load(models(1), "elasticity")
    models(2) = models(1)
    models(3) = models(1)
    last = models(3)
    call models%free()
    deallocate (models)
    call evaluate(last)
  end subroutine arrays_are_finalized

  subroutine a_call_outlives_its_model()
    type(neml2_model) :: model
    type(neml2_call) :: evaluation, copy
    real(real64), target :: strain(6, 1), stress(6, 1)
    integer(int32) :: stat
    call load(model, "elasticity")
    strain = some_strains(1)
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", strain, stat)
    call evaluation%bind_output("stress", stress, stat)
    call model%free()
    copy = evaluation
    call evaluation%free()
    call copy%run(1, stat)
    call check(stat == neml2_ok .and. near(stress, hooke(young, strain)), "the call keeps what it needs")
  end subroutine a_call_outlives_its_model

  subroutine what_fails_keeps_what_was_there()
    type(neml2_model) :: model
    integer(int32) :: stat
    character(:), allocatable :: errmsg, message
    call load(model, "elasticity")
    call model%load("/nonexistent/elasticity", stat, errmsg=errmsg)
    call check(stat == neml2_error_file .and. says(errmsg, "/nonexistent/elasticity"), "a missing folder is named")
    call neml2_error_message(message)
    call check(message == errmsg, "the message is kept for those who did not ask")
    call evaluate(model)
    call model%load(artifact("elasticity"), stat)
    call check(stat == neml2_ok, "loaded over the first")
    call evaluate(model)
    call model%set_option("nonsense", 1.0_real64, stat, errmsg)
    call check(stat == neml2_error_name .and. says(errmsg, "nonsense"), "an unknown option is named")
    call model%set_option("atol", -1.0_real64, stat, errmsg)
    call check(stat == neml2_error_argument .and. says(errmsg, "atol"), "an option out of its bounds is named")
  end subroutine what_fails_keeps_what_was_there

  subroutine an_empty_handle_is_an_error()
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    integer(int32) :: stat
    character(:), allocatable :: errmsg
    call evaluation%create(model, stat, errmsg)
    call check(stat == neml2_error_argument .and. len(errmsg) > 0, "a call of no model")
    call evaluation%run(1, stat, errmsg)
    call check(stat == neml2_error_argument, "no call")
  end subroutine an_empty_handle_is_an_error
end program test_handles
