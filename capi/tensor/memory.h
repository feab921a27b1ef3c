// Memory for tensors and workspace. A freed block waits for the next request of its size, so that a repeated evaluation
// calls neither malloc nor free, and touches no fresh page.
//
// Every block is an allocation of its own: it may outlive the thread that made it, and any other thread may free it.
// Small blocks wait in a cache of the thread that frees them. Large ones, whose pages are dear, wait in a cache of the
// process. Both caches hold a limited number of bytes.
//
// libneml2_capi has the caches (memory.cpp). It tells the built-in provider, a library of its own, to use them.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace neml2_capi::memory {

constexpr std::size_t alignment = 64;  // of every block: a cache line, and any vector

// Size that a request is rounded up to: four from one power of two to the next, numbered from 0.
struct SizeClass {
  std::size_t size;
  std::size_t number;

  // Returns the class of a request for one byte or more.
  static constexpr SizeClass of(std::size_t bytes) {
    const std::size_t last = bytes - 1;
    if (last < 4 * alignment) return {(last / alignment + 1) * alignment, last / alignment};
    const int power = __builtin_clzll(last) ^ 63;      // 2^power <= last < 2^(power + 1)
    const std::size_t quarters = last >> (power - 2);  // 4 to 7
    return {(quarters + 1) << (power - 2), 4 * static_cast<std::size_t>(power - 8) + quarters};
  }
};

// Blocks that wait in one thread.
class ThreadCache {
 public:
  static constexpr std::size_t largest = std::size_t{1} << 20;

  // True while a package runs that has run before: no other thread can reach the tensors that it makes. See Storage.
  bool in_confined_run = false;

  ThreadCache() = default;
  ~ThreadCache();
  ThreadCache(const ThreadCache&) = delete;
  ThreadCache& operator=(const ThreadCache&) = delete;

  // Returns a block, or null if none waits.
  void* take(SizeClass wanted) noexcept {
    Waiting*& first = first_[wanted.number];
    if (!first) [[unlikely]]
      return nullptr;
    room_ += static_cast<std::ptrdiff_t>(wanted.size);
    return std::exchange(first, first->next);
  }
  // Keeps a block. Returns false if enough blocks wait already.
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
  // Address of the next block, which a block that waits holds.
  struct Waiting {
    Waiting* next;
  };

  std::array<Waiting*, SizeClass::of(largest).number + 1> first_{};
  std::ptrdiff_t room_ = std::ptrdiff_t{64} << 20;  // bytes that may come to those that wait
};

// Cache of this thread; each of the two libraries has this variable. It is null before the first use and after the
// thread's end. Its model is the compiler's, by a call: initial-exec would claim room in the static block of thread-local
// storage, which lasts for seven plug-ins, and before glibc 2.40 descriptors (TLSDESC) do not keep vector registers. On
// kernels a call costs nothing measurable by that; on packages, which make thousands of tensors, 8 %.
extern constinit thread_local ThreadCache* thread_cache;

// The slow path, if no block waits in the thread, or enough do. `size` is the size of a class.
void* allocate_elsewhere(std::size_t size);
void release_elsewhere(void* block, std::size_t size) noexcept;

// The address sanitizer must see every block come and go.
#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

// Returns a block that waits in this thread, or null.
inline void* take_waiting(SizeClass wanted) noexcept {
  return caching && wanted.size <= ThreadCache::largest && thread_cache ? thread_cache->take(wanted) : nullptr;
}

// Returns a block that is not initialised. Throws std::bad_alloc.
inline void* allocate(SizeClass wanted) {
  void* block = take_waiting(wanted);
  return block ? block : allocate_elsewhere(wanted.size);
}
inline void* allocate(std::size_t bytes) { return allocate(SizeClass::of(bytes)); }

inline void release(void* block, SizeClass given) noexcept {
  if (caching && given.size <= ThreadCache::largest && thread_cache && thread_cache->keep(block, given)) return;
  release_elsewhere(block, given.size);
}
// Frees a block of allocate(bytes).
inline void release(void* block, std::size_t bytes) noexcept { release(block, SizeClass::of(bytes)); }

// Functions by which the provider reaches the caches: allocate_elsewhere() and release_elsewhere() for its own
// thread_cache, `user`, which they set.
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
