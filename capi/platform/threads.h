// Processors that threads run on, and their signals.
#pragma once

#if defined(__linux__)
#include <sched.h>
#endif

namespace neml2_capi::platform {

// Processors that a thread may run on.
class Processors {
 public:
  static Processors of_this_thread();
  int count() const;
  // Moves the calling thread to these; `mine` holds those where it runs.
  void take_thread(Processors& mine) const;

 private:
#if defined(__linux__)
  cpu_set_t set_{};
#endif
};

// Scope in which threads are started that block all signals, which are for the host's threads.
class BlockedSignals {
 public:
  BlockedSignals();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  alignas(16) unsigned char before_[128];
};

}  // namespace neml2_capi::platform
