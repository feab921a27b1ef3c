// Memory for tensors and workspace: blocks that were freed wait for the next request of their size, so that a repeated
// evaluation calls neither malloc nor free, and touches no fresh page.
//
// Every block is an allocation of its own, which may outlive the thread that made it and be freed by any other. Small
// ones wait in a cache of the thread that frees them; large ones, whose pages are dear, in one for the process. Both
// hold a limited number of bytes.
//
// libneml2_capi has the caches (memory.cpp). The built-in provider, a library of its own, is told to use them.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace neml2_capi::memory {

constexpr std::size_t alignment = 64;  // of every block: a cache line, and any vector

// What a request is rounded up to: four sizes from one power of two to the next, counted from 0.
struct SizeClass {
  std::size_t size;
  std::size_t number;

  // Of a request for one byte or more.
  static constexpr SizeClass of(std::size_t bytes) {
    const std::size_t last = bytes - 1;
    if (last < 4 * alignment) return {(last / alignment + 1) * alignment, last / alignment};
    const int power = __builtin_clzll(last) ^ 63;      // 2^power <= last < 2^(power + 1)
    const std::size_t quarters = last >> (power - 2);  // 4 to 7
    return {(quarters + 1) << (power - 2), 4 * static_cast<std::size_t>(power - 8) + quarters};
  }
};

// The blocks that wait in one thread.
class ThreadCache {
 public:
  static constexpr std::size_t largest = std::size_t{1} << 20;

  // While a package runs that has run before: what it makes, no other thread can reach. See Storage.
  bool in_confined_run = false;

  ThreadCache() = default;
  ~ThreadCache();
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // A block; null where none waits.
  void* take(SizeClass wanted) noexcept {
    Waiting*& first = first_[wanted.number];
    if (!first) [[unlikely]]
      return nullptr;
    room_ += static_cast<std::ptrdiff_t>(wanted.size);
    return std::exchange(first, first->next);
  }
  // False where enough wait already.
  bool keep(void* block, SizeClass given) noexcept {
    room_ -= static_cast<std::ptrdiff_t>(given.size);
    if (room_ < 0) [[unlikely]] {
      room_ += static_cast<std::ptrdiff_t>(given.size);
      return false;
    }
    Waiting*& first = first_[given.number];
    first = new (block) Waiting{first};
    return true;
  }

 private:
  // A block that waits holds the address of the next one.
  struct Waiting {
    Waiting* next;
  };

  std::array<Waiting*, SizeClass::of(largest).number + 1> first_{};
  std::ptrdiff_t room_ = std::ptrdiff_t{64} << 20;  // bytes that may come to those that wait
};

// That of this thread, in each of the two libraries; null before its first use and after its end. It is read at every
// request, so it stands in the static block of thread-local storage.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadCache* thread_cache;

// Where no block waits in the thread, or enough do; `size` is that of a class.
void* allocate_elsewhere(std::size_t size);
void release_elsewhere(void* block, std::size_t size) noexcept;

// The address sanitizer must see every block come and go.
#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

// A block that waits; null where none does.
inline void* take_waiting(SizeClass wanted) noexcept {
  return caching && wanted.size <= ThreadCache::largest && thread_cache ? thread_cache->take(wanted) : nullptr;
}

// Not initialised. Throws std::bad_alloc.
inline void* allocate(SizeClass wanted) {
  void* block = take_waiting(wanted);
  return block ? block : allocate_elsewhere(wanted.size);
}
inline void* allocate(std::size_t bytes) { return allocate(SizeClass::of(bytes)); }

inline void release(void* block, SizeClass given) noexcept {
  if (caching && given.size <= ThreadCache::largest && thread_cache && thread_cache->keep(block, given)) return;
  release_elsewhere(block, given.size);
}
// `bytes` is what the block was allocated with.
inline void release(void* block, std::size_t bytes) noexcept { release(block, SizeClass::of(bytes)); }

// How the provider reaches the caches: as allocate_elsewhere(), and `user`, its thread_cache, is set.
using Allocate = void* (*)(ThreadCache*& user, std::size_t size);
using Release = void (*)(ThreadCache*& user, void* block, std::size_t size) noexcept;
void* allocate_for(ThreadCache*& user, std::size_t size);
void release_for(ThreadCache*& user, void* block, std::size_t size) noexcept;

template <class T>
struct Allocator {
  using value_type = T;

  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}

  T* allocate(std::size_t n) { return static_cast<T*>(memory::allocate(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { memory::release(block, n * sizeof(T)); }

  friend bool operator==(const Allocator&, const Allocator&) noexcept { return true; }
};

}  // namespace neml2_capi::memory

namespace neml2_capi {

template <class T>
using Vector = std::vector<T, memory::Allocator<T>>;

}  // namespace neml2_capi
