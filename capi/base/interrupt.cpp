#include "capi/base/interrupt.h"

#include <chrono>
#include <mutex>

#include "capi/base/error.h"
#include "capi/base/locks.h"

namespace neml2_capi::interrupt {
namespace {

using Clock = std::chrono::steady_clock;

constinit locks::Mutex mutex;  // guards the two that follow
Asked host = nullptr;
void* host_context = nullptr;

thread_local bool never = false;
thread_local const std::atomic<bool>* end_with = nullptr;
thread_local Clock::time_point last_asked;

}  // namespace

std::atomic<bool> is_set = false;

void set(Asked asked, void* context) {
  const std::lock_guard lock(mutex);
  host = asked;
  host_context = context;
  is_set.store(asked != nullptr, std::memory_order_relaxed);
}

void never_ask_here() { never = true; }

void end_here_with(const std::atomic<bool>* end) { end_with = end; }

void ask() {
  if (never) {
    if (end_with && end_with->load(std::memory_order_relaxed))
      throw Error(NEML2_ERROR_INTERRUPTED, "", "The host ended the evaluation that this is a part of.");
    return;
  }
  constexpr std::chrono::milliseconds pause(100);
  const Clock::time_point now = Clock::now();
  if (now - last_asked < pause) return;
  last_asked = now;
  std::unique_lock lock(mutex);
  const Asked asked = host;
  void* const context = host_context;
  lock.unlock();
  const std::int32_t answer = asked ? asked(context) : 0;
  if (answer == 0) return;
  throw Error(NEML2_ERROR_INTERRUPTED, "",
              "The host ended the evaluation, by the function of neml2_interrupt_set(). Results are incomplete; the "
              "model and its calls are as they were: evaluate again.",
              answer >= NEML2_CAUSE_OF_HOST ? answer : NEML2_CAUSE_NONE);
}

}  // namespace neml2_capi::interrupt
