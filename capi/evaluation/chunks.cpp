#include "capi/evaluation/chunks.h"

#include <algorithm>

#include "capi/base/interrupt.h"
#include "capi/evaluation/results.h"
#include "capi/threads/worker.h"

namespace neml2_capi::model {

bool Turns::wait(std::int64_t number) {
  std::unique_lock lock(mutex_);
  came_.wait(lock, [&] { return turn_ == number || given_up_ || are_of_parent(); });
  return !given_up_ && turn_ == number;
}

void Turns::end() {
  const std::lock_guard lock(mutex_);
  ++turn_;
  came_.notify_all();
}

void Turns::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  came_.notify_all();
}

bool begin_sums(const Plan& plan, const Bindings& bindings, const Range& range) {
  if (!plan.request().sums) return true;
  if (range.turns && !range.turns->wait(range.number)) return false;
  if (range.begin == 0) clear_sums(plan.model(), bindings);
  return true;
}

void end_sums(const Plan& plan, const Range& range) {
  if (plan.request().sums && range.turns) range.turns->end();
}

// To wake a worker costs some ten microseconds. One chunk tells how long the rest will take.
Tally Chunks::run(int threads, Workspace& workspace) {
  if (threads == 1) {
    while (take(workspace, tally_)) {
    }
  } else {
    const Stopwatch watch;
    if (take(workspace, tally_)) {
      plan_.routes().note_time(watch.seconds(), next_ * bindings_.steps);
      const std::int64_t left = bindings_.points - next_, chunks = (left + size_ - 1) / size_;
      constexpr double worth_waking = 100e-6;  // seconds
      if (plan_.routes().seconds_per_point() * static_cast<double>(left * bindings_.steps) < worth_waking)
        work();
      else
        share(static_cast<int>(std::min<std::int64_t>(threads, chunks)));
    }
  }
  if (failure_) std::rethrow_exception(failure_);
  return std::move(tally_);
}

void Chunks::share(int threads) {
  is_shared_ = true;
  threads::run(*this, threads - 1);
  if (turns_.are_of_parent()) throw threads::forked();
}

void Chunks::work() {
  try {
    Tally tally;
    const Borrowed workspace(plan_.routes());
    while (take(*workspace, tally)) {
    }
    const std::lock_guard lock(mutex_);
    tally_.add(tally);
  } catch (...) {  // no memory for a workspace, or for what became of the points
    note_failure(bindings_.points);
  }
}

// Evaluates the next chunk; false if there is none.
bool Chunks::take(Workspace& workspace, Tally& tally) {
  Range range{.turns = &turns_};
  try {
    interrupt::check();
    if (is_shared_ && turns_.are_of_parent()) throw threads::forked();
    {
      const std::lock_guard lock(mutex_);
      if (failure_ || next_ == bindings_.points) return false;
      range.begin = next_;
      next_ = route_.end_of_range(plan_.options(), bindings_, range.begin, size_);
      range.points = next_ - range.begin;
      range.number = taken_++;
    }
    route_.run(plan_, bindings_, range, workspace, tally);
    return true;
  } catch (...) {
    note_failure(range.begin);
    return false;
  }
}

// Keeps the exception in flight, if it comes from the first chunk that failed so far.
void Chunks::note_failure(std::int64_t begin) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || begin < failed_at_) {
      failure_ = std::current_exception();
      failed_at_ = begin;
    }
  }
  turns_.give_up();
}

}  // namespace neml2_capi::model
