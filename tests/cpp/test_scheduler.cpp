// Schedulers: which device is given which points, and what becomes of failures, of several callers and of a fork.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/threads/scheduler.h"

namespace {

using neml2_capi::threads::Scheduler;
using SubBatch = Scheduler::SubBatch;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// How often each point was evaluated.
class Visits {
 public:
  explicit Visits(std::int64_t points) : count_(static_cast<std::size_t>(points)) {}
  void add(const SubBatch& of) {
    for (std::int64_t p = of.begin; p < of.begin + of.count; ++p) ++count_[static_cast<std::size_t>(p)];
  }
  bool once_each() const {
    for (const auto& each : count_)
      if (each != 1) return false;
    return true;
  }

 private:
  std::vector<std::atomic<int>> count_;
};

// A gate that threads wait at until it is opened, for ten seconds at most.
class Gate {
 public:
  void open() { open_ = true; }
  void wait() const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!open_) {
      expect(std::chrono::steady_clock::now() < end, "a gate is opened in time");
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<bool> open_ = false;
};

void one_device_is_the_calling_thread() {
  const auto me = std::this_thread::get_id();
  for (const std::int64_t size : {0, 1, 3, 10, 11}) {
    Scheduler scheduler({{size, 2 * size, 1.0}});
    Visits visits(10);
    std::int64_t next = 0;
    const auto failures = scheduler.run(10, [&](const SubBatch& of) {
      expect(std::this_thread::get_id() == me, "one device has no thread of its own");
      expect(of.begin == next && (size == 0 || of.count <= size), "sub-batches follow one another");
      next += of.count;
      visits.add(of);
    });
    expect(failures.empty() && visits.once_each(), "one device evaluates each point once");
  }
  Scheduler scheduler({{4, 8, 1.0}});
  scheduler.run(0, [](const SubBatch&) { expect(false, "no points, no sub-batch"); });
}

void every_point_goes_to_one_device() {
  Scheduler scheduler({{3, 7, 1.0}, {5, 10, 1.0}, {1, 1, 2.0}});
  for (std::int64_t points = 0; points < 60; ++points) {
    Visits visits(points);
    const auto failures = scheduler.run(points, [&](const SubBatch& of) {
      const std::int64_t sizes[] = {3, 5, 1};
      expect(of.count >= 1 && of.count <= sizes[of.device], "a sub-batch is of the size of its device");
      visits.add(of);
    });
    expect(failures.empty() && visits.once_each(), "several devices evaluate each point once");
  }
}

// While device 0, which has priority, is full, device 1 is given points; and never more than the capacity is loaded.
void priority_goes_first_and_capacity_holds() {
  Scheduler scheduler({{10, 20, 2.0}, {10, 10, 1.0}});
  Gate second_began;
  std::mutex mutex;
  std::vector<SubBatch> seen;
  scheduler.run(30, [&](const SubBatch& of) {
    {
      const std::lock_guard lock(mutex);
      seen.push_back(of);
    }
    if (of.device == 1)
      second_began.open();
    else
      second_began.wait();
  });
  expect(seen.size() == 3, "30 points are three sub-batches of 10");
  for (const SubBatch& of : seen)
    expect((of.device == 0) == (of.begin < 20), "the first two, its capacity, go to the device of greater priority");
}

void equal_priorities_go_by_order() {
  Scheduler scheduler({{4, 4, 1.0}, {4, 4, 1.0}});
  scheduler.run(4, [](const SubBatch& of) { expect(of.device == 0, "the first device comes first"); });
}

// The last sub-batch is small: it fits beside what is there already.
void a_small_rest_fits() {
  Scheduler scheduler({{10, 13, 2.0}, {10, 10, 1.0}});
  Gate done;
  std::atomic<int> on_first = 0;
  scheduler.run(13, [&](const SubBatch& of) {
    if (of.device == 0) ++on_first;
  });
  expect(on_first == 2, "a capacity of 13 takes 10 points and 3 more");
}

void devices_work_side_by_side() {
  Scheduler scheduler({{1, 1, 1.0}, {1, 1, 1.0}, {1, 1, 1.0}});
  std::atomic<int> present = 0;
  Gate all;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  scheduler.run(3, [&](const SubBatch&) {
    {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    }
    if (++present == 3) all.open();
    all.wait();
  });
  expect(threads.size() == 3, "each device has a thread of its own");
  expect(threads.count(std::this_thread::get_id()) == 0, "which is not the caller's");
}

std::string reason_of(const Scheduler::Failure& failure) {
  try {
    std::rethrow_exception(failure.error);
  } catch (const std::exception& error) {
    return error.what();
  }
}

void nothing_begins_after_a_failure() {
  Scheduler alone({{1, 2, 1.0}});
  int begun = 0;
  auto failures = alone.run(100, [&](const SubBatch& of) {
    ++begun;
    if (of.begin == 3) throw std::runtime_error("three");
  });
  expect(begun == 4 && failures.size() == 1 && reason_of(failures[0]) == "three", "one device stops at its failure");

  Scheduler several({{1, 3, 1.0}, {1, 3, 1.0}});
  std::atomic<int> evaluated = 0;
  // More than the other device evaluates while a slow machine keeps the failed one waiting.
  constexpr std::int64_t points = 100'000'000;
  failures = several.run(points, [&](const SubBatch& of) {
    ++evaluated;
    if (of.begin == 5) throw std::runtime_error("five");
  });
  expect(failures.size() == 1 && failures[0].of.begin == 5 && reason_of(failures[0]) == "five", "one failure is told");
  expect(evaluated < points, "the others are not begun");

  Visits visits(100);
  expect(several.run(100, [&](const SubBatch& of) { visits.add(of); }).empty() && visits.once_each(),
         "the devices are as good as before");
}

void failures_come_in_the_order_of_their_points() {
  Scheduler scheduler({{1, 1, 1.0}, {1, 1, 1.0}, {1, 1, 1.0}});
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::atomic<int> present = 0;
    Gate all;
    const auto failures = scheduler.run(30, [&](const SubBatch& of) {
      if (++present == 3) all.open();
      all.wait();
      throw std::runtime_error(std::to_string(of.begin));
    });
    expect(failures.size() == 3, "what fails side by side is told of each");
    for (std::size_t i = 0; i < 3; ++i)
      expect(failures[i].of.begin == static_cast<std::int64_t>(i) && reason_of(failures[i]) == std::to_string(i),
             "failures are in the order of their points");
  }
}

