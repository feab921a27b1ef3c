! The records that the library queues are taken with messages of their length.
!
! With the argument "print", the records of one step of one point are printed, to be compared with other languages.
program test_log
  use, intrinsic :: iso_fortran_env, only: int32, int64, output_unit, real64
  use checks, only: check, check_ok, finish, load, says
  use neml2_capi, only: neml2_call, neml2_error_argument, neml2_error_name, neml2_log_count, neml2_log_debug, &
                        neml2_log_info, neml2_log_level_get, neml2_log_level_set, neml2_log_next, neml2_log_silent, &
                        neml2_log_warning, neml2_model, neml2_not_converged, neml2_view
  implicit none(type, external)
  type(neml2_model) :: model
  type(neml2_call) :: evaluation
  real(real64), target :: strain(6, 1), old_strain(6, 1), time, old_time
  real(real64), target :: state(19, 1), old_state(19, 1)
  character(:), allocatable :: errmsg, channel, message
  character(5) :: argument
  integer(int32) :: stat, level

  call get_command_argument(1, argument)
  call load(model, "viscoplastic")
  call bind()
  if (argument == "print") then
    call print_a_step()
  else
    call levels_are_set_and_told()
    call what_is_wrong_is_refused()
    call records_are_taken_in_order()
  end if
  call finish()

contains

  subroutine bind()
    strain(:, 1) = [5e-3_real64, -1.5e-3_real64, -1.25e-3_real64, 5e-4_real64, -1e-3_real64, 2.5e-4_real64]
    old_strain = 0
    state = 0
    old_state = 0
    time = 5
    old_time = 0
    call evaluation%create(model)
    call evaluation%bind_input("t", neml2_view(time))
    call evaluation%bind_input("t~1", neml2_view(old_time))
    call evaluation%bind_input("strain", neml2_view(strain))
    call evaluation%bind_input("strain~1", neml2_view(old_strain))
    call evaluation%bind_input("stress~1", neml2_view(old_state(1:6, :)))
    call evaluation%bind_input("equivalent_plastic_strain~1", neml2_view(old_state(7, :)))
    call evaluation%bind_input("X1~1", neml2_view(old_state(8:13, :)))
    call evaluation%bind_input("X2~1", neml2_view(old_state(14:19, :)))
    ! a guess that the predictor replaces
    call evaluation%bind_input("stress", neml2_view(old_state(1:6, :)), stat, errmsg)
    call check_ok(stat, errmsg)
    call evaluation%bind_output("stress", neml2_view(state(1:6, :)), stat, errmsg)
    call check_ok(stat, errmsg)
  end subroutine bind

  subroutine levels_are_set_and_told()
    call neml2_log_level_set("all", neml2_log_info, stat, errmsg)
    call check_ok(stat, errmsg)
    call neml2_log_level_set("newton", neml2_log_debug)
    call neml2_log_level_get("newton", level, stat, errmsg)
    call check_ok(stat, errmsg)
    call check(level == neml2_log_debug, "the level of newton")
    call neml2_log_level_get("model", level)
    call check(level == neml2_log_info, "the level of model")
    call neml2_log_level_set("all", neml2_log_warning)
    call neml2_log_level_get("all", level)
    call check(level == neml2_log_warning, "the level of all")
  end subroutine levels_are_set_and_told

  subroutine what_is_wrong_is_refused()
    call neml2_log_level_set("neton", neml2_log_info, stat, errmsg)
    call check(stat == neml2_error_name .and. says(errmsg, "newton, linear"), "a channel that is none")
    level = 7
    call neml2_log_level_get("neton", level, stat)
    call check(stat == neml2_error_name .and. level == 7, "the level of a channel that is none")
    call neml2_log_level_set("newton", 9_int32, stat)
    call check(stat == neml2_error_argument, "a level that is none")
  end subroutine what_is_wrong_is_refused

  subroutine records_are_taken_in_order()
    integer(int64) :: i, written
    character(24) :: expected
    call neml2_log_next(level, channel, message)
    call check(level == neml2_log_silent .and. len(channel) == 0 .and. len(message) == 0, "an empty queue")
    call neml2_log_level_set("newton", neml2_log_debug)
    call evaluation%run(1, stat, errmsg)
    call check_ok(stat, errmsg)
    written = neml2_log_count()
    call check(written > 2, "records wait")
    do i = 1, written - 1
      call neml2_log_next(level, channel, message)
      write (expected, "(a, i0, a)") "iteration ", i - 1, ", |r| ="
      call check(level == neml2_log_debug .and. channel == "newton" .and. says(message, trim(expected)), message)
    end do
    call neml2_log_next(level, channel, message)
    call check(level == neml2_log_info .and. says(message, "1 of 1 converged"), message)
    call check(neml2_log_count() == 0, "all were taken")
    call neml2_log_level_set("all", neml2_log_warning)
  end subroutine records_are_taken_in_order

  subroutine print_a_step()
    call neml2_log_level_set("newton", neml2_log_debug)
    call evaluation%run(1, stat, errmsg)
    call check_ok(stat, errmsg)
    strain(1, 1) = 1e200_real64
    call evaluation%run(1, stat)
    call check(stat == neml2_not_converged, "a strain that is no number")
    do
      call neml2_log_next(level, channel, message)
      if (level == neml2_log_silent) exit
      write (output_unit, "(2a, i0, 2a)") channel, " ", level, " ", message
    end do
  end subroutine print_a_step
end program test_log
