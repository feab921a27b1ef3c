! What a host with MPI needs beside neml2_capi.f90: which device is a rank's, and what became of the points of all
! ranks.
!
! The library is not linked with MPI. This file is compiled after neml2_capi_experimental.f90, with your program and the
! wrapper of your own MPI, which must have the module mpi_f08:
!
!     mpifort DIR/include/neml2_capi_c.f90 DIR/include/neml2_capi.f90 DIR/include/neml2_capi_experimental.f90
!       DIR/include/neml2_capi_mpi.f90 host.f90 -L DIR/lib -Wl,-rpath,DIR/lib -lneml2_capi
!
! Each rank loads a model of its own, and evaluates points of its own. If a node has several devices, each of its
! ranks keeps one of them; if points fail on one rank, all must cut the step:
!
!     call scheduler%create()
!     call scheduler%add(neml2_device_cuda, 4096)
!     call scheduler%add(neml2_device_cuda, 4096, device_index=1)
!     call neml2_mpi_keep_rank(scheduler, MPI_COMM_WORLD, stat)
!     if (stat == neml2_ok) call model%load(root, stat, scheduler=scheduler)
!     call neml2_mpi_worst_status(stat, MPI_COMM_WORLD)
!     ...
!     call evaluation%run(n, stat)
!     call neml2_mpi_worst_status(stat, MPI_COMM_WORLD)
!     if (stat > 0) ... ! every rank is here: cut the step
!
! Collective  Every rank of the communicator must call each of these procedures, as with MPI's own collective ones, also
!             a rank that has failed before; one that does not keeps the others waiting for ever. What fails on one rank
!             is an error of all, so that all take the same way.
! Errors      neml2_error_argument if MPI is not initialized, or the communicator is MPI_COMM_NULL or one between two
!             groups. MPI's errors end the program, unless the communicator's handler is MPI_ERRORS_RETURN: then they
!             are neml2_error_runtime. `stat` and `errmsg` are as in neml2_capi.f90.
! Threads     As MPI was initialized: MPI_THREAD_FUNNELED allows the main thread, for example.
module neml2_capi_mpi
  use mpi_f08, only: MPI_Allreduce, MPI_Comm, MPI_Comm_free, MPI_COMM_NULL, MPI_Comm_rank, MPI_Comm_size, &
                     MPI_Comm_split_type, MPI_Comm_test_inter, MPI_COMM_TYPE_SHARED, MPI_Error_string, MPI_Finalized, &
                     MPI_INFO_NULL, MPI_Initialized, MPI_INTEGER, MPI_MAX, MPI_MAX_ERROR_STRING, MPI_SUCCESS, &
                     operator(==)
  use neml2_capi_internal, only: conclude, int32, int64, neml2_error_argument, neml2_error_runtime, neml2_ok, raised, &
                                 tell
  use neml2_capi_experimental, only: neml2_scheduler
  implicit none(type, external)
  private
  public :: neml2_mpi_local_rank, neml2_mpi_worst_status, neml2_mpi_keep_rank

