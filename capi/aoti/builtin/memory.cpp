// Memory of the provider: that of libneml2_capi, so that a block may be freed in either library.
#include "capi/tensor/memory.h"

#include <cstdlib>

#include "capi/aoti/builtin/exports.h"
#include "capi/aoti/builtin/provider.h"

namespace neml2_capi {
namespace {

// Until libneml2_capi has told of its own.
aoti::builtin::Allocate allocate_with = [](std::size_t bytes) {
  void* block = std::aligned_alloc(memory::alignment, memory::rounded(bytes));
  if (!block) throw std::bad_alloc();
  return block;
};
aoti::builtin::Release release_with = [](void* block, std::size_t) noexcept { std::free(block); };

}  // namespace

void* memory::allocate(std::size_t bytes) { return allocate_with(bytes); }

void memory::release(void* block, std::size_t bytes) noexcept { release_with(block, bytes); }

NML2_EXPORT void nml2_use_memory(aoti::builtin::Allocate allocate, aoti::builtin::Release release) {
  allocate_with = allocate;
  release_with = release;
}

}  // namespace neml2_capi
