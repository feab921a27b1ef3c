// Choice of the best instruction set that this machine has.
#include "capi/lanes/kernels.h"

#include "capi/platform/processor.h"

namespace neml2_capi::lanes {

#define NML2_DECLARE(set)                      \
  namespace set {                              \
  extern const Kernels<double> double_kernels; \
  extern const Kernels<float> float_kernels;   \
  }

NML2_DECLARE(portable)

#if defined(__x86_64__)

NML2_DECLARE(avx2)
#if defined(NEML2_CAPI_SMALL)
namespace avx512 = avx2;
#else
NML2_DECLARE(avx512)
#endif

namespace {

enum class InstructionSet { portable, avx2, avx512 };

InstructionSet best() {
  if (!processor::has("avx2") || !processor::has("fma")) return InstructionSet::portable;
  return processor::has("avx512f") ? InstructionSet::avx512 : InstructionSet::avx2;
}

const InstructionSet here = best();

}  // namespace

#define NML2_SELECT(type, kernels_of_type)                              \
  template <>                                                           \
  const Kernels<type>& kernels<type>() {                                \
    if (here == InstructionSet::avx512) return avx512::kernels_of_type; \
    if (here == InstructionSet::avx2) return avx2::kernels_of_type;     \
    return portable::kernels_of_type;                                   \
  }

#else

#define NML2_SELECT(type, kernels_of_type) \
  template <>                              \
  const Kernels<type>& kernels<type>() {   \
    return portable::kernels_of_type;      \
  }

#endif

NML2_SELECT(double, double_kernels)
NML2_SELECT(float, float_kernels)

}  // namespace neml2_capi::lanes
