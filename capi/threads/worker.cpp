#include "capi/threads/worker.h"

#include <signal.h>

#include <utility>

#include "capi/base/interrupt.h"

namespace neml2_capi::threads {

cpu_set_t processors_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof(set), &set);
  return set;
}

void move_to(const cpu_set_t& wanted, cpu_set_t& mine) {
  if (!CPU_EQUAL(&mine, &wanted) && sched_setaffinity(0, sizeof(wanted), &wanted) == 0) mine = wanted;
}

Error forked() {
  return {
      NEML2_ERROR_RUNTIME, "",
      "The process was forked by a function that this evaluation called, and the child has only some of its results. "
      "Evaluate again in the child."};
}

std::thread start_thread(std::function<void()> live) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // inherited
  struct Restore {
    const sigset_t& mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, &mask, nullptr); }
  } restore{before};
  return std::thread([live = std::move(live)] {
    interrupt::never_ask_here();
    live();
  });
}

}  // namespace neml2_capi::threads
