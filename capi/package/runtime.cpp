#include "capi/package/runtime.h"

#include <charconv>

#include "capi/base/error.h"

namespace neml2_capi::aoti {

Device device_named(const std::string& name) {
  const std::size_t colon = name.find(':');
  const std::string family = name.substr(0, colon);
  std::int16_t index = 0;
  const bool has_index = colon != std::string::npos;
  const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
  const bool is_index = !has_index || (begin != end && std::from_chars(begin, end, index).ptr == end && index >= 0);
  if (family == "cpu" && is_index) return {};
  if (family == "cuda" && is_index) return {Device::Type::cuda, false, index};
  throw Error(NEML2_ERROR_UNSUPPORTED, name,
              join("There is no device '", name, "'. This version runs on 'cpu', and on 'cuda' or 'cuda:1'."));
}

}  // namespace neml2_capi::aoti
