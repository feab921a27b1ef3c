! Copies that the compiler makes bit by bit hold no reference: OpenMP's private ones, those of allocate with source=, of
! array constructors. They may be used while the original lives, and created again.
program test_private
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, finish, hooke, load, near, some_strains, young
  use neml2_capi, only: neml2_call, neml2_float64, neml2_model, neml2_ok, neml2_view
  use neml2_capi_c, only: c_null_ptr, c_ptr, c_tensor_create, c_tensor_free
  use neml2_history, only: neml2_state
  use omp_lib, only: omp_set_dynamic
  implicit none(type, external)

  type :: material
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    integer :: number = 0
  end type material

  integer, parameter :: threads = 4, rounds = 300
  type(neml2_model) :: model, viscoplastic
  integer(int64) :: before
  integer :: i

  call omp_set_dynamic(.false.)
  call load(model, "elasticity")
  call load(viscoplastic, "viscoplastic")
  before = chunks()
  do i = 1, rounds
    call private_copies_are_empty()
    call private_copies_of_containers_are_empty()
    call private_states_are_empty()
    call firstprivate_copies_are_created_again()
    call sources_of_allocate_keep_their_objects()
    call arrays_are_extended()
    call copies_of_states_are_created_again()
  end do
  call check(chunks() == before, "all handles are given back")
  call model%free()
  call viscoplastic%free()
  call finish()

