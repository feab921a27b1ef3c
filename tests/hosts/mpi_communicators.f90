! What neml2_capi_mpi.f90 says over several communicators; mpi_communicators.c tells what is printed.
program mpi_communicators
  use, intrinsic :: iso_fortran_env, only: int32, int64
  use checks, only: check, finish
  use mpi_f08, only: MPI_Comm, MPI_Comm_free, MPI_COMM_NULL, MPI_Comm_rank, MPI_COMM_SELF, MPI_Comm_size, &
                     MPI_Comm_split, MPI_COMM_WORLD, MPI_Finalize, MPI_Gather, MPI_Init, MPI_INTEGER
  use neml2_capi, only: neml2_device_cuda, neml2_error_argument, neml2_error_file, neml2_non_finite, neml2_ok, &
                        neml2_singular
  use neml2_capi_experimental, only: neml2_scheduler
  use neml2_capi_mpi, only: neml2_mpi_keep_rank, neml2_mpi_local_rank, neml2_mpi_worst_status
  implicit none(type, external)

  integer, parameter :: values = 9
  type(MPI_Comm) :: parity, reversed
  integer :: rank, ranks, own(values), i
  integer, allocatable :: gathered(:, :)
  integer(int32) :: stat
  character(:), allocatable :: errmsg

  stat = neml2_ok
  call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
  call check(stat == neml2_error_argument .and. index(errmsg, "call MPI_Init first") > 0, "before MPI_Init")
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)

  call MPI_Comm_split(MPI_COMM_WORLD, modulo(rank, 2), rank, parity)
  call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, reversed)
  call ask(own(1:2), MPI_COMM_WORLD)
  call ask(own(3:4), parity)
  call ask(own(5:6), reversed)
  call ask(own(7:8), MPI_COMM_SELF)
  own(9) = kept_of(min(ranks, 3), reversed)
  call keep
  call agree
  i = 7
  call neml2_mpi_local_rank(i, own(2), MPI_COMM_NULL, stat, errmsg)
  call check(stat == neml2_error_argument .and. index(errmsg, "MPI_COMM_NULL") > 0 .and. i == 7, "a null communicator")

  allocate (gathered(values, ranks))
  call MPI_Gather(own, values, MPI_INTEGER, gathered, values, MPI_INTEGER, 0, MPI_COMM_WORLD)
  do i = 1, merge(ranks, 0, rank == 0)
    print "(*(i0, :, 1x))", gathered(:, i)
  end do
  call MPI_Comm_free(parity)
  call MPI_Comm_free(reversed)
  call MPI_Finalize()
  call neml2_mpi_local_rank(i, own(2), MPI_COMM_WORLD, stat, errmsg)
  call check(stat == neml2_error_argument .and. index(errmsg, "MPI was finalized before") > 0, "after MPI_Finalize")
  call finish()

contains

  subroutine ask(answer, comm)
    integer, intent(inout) :: answer(2)
    type(MPI_Comm), intent(in) :: comm
    integer(int32) :: outcome
    call neml2_mpi_local_rank(answer(1), answer(2), comm, outcome)
    call check(outcome == neml2_ok, "a rank and a size")
  end subroutine ask

  subroutine add_devices(scheduler, devices)
    type(neml2_scheduler), intent(inout) :: scheduler
    integer, intent(in) :: devices
    integer :: device
    call scheduler%create(stat)
    do device = 0, devices - 1
      call scheduler%add(neml2_device_cuda, 100, stat=stat, device_index=device)
      call check(stat == neml2_ok, "a device is added")
    end do
  end subroutine add_devices

  subroutine check_devices(scheduler, expected)
    type(neml2_scheduler), intent(in) :: scheduler
    integer, intent(in) :: expected
    integer(int64) :: count
    count = -1
    call scheduler%count(count)
    call check(count == expected, "as many devices as should be")
  end subroutine check_devices

  integer function kept_of(devices, comm) result(number)
    integer, intent(in) :: devices
    type(MPI_Comm), intent(in) :: comm
    type(neml2_scheduler) :: scheduler
    integer(int32) :: kind
    call add_devices(scheduler, devices)
    call neml2_mpi_keep_rank(scheduler, comm, stat, errmsg)
    call check(stat == neml2_ok, "a device is kept")
    call check_devices(scheduler, 1)
    number = -1
    call scheduler%info(1_int64, kind, device_index=number)
  end function kept_of

  ! A device for each rank, but no more: a rank without a scheduler fails all, and so does one with too many devices.
  subroutine keep
    type(neml2_scheduler) :: scheduler, nothing, two
    integer :: devices
    devices = merge(ranks + 1, 1, rank == 0)
    call add_devices(scheduler, devices)
    call neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD, stat, errmsg)
    call check(stat == neml2_error_argument, "idle devices")
    call check_devices(scheduler, devices)
    if (rank > 0) call check(index(errmsg, "another rank of the communicator has failed") > 0, "it is another rank's")
    if (rank == 0) then
      call neml2_mpi_keep_rank(nothing, MPI_COMM_WORLD, stat, errmsg)
    else
      call neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD, stat, errmsg)
    end if
    call check(stat == neml2_error_argument, "no scheduler")
    call check_devices(scheduler, devices)
    call add_devices(two, 2)
    call neml2_mpi_keep_rank(two, MPI_COMM_SELF, stat, errmsg)
    call check(stat == neml2_error_argument, "idle devices of one rank")
    call check_devices(two, 2)
  end subroutine keep

  ! All have the status of the last rank, or of the first if that is worse.
  subroutine agree
    integer(int32) :: own_status
    logical :: last
    last = rank == ranks - 1
    stat = neml2_ok
    call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
    call check(stat == neml2_ok .and. errmsg == "", "all is well")
    stat = merge(neml2_singular, neml2_non_finite, last)
    call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
    call check(stat == neml2_singular, "the worst of points")
    if (.not. last) call check(index(errmsg, "cut the step") > 0, "points of another rank")
    own_status = merge(neml2_error_file, merge(neml2_singular, neml2_ok, last), rank == 0)
    stat = own_status
    call neml2_mpi_worst_status(stat, MPI_COMM_WORLD, errmsg)
    call check(stat == neml2_error_file, "the worst of all")
    if (rank > 0) call check(index(errmsg, "another rank of the communicator has failed") > 0, "it is another rank's")
    stat = own_status
    call neml2_mpi_worst_status(stat, MPI_COMM_SELF, errmsg)
    call check(stat == own_status, "the worst of one")
  end subroutine agree
end program mpi_communicators
