! An MPI host: every rank loads the model and takes an equal part of the points; rank 0 gathers their states: the same
! as one call over all points.
program mpi_ranks
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use checks, only: check, finish, load
  use mpi_f08, only: MPI_Comm_rank, MPI_Comm_size, MPI_COMM_WORLD, MPI_DOUBLE_PRECISION, MPI_Finalize, MPI_Gather, &
                     MPI_Init
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok
  use scenario, only: accept, at_rest, bind, cycle_load, points, print_points, same_bits, state_size
  implicit none(type, external)

  integer, parameter :: total = 64, steps = 5
  type(neml2_model) :: model
  real(real64) :: own(state_size, total), gathered(state_size, total), serial(state_size, total)
  integer :: ranks, rank, n

  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call load(model, "viscoplastic")
  n = total / ranks
  call check(n * ranks == total, "every rank has as many points")

  own(:, :n) = states_after_cycle(rank * n, n)
  call MPI_Gather(own, state_size * n, MPI_DOUBLE_PRECISION, gathered, state_size * n, MPI_DOUBLE_PRECISION, 0, &
                  MPI_COMM_WORLD)
  if (rank == 0) then
    serial = states_after_cycle(0, total)
    call check(same_bits(gathered, serial), "ranks have the results of one call")
    call print_points("state", gathered)
  end if
  call finish()
  call MPI_Finalize()

contains

  ! The states of `n` points, counted from `first`, after all steps.
  function states_after_cycle(first, n) result(state)
    integer, intent(in) :: first, n
    real(real64) :: state(state_size, n)
    type(points), target :: b
    type(neml2_call) :: evaluation
    integer(int32) :: stat
    integer :: k
    call at_rest(b, n)
    call bind(evaluation, model, b)
    do k = 1, steps
      call cycle_load(b, first, k)
      call evaluation%run(n, stat=stat)
      call check(stat == neml2_ok, "all points converge")
      call accept(b)
    end do
    state = b%state
  end function states_after_cycle
end program mpi_ranks
