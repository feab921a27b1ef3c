// Which of the instruction sets that blocks were compiled for a target of kernels runs on.
#include <cstring>

#include "capi/kernels/block.h"
#include "capi/platform/processor.h"

namespace neml2_capi::kernels {

namespace portable {
extern const Functions double_functions, float_functions;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Functions double_functions, float_functions;
}
#if defined(NEML2_CAPI_SMALL)
namespace float_of_v3 = portable;  // kernels for both have vectors of 32 bytes
#else
namespace float_of_v3 = avx2;
#endif
#if !defined(NEML2_CAPI_SMALL)
namespace avx512 {
extern const Functions double_functions, float_functions;
}
#endif
#endif

const Functions* functions(const char* target, std::int64_t real_size) {
  const bool doubles = real_size == sizeof(double);
  const auto is = [target](const char* name) { return std::strcmp(target, name) == 0; };
#if !defined(NEML2_CAPI_SMALL) || !defined(__x86_64__)
  if (is("portable")) return doubles ? &portable::double_functions : &portable::float_functions;
#endif
#if defined(__x86_64__)
  const auto all = [](auto... names) { return (processor::has(names) && ...); };
#if !defined(NEML2_CAPI_SMALL)
  if (is("x86-64-v4") && all("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"))
    return doubles ? &avx512::double_functions : &avx512::float_functions;
#endif
  if (is("x86-64-v3") && all("avx2", "fma", "bmi2"))
    return doubles ? &avx2::double_functions : &float_of_v3::float_functions;
  if (!(is("x86-64-v2") || is("portable")) || !all("sse4.2")) return nullptr;
#elif defined(__aarch64__)
  if (!is("aarch64")) return nullptr;
#else
  return nullptr;
#endif
  return doubles ? &portable::double_functions : &portable::float_functions;
}

}  // namespace neml2_capi::kernels
