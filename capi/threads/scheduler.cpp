#include "capi/threads/scheduler.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <iterator>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/floating_point.h"
#include "capi/base/interrupt.h"
#include "capi/base/locks.h"
#include "capi/base/sort.h"
#include "capi/platform/threads.h"
#include "capi/threads/worker.h"

namespace neml2_capi::threads {
namespace {

using Evaluate = std::function<void(const Scheduler::SubBatch&)>;

// Evaluates one sub-batch after another on this thread.
std::vector<Scheduler::Failure> run_alone(std::size_t device, std::int64_t batch_size, std::int64_t points,
                                          const Evaluate& evaluate) {
  const std::int64_t size = batch_size > 0 ? batch_size : points;
  for (std::int64_t begin = 0; begin < points; begin += size) {
    const Scheduler::SubBatch part{device, begin, std::min(size, points - begin)};
    try {
      evaluate(part);
    } catch (...) {
      return {{part, std::current_exception()}};
    }
  }
  return {};
}

// Device that this thread serves, and its scheduler's workers.
thread_local struct {
  const void* workers = nullptr;
  std::size_t device = 0;
} self;

}  // namespace

// Threads of all devices, in one process.
class Scheduler::Workers {
 public:
  explicit Workers(const std::vector<Device>& devices) : workers_(devices.size()) {
    for (std::size_t i = 0; i < devices.size(); ++i) workers_[i].device = devices[i];
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      for (Worker& worker : workers_) worker.wake.notify_one();
    }
    for (Worker& worker : workers_)
      if (worker.thread.joinable()) worker.thread.join();
  }

  bool are_of_this_process() const { return born_after_ == locks::forks(); }
  bool include_this_thread() const { return self.workers == this; }

  std::vector<Failure> run(std::int64_t points, const Evaluate& evaluate) {
    Dispatch dispatch{evaluate, platform::Processors::of_this_thread()};
    dispatch.failures.reserve(workers_.size());  // each device fails at most once, so no worker allocates
    std::exception_ptr interruption;
    std::unique_lock lock(mutex_);
    try {
      start();
      hand_out(points, dispatch, lock);
      while (is_under_way(dispatch)) wait(lock);
    } catch (...) {  // no memory, no thread, or the host's wish
      if (!lock.owns_lock()) lock.lock();
      dispatch.ends = dispatch.interrupted = true;
      interruption = std::current_exception();
    }
    freed_.wait(lock, [&] { return !is_under_way(dispatch); });
    if (!are_of_this_process()) throw forked();
    if (interruption) std::rethrow_exception(interruption);
    heap_sort(dispatch.failures, [](const Failure& a, const Failure& b) { return a.of.begin < b.of.begin; });
    return std::move(dispatch.failures);
  }

 private:
  struct Dispatch {
    const Evaluate& evaluate;
    platform::Processors processors;  // of the caller
    std::int64_t under_way = 0;
    bool ends = false;                      // no more sub-batches begin
    std::atomic<bool> interrupted = false;  // those under way end
    std::vector<Failure> failures = {};
  };
  struct Task {
    Dispatch* dispatch;
    SubBatch part;
  };
  struct Worker {
    Device device;
    std::int64_t load = 0;
    std::deque<Task> waiting;
    locks::Condition wake;
    std::thread thread;
  };

  // The child of a fork, in a function of the host, has none of the threads that would end it.
  bool is_under_way(const Dispatch& dispatch) const { return dispatch.under_way != 0 && are_of_this_process(); }

  void start() try {
    for (std::size_t i = 0; i < workers_.size(); ++i)
      if (!workers_[i].thread.joinable()) workers_[i].thread = start_thread([this, i] { live(i); });
  } catch (const std::system_error& error) {
    throw Error(NEML2_ERROR_MEMORY, "scheduler",
                join("The system refuses a thread for each of the ", workers_.size(), " devices of the scheduler (",
                     error.what(), "). Raise the limit of threads (ulimit -u), or use fewer devices."));
  }

