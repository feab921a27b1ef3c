! A four-node element in plane stress, of any law with a history that neml2-capi runs: what a membrane element does.
!
!   plane_stress ARTIFACT
!
! A quadrilateral is stretched along x in steps by its four corners, and free to contract except at one corner. Each line has
! the step, the residual forces after each Newton iteration, and the stress xx of the last Gauss point. All four points
! have the stress of a truss of the law: it is a patch test. examples/c/plane_stress.c is the same in C.
!
! Strain and stress have 3 components, xx, yy and sqrt(2) xy, and the tangent is 3 x 3 and condensed. The strain through
! the thickness is a state like all others, which the program keeps without knowing what it is.
module membrane
  use, intrinsic :: iso_fortran_env, only: int32, real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_ok, neml2_plane_stress, neml2_view
  use neml2_history, only: neml2_state
  implicit none(type, external)
  private
  public :: element, forces, open_element, solve

  integer, parameter, public :: nodes = 4, dofs = 2 * nodes, points = 4
  real(real64), parameter, public :: node(2, nodes) = &
    reshape([0.0_real64, 0.0_real64, 1.0_real64, 0.1_real64, 1.2_real64, 1.0_real64, -0.1_real64, 0.9_real64], [2, nodes])
  ! All displacements along x, and one along y
  logical, parameter, public :: held(dofs) = [.true., .true., .true., .false., .true., .false., .true., .false.]

  type :: element
    type(neml2_model) :: model
    type(neml2_call) :: call
    type(neml2_state) :: state ! all that has a history: strain, time, stress, and the strain through the thickness
    real(real64) :: tangent(3, 3, points) = 0 ! the derivative of stress i by strain j is (j, i)
  end type element

contains

  subroutine open_element(e, artifact, stat, errmsg)
    type(element), intent(inout), target :: e
    character(*), intent(in) :: artifact
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg

    call e%model%load(artifact, stat, errmsg, hypothesis=neml2_plane_stress)
    if (stat == neml2_ok) call e%call%create(e%model, stat, errmsg)
    if (stat /= neml2_ok) return
    call e%state%create(e%model, points)
    call e%state%bind(e%call)
    call e%call%bind_derivative("stress", "strain", neml2_view(e%tangent), stat, errmsg)
  end subroutine open_element

  ! The strain-displacement matrix of a Gauss point, and the weight of the point
  pure subroutine strain_matrix(point, b, weight)
    integer, intent(in) :: point
    real(real64), intent(out) :: b(3, dofs), weight
    real(real64), parameter :: at = 1 / sqrt(3.0_real64)
    real(real64), parameter :: corner(2, nodes) = real(reshape([-1, -1, 1, -1, 1, 1, -1, 1], [2, nodes]), real64)
    real(real64) :: local(2, nodes), jacobian(2, 2), slope(2, nodes), xi(2)

    xi = at * [merge(1, -1, btest(point - 1, 0)), merge(1, -1, btest(point - 1, 1))]
    local(1, :) = corner(1, :) * (1 + corner(2, :) * xi(2)) / 4
    local(2, :) = corner(2, :) * (1 + corner(1, :) * xi(1)) / 4
    jacobian = matmul(local, transpose(node))
    weight = jacobian(1, 1) * jacobian(2, 2) - jacobian(1, 2) * jacobian(2, 1)
    slope(1, :) = (jacobian(2, 2) * local(1, :) - jacobian(1, 2) * local(2, :)) / weight
    slope(2, :) = (jacobian(1, 1) * local(2, :) - jacobian(2, 1) * local(1, :)) / weight
    b = 0
    b(1, 1::2) = slope(1, :)
    b(2, 2::2) = slope(2, :)
    b(3, 1::2) = slope(2, :) / sqrt(2.0_real64)
    b(3, 2::2) = slope(1, :) / sqrt(2.0_real64)
  end subroutine strain_matrix

  ! Forces and stiffness of the element at displacements u
  subroutine forces(e, time, u, f, k, stress, stat, errmsg)
    type(element), intent(inout), target :: e
    real(real64), intent(in) :: time, u(dofs)
    real(real64), intent(out) :: f(dofs), k(dofs, dofs)
    real(real64), intent(out) :: stress ! of the last point, along x
    integer(int32), intent(out) :: stat
    character(:), allocatable, intent(out) :: errmsg
    real(real64), pointer :: strain(:, :), now(:, :), found(:, :)
    real(real64) :: b(3, dofs, points), weight(points)
    integer :: point

    strain => e%state%now("strain")
    now => e%state%now("t")
    found => e%state%now("stress")
    now = time
    do point = 1, points
      call strain_matrix(point, b(:, :, point), weight(point))
      strain(:, point) = matmul(b(:, :, point), u)
    end do
    f = 0
    k = 0
    stress = 0
    call e%call%run(points, stat, errmsg)
    if (stat /= neml2_ok) return
    do point = 1, points
      f = f + weight(point) * matmul(found(:, point), b(:, :, point))
      k = k + weight(point) * matmul(transpose(b(:, :, point)), matmul(transpose(e%tangent(:, :, point)), b(:, :, point)))
    end do
    stress = found(1, points)
  end subroutine forces

  ! Solves k x = f without the rows and columns that are held; no pivoting, for k is positive definite there.
  pure subroutine solve(k, f)
    real(real64), intent(inout) :: k(dofs, dofs), f(dofs)
    integer :: i, r

    do i = 1, dofs
      if (.not. held(i)) cycle
      k(i, :) = 0
      k(:, i) = 0
      k(i, i) = 1
      f(i) = 0
    end do
    do i = 1, dofs
      do r = i + 1, dofs
        f(r) = f(r) - k(r, i) / k(i, i) * f(i)
        k(r, i:) = k(r, i:) - k(r, i) / k(i, i) * k(i, i:)
      end do
    end do
    do i = dofs, 1, -1
      f(i) = (f(i) - dot_product(k(i, i + 1:), f(i + 1:))) / k(i, i)
    end do
  end subroutine solve
end module membrane

program main
  use, intrinsic :: iso_fortran_env, only: error_unit, int32, output_unit, real64
  use membrane, only: dofs, element, forces, held, node, open_element, solve
  use neml2_capi, only: neml2_ok
  implicit none(type, external)
  integer, parameter :: steps = 5, most_iterations = 12
  type(element), target :: e
  character(:), allocatable :: errmsg
  character(1024) :: artifact
  integer(int32) :: stat
  real(real64) :: u(dofs), f(dofs), k(dofs, dofs), stress, norm
  integer :: step, iteration

  call get_command_argument(1, artifact)
  call open_element(e, trim(artifact), stat, errmsg)
  u = 0
  do step = 1, steps
    if (stat /= neml2_ok) exit
    u(1::2) = u(1::2) + 2e-3_real64 * node(1, :)
    write (output_unit, "(a, i0, a)", advance="no") "step ", step, " residuals"
    do iteration = 1, most_iterations
      call forces(e, real(step, real64), u, f, k, stress, stat, errmsg)
      if (stat /= neml2_ok) exit
      norm = maxval(abs(f), mask=.not. held)
      write (output_unit, "(1x, es10.3e3)", advance="no") norm
      if (norm <= 1e-9_real64 * maxval(abs(f), mask=held)) exit
      call solve(k, f)
      u = u - f
    end do
    write (output_unit, "(a, es20.12e3)") " stress ", stress
    if (stat == neml2_ok) call e%state%advance()
  end do
  if (stat == neml2_ok) stop
  write (error_unit, "(a)") errmsg
  error stop 1
end program main
