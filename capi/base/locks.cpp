#include "capi/base/locks.h"

#include <climits>
#include <thread>

namespace neml2_capi::locks {

constinit std::atomic<std::uint32_t> detail::held = 2;
constinit std::atomic<std::uintptr_t> detail::forking = 0;

namespace {

using detail::forking;
using detail::held;
using detail::this_thread;

constinit std::atomic<std::uint32_t> under_way = 0;  // a fork: 1
constinit FreedMutex turn;                           // of the threads that fork
constinit FreedMutex guard;                          // of the list of locks
constinit InChild* first_in_child = nullptr;

}  // namespace

// Takes the word with the mark of those that wait, since there may be others. A word of an earlier process is free.
void FreedMutex::wait() {
  const std::uint32_t mine = held.load(std::memory_order_relaxed);
  for (;;) {
    std::uint32_t word = word_.load(std::memory_order_relaxed);
    if (word / 2 != mine / 2) {
      if (word_.compare_exchange_weak(word, mine + 1)) return;
    } else if (word % 2 != 0 || word_.compare_exchange_weak(word, word + 1, std::memory_order_relaxed)) {
      detail::wait_while(word_, mine + 1);
    }
  }
}

// All locks that were used, and what a fork does about them.
class Registry {
 public:
  static void add(Mutex& mutex) {
    const std::lock_guard lock(guard);
    if (mutex.word_.load(std::memory_order_relaxed) != Mutex::unlisted) return;
    mutex.next_ = first;
    if (first) first->previous_ = &mutex;
    first = &mutex;
    mutex.word_.store(0, std::memory_order_release);
  }

  static void remove(Mutex& mutex) {
    const std::lock_guard lock(guard);
    if (mutex.word_.load(std::memory_order_relaxed) == Mutex::unlisted) return;
    if (mutex.next_) mutex.next_->previous_ = mutex.previous_;
    (mutex.previous_ ? mutex.previous_->next_ : first) = mutex.next_;
    mutex.previous_ = mutex.next_ = nullptr;
    mutex.word_.store(Mutex::unlisted, std::memory_order_relaxed);  // used once more, while the process ends
  }

  // Tells whether this thread holds a lock beside this one.
  static bool holds_beside(const Mutex& mutex) {
    const std::lock_guard lock(guard);
    for (const Mutex* each = first; each; each = each->next_)
      if (each != &mutex && each->owner_.load(std::memory_order_relaxed) == this_thread()) return true;
    return false;
  }

  // Lets the threads that hold locks come to an end, and keeps the others from beginning. The list is guarded until the
  // fork is over.
  static void before_fork() {
    turn.lock();
    under_way.store(1);
    forking.store(this_thread());
    for (;;) {
      guard.lock();
      if (are_free()) return;
      guard.unlock();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

  static void after_fork_in_parent() {
    guard.unlock();
    end_fork();
  }

  // Another thread that owns a word was about to wait for the fork. This thread keeps its own words.
  static void after_fork_in_child() {
    held.fetch_add(2);
    for (Mutex* each = first; each; each = each->next_) {
      const bool is_own = each->owner_.load(std::memory_order_relaxed) == this_thread();
      each->word_.store(is_own ? held.load() : 0);
      if (!is_own) each->owner_.store(0);
    }
    guard.unlock();
    end_fork();
    for (const InChild* each = first_in_child; each; each = each->next_) each->run_();
  }

  static void add(InChild& function) { function.next_ = std::exchange(first_in_child, &function); }

 private:
  static bool are_free() {
    for (const Mutex* each = first; each; each = each->next_)
      if (each->word_.load() != 0 && each->owner_.load(std::memory_order_relaxed) != this_thread()) return false;
    return true;
  }

  static void end_fork() {
    forking.store(0);
    under_way.store(0);
    detail::wake(under_way, INT_MAX);
    turn.unlock();
  }

  static inline constinit Mutex* first = nullptr;
};

Mutex::~Mutex() {
  if (word_.load(std::memory_order_relaxed) != unlisted) Registry::remove(*this);
}

void Mutex::lock_slowly() {
  if (word_.load(std::memory_order_acquire) == unlisted) Registry::add(*this);
  if (!take()) wait();
}

// Gives the lock back until the fork is over. A thread that holds another one goes on: the fork waits for that.
void Mutex::let_fork() {
  for (;;) {
    const std::uintptr_t by = forking.load();
    if (by == 0 || by == this_thread() || Registry::holds_beside(*this)) return;
    unlock();
    detail::wait_while(under_way, 1);
    if (!take()) lock_slowly();
    owner_.store(this_thread(), std::memory_order_relaxed);
  }
}

InChild::InChild(void (*run)()) : run_(run) { Registry::add(*this); }

void detail::watch_forks(int (*at_fork)(void (*)(), void (*)(), void (*)())) {
  at_fork(Registry::before_fork, Registry::after_fork_in_parent, Registry::after_fork_in_child);
}

}  // namespace neml2_capi::locks
