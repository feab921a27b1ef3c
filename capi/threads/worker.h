// Threads of the library: they block all signals, which are for the host's threads, and run on the processors of the
// caller who gives them work.
#pragma once

#include <sched.h>

#include <functional>
#include <thread>

#include "capi/base/error.h"

namespace neml2_capi::threads {

// Returns the processors that the calling thread may run on.
cpu_set_t processors_of_this_thread();

// Moves the calling thread to the processors `wanted`. `mine` holds those where it runs.
void move_to(const cpu_set_t& wanted, cpu_set_t& mine);

// Error of an evaluation in whose midst a function of the host forked: the child has none of the threads that took part.
Error forked();

// Starts a thread that blocks all signals. Throws std::system_error if the system refuses.
std::thread start_thread(std::function<void()> live);

}  // namespace neml2_capi::threads