void callers_share_the_devices() {
  Scheduler scheduler({{7, 14, 1.0}, {3, 6, 2.0}});
  std::atomic<std::int64_t> load[2] = {};
  const auto call = [&](int number) {
    for (int repeat = 0; repeat < 300; ++repeat) {
      const std::int64_t points = (number * 31 + repeat * 7) % 90;
      Visits visits(points);
      const bool fails = repeat % 5 == number % 5 && points > 20;
      const auto failures = scheduler.run(points, [&](const SubBatch& of) {
        expect(load[of.device].fetch_add(1) == 0, "a device evaluates one sub-batch at a time");
        visits.add(of);
        load[of.device].fetch_sub(1);
        if (fails && of.begin > 10) throw std::runtime_error("as wanted");
      });
      expect(failures.empty() == !fails, "a failure is told to its own caller");
      if (!fails) expect(visits.once_each(), "each caller has all of its points evaluated");
    }
  };
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) threads.emplace_back(call, number);
  for (std::thread& thread : threads) thread.join();
}

// What is evaluated evaluates with the same scheduler: its device would wait for itself.
void a_dispatch_within_a_dispatch_ends() {
  Scheduler scheduler({{2, 2, 1.0}, {3, 3, 1.0}});
  Visits visits(40);
  std::atomic<int> inner = 0;
  scheduler.run(40, [&](const SubBatch& of) {
    visits.add(of);
    const auto here = std::this_thread::get_id();
    scheduler.run(10, [&](const SubBatch& within) {
      expect(within.device == of.device && std::this_thread::get_id() == here, "it stays on its device");
      inner += static_cast<int>(within.count);
    });
  });
  expect(visits.once_each() && inner % 10 == 0 && inner >= 10 * 40 / 3, "all points of both are evaluated");
}

