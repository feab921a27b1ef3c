// What threads of the library's own have in common: they block all signals, which are for the host's threads, and run on
// the processors that whoever gives them work may run on.
#pragma once

#include <sched.h>

#include <functional>
#include <thread>

namespace neml2_capi::threads {

// The processors that the calling thread may run on.
cpu_set_t processors_of_this_thread();

// Have the calling thread run on `wanted`; `mine` is where it runs.
void move_to(const cpu_set_t& wanted, cpu_set_t& mine);

// Throws std::system_error where the system refuses.
std::thread start_thread(std::function<void()> live);

// How many forks lie between the process that first asked and this one: in the child of a fork there are no threads but
// the one that forked, and locks may be held by those that there were.
int forks();

}  // namespace neml2_capi::threads
