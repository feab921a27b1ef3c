! What neml2_capi.export wrote, from Fortran and on the built-in runtime: exported FOLDER. Prints what it returns, one
! array per line.
program exported
  use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
  use checks, only: check_ok, finish
  use neml2_capi, only: neml2_call, neml2_model, neml2_runtime_builtin, neml2_tensor, neml2_view
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)
  integer, parameter :: n = 3
  character(4096) :: folder
  character(:), allocatable :: errmsg
  integer(int32) :: stat

  call get_command_argument(1, folder)
  call network()
  call table()
  call perzyna()
  call finish()

contains

  subroutine load(graph, name)
    type(neml2_graph), intent(inout) :: graph
    character(*), intent(in) :: name
    call graph%load(trim(folder)//"/"//name, stat, errmsg, runtime=neml2_runtime_builtin)
    call check_ok(stat, errmsg)
  end subroutine load

  subroutine network()
    type(neml2_graph) :: graph
    type(neml2_tensor) :: inputs(1), outputs(1)
    real(real64), target :: x(6, n)
    real(real64), allocatable :: y(:)
    integer :: i, p
    do p = 1, n
      x(:, p) = [(0.5_real64 * p - 0.25_real64 * i, i=0, 5)]
    end do
    call load(graph, "network.pt2")
    call inputs(1)%wrap(neml2_view(x))
    call graph%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(y)
    call print_line(y)
  end subroutine network

  subroutine table()
    type(neml2_graph) :: graph
    type(neml2_tensor) :: inputs(3), outputs(4)
    integer(int64), target :: phase(n)
    integer(int32), target :: counted(n)
    real(real32), target :: value(n)
    real(real32), allocatable :: scaled(:)
    integer(int32), allocatable :: half(:)
    integer(int64), allocatable :: next(:)
    phase = [0, 1, 2]
    counted = [2, 3, 4]
    value = [0.0, 0.25, 0.5]
    call load(graph, "table.pt2")
    call inputs(1)%wrap(neml2_view(phase))
    call inputs(2)%wrap(neml2_view(counted))
    call inputs(3)%wrap(neml2_view(value))
    call graph%run(inputs, outputs, stat, errmsg)
    call check_ok(stat, errmsg)
    call outputs(1)%copy(scaled)
    call outputs(2)%copy(half)
    call outputs(4)%copy(next)
    call print_line(real(scaled, real64))
    call print_line(real(half, real64))
    call print_line(real(next, real64))
  end subroutine table

  subroutine perzyna()
    type(neml2_model) :: model
    type(neml2_call) :: evaluation
    real(real64), target :: strain(6, n), zeros(6, n), zero(n), time(n), stress(6, n), tangent(6, 6, n)
    integer :: p
    strain = 0
    zeros = 0
    zero = 0
    time = 1
    do p = 1, n
      strain(1, p) = 1e-3_real64 * p
      strain(5, p) = -5e-4_real64 * (p - 1)
    end do
    call model%load(trim(folder)//"/perzyna", stat, errmsg=errmsg)
    call check_ok(stat, errmsg)
    call evaluation%create(model)
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_input("strain~1", neml2_view(zeros))
    call evaluation%bind_input("stress~1", neml2_view(zeros))
    call evaluation%bind_input("t", neml2_view(time))
    call evaluation%bind_input("t~1", neml2_view(zero))
    call evaluation%bind_input("p~1", neml2_view(zero))
    call evaluation%bind_output("stress", neml2_view(stress))
    call evaluation%bind_derivative("stress", "strain", neml2_view(tangent))
    call evaluation%run(n, stat, errmsg)
    call check_ok(stat, errmsg)
    call print_line(reshape(stress, [6 * n]))
    call print_line(reshape(tangent, [36 * n]))
  end subroutine perzyna

  subroutine print_line(values)
    real(real64), intent(in) :: values(:)
    print "(*(es24.16e3, 1x))", values
  end subroutine print_line

end program exported
