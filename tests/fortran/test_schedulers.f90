! Points that are spread over the devices of a scheduler: the same results, and errors of several sub-batches.
program test_schedulers
  use, intrinsic :: iso_fortran_env, only: int32, int64, real64
  use checks, only: artifact, check, check_ok, finish, hooke, load, near, says, some_strains, young
  use neml2_capi, only: neml2_call, neml2_device_cpu, neml2_device_cuda, neml2_error_argument, neml2_error_count, &
                        neml2_error_file, neml2_error_get, neml2_float64, neml2_model, neml2_not_converged, &
                        neml2_ok, neml2_runtime_auto, neml2_runtime_libtorch, neml2_view
  use neml2_capi_experimental, only: neml2_model_points, neml2_scheduler
  implicit none(type, external)
  integer, parameter :: n = 10
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call what_was_added_is_listed()
  call what_cannot_be_added_is_refused()
  call a_process_keeps_the_device_of_its_rank()
  call copies_are_the_same_scheduler()
  call results_do_not_depend_on_the_sub_batches()
  call a_stub_names_its_model()
  call errors_are_told_one_by_one()
  call finish()

contains

  subroutine what_was_added_is_listed()
    type(neml2_scheduler) :: devices
    integer(int32) :: device, runtime
    integer(int64) :: count, batch_size, capacity
    real(real64) :: priority
    call devices%create(stat, errmsg)
    call check_ok(stat, errmsg)
    call devices%add(neml2_device_cpu, 512, stat, errmsg)
    call check_ok(stat, errmsg)
    call devices%add(neml2_device_cuda, 4096_int64, stat, errmsg, capacity=8192_int64, &
                     priority=2.0_real64, runtime=neml2_runtime_libtorch)
    call check_ok(stat, errmsg)
    count = 0
    call devices%count(count, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(count == 2, "two devices")
    call devices%info(1_int64, device, stat, errmsg, batch_size, capacity, priority, runtime)
    call check_ok(stat, errmsg)
    call check(device == neml2_device_cpu .and. runtime == neml2_runtime_auto .and. batch_size == 512, "the first device")
    call check(capacity == 1024 .and. abs(priority - 1) <= 0, "what was not said of it")
    call devices%info(2_int64, device, stat, errmsg, batch_size, capacity, priority, runtime)
    call check_ok(stat, errmsg)
    call check(device == neml2_device_cuda .and. runtime == neml2_runtime_libtorch .and. batch_size == 4096, "the second device")
    call check(capacity == 8192 .and. abs(priority - 2) <= 0, "what was said of it")
    call devices%info(3_int64, device, stat, errmsg, batch_size)
    call check(stat == neml2_error_argument .and. device == neml2_device_cuda .and. batch_size == 4096, "there is no third")
  end subroutine what_was_added_is_listed

  subroutine what_cannot_be_added_is_refused()
    type(neml2_scheduler) :: devices
    type(neml2_model) :: model
    integer(int64) :: count
    call devices%add(neml2_device_cpu, 4, stat, errmsg)
    call check(stat == neml2_error_argument .and. len(errmsg) > 0, "no scheduler was created")
    call devices%create()
    call model%load(artifact("elasticity"), stat, errmsg, scheduler=devices)
    call check(stat == neml2_error_argument .and. .not. model%is_loaded(), "it has no device")
    call devices%add(neml2_device_cpu, 4)
    call devices%add(neml2_device_cpu, 4, stat, errmsg)
    call check(stat == neml2_error_argument, "the CPU is there")
    call devices%add(neml2_device_cuda, 8, stat, errmsg, capacity=4)
    call check(stat == neml2_error_argument, "less capacity than one sub-batch")
    call devices%add(neml2_device_cuda, -1, stat, errmsg)
    call check(stat == neml2_error_argument, "a negative size")
    call devices%count(count)
    call check(count == 1, "nothing was added")
    call model%load("/nonexistent", stat, errmsg, scheduler=devices)
    call check(stat == neml2_error_file .and. says(errmsg, "/nonexistent"), "no such artifact")
  end subroutine what_cannot_be_added_is_refused

  subroutine a_process_keeps_the_device_of_its_rank()
    type(neml2_scheduler) :: devices
    integer(int64) :: count
    integer(int32) :: device, index
    integer :: rank
    do rank = 0, 3
      call devices%create()
      call devices%add(neml2_device_cuda, 8)
      call devices%add(neml2_device_cuda, 8, device_index=1)
      call devices%keep_rank(rank, 1, stat)
      call check(stat == neml2_error_argument, "one process for two devices")
      call devices%keep_rank(rank, 4, stat, errmsg)
      call check_ok(stat, errmsg)
      call devices%info(1_int64, device, device_index=index)
      call devices%count(count)
      call check(count == 1 .and. device == neml2_device_cuda .and. index == mod(rank, 2), "the device of a rank")
    end do
  end subroutine a_process_keeps_the_device_of_its_rank

  subroutine copies_are_the_same_scheduler()
    type(neml2_scheduler) :: devices, other
    type(neml2_model) :: model
    integer(int64) :: count
    call devices%create()
    other = devices
    call other%add(neml2_device_cpu, 2)
    call devices%count(count)
    call check(count == 1 .and. devices%is_set(), "added to one, there in the other")
    call devices%free()
    call model%load(artifact("elasticity"), stat, errmsg, scheduler=other)
    call check_ok(stat, errmsg)
    call other%free()
    call is_elastic(model)
  end subroutine copies_are_the_same_scheduler

  subroutine is_elastic(model)
    type(neml2_model), intent(in) :: model
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), stress(6, n)
    strain = some_strains(n)
    stress = 0
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(near(stress, hooke(young, strain)), "Hooke's law")
  end subroutine is_elastic

  subroutine results_do_not_depend_on_the_sub_batches()
    type(neml2_scheduler) :: devices
    type(neml2_model) :: model
    real(real64) :: stress(6, n), expected(6, n)
    integer(int64) :: count
    integer :: batch_size
    call load(model, "viscoplastic")
    call run_step(model, 0, expected)
    call check(stat == neml2_ok, "a step")
    do batch_size = 0, n + 1
      call devices%create()
      call devices%add(neml2_device_cpu, batch_size)
      call model%load(artifact("viscoplastic"), stat, errmsg, scheduler=devices, dtype=neml2_float64)
      call check_ok(stat, errmsg)
      call run_step(model, 0, stress)
      call check(stat == neml2_ok .and. all(transfer(stress, [0_int64]) == transfer(expected, [0_int64])), &
                 "the same bits")
      call neml2_model_points(model, 1_int64, count, stat, errmsg)
      call check_ok(stat, errmsg)
      call check(count == n, "the device evaluated the points")
    end do
    call neml2_model_points(model, 2_int64, count, stat, errmsg)
    call check(stat == neml2_error_argument .and. count == n, "there is one device")
  end subroutine results_do_not_depend_on_the_sub_batches

  subroutine a_stub_names_its_model()
    type(neml2_scheduler) :: devices
    type(neml2_model) :: model
    call devices%create()
    call devices%add(neml2_device_cpu, 3)
    call model%load(artifact("elasticity_aoti.i"), stat, errmsg, scheduler=devices, name="elasticity")
    call check_ok(stat, errmsg)
    call is_elastic(model)
  end subroutine a_stub_names_its_model

  ! A viscoplastic step from rest, with a strain beyond all measure at every `bad`-th point; 0: at none.
  subroutine run_step(model, bad, stress)
    type(neml2_model), intent(in) :: model
    integer, intent(in) :: bad
    real(real64), intent(out), target :: stress(6, n)
    type(neml2_call) :: evaluation
    real(real64), target :: time, zero(6, n), strain(6, n)
    time = 1
    zero = 0
    stress = 0
    strain = 10 * some_strains(n)
    if (bad > 0) strain(1, bad::bad) = 1e200_real64
    call evaluation%create(model)
    call evaluation%bind_input("t", neml2_view(time))
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_input("t~1", neml2_view(zero(1, 1)))
    call evaluation%bind_input("strain~1", neml2_view(zero))
    call evaluation%bind_input("stress~1", neml2_view(zero))
    call evaluation%bind_input("X1~1", neml2_view(zero))
    call evaluation%bind_input("X2~1", neml2_view(zero))
    call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(zero(1, :)))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%run(n, stat, errmsg)
  end subroutine run_step

  ! Points 5 and 10 fail, which C counts as 4 and 9, in two of the sub-batches 0 to 3, 4 to 7, 8 and 9.
  subroutine errors_are_told_one_by_one()
    type(neml2_scheduler) :: devices
    type(neml2_model) :: model
    real(real64) :: stress(6, n)
    character(:), allocatable :: message
    integer(int32) :: status
    call devices%create()
    call devices%add(neml2_device_cpu, 4)
    call model%load(artifact("viscoplastic"), scheduler=devices)
    call run_step(model, 5, stress)
    call check(stat >= neml2_not_converged .and. says(errmsg, "2 of 10"), errmsg)
    call check(neml2_error_count() == 2, "two sub-batches failed")
    call neml2_error_get(1_int64, status, message, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(status >= neml2_not_converged .and. says(message, "points 4 to 7"), message)
    call neml2_error_get(2_int64, status, message)
    call check(status >= neml2_not_converged .and. says(message, "points 8 to 9"), message)
    call neml2_error_get(3_int64, status, message, stat)
    call check(stat == neml2_error_argument .and. says(message, "points 8 to 9"), "there is no third")
    call check(neml2_error_count() == 1, "which is one error")
  end subroutine errors_are_told_one_by_one
end program test_schedulers
