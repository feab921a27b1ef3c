// Locks of the library, in the child of a fork that other threads hold them at.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using namespace std::chrono_literals;
using locks::Condition;
using locks::FreedMutex;
using locks::Lazy;
using locks::Mutex;

namespace {

// A child that waits for ever is ended by a signal.
void in_child(const char* what, const std::function<bool()>& is_right) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    std::_Exit(is_right() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, what);
}

// Runs `work` on a thread, again and again, as long as the scope lasts, and at least once before it begins.
class Meanwhile {
 public:
  explicit Meanwhile(const std::function<void()>& work)
      : thread_([this, work] {
          while (!stop_) work(), begun_ = true;
        }) {
    while (!begun_) std::this_thread::yield();
  }
  ~Meanwhile() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false, begun_ = false;
  std::thread thread_;
};

void a_child_finds_free_and_whole_what_another_thread_was_writing() {
  static Mutex mutex;
  static volatile int first = 0, second = 0;
  const auto write = [] {
    const std::lock_guard lock(mutex);
    first = first + 1;
    std::this_thread::sleep_for(1ms);
    second = second + 1;
  };
  const Meanwhile one(write), two(write), three(write);
  for (int i = 0; i < 20; ++i)
    in_child("a lock that another thread held", [] {
      const std::lock_guard lock(mutex);
      return first == second;
    });
}

void a_fork_waits_for_a_thread_that_takes_one_lock_under_another() {
  static Mutex outer, inner;
  const Meanwhile one([] {
    const std::lock_guard lock(outer);
    std::this_thread::sleep_for(100us);
    const std::lock_guard another(inner);
  });
  const Meanwhile two([] { const std::lock_guard lock(inner); });
  for (int i = 0; i < 50; ++i)
    in_child("two locks", [] {
      const std::lock_guard lock(outer);
      const std::lock_guard another(inner);
      return true;
    });
}

void a_lock_under_which_the_host_may_run_is_free_in_the_child() {
  static FreedMutex mutex;
  std::atomic<bool> is_held = false, may_end = false;
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    is_held = true;
    while (!may_end) std::this_thread::yield();
  });
  std::thread waiter([&] { const std::lock_guard lock(mutex); });
  while (!is_held) std::this_thread::yield();
  in_child("a lock that is held for ever", [] {
    const std::lock_guard lock(mutex);
    return true;
  });
  may_end = true;
  holder.join();
  waiter.join();
}

void a_thread_that_forks_keeps_the_lock_that_it_has() {
  static Mutex mutex;
  std::unique_lock lock(mutex);
  in_child("a lock of one's own", [&] {
    std::atomic<bool> entered = false;
    std::thread other([&] {
      const std::lock_guard own(mutex);
      entered = true;
    });
    std::this_thread::sleep_for(10ms);
    const bool was_alone = !entered;
    lock.unlock();
    other.join();
    return was_alone && entered;
  });
}

void what_another_thread_begins_to_make_is_made_in_the_child() {
  static Lazy<int> number;
  std::atomic<bool> begins = false;
  std::thread maker([&] {
    number.get([&] {
      begins = true;
      std::this_thread::sleep_for(50ms);
      return 7;
    });
  });
  while (!begins) std::this_thread::yield();
  in_child("a value that is made once", [] { return number.get([] { return 7; }) == 7; });
  maker.join();
}

void what_throws_is_made_the_next_time() {
  static Lazy<int> number;
  try {
    number.get([]() -> int { throw Error(NEML2_ERROR_FILE, "", "not yet"); });
    expect(false, "an exception");
  } catch (const Error&) {
  }
  expect(!number.made() && number.get([] { return 3; }) == 3, "made at the second try");
}

void threads_of_a_child_wake_each_other_although_those_of_the_parent_wait() {
  static Mutex mutex;
  static Condition came;
  static bool is_there = false;
  std::thread waiter([] {
    std::unique_lock lock(mutex);
    came.wait(lock, [] { return is_there; });
  });
  std::this_thread::sleep_for(10ms);
  const auto give = [] {
    const std::lock_guard lock(mutex);
    is_there = true;
    came.notify_all();
  };
  in_child("a condition", [&] {
    std::thread other([] {
      std::unique_lock lock(mutex);
      came.wait(lock, [] { return is_there; });
    });
    std::this_thread::sleep_for(10ms);
    give();
    other.join();
    return true;
  });
  give();
  waiter.join();
}

void waiting_for_a_time_ends_with_it() {
  Mutex mutex;
  Condition never;
  std::unique_lock lock(mutex);
  expect(!never.wait_for(lock, 1ms) && lock.owns_lock(), "nobody came");
}

void threads_exclude_each_other_while_others_fork() {
  static Mutex mutex;
  static long count = 0;
  std::atomic<bool> stop = false;
  std::thread forker([&] {
    while (!stop) in_child("a fork beside others", [] { return true; });
  });
  std::thread threads[3];
  for (auto& thread : threads)
    thread = std::thread([] {
      for (int i = 0; i < 20000; ++i) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  for (int i = 0; i < 20; ++i) in_child("two threads that fork", [] { return true; });
  for (auto& thread : threads) thread.join();
  stop = true;
  forker.join();
  expect(count == 60000, join("counted ", count));
}

}  // namespace

int main() {
  a_child_finds_free_and_whole_what_another_thread_was_writing();
  a_fork_waits_for_a_thread_that_takes_one_lock_under_another();
  a_lock_under_which_the_host_may_run_is_free_in_the_child();
  a_thread_that_forks_keeps_the_lock_that_it_has();
  what_another_thread_begins_to_make_is_made_in_the_child();
  what_throws_is_made_the_next_time();
  threads_of_a_child_wake_each_other_although_those_of_the_parent_wait();
  waiting_for_a_time_ends_with_it();
  threads_exclude_each_other_while_others_fork();
  return 0;
}
