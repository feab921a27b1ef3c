! A type that contains objects has an assignment(=) of its own, which shares each of them: see the introduction of
! neml2_capi. A type that contains such a type needs one again.
module materials
  use neml2_capi, only: neml2_call, neml2_model
  implicit none(type, external)
  private

  type, public :: material
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    integer :: number = 0
  contains
    generic :: assignment(=) => assign
    procedure, private :: assign
  end type material

  type, public :: region
    type(material) :: bulk
    type(material), allocatable :: inclusions(:)
  contains
    generic :: assignment(=) => assign_region
    procedure, private :: assign_region
  end type region

contains

  impure elemental subroutine assign(left, right)
    class(material), intent(inout) :: left
    class(material), intent(in) :: right
    left%model = right%model
    left%evaluation = right%evaluation
    left%number = right%number
  end subroutine assign

  impure elemental subroutine assign_region(left, right)
    class(region), intent(inout) :: left
    class(region), intent(in) :: right
    integer :: i
    left%bulk = right%bulk
    if (allocated(left%inclusions)) deallocate (left%inclusions)
    if (.not. allocated(right%inclusions)) return
    allocate (left%inclusions(size(right%inclusions)))
    do i = 1, size(right%inclusions)
      left%inclusions(i) = right%inclusions(i)
    end do
  end subroutine assign_region
end module materials

! Models and calls are freed once, with their last copy, and an error never stops the program.
program test_handles
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: artifact, check, check_ok, finish, hooke, load, near, says, some_strains, young
  use materials, only: material, region
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_file, neml2_error_message, neml2_error_name, &
                        neml2_model, neml2_ok, neml2_view
  implicit none(type, external)

  integer :: i

  do i = 1, 3
    call copies_share_one_model()
    call components_are_assigned()
    call containers_are_assigned()
    call containers_of_containers_are_assigned()
    call objects_are_moved()
    call arrays_are_finalized()
    call sections_are_copied_in_and_out()
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
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
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

  subroutine containers_are_assigned()
    type(material) :: a, b
    type(material), allocatable :: list(:)
    call load(a%model, "elasticity")
    call load(b%model, "elasticity")
    call a%evaluation%create(a%model)
    a%number = 7
    b = a
    b = a
    b = b
    call check(b%number == 7 .and. b%evaluation%is_set(), "all components")
    allocate (list(3))
    list(1) = b
    list(2:3) = list(1)
    call a%model%free()
    call b%model%free()
    call evaluate(list(2)%model)
    call advance(b, list(3))
    deallocate (list)
    call evaluate(b%model)
  end subroutine containers_are_assigned

  ! The usual end of a step: the old one becomes the new one, in a procedure of its own.
  subroutine advance(old, new)
    type(material), intent(inout) :: old
    type(material), intent(in) :: new
    old = new
  end subroutine advance

  subroutine containers_of_containers_are_assigned()
    type(region) :: a, b
    call load(a%bulk%model, "elasticity")
    allocate (a%inclusions(2))
    a%inclusions(1) = a%bulk
    call load(a%inclusions(2)%model, "elasticity")
    b = a
    b = a
    call a%bulk%model%free()
    deallocate (a%inclusions)
    call evaluate(b%bulk%model)
    call evaluate(b%inclusions(1)%model)
    call evaluate(b%inclusions(2)%model)
    b = a
    call check(.not. (b%bulk%model%is_loaded() .or. allocated(b%inclusions)), "a copy of nothing is nothing")
  end subroutine containers_of_containers_are_assigned

  ! move_alloc and pointers leave the count alone.
  subroutine objects_are_moved()
    type(neml2_model), allocatable :: a(:), b(:)
    type(neml2_model), pointer :: p
    class(neml2_model), allocatable :: c
    allocate (a(2))
    call load(a(1), "elasticity")
    a(2) = a(1)
    call move_alloc(a, b)
    allocate (p)
    p = b(2)
    allocate (c)
    call share(c, p)
    deallocate (b)
    call evaluate(p)
    deallocate (p)
    call evaluate(c)
  end subroutine objects_are_moved

  ! To an object that is polymorphic.
  subroutine share(left, right)
    class(neml2_model), intent(inout) :: left
    type(neml2_model), intent(in) :: right
    select type (left)
    type is (neml2_model)
      left = right
    end select
  end subroutine share

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

  ! Objects are made in what may be a copy of a section, and freed there.
  subroutine sections_are_copied_in_and_out()
    type(neml2_model) :: models(5)
    call load_all(models(1::2), 3)
    call check(all(models%is_set() .eqv. [.true., .false., .true., .false., .true.]), "each is loaded")
    call evaluate(models(5))
    call free_all(models(1::2), 3)
    call check(.not. any(models%is_set()), "each is freed")
  end subroutine sections_are_copied_in_and_out

  subroutine load_all(models, n)
    integer, intent(in) :: n
    type(neml2_model), intent(inout) :: models(n)
    integer :: k
    do k = 1, n
      call load(models(k), "elasticity")
    end do
  end subroutine load_all

  subroutine free_all(models, n)
    integer, intent(in) :: n
    type(neml2_model), intent(inout) :: models(n)
    call models%free()
  end subroutine free_all

  subroutine a_call_outlives_its_model()
    type(neml2_model) :: model
    type(neml2_call) :: evaluation, copy
    real(real64), target :: strain(6, 1), stress(6, 1)
    integer(int32) :: stat
    call load(model, "elasticity")
    strain = some_strains(1)
    call evaluation%create(model, stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat)
    call evaluation%bind_output("stress", neml2_view(stress), stat)
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
