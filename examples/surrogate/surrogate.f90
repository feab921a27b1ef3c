! A neural surrogate in a time loop: bars of different temperatures are strained back and forth.
!
!     surrogate ARTIFACT [BARS [STEPS]]
!
! Prints the stress of the first and of the last bar over time, its distance from the law that the network was trained
! on, and the time of a step, beside the time of the package alone.
program surrogate
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use neml2_capi, only: neml2_call, neml2_model, neml2_tensor, neml2_view
  use neml2_capi_experimental, only: neml2_graph
  implicit none(type, external)

  ! The law of train.py.
  real(real64), parameter :: young = 200e3_real64, yield = 200, eta = 50, dt = 1e-4_real64, hot = 0.5_real64

  character(4096) :: artifact
  integer :: bars = 1000, steps = 200, step
  type(neml2_model) :: model
  type(neml2_call) :: material
  type(neml2_graph) :: graph
  type(neml2_tensor) :: inputs(4), outputs(2)
  real(real64), allocatable, target :: strain(:), temperature(:), stress(:), plastic(:), old_plastic(:), modulus(:)
  real(real64), allocatable :: exact(:)
  real(real64) :: model_time, package_time, error

  call get_command_argument(1, artifact)
  call get_count(2, bars)
  call get_count(3, steps)
  allocate (strain(bars), temperature(bars), stress(bars), plastic(bars), old_plastic(bars), exact(bars))
  allocate (modulus(bars), source=young)
  temperature = [(real(step - 1, real64) / max(bars - 1, 1), step=1, bars)]
  old_plastic = 0
  exact = 0
  error = 0

  ! Without stat and errmsg, an error ends the program with its message.
  call model%load(trim(artifact))
  call material%create(model)
  call material%bind_input("strain", neml2_view(strain))
  call material%bind_input("temperature", neml2_view(temperature))
  call material%bind_input("plastic_strain~1", neml2_view(old_plastic))
  call material%bind_output("stress", neml2_view(stress))
  call material%bind_output("plastic_strain", neml2_view(plastic))

  call graph%load(trim(artifact)//"/cpu/float64/surrogate.pt2")
  call inputs(1)%wrap(neml2_view(strain))
  call inputs(2)%wrap(neml2_view(temperature))
  call inputs(3)%wrap(neml2_view(old_plastic))
  call inputs(4)%wrap(neml2_view(modulus))

  model_time = huge(model_time)
  package_time = huge(package_time)
  do step = 1, steps
    strain = 2.5e-3_real64 * sin(8 * atan(1.0_real64) * step / 100)
    model_time = min(model_time, time_of_model())
    package_time = min(package_time, time_of_package())
    call take_exact_step()
    error = max(error, maxval(abs(stress - young * (strain - exact))))
    if (mod(step, 20) == 0) print "(f8.4, 2f10.3)", step * dt, stress(1), stress(bars)
    old_plastic = plastic
  end do
  print "(a, f8.5, a)", "# error ", error / yield, " of the yield stress"
  print "(2(a, f10.2), a, f6.3)", "# step ", 1e6_real64 * model_time, " us, package alone ", &
    1e6_real64 * package_time, " us, ratio ", model_time / package_time

contains

  real(real64) function time_of_model() result(seconds)
    integer(int64) :: begun
    begun = now()
    call material%run(bars)
    seconds = seconds_since(begun)
  end function time_of_model

  real(real64) function time_of_package() result(seconds)
    integer(int64) :: begun
    integer :: i
    begun = now()
    call graph%run(inputs, outputs)
    do i = 1, size(outputs)
      call outputs(i)%free()
    end do
    seconds = seconds_since(begun)
  end function time_of_package

  ! The law itself: see train.py.
  subroutine take_exact_step()
    real(real64) :: trial, over, half
    integer :: i
    do i = 1, bars
      trial = young * (strain(i) - exact(i))
      over = max(abs(trial) - yield * (1 - hot * temperature(i)), 0.0_real64)
      half = young * over + eta**2 / (2 * dt)
      exact(i) = exact(i) + sign(over**2 / (half + sqrt(max(half**2 - (young * over)**2, 0.0_real64))), trial)
    end do
  end subroutine take_exact_step

  integer(int64) function now()
    call system_clock(now)
  end function now

  real(real64) function seconds_since(begun) result(seconds)
    integer(int64), intent(in) :: begun
    integer(int64) :: rate
    call system_clock(count_rate=rate)
    seconds = real(now() - begun, real64) / real(rate, real64)
  end function seconds_since

  subroutine get_count(position, count)
    integer, intent(in) :: position
    integer, intent(inout) :: count
    character(32) :: text
    if (command_argument_count() < position) return
    call get_command_argument(position, text)
    read (text, *) count
  end subroutine get_count

end program surrogate
