// Uses that a package's source makes of the outputs of operators, read in one pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// Uses of one variable.
struct VariableUse {
  std::int64_t mentions = 0;  // reads, and passing on; declarations and resets do not count
  // Element type by which kernels take it, itself or under another name:
  //   auto buf5 = std::move(buf2);  // reuse
  //   cpp_fused_add_1((double*)(buf5.data_ptr()), (const bool*)(buf3.data_ptr()), s17);
  std::optional<DType> dtype;
  std::optional<std::size_t> layout;  // where the source first checks its layout: at assert_size_stride(buf2, {...
};

using VariableUses = std::map<std::string_view, VariableUse>;

// Fills in the uses of the variables in `wanted`. Time is linear in the source, however the names are chained.
void read_uses(VariableUses& wanted, std::string_view source);

}  // namespace neml2_capi::aoti
