! A finite-element host: 8 OpenMP threads take elements as they come, and share one model. The results equal one
! call over all points.
program openmp_elements
  use, intrinsic :: iso_fortran_env, only: int32
  use checks, only: check, finish, load
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok
  use omp_lib, only: omp_set_dynamic
  use scenario, only: accept, at_rest, bind, cycle_load, points, print_points, same_bits
  implicit none(type, external)

  integer, parameter :: elements = 64, element_points = 8, threads = 8, steps = 5
  type(neml2_model) :: model
  type(points) :: parallel, serial
  integer :: started, failed

  call load(model, "viscoplastic")
  call at_rest(parallel, elements * element_points)
  call omp_set_dynamic(.false.) ! as many threads as are asked for
  started = 0
  failed = 0
  !$omp parallel num_threads(threads) default(none) shared(model, parallel) reduction(+: started, failed)
  started = 1
  call run_elements(model, parallel, failed)
  !$omp end parallel
  call check(started == threads .and. failed == 0, "all threads advance their elements")

  call run_serially(model, serial)
  call check(same_bits(parallel%state, serial%state), "elements in parallel have the results of one call")
  call print_points("state", parallel%state(:, 1:8 * element_points:element_points))
  call finish()

contains

  ! Elements have eight different loads, some of which are elastic: they take unequal times.
  subroutine load_element(element, number, k)
    type(points), intent(inout) :: element
    integer, intent(in) :: number, k
    call cycle_load(element, element_points * mod(number - 1, 8), k)
  end subroutine load_element

  ! The share of one thread: its arrays and its call are its own.
  subroutine run_elements(model, mesh, failed)
    type(neml2_model), intent(in) :: model
    type(points), intent(inout) :: mesh
    integer, intent(inout) :: failed
    type(points), target :: element
    type(neml2_call) :: evaluation
    integer(int32) :: stat
    integer :: number, last, k
    call at_rest(element, element_points)
    call bind(evaluation, model, element)
    do k = 1, steps
      !$omp do schedule(dynamic)
      do number = 1, elements
        last = element_points * number
        associate (strain => mesh%strain(:, last - element_points + 1:last), &
                   state => mesh%state(:, last - element_points + 1:last))
          element%old_strain(:, :) = strain
          element%old_state(:, :) = state
          element%old_time = k - 1
          call load_element(element, number, k)
          call evaluation%run(element_points, stat=stat)
          if (stat /= neml2_ok) failed = failed + 1
          strain = element%strain
          state = element%state
        end associate
      end do
      !$omp end do
    end do
  end subroutine run_elements

  subroutine run_serially(model, mesh)
    type(neml2_model), intent(in) :: model
    type(points), intent(out), target :: mesh
    type(points) :: element
    type(neml2_call) :: evaluation
    integer(int32) :: stat
    integer :: number, k
    call at_rest(mesh, elements * element_points)
    call at_rest(element, element_points)
    call bind(evaluation, model, mesh)
    do k = 1, steps
      do number = 1, elements
        call load_element(element, number, k)
        mesh%strain(:, element_points * (number - 1) + 1:element_points * number) = element%strain
      end do
      mesh%time = k
      call evaluation%run(mesh%n, stat=stat)
      call check(stat == neml2_ok, "all points converge")
      call accept(mesh)
    end do
  end subroutine run_serially
end program openmp_elements