void devices_leave_the_host_alone() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof(mine), &mine);
  std::fesetround(FE_UPWARD);
  Scheduler scheduler({{1, 1, 1.0}, {1, 1, 1.0}});
  for (int repeat = 0; repeat < 3; ++repeat)
    scheduler.run(20, [&](const SubBatch&) {
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      expect(sigismember(&blocked, SIGINT) == 1, "signals are for the host's threads");
      expect(std::fegetround() == FE_TONEAREST, "devices compute in the default environment");
      cpu_set_t here;
      CPU_ZERO(&here);
      sched_getaffinity(0, sizeof(here), &here);
      expect(CPU_EQUAL(&here, &mine), "devices run where the caller may");
      std::fesetround(FE_DOWNWARD);
    });
  std::fesetround(FE_TONEAREST);
}

void a_forked_child_has_devices_of_its_own() {
  Scheduler scheduler({{2, 4, 1.0}, {3, 6, 1.0}});
  const auto works = [&scheduler] {
    Visits visits(50);
    return scheduler.run(50, [&](const SubBatch& of) { visits.add(of); }).empty() && visits.once_each();
  };
  expect(works(), "the parent dispatches");
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) expect(works(), "the parent dispatches while it forks");
  });
  for (int child = 0; child < 20; ++child) {
    const pid_t process = fork();
    if (process == 0) {
      alarm(20);
      _exit(works() && works() ? 0 : 1);
    }
    int status = 0;
    waitpid(process, &status, 0);
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child dispatches");
  }
  stop = true;
  busy.join();
  expect(works(), "and so does the parent after it");
}

// What long work does: it asks again and again whether the host wishes an end.
void what_is_under_way_ends_with_an_interruption() {
  std::atomic<int> begun = 0, ended = 0;
  neml2_capi::interrupt::set([](void* context) { return static_cast<std::atomic<int>*>(context)->load() == 2 ? 1 : 0; },
                             &begun);
  Scheduler scheduler({{1, 1, 1.0}, {1, 1, 1.0}});
  std::int32_t status = NEML2_OK;
  try {
    scheduler.run(10, [&](const SubBatch&) {
      ++begun;
      struct End {
        std::atomic<int>& of;
        ~End() { ++of; }
      } end{ended};
      for (;;) neml2_capi::interrupt::check();
    });
  } catch (const neml2_capi::Error& error) {
    status = error.status();
  }
  neml2_capi::interrupt::set(nullptr, nullptr);
  expect(status == NEML2_ERROR_INTERRUPTED, "the host ends the evaluation");
  expect(begun == 2 && ended == 2, "both sub-batches that were under way ended, and no other began");
}

int threads_of_this_process() {
  int count = 0;
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  while (file && std::fgets(line, sizeof line, file)) std::sscanf(line, "Threads: %d", &count);
  if (file) std::fclose(file);
  return count;
}

void threads_end_with_the_scheduler() {
  const int before = threads_of_this_process();
  {
    Scheduler scheduler({{1, 1, 1.0}, {1, 1, 1.0}});
    expect(threads_of_this_process() == before, "no thread is started before the first dispatch");
    scheduler.run(2, [](const SubBatch&) {});
    expect(threads_of_this_process() == before + 2, "each device has one thread");
  }
  // The kernel takes a moment to forget a thread that was joined.
  for (int i = 0; i < 1000 && threads_of_this_process() != before; ++i) usleep(1000);
  expect(threads_of_this_process() == before, "they end with the scheduler");
}

}  // namespace

int main() {
  one_device_is_the_calling_thread();
  every_point_goes_to_one_device();
  priority_goes_first_and_capacity_holds();
  equal_priorities_go_by_order();
  a_small_rest_fits();
  devices_work_side_by_side();
  nothing_begins_after_a_failure();
  failures_come_in_the_order_of_their_points();
  callers_share_the_devices();
  a_dispatch_within_a_dispatch_ends();
  devices_leave_the_host_alone();
  what_is_under_way_ends_with_an_interruption();
  threads_end_with_the_scheduler();
  a_forked_child_has_devices_of_its_own();
  return 0;
}
