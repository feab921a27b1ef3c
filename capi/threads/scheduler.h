// Points handed out to devices in sub-batches. What a device is, and what it does with the points, is the caller's affair.
//
// One device is the calling thread. Of several, each has a thread of its own, which is started with the first dispatch and
// joined in the end; any number of threads may dispatch at once, and share the devices. After a fork, the child starts
// threads of its own.
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
    std::int64_t batch_size;  // the points of a sub-batch; 0, for the only device: all
    std::int64_t capacity;    // the points that it may be given at once, at least `batch_size`
    double priority;          // the greatest first
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

  // Have every point evaluated, in sub-batches, and return when nothing is under way any more. After a failure, which
  // is what `evaluate` throws, nothing more is begun. Returns the failures in the order of their points. Who is called
  // from a device's thread, by what it evaluates, has that device alone. Throws Error where the system refuses threads.
  std::vector<Failure> run(std::int64_t points, const std::function<void(const SubBatch&)>& evaluate);

 private:
  class Workers;
  Workers& workers();

  const std::vector<Device> devices_;
  std::atomic<Workers*> workers_ = nullptr;  // of this process, or of one that forked
};

}  // namespace neml2_capi::threads
