// The chunks of an evaluation, which several threads take one after another.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>

#include "capi/base/locks.h"
#include "capi/evaluation/plan.h"
#include "capi/threads/pool.h"

namespace neml2_capi::model {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

// Turns that the ranges of an evaluation take: sums over all points are added in the order of the ranges, whatever
// thread has them.
class Turns {
 public:
  // For what they write to together.
  std::unique_lock<locks::FreedMutex> alone() { return std::unique_lock(mutex_); }
  // Waits for the turn of a range. False if an earlier one failed.
  bool wait(std::int64_t number);
  // Tells whether this is the child of a fork in the midst of the evaluation, whose other threads are not there.
  bool are_of_parent() const { return born_after_ != locks::forks(); }
  void end();
  void give_up();

 private:
  const std::uint32_t born_after_ = locks::forks();
  locks::FreedMutex mutex_;  // guards what follows
  locks::Condition came_;
  std::int64_t turn_ = 0;
  bool given_up_ = false;
};

// Waits for the turn of a range if sums are asked for, which begin at zero. False if an earlier range failed.
bool begin_sums(const Plan& plan, const Bindings& bindings, const Range& range);
void end_sums(const Plan& plan, const Range& range);

class Chunks final : public threads::Job {
 public:
  Chunks(const Plan& plan, const Route& route, const Bindings& bindings, std::int64_t size)
      : plan_(plan), route_(route), bindings_(bindings), size_(size) {}

  // Throws what the first chunk that failed threw.
  Tally run(int threads, Workspace& workspace);
  void work() override;

 private:
  void share(int threads);
  bool take(Workspace& workspace, Tally& tally);
  void note_failure(std::int64_t begin);

  const Plan& plan_;
  const Route& route_;
  const Bindings& bindings_;
  const std::int64_t size_;
  Turns turns_;
  bool is_shared_ = false;  // with threads of the pool

  locks::FreedMutex mutex_;  // guards what follows
  std::int64_t next_ = 0, taken_ = 0;
  Tally tally_;
  std::exception_ptr failure_;
  std::int64_t failed_at_ = 0;
};

}  // namespace neml2_capi::model
