! Call UMAT as Abaqus/Standard does, for material points under a uniform strain: to try a mapping before a mesh does.
!
!   umat_driver CASE
!
! CASE is a namelist. Vectors are in Abaqus' order, 11, 22, 33, 12, 13, 23, with engineering shear strains.
!
!   &material name = 'COMBINED_HARDENING', props = 200e3, 150, nprops = 2, nstatv = 13, ntens = 6, points = 1 /
!   &step  time = 1, increments = 10    length of the step, and the increments it begins with
!          strain = 1e-2, 0, 0, 0, 0, 0   what the step adds to the strain,
!          free = F, T, T, T, T, T        except the components of which the stress is to be zero
!          rotation = 0, 0, 0             how the material turns meanwhile: axis times angle
!          temperature = 0, fields = 0    at the end of the step /
!
! `&step` may be repeated. All points run at once if there is OpenMP; point p has 1 - (p - 1) / (2 points) of the
! strain. Printed are, for each point and each increment, its time, STRAN, STRESS, DDSDDE column by column and STATEV;
! and the increments that were cut.
program umat_driver
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use umat_driver_case, only: read_case, test_case
  use umat_driver_host, only: history, run_point
  implicit none(type, external)
  type(test_case) :: c
  type(history), allocatable :: histories(:)
  character(4096) :: file
  integer :: p

  if (command_argument_count() /= 1) then
    write (error_unit, "(a)") "usage: umat_driver CASE"
    stop 2
  end if
  call get_command_argument(1, file)
  call read_case(trim(file), c)
  allocate (histories(c%points))

  !$omp parallel do schedule(static, 1)
  do p = 1, c%points
    call run_point(c, p, histories(p))
  end do
  !$omp end parallel do

  do p = 1, c%points
    write (output_unit, "(a)", advance="no") histories(p)%text
  end do
  if (.not. all(histories%finished)) then
    write (error_unit, "(a)") "A step was cut too often."
    stop 1
  end if
end program umat_driver
