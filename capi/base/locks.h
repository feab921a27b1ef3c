// Locks of the library: the only ones there are, so that a fork knows them all; `build.py check` keeps it so.
//
// The child of a fork has one thread. A lock that another thread held would never be freed there, and what it guards could
// be half written. So a fork waits until no other thread holds a Mutex; see
// docs/design/forks.md.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace neml2_capi::locks {

namespace detail {

// The word of a lock that was taken since the last fork, and the thread that forks now: 0 for none. An odd word has
// threads that wait for it.
extern std::atomic<std::uint32_t> held;
extern std::atomic<std::uintptr_t> forking;

// Waits and wakes of the room `platform`. A wait may end early; one with a limit returns false if the time has passed.
void wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value);
bool wait_while(const std::atomic<std::uint32_t>& word, std::uint32_t value, std::chrono::nanoseconds most);
void wake(std::atomic<std::uint32_t>& word, int threads);
std::uintptr_t this_thread();

// Called once by a system that forks, with its function that takes what to do before a fork, and after it in the parent
// and the child.
void watch_forks(int (*at_fork)(void (*)(), void (*)(), void (*)()));

}  // namespace detail

// Returns how many forks lie between the process that loaded the library and this one.
inline std::uint32_t forks() { return detail::held.load(std::memory_order_relaxed) / 2 - 1; }

// Lock that is free in the child of a fork, whatever other thread had it: of what lives in one evaluation, which fails
// there, and of what the child may begin again. A function of the host may run under it.
class FreedMutex {
 public:
  constexpr FreedMutex() = default;
  FreedMutex(const FreedMutex&) = delete;
  FreedMutex& operator=(const FreedMutex&) = delete;

  void lock() {
    if (!take()) wait();
  }
  void unlock() {
    if (word_.exchange(0, std::memory_order_release) % 2 != 0) detail::wake(word_, 1);
  }

 protected:
  explicit constexpr FreedMutex(std::uint32_t word) : word_(word) {}

  bool take() {
    std::uint32_t free = 0;
    return word_.compare_exchange_strong(free, detail::held.load(std::memory_order_relaxed));
  }
  void wait();

  std::atomic<std::uint32_t> word_ = 0;
};

// Lock of all else. No function of the host may run under it: it could wait for the thread that forks.
class Mutex : FreedMutex {
 public:
  constexpr Mutex() : FreedMutex(unlisted) {}
  ~Mutex();

  void lock() {
    if (!take()) lock_slowly();
    owner_.store(detail::this_thread(), std::memory_order_relaxed);
    // After the exchange, in the one order of all: a fork that found the lock free is seen here.
    if (detail::forking.load() != 0) [[unlikely]]
      let_fork();
  }
  void unlock() {
    owner_.store(0, std::memory_order_relaxed);
    FreedMutex::unlock();
  }

 private:
  friend class Registry;
  static constexpr std::uint32_t unlisted = 1;  // before the first use

  void lock_slowly();
  void let_fork();

  std::atomic<std::uintptr_t> owner_ = 0;
  Mutex *previous_ = nullptr, *next_ = nullptr;  // of all that were used
};

// Condition that threads wait for under a lock of either kind. The child of a fork has none that waits.
class Condition {
 public:
  template <class Lock>
  void wait(std::unique_lock<Lock>& lock) {
    wait(lock, [&](std::uint32_t now) { return detail::wait_while(count_, now), true; });
  }
  template <class Lock, class Predicate>
  requires requires(Predicate is_met) { bool(is_met()); }
  void wait(std::unique_lock<Lock>& lock, Predicate is_met) {
    while (!is_met()) wait(lock);
  }
  // Returns false if the time has passed.
  template <class Lock>
  bool wait_for(std::unique_lock<Lock>& lock, std::chrono::nanoseconds most) {
    return wait(lock, [&](std::uint32_t now) { return detail::wait_while(count_, now, most); });
  }

  void notify_one() { notify(1); }
  void notify_all() { notify(INT32_MAX); }

 private:
  template <class Lock, class Sleep>
  requires requires(Sleep sleep) { bool(sleep(std::uint32_t{})); }
  bool wait(std::unique_lock<Lock>& lock, Sleep sleep) {
    waiting_.fetch_add(1);
    const std::uint32_t now = count_.load();
    lock.unlock();
    const bool woken = sleep(now);
    lock.lock();
    waiting_.fetch_sub(1);
    return woken;
  }
  void notify(int threads) {
    count_.fetch_add(1);
    if (waiting_.load() != 0) detail::wake(count_, threads);
  }

  std::atomic<std::uint32_t> count_ = 0, waiting_ = 0;
};

// Value that is made at its first use, and never destroyed: threads may use it while the process ends. A static variable
// of a function has a lock of the compiler's, which a fork does not know.
template <class Value>
class Lazy {
 public:
  constexpr Lazy() = default;
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;

  // Returns null before the first use.
  Value* made() const { return made_.load(std::memory_order_acquire); }
  Value& get() {
    return get([] { return Value(); });
  }
  template <class Make>
  Value& get(Make&& make) {
    if (Value* const made = made_.load(std::memory_order_acquire)) return *made;
    const std::lock_guard lock(mutex_);
    if (!made_.load(std::memory_order_relaxed)) made_.store(new Value(make()), std::memory_order_release);
    return *made_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<Value*> made_ = nullptr;
  Mutex mutex_;
};

// Function that the child of a fork calls before all else, on its only thread, when all locks are free: a static object.
class InChild {
 public:
  explicit InChild(void (*run)());
  InChild(const InChild&) = delete;
  InChild& operator=(const InChild&) = delete;

 private:
  friend class Registry;
  void (*run_)();
  InChild* next_;
};

}  // namespace neml2_capi::locks