  void hand_out(std::int64_t points, Dispatch& dispatch, std::unique_lock<locks::Mutex>& lock) {
    for (std::int64_t begin = 0; begin < points && !dispatch.ends;) {
      Worker* const worker = best_for(points - begin);
      if (!worker) {
        wait(lock);
        continue;
      }
      const std::int64_t count = std::min(worker->device.batch_size, points - begin);
      worker->waiting.push_back({&dispatch, {static_cast<std::size_t>(worker - workers_.data()), begin, count}});
      worker->load += count;
      ++dispatch.under_way;
      begin += count;
      worker->wake.notify_one();
    }
  }

  // Waits until a device is done with a sub-batch, or the host may be asked whether it wants an end.
  void wait(std::unique_lock<locks::Mutex>& lock) {
    if (freed_.wait_for(lock, std::chrono::milliseconds(100))) return;
    lock.unlock();
    interrupt::check();
    lock.lock();
  }

  // Returns the device of the highest priority among those with room for their next sub-batch, or null.
  Worker* best_for(std::int64_t points) {
    Worker* best = nullptr;
    for (Worker& worker : workers_) {
      const std::int64_t room = worker.device.capacity - worker.load;
      if (std::min(worker.device.batch_size, points) > room) continue;
      if (!best || worker.device.priority > best->device.priority) best = &worker;
    }
    return best;
  }

  void live(std::size_t index) {
    self = {this, index};
    Worker& worker = workers_[index];
    auto mine = platform::Processors::of_this_thread();
    std::unique_lock lock(mutex_);
    for (;;) {
      worker.wake.wait(lock, [&] { return ending_ || !worker.waiting.empty(); });
      if (worker.waiting.empty()) return;
      const Task task = worker.waiting.front();
      worker.waiting.pop_front();
      Dispatch& dispatch = *task.dispatch;
      if (!dispatch.ends) {
        lock.unlock();
        dispatch.processors.take_thread(mine);
        std::exception_ptr error = evaluated(task);
        lock.lock();
        if (error) {
          dispatch.ends = true;
          dispatch.failures.push_back({task.part, std::move(error)});
        }
      }
      worker.load -= task.part.count;
      --dispatch.under_way;
      freed_.notify_all();
    }
  }

  static std::exception_ptr evaluated(const Task& task) {
    const DefaultFloatingPoint environment;
    std::exception_ptr error;
    interrupt::end_here_with(&task.dispatch->interrupted);
    try {
      task.dispatch->evaluate(task.part);
    } catch (...) {
      error = std::current_exception();
    }
    interrupt::end_here_with(nullptr);
    return error;
  }

  const std::uint32_t born_after_ = locks::forks();
  locks::Mutex mutex_;      // guards what follows
  locks::Condition freed_;  // a device is done with a sub-batch
  std::vector<Worker> workers_;
  bool ending_ = false;
};

Scheduler::Scheduler(std::vector<Device> devices) : devices_(std::move(devices)) {}

// Workers of the process before a fork are left as they are: their threads, which do not exist here, may hold the lock.
Scheduler::~Scheduler() {
  Workers* const last = workers_.load();
  if (last && last->are_of_this_process()) delete last;
}

Scheduler::Workers& Scheduler::workers() {
  Workers* last = workers_.load();
  while (!last || !last->are_of_this_process()) {
    auto own = std::make_unique<Workers>(devices_);
    if (workers_.compare_exchange_strong(last, own.get())) return *own.release();
  }
  return *last;
}

std::vector<Scheduler::Failure> Scheduler::run(std::int64_t points, const Evaluate& evaluate) {
  if (devices_.size() == 1) return run_alone(0, devices_.front().batch_size, points, evaluate);
  Workers& workers = this->workers();
  if (workers.include_this_thread()) return run_alone(self.device, devices_[self.device].batch_size, points, evaluate);
  return workers.run(points, evaluate);
}

}  // namespace neml2_capi::threads
