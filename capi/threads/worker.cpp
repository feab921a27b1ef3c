#include "capi/threads/worker.h"

#include <utility>

#include "capi/base/interrupt.h"
#include "capi/platform/threads.h"

namespace neml2_capi::threads {

Error forked() {
  return {
      NEML2_ERROR_RUNTIME, "",
      "The process was forked by a function that this evaluation called, and the child has only some of its results. "
      "Evaluate again in the child."};
}

std::thread start_thread(std::function<void()> live) {
  const platform::BlockedSignals blocked;  // inherited
  return std::thread([live = std::move(live)] {
    interrupt::never_ask_here();
    live();
  });
}

}  // namespace neml2_capi::threads
