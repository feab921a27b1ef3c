// Threads of the library: they block all signals, which are for the host's threads, and run on the processors of the
// caller who gives them work.
#pragma once

#include <functional>
#include <thread>

#include "capi/base/error.h"

namespace neml2_capi::threads {

// Error of an evaluation in whose midst a function of the host forked: the child has none of the threads that took part.
Error forked();

// Starts a thread that blocks all signals. Throws std::system_error if the system refuses.
std::thread start_thread(std::function<void()> live);

}  // namespace neml2_capi::threads
