! Without stat and errmsg nothing stops, the error can be read, and what should have been returned is as it was.
program test_errors
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: check, check_ok, finish, load, says, some_strains
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_file, neml2_error_message, &
                        neml2_error_missing, neml2_error_name, neml2_error_shape, neml2_error_status, &
                        neml2_error_subject, neml2_get_error_message, neml2_get_error_subject, neml2_input, &
                        neml2_model, neml2_ok, neml2_report, neml2_solve, neml2_source_describe, neml2_tensor, &
                        neml2_view
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)
  integer, parameter :: n = 3
  type(neml2_model) :: model
  integer(int32) :: stat

  call check(neml2_error_status() == neml2_ok, "no error yet")
  call load(model, "elasticity")
  call arguments_are_left_as_they_were()
  call objects_are_left_as_they_were()
  call what_is_found_here_is_read_like_the_rest()
  call messages_of_fixed_length()
  call each_thread_has_its_own()
  call finish()

contains

  ! The last error has this status, and is about `subject`.
  subroutine failed(status, subject)
    integer(int32), intent(in) :: status
    character(*), intent(in) :: subject
    character(:), allocatable :: message, found
    call neml2_error_message(message)
    call neml2_error_subject(found)
    call check(neml2_error_status() == status .and. found == subject .and. len(message) > 0, &
               subject//" expected, got "//found//": "//message)
  end subroutine failed

  subroutine arguments_are_left_as_they_were()
    integer(int64) :: count, positions(2)
    integer(int64), allocatable :: extents(:)
    integer(int32) :: dtype
    real(real64) :: number
    real(real64), allocatable :: values(:)
    character(:), allocatable :: text, type
    logical :: batched
    count = 7
    call model%variable_count(9_int32, count, stat=stat)
    call failed(neml2_error_argument, "kind")
    call model%derivative_count(9_int32, count, stat=stat)
    call check(count == 7, "a count")
    text = "as it was"
    type = "so"
    call model%variable_name(neml2_input, 2_int64, text, type=type, stat=stat)
    call check(text == "as it was" .and. type == "so", "a name")
    extents = [1_int64, 2_int64]
    call model%variable_shape(neml2_input, 2_int64, extents, stat=stat)
    call check(size(extents) == 2 .and. all(extents == [1, 2]), "a shape")
    positions = 7
    batched = .true.
    call model%derivative_info(neml2_input, 2_int64, positions(1), positions(2), shape=extents, batched=batched, stat=stat)
    call check(all(positions == 7) .and. size(extents) == 2 .and. batched, "a derivative")
    call model%history_info(1_int64, positions(1), age=count, stat=stat)
    call check(positions(1) == 7 .and. count == 7, "a history")
    number = 7
    call model%get_option("nonsense", number, stat=stat)
    call failed(neml2_error_name, "nonsense")
    call model%get_option("nonsense", text, stat=stat)
    call check(abs(number - 7) <= 0 .and. text == "as it was", "an option")
    call model%option_info(1000_int64, text, least=number, stat=stat)
    call check(abs(number - 7) <= 0 .and. text == "as it was", "the description of an option")
    values = [7.0_real64]
    call model%get_parameter("elasticity.nu", values, shape=extents, stat=stat)
    call failed(neml2_error_name, "elasticity.nu")
    call check(size(values) == 1 .and. size(extents) == 2, "a parameter")
    call neml2_source_describe("/nonexistent", text, stat=stat)
    call failed(neml2_error_file, "/nonexistent")
    call check(text == "as it was", "a description")
    dtype = 7
    call model%variable_dtype(neml2_input, 2_int64, dtype, stat=stat)
    call check(dtype == 7, "an element type")
    call model%variable_find(neml2_input, "strian", count, stat=stat)
    call failed(neml2_error_name, "strian")
    call check(count == 0, "nothing found is at 0")
    call model%variable_count(neml2_input, count)
    call check(count == 1, "and what succeeds without stat succeeds")
    call failed(neml2_error_name, "strian") ! which does not clear the error
  end subroutine arguments_are_left_as_they_were

  subroutine objects_are_left_as_they_were()
    type(neml2_model) :: nothing
    type(neml2_call) :: evaluation
    type(neml2_graph) :: graph
    type(neml2_solve) :: solve
    type(neml2_report) :: report
    type(neml2_tensor) :: tensor, inputs(1), outputs(1)
    real(real64), target :: strain(6, n)
    integer(int64) :: counts(2)
    logical :: more
    strain = some_strains(n)
    call nothing%load("/nonexistent", stat=stat)
    call evaluation%create(nothing, stat=stat)
    call graph%load("/nonexistent.pt2", stat=stat)
    call check(.not. (nothing%is_loaded() .or. evaluation%is_set() .or. graph%is_loaded()), "nothing is there")
    call evaluation%run(1, stat=stat)
    call evaluation%bind_input("strain", neml2_view(strain), stat=stat)
    call evaluation%bind_output("stress", neml2_view(), stat=stat)
    call graph%run(inputs, outputs, stat=stat)
    counts = 7
    call graph%arity(counts(1), counts(2), stat=stat)
    call solve%begin(evaluation, 1, stat=stat)
    call solve%size(counts(1), counts(2), stat=stat)
    call check(all(counts == 7), "counts")
    more = .true.
    call solve%next(more, stat=stat)
    call check(.not. more, "a loop over systems ends")
    call solve%finish(stat=stat)
    call report%get(0_int32, tensor, stat=stat)
    call model%forward(inputs, outputs, stat=stat)
    call failed(neml2_error_missing, "strain")
    call check(.not. (tensor%is_set() .or. outputs(1)%is_set() .or. solve%is_set()), "still nothing")
  end subroutine objects_are_left_as_they_were

  subroutine what_is_found_here_is_read_like_the_rest()
    type(neml2_call) :: evaluation
    type(neml2_tensor) :: two(2), one(1)
    real(real64), target :: strain(6, n), stress(6, n)
    character(:), allocatable :: errmsg, message
    strain = some_strains(n)
    call evaluation%create(model)
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%run(n + 1, stat=stat)
    call failed(neml2_error_shape, "strain")
    call neml2_error_message(message)
    call evaluation%run(n + 1, stat, errmsg)
    call check(stat == neml2_error_shape .and. errmsg == message .and. says(errmsg, "holds 3 points"), errmsg)
    call evaluation%bind_input("strain", neml2_view(strain), first=0, stat=stat)
    call failed(neml2_error_argument, "strain")
    call evaluation%bind_input("strian", neml2_view(strain), stat=stat)
    call failed(neml2_error_name, "strian") ! the library's own comes after
    call model%forward(two, one, stat=stat)
    call failed(neml2_error_shape, "inputs")
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call failed(neml2_error_shape, "inputs")
  end subroutine what_is_found_here_is_read_like_the_rest

  ! As fixed-form programs have them.
  subroutine messages_of_fixed_length()
    character(4096) :: long
    character(12) :: short
    character(:), allocatable :: message
    call model%set_option("nonsense", 1.0_real64, stat=stat)
    call neml2_error_message(message)
    call neml2_get_error_message(long)
    call check(len(message) < len(long) .and. trim(long) == message, "padded with blanks")
    call neml2_get_error_message(short)
    call check(short == message(:12), "or cut")
    call neml2_get_error_subject(short)
    call check(short == "nonsense    ", "the subject, too")
  end subroutine messages_of_fixed_length

  ! If this file is compiled without OpenMP there is one thread.
  subroutine each_thread_has_its_own()
    integer :: i, wrong
    wrong = 0
    !$omp parallel do num_threads(4) schedule(dynamic) default(none) shared(model) reduction(+: wrong)
    do i = 1, 400
      call fail_in_a_way_of_its_own(i, wrong)
    end do
    !$omp end parallel do
    call check(wrong == 0, "no thread reads the error of another")
  end subroutine each_thread_has_its_own

  subroutine fail_in_a_way_of_its_own(i, wrong)
    integer, intent(in) :: i
    integer, intent(inout) :: wrong
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, 7)
    character(:), allocatable :: errmsg
    character(8) :: number
    integer(int32) :: status
    strain = some_strains(7)
    write (number, "(i0)") 1000 + i
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%run(1000 + i, status, errmsg)
    if (.not. says(errmsg, "of "//trim(number)//".") .or. status /= neml2_error_shape) wrong = wrong + 1
    call evaluation%bind_input("x"//trim(number), neml2_view(strain), stat=status)
    call neml2_error_message(errmsg)
    if (.not. says(errmsg, "x"//trim(number)) .or. status /= neml2_error_name) wrong = wrong + 1
  end subroutine fail_in_a_way_of_its_own
end program test_errors
