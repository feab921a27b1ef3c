// Array of a caller: plain data, which code for several instruction sets reads, too.
#pragma once

#include <cstdint>

namespace neml2_capi::model {

// Array whose values of a point are dense and row-major, with `stride` elements from one point to the next, and `step`
// from one step of a transient to the next; 0: one value for all of them, or the last one.
// An array on a device, whose data may be a handle, begins `skip` elements behind it.
struct Points {
  char* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t step = 0;
  std::int64_t skip = 0;
};

}  // namespace neml2_capi::model
