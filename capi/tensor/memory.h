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
#include <bit>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace neml2_capi::memory {

constexpr std::size_t alignment = 64;  // of every block: a cache line, and any vector

// What a request is rounded up to: four sizes from one power of two to the next.
constexpr std::size_t rounded(std::size_t bytes) {
  if (bytes <= 4 * alignment) return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) & ~(step - 1);
}

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

  // A block of a size that rounded() returns; null where none waits.
  void* take(std::size_t size) {
    Waiting*& first = first_[number_of(size)];
    if (!first) return nullptr;
    bytes_ -= size;
    return std::exchange(first, first->next);
  }
  // False where enough wait already.
  bool keep(void* block, std::size_t size) {
    if (bytes_ + size > limit) return false;
    Waiting*& first = first_[number_of(size)];
    first = new (block) Waiting{first};
    bytes_ += size;
    return true;
  }

 private:
  static constexpr std::size_t limit = std::size_t{64} << 20;

  // A block that waits holds the address of the next one.
  struct Waiting {
    Waiting* next;
  };

  // Which of the sizes that rounded() returns this is, counted from 0.
  static constexpr std::size_t number_of(std::size_t size) {
    if (size <= 4 * alignment) return size / alignment - 1;
    const auto power = static_cast<std::size_t>(std::bit_width(size - 1)) - 1;      // 2^power < size <= 2^(power + 1)
    const std::size_t quarter = (size - (std::size_t{1} << power)) >> (power - 2);  // 1 to 4
    return 4 * (power - std::bit_width(alignment)) + quarter - 1;
  }

  std::array<Waiting*, 52> first_{};  // by number_of(): that of `largest` is 51
  std::size_t bytes_ = 0;
};

// That of this thread, in each of the two libraries; null before its first use and after its end. It is read at every
// request, so it stands in the static block of thread-local storage.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadCache* thread_cache;

// Where no block waits in the thread, or enough do; `size` is one that rounded() returns.
void* allocate_elsewhere(std::size_t size);
void release_elsewhere(void* block, std::size_t size) noexcept;

// The address sanitizer must see every block come and go.
#ifdef __SANITIZE_ADDRESS__
constexpr bool caching = false;
#else
constexpr bool caching = true;
#endif

// Not initialised. Throws std::bad_alloc.
inline void* allocate(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  if (caching && size <= ThreadCache::largest && thread_cache)
    if (void* block = thread_cache->take(size)) return block;
  return allocate_elsewhere(size);
}

// `bytes` is what the block was allocated with.
inline void release(void* block, std::size_t bytes) noexcept {
  const std::size_t size = rounded(bytes);
  if (caching && size <= ThreadCache::largest && thread_cache && thread_cache->keep(block, size)) return;
  release_elsewhere(block, size);
}

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
