#include "capi/threads/worker.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
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

int forks() {
  static std::atomic<int> count = 0;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)registered;
  return count.load(std::memory_order_relaxed);
}

}  // namespace neml2_capi::threads
