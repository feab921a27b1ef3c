#include "capi/threads/pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "capi/base/floating_point.h"
#include "capi/base/locks.h"
#include "capi/platform/threads.h"
#include "capi/threads/worker.h"

namespace neml2_capi::threads {
namespace {

class Pool {
 public:
  // Runs the job. Returns false at once if another caller has the workers.
  bool try_run(Job& job, int helpers) {
    if (taken_.exchange(true, std::memory_order_acquire)) return false;
    {
      const std::lock_guard lock(mutex_);
      job_ = &job;
      vacancies_ = start_workers(helpers);
      processors_ = platform::Processors::of_this_thread();
    }
    for (int i = 0; i < vacancies_at_start_; ++i) wake_.notify_one();
    job.work();
    std::unique_lock lock(mutex_);
    vacancies_ = 0;
    done_.wait(lock, [&] { return working_ == 0; });
    job_ = nullptr;
    taken_.store(false, std::memory_order_release);
    return true;
  }

  // The child of a fork has none.
  void forget_workers() {
    job_ = nullptr;
    workers_ = vacancies_ = vacancies_at_start_ = working_ = 0;
    taken_ = false;
  }

 private:
  // Starts workers up to `wanted`. Returns how many of these there are, since threads or memory may lack.
  int start_workers(int wanted) noexcept {
    try {
      for (; workers_ < wanted; ++workers_) start_thread([this] { live(); }).detach();
    } catch (const std::exception&) {
    }
    return vacancies_at_start_ = std::min(wanted, workers_);
  }

  [[noreturn]] void live() {
    auto mine = platform::Processors::of_this_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return vacancies_ > 0; });
      --vacancies_;
      ++working_;
      Job& job = *job_;
      const platform::Processors wanted = processors_;
      lock.unlock();
      wanted.take_thread(mine);
      {
        const DefaultFloatingPoint environment;
        job.work();
      }
      lock.lock();
      if (--working_ == 0) done_.notify_one();
    }
  }

  std::atomic<bool> taken_ = false;  // by a caller
  locks::Mutex mutex_;               // guards what follows
  locks::Condition wake_, done_;
  Job* job_ = nullptr;
  platform::Processors processors_;
  int workers_ = 0;
  int vacancies_ = 0, vacancies_at_start_ = 0;  // workers that may still begin
  int working_ = 0;
};

constinit Pool pool;

const locks::InChild forget_workers([] { pool.forget_workers(); });

}  // namespace

int available_processors() { return platform::Processors::of_this_thread().count(); }

void run(Job& job, int helpers) {
  if (helpers <= 0 || !pool.try_run(job, helpers)) job.work();
}

}  // namespace neml2_capi::threads
