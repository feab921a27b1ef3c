! The materials of an analysis: loaded when first asked for, by whichever thread comes first, and kept to the end.
!
! A thread takes a workspace, evaluates, and gives it back. Taking and giving back are under the lock; the evaluation
! is not, so that there are as many workspaces of a material as threads that evaluated it at once.
module umat_pool
  use, intrinsic :: iso_fortran_env, only: real64
  use umat_lock, only: lock, unlock
  use umat_materials, only: load_material, material
  use umat_workspaces, only: create_workspace, workspace
  implicit none(type, external)
  private
  public :: give_back, take

  type :: entry
    type(material), pointer :: material => null()
    type(workspace), pointer :: idle => null()
    type(entry), pointer :: next => null()
  end type entry

  type(entry), pointer, save :: entries => null()

contains

  ! A workspace of the material that the host calls `name`; `errmsg` is empty on success.
  subroutine take(name, pnewdt, work, errmsg)
    character(*), intent(in) :: name
    real(real64), intent(in) :: pnewdt
    type(workspace), pointer, intent(out) :: work
    character(:), allocatable, intent(out) :: errmsg
    type(entry), pointer :: e

    work => null()
    errmsg = ""
    call lock()
    e => entries
    do while (associated(e))
      if (e%material%name == name) exit
      e => e%next
    end do
    if (.not. associated(e)) call add(name, pnewdt, e, errmsg)
    if (errmsg == "") then
      if (associated(e%idle)) then
        work => e%idle
        e%idle => work%next
      else
        call create_workspace(e%material, work, errmsg)
      end if
    end if
    call unlock()
  end subroutine take

  subroutine give_back(work)
    type(workspace), pointer, intent(inout) :: work
    type(entry), pointer :: e
    call lock()
    e => entries
    do while (.not. associated(e%material, work%material))
      e => e%next
    end do
    work%next => e%idle
    e%idle => work
    call unlock()
    work => null()
  end subroutine give_back

  ! Under the lock. A material that cannot be loaded is not kept: the next call tells what is wrong, too.
  subroutine add(name, pnewdt, e, errmsg)
    character(*), intent(in) :: name
    real(real64), intent(in) :: pnewdt
    type(entry), pointer, intent(out) :: e
    character(:), allocatable, intent(out) :: errmsg
    allocate (e)
    allocate (e%material)
    call load_material(name, pnewdt, e%material, errmsg)
    if (errmsg /= "") then
      deallocate (e%material)
      deallocate (e)
      return
    end if
    e%next => entries
    entries => e
  end subroutine add
end module umat_pool