contains

  ! Count the ranks of `comm` that are on this node, `size`, and tell which of them this is, from 0, in the order of
  ! `comm`. Collective over `comm`.
  subroutine neml2_mpi_local_rank(rank, size, comm, stat, errmsg)
    integer, intent(inout) :: rank, size
    type(MPI_Comm), intent(in) :: comm
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    call find_local_rank(rank, size, comm, outcome)
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)
  end subroutine neml2_mpi_local_rank

  ! Replace `stat` by the worst of all ranks' statuses: the least if one is fatal, else the greatest, which says that
  ! points failed. If it is not the caller's own, the error of the thread says that another rank has failed.
  ! Collective over `comm`.
  subroutine neml2_mpi_worst_status(stat, comm, errmsg)
    integer(int32), intent(inout) :: stat
    type(MPI_Comm), intent(in) :: comm
    character(:), allocatable, intent(out), optional :: errmsg
    call find_worst(stat, comm)
    if (present(errmsg)) call tell(stat, errmsg)
  end subroutine neml2_mpi_worst_status

  ! scheduler%keep_rank with the ranks of `comm` on this node: of its devices the one stays that is this rank's.
  ! Collective over `comm`: if a node has fewer ranks than devices, or a rank has no scheduler, all fail, and no
  ! scheduler is changed.
  subroutine neml2_mpi_keep_rank(scheduler, comm, stat, errmsg)
    type(neml2_scheduler), intent(inout) :: scheduler
    type(MPI_Comm), intent(in) :: comm
    integer(int32), intent(out), optional :: stat
    character(:), allocatable, intent(out), optional :: errmsg
    integer(int32) :: outcome
    integer(int64) :: devices
    integer :: rank, size
    call find_local_rank(rank, size, comm, outcome)
    if (outcome == neml2_ok) then
      ! One that cannot be kept is not changed, and only the library knows what to say of it.
      devices = 0
      call scheduler%count(devices, outcome)
      if (outcome == neml2_ok .and. (devices == 0 .or. devices > size)) call keep
      call find_worst(outcome, comm)
      if (outcome == neml2_ok) call keep
    end if
    if (present(errmsg)) call tell(outcome, errmsg)
    call conclude(outcome, stat)

  contains

    subroutine keep
      call scheduler%keep_rank(int(rank, int32), int(size, int32), outcome)
    end subroutine keep
  end subroutine neml2_mpi_keep_rank

  subroutine find_local_rank(rank, size, comm, outcome)
    integer, intent(inout) :: rank, size
    type(MPI_Comm), intent(in) :: comm
    integer(int32), intent(out) :: outcome
    type(MPI_Comm) :: node
    integer :: code, own, count
    outcome = check(comm)
    if (outcome /= neml2_ok) return
    call MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, node, code)
    outcome = told(code)
    if (outcome /= neml2_ok) return
    call MPI_Comm_rank(node, own, code)
    outcome = told(code)
    if (outcome == neml2_ok) then
      call MPI_Comm_size(node, count, code)
      outcome = told(code)
    end if
    call MPI_Comm_free(node, code)
    if (outcome /= neml2_ok) return
    rank = own
    size = count
  end subroutine find_local_rank

  subroutine find_worst(stat, comm)
    integer(int32), intent(inout) :: stat
    type(MPI_Comm), intent(in) :: comm
    integer :: own(2), worst(2), code
    integer(int32) :: outcome
    outcome = check(comm)
    if (outcome == neml2_ok) then
      own = [-int(stat), int(stat)]
      call MPI_Allreduce(own, worst, 2, MPI_INTEGER, MPI_MAX, comm, code)
      outcome = told(code)
    end if
    if (outcome == neml2_ok) then
      outcome = int(merge(-worst(1), worst(2), worst(1) > 0), int32)
      if (outcome < neml2_ok .and. outcome /= stat) &
        outcome = raised(outcome, "comm", "another rank of the communicator has failed: its message is there")
      if (outcome > neml2_ok .and. outcome /= stat) &
        outcome = raised(outcome, "comm", "points of another rank of the communicator failed: cut the step here, too")
    end if
    stat = outcome
  end subroutine find_worst

  ! Whether a communicator can be asked.
  integer(int32) function check(comm) result(outcome)
    type(MPI_Comm), intent(in) :: comm
    logical :: initialized, finalized, between
    integer :: code
    call MPI_Initialized(initialized, code)
    call MPI_Finalized(finalized, code)
    if (finalized) then
      outcome = raised(neml2_error_argument, "MPI", "MPI was finalized before: call MPI_Finalize last")
    else if (.not. initialized) then
      outcome = raised(neml2_error_argument, "MPI", "MPI is not initialized: call MPI_Init first")
    else if (comm == MPI_COMM_NULL) then
      outcome = raised(neml2_error_argument, "comm", "the communicator is MPI_COMM_NULL: this process is in none; "// &
                       "call with one that it is in")
    else
      call MPI_Comm_test_inter(comm, between, code)
      outcome = told(code)
      if (outcome == neml2_ok .and. between) &
        outcome = raised(neml2_error_argument, "comm", &
                         "the communicator is one between two groups: merge them with MPI_Intercomm_merge")
    end if
  end function check

  ! The status of a call of MPI; what MPI says of an error is the error of the thread.
  integer(int32) function told(code) result(outcome)
    integer, intent(in) :: code
    character(MPI_MAX_ERROR_STRING) :: message
    integer :: length, again
    outcome = neml2_ok
    if (code == MPI_SUCCESS) return
    call MPI_Error_string(code, message, length, again)
    outcome = raised(neml2_error_runtime, "MPI", message(:length))
  end function told
end module neml2_capi_mpi
