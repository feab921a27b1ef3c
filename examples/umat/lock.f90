! A lock among the threads of a process. It is a POSIX mutex, so that it holds whatever made the threads.
module umat_lock
  use, intrinsic :: iso_c_binding, only: c_int, c_int64_t
  implicit none(type, external)
  private
  public :: lock, unlock

  ! Zeros are PTHREAD_MUTEX_INITIALIZER on Linux; a pthread_mutex_t has at most 48 bytes there.
  integer(c_int64_t), save :: mutex(8) = 0

  interface
    function mutex_lock(mutex) bind(c, name="pthread_mutex_lock") result(error)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(inout) :: mutex(*)
      integer(c_int) :: error
    end function

    function mutex_unlock(mutex) bind(c, name="pthread_mutex_unlock") result(error)
      import :: c_int, c_int64_t
      integer(c_int64_t), intent(inout) :: mutex(*)
      integer(c_int) :: error
    end function
  end interface

contains

  ! Neither can fail: the mutex is valid, and taken once by those who give it back.
  subroutine lock()
    integer(c_int) :: error
    error = mutex_lock(mutex)
  end subroutine lock

  subroutine unlock()
    integer(c_int) :: error
    error = mutex_unlock(mutex)
  end subroutine unlock
end module umat_lock
