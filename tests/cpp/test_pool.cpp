// The worker threads: what they do, and what they leave alone.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <thread>

#include "capi/threads/pool.h"

namespace {

using neml2_capi::threads::Job;
using neml2_capi::threads::run;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::_Exit(1);
}

// Waits until `wanted` threads work at the same time, or for a second.
class Meeting : public Job {
 public:
  explicit Meeting(int wanted) : wanted_(wanted) {}

  void work() override {
    {
      const std::lock_guard lock(mutex_);
      threads_.insert(std::this_thread::get_id());
    }
    ++present_;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (present_ < wanted_ && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    look();
  }
  int threads() const { return static_cast<int>(threads_.size()); }

 protected:
  virtual void look() {}

 private:
  const int wanted_;
  std::atomic<int> present_ = 0;
  std::mutex mutex_;
  std::set<std::thread::id> threads_;
};

void as_many_threads_as_asked_for() {
  for (int wanted : {1, 2, 4, 3}) {
    Meeting meeting(wanted);
    run(meeting, wanted - 1);
    expect(meeting.threads() == wanted, "the caller and its helpers work at the same time");
  }
}

// A job within a job: the pool is taken.
void a_second_caller_works_alone() {
  struct Nested : Meeting {
    using Meeting::Meeting;
    void look() override {
      Meeting inner(1);
      run(inner, 3);
      expect(inner.threads() == 1, "who comes meanwhile works alone");
    }
  } outer(2);
  run(outer, 1);
  expect(outer.threads() == 2, "the first caller has the pool");
}

void workers_have_an_environment_of_their_own() {
  struct Look : Meeting {
    using Meeting::Meeting;
    const std::thread::id caller = std::this_thread::get_id();
    void look() override {
      if (std::this_thread::get_id() == caller) return;
      expect(std::fegetround() == FE_TONEAREST, "workers round to nearest");
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      expect(sigismember(&blocked, SIGTERM) == 1, "signals are for the threads of the host");
      cpu_set_t processors;
      sched_getaffinity(0, sizeof processors, &processors);
      expect(CPU_COUNT(&processors) == 1, "workers run where the caller may");
    }
  } job(2);
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  std::fesetround(FE_UPWARD);
  run(job, 1);
  std::fesetround(FE_TONEAREST);
  sched_setaffinity(0, sizeof all, &all);
  expect(job.threads() == 2, "there was a worker");
}

void a_child_process_has_workers_of_its_own() {
  const pid_t child = fork();
  if (child == 0) {
    Meeting meeting(2);
    run(meeting, 1);
    std::_Exit(meeting.threads() == 2 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "after a fork the child has workers");
}

void jobs_follow_each_other_without_loss() {
  struct Count : Job {
    std::atomic<int> left = 1000, done = 0;
    void work() override {
      while (left-- > 0) ++done;
    }
  };
  for (int i = 0; i < 2000; ++i) {
    Count count;
    run(count, 3);
    expect(count.done == 1000, "all parts are done when run() returns");
  }
}

}  // namespace

int main() {
  as_many_threads_as_asked_for();
  a_second_caller_works_alone();
  workers_have_an_environment_of_their_own();
  a_child_process_has_workers_of_its_own();
  jobs_follow_each_other_without_loss();
  return 0;
}
