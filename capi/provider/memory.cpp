// Memory of the provider: that of libneml2_capi, so that a block may be freed in either library.
#include "capi/tensor/memory.h"

#include <cstdlib>

#include "capi/provider/exports.h"

namespace neml2_capi {
namespace {

// Until libneml2_capi has told of its own.
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
