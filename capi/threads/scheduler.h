// Scheduler, which hands points to devices in sub-batches. The caller decides what a device does with its points.
//
// A single device is the calling thread. Several have a thread each, which starts with the first dispatch and is joined
// in the end. Any number of threads may dispatch at once, and share the devices. After a fork, the child starts threads
// of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <vector>

namespace neml2_capi::threads {

class Scheduler {
 public:
  struct Device {
    std::int64_t batch_size;  // points of a sub-batch; 0, for a single device: all
    std::int64_t capacity;    // points that it may have at once, at least `batch_size`
    double priority;          // the greatest comes first
  };
  struct SubBatch {
    std::size_t device;
    std::int64_t begin, count;
  };
  struct Failure {
    SubBatch of;
    std::exception_ptr error;
  };

  explicit Scheduler(std::vector<Device> devices);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Evaluates all points in sub-batches, and returns when none is under way. After a failure, which is whatever
  // `evaluate` throws, no more sub-batches begin. Returns the failures in the order of their points. A call from within
  // `evaluate` has the device of that thread alone. Throws Error if the system refuses threads.
  std::vector<Failure> run(std::int64_t points, const std::function<void(const SubBatch&)>& evaluate);

 private:
  class Workers;
  Workers& workers();

  const std::vector<Device> devices_;
  std::atomic<Workers*> workers_ = nullptr;  // of this process, or of its parent before a fork
};

}  // namespace neml2_capi::threads
