// Memory of the provider: the caches of libneml2_capi, so that either library may free a block.
#include "capi/tensor/memory.h"

#include <cstdlib>

#include "capi/provider/exports.h"

namespace neml2_capi {
namespace {

// Functions that serve until libneml2_capi sets its own.
memory::Allocate allocate_with = [](memory::ThreadCache*&, std::size_t size) {
  void* block = std::aligned_alloc(memory::alignment, size);
  if (!block) throw std::bad_alloc();
  return block;
};
memory::Release release_with = [](memory::ThreadCache*&, void* block, std::size_t) noexcept { std::free(block); };

}  // namespace

constinit thread_local memory::ThreadCache* memory::thread_cache = nullptr;

void* memory::allocate_elsewhere(std::size_t size) { return allocate_with(thread_cache, size); }

void memory::release_elsewhere(void* block, std::size_t size) noexcept { release_with(thread_cache, block, size); }

NML2_EXPORT void nml2_use_memory(memory::Allocate allocate, memory::Release release) {
  allocate_with = allocate;
  release_with = release;
}

}  // namespace neml2_capi
