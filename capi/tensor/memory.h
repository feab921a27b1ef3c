// Memory for tensors and workspace: blocks that were freed wait for the next request of their size, so that a repeated
// evaluation calls neither malloc nor free, and touches no fresh page.
//
// Every block is an allocation of its own, which may outlive the thread that made it and be freed by any other. Small
// ones wait in a cache of the thread that frees them; large ones, whose pages are dear, in one for the process. Both
// hold a limited number of bytes.
//
// libneml2_capi has the caches (memory.cpp). The built-in provider, a library of its own, is told to use them.
#pragma once

#include <bit>
#include <cstddef>
#include <new>
#include <vector>

namespace neml2_capi::memory {

constexpr std::size_t alignment = 64;  // of every block: a cache line, and any vector

// Not initialised. Throws std::bad_alloc.
void* allocate(std::size_t bytes);

// `bytes` is what the block was allocated with.
void release(void* block, std::size_t bytes) noexcept;

// What a request is rounded up to: four sizes from one power of two to the next.
constexpr std::size_t rounded(std::size_t bytes) {
  if (bytes <= 4 * alignment) return bytes == 0 ? alignment : (bytes + alignment - 1) / alignment * alignment;
  const std::size_t step = std::bit_floor(bytes - 1) / 4;
  return (bytes + step - 1) / step * step;
}

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