contains

  ! How many chunks of 256 slots the table of handles has: more are made if that many handles are not given back, for 512
  ! at once take all that is free. See capi/abi/handle_table.h.
  integer(int64) function chunks()
    integer(int64), parameter :: none = 0
    type(c_ptr) :: handles(512)
    integer :: k
    chunks = 0
    handles = c_null_ptr
    do k = 1, size(handles)
      call check(c_tensor_create(handles(k), neml2_float64, 0_int64) == neml2_ok, "a tensor")
      chunks = max(chunks, 1 + ibits(transfer(handles(k), none), 0, 24) / 256)
    end do
    do k = 1, size(handles)
      call c_tensor_free(handles(k))
    end do
  end function chunks

  ! Leave what is no object on the stack of each thread.
  subroutine spoil()
    integer(int64), volatile :: waste(1024)
    !$omp parallel num_threads(threads) default(none) private(waste)
    waste = 81985529216486895_int64
    !$omp end parallel
  end subroutine spoil

  ! Evaluate two points by a call that is made here.
  subroutine evaluate(evaluation, model, wrong)
    type(neml2_call), intent(inout) :: evaluation
    type(neml2_model), intent(in) :: model
    integer, intent(inout) :: wrong
    real(real64), target :: strain(6, 2), stress(6, 2)
    integer(int32) :: stat
    strain = some_strains(2)
    stress = 0
    call evaluation%create(model, stat)
    if (stat == neml2_ok) call evaluation%bind_input("strain", neml2_view(strain), stat)
    if (stat == neml2_ok) call evaluation%bind_output("stress", neml2_view(stress), stat)
    if (stat == neml2_ok) call evaluation%run(2, stat)
    if (stat /= neml2_ok .or. .not. near(stress, hooke(young, strain))) wrong = wrong + 1
  end subroutine evaluate

  ! Make and drop copies, as other threads do at once.
  subroutine recount(model)
    type(neml2_model), intent(in) :: model
    type(neml2_model) :: copy
    integer :: k
    do k = 1, 100
      copy = model
      call copy%free()
    end do
  end subroutine recount

  subroutine private_copies_are_empty()
    type(neml2_model) :: copy
    type(neml2_call) :: evaluation, other
    integer :: wrong
    call spoil()
    wrong = 0
    call evaluate(evaluation, model, wrong)
    !$omp parallel num_threads(threads) default(none) shared(model) private(copy, evaluation, other) reduction(+: wrong)
    if (copy%is_loaded() .or. evaluation%is_set() .or. other%is_set()) wrong = wrong + 1
    copy = model
    call recount(copy)
    call evaluate(evaluation, copy, wrong)
    call other%free()
    other = evaluation
    call evaluation%free()
    call evaluation%free()
    if (evaluation%is_set() .or. .not. other%is_set()) wrong = wrong + 1
    call evaluate(other, copy, wrong)
    call other%free()
    call copy%free()
    !$omp end parallel
    call check(wrong == 0 .and. evaluation%is_set(), "each thread makes a call of its own")
  end subroutine private_copies_are_empty

  subroutine private_copies_of_containers_are_empty()
    type(material) :: own
    integer :: wrong
    call spoil()
    wrong = 0
    !$omp parallel num_threads(threads) default(none) shared(model) private(own) reduction(+: wrong)
    if (own%model%is_set() .or. own%evaluation%is_set()) wrong = wrong + 1
    own%model = model
    call evaluate(own%evaluation, own%model, wrong)
    call own%evaluation%free()
    call own%model%free()
    !$omp end parallel
    call check(wrong == 0, "each thread fills a container of its own")
  end subroutine private_copies_of_containers_are_empty

  subroutine private_states_are_empty()
    type(neml2_state) :: state
    real(real64), pointer :: strain(:, :)
    integer :: wrong
    call spoil()
    wrong = 0
    !$omp parallel num_threads(threads) default(none) shared(viscoplastic) private(state, strain) reduction(+: wrong)
    if (state%is_set()) wrong = wrong + 1
    call state%create(viscoplastic, 3)
    strain => state%old("strain")
    if (any(abs(strain) > 0)) wrong = wrong + 1
    call state%free()
    !$omp end parallel
    call check(wrong == 0, "each thread makes a state of its own")
  end subroutine private_states_are_empty

  subroutine firstprivate_copies_are_created_again()
    type(neml2_call) :: evaluation
    type(material) :: both
    integer :: wrong
    wrong = 0
    call evaluate(evaluation, model, wrong)
    call evaluate(both%evaluation, model, wrong)
    !$omp parallel num_threads(threads) default(none) shared(model) firstprivate(evaluation, both) reduction(+: wrong)
    if (.not. (evaluation%is_set() .and. both%evaluation%is_set())) wrong = wrong + 1
    call evaluate(evaluation, model, wrong)
    call evaluation%free()
    call both%evaluation%free()
    call evaluate(both%evaluation, model, wrong)
    call both%evaluation%free()
    !$omp end parallel
    call check(wrong == 0 .and. evaluation%is_set() .and. both%evaluation%is_set(), "the original is left alone")
    call evaluate(evaluation, model, wrong)
    call evaluate(both%evaluation, model, wrong)
    call check(wrong == 0, "and works")
  end subroutine firstprivate_copies_are_created_again

  subroutine sources_of_allocate_keep_their_objects()
    type(neml2_model), allocatable :: one, several(:)
    type(material) :: both
    type(material), allocatable :: copy
    integer :: wrong
    wrong = 0
    allocate (one, source=model)
    allocate (several(3), source=model)
    call evaluate(both%evaluation, one, wrong)
    both%model = several(3)
    allocate (copy, source=both)
    several(2) = several(3)
    call several(3)%free()
    deallocate (several)
    one = one
    deallocate (one)
    call evaluate(copy%evaluation, copy%model, wrong)
    deallocate (copy)
    call evaluate(both%evaluation, both%model, wrong)
    call check(wrong == 0 .and. model%is_loaded(), "copies are freed, and the original is still there")
  end subroutine sources_of_allocate_keep_their_objects

  subroutine arrays_are_extended()
    type(neml2_call), allocatable :: list(:), more(:)
    type(neml2_call) :: evaluation
    integer :: wrong, k
    wrong = 0
    allocate (list(0))
    do k = 1, 3
      call evaluate(evaluation, model, wrong)
      allocate (more(k))
      more = [list, evaluation]
      call move_alloc(more, list)
    end do
    call evaluation%free()
    call check(wrong == 0 .and. all(list%is_set()), "all are there")
    do k = 1, 3
      call evaluate(list(k), model, wrong)
    end do
    call check(wrong == 0, "and work")
  end subroutine arrays_are_extended

  ! A state is freed at the end of its procedure.
  subroutine copies_of_states_are_created_again()
    type(neml2_state) :: state
    type(neml2_state), allocatable :: copy
    real(real64), pointer :: strain(:, :), other(:, :)
    integer :: wrong
    wrong = 0
    call state%create(viscoplastic, 3)
    strain => state%old("strain")
    strain = 1
    !$omp parallel num_threads(threads) default(none) shared(viscoplastic) firstprivate(state) private(other) &
    !$omp& reduction(+: wrong)
    other => state%old("strain")
    if (any(abs(other - 1) > 0)) wrong = wrong + 1
    call state%create(viscoplastic, 2)
    other => state%old("strain")
    other = 2
    call state%free()
    !$omp end parallel
    allocate (copy, source=state)
    copy = state
    other => copy%old("strain")
    other = 3
    deallocate (copy)
    call check(wrong == 0 .and. state%is_set() .and. all(abs(strain - 1) <= 0), "the original is left alone")
  end subroutine copies_of_states_are_created_again
end program test_private
