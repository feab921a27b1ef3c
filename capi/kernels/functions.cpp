// Which of the instruction sets that blocks were compiled for a target of kernels runs on.
#include <cstring>

#include "capi/base/processor.h"
#include "capi/kernels/block.h"

namespace neml2_capi::kernels {

#define NML2_DECLARE(set)                          \
  namespace set {                                  \
  extern const Functions<double> double_functions; \
  extern const Functions<float> float_functions;   \
  }

NML2_DECLARE(portable)
#if defined(__x86_64__)
NML2_DECLARE(avx2)
NML2_DECLARE(avx512)
#endif

namespace {

enum class Set { none, portable, avx2, avx512 };

Set set_of(const char* target) {
  const auto is = [target](const char* name) { return std::strcmp(target, name) == 0; };
#if defined(__x86_64__)
  const auto all = [](auto... names) { return (processor::has(names) && ...); };
  if (is("x86-64-v2")) return all("sse4.2") ? Set::portable : Set::none;
  if (is("x86-64-v3")) return all("avx2", "fma", "bmi2") ? Set::avx2 : Set::none;
  if (is("x86-64-v4")) return all("avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd") ? Set::avx512 : Set::none;
#elif defined(__aarch64__)
  if (is("aarch64")) return Set::portable;
#endif
  return Set::none;
}

}  // namespace

#if defined(__x86_64__)
#define NML2_SELECT(type, of_type)                       \
  template <>                                            \
  const Functions<type>* functions(const char* target) { \
    switch (set_of(target)) {                            \
      case Set::avx512: return &avx512::of_type;         \
      case Set::avx2: return &avx2::of_type;             \
      case Set::portable: return &portable::of_type;     \
      default: return nullptr;                           \
    }                                                    \
  }
#else
#define NML2_SELECT(type, of_type)                                         \
  template <>                                                              \
  const Functions<type>* functions(const char* target) {                   \
    return set_of(target) == Set::portable ? &portable::of_type : nullptr; \
  }
#endif

NML2_SELECT(double, double_functions)
NML2_SELECT(float, float_functions)

}  // namespace neml2_capi::kernels
