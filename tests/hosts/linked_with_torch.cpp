// A host that is linked with libtorch: its symbols come before the symbols of all that is loaded later.
#include <cstdint>
#include <cstdlib>

extern "C" std::int32_t aoti_torch_device_type_cpu();

namespace {
// Calls into libtorch, so that the linker keeps it.
const bool used = [] {
  if (aoti_torch_device_type_cpu() != 0) std::abort();
  return true;
}();
}  // namespace
