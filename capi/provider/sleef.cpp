// Entry points of SLEEF, the library of vectorised elementary functions.
//
// A package computes whole vectors with them, and the rest of a batch with the scalar functions of libm. Every lane
// here uses that scalar function, so that a point's result does not depend on its place in the batch.
#include <array>
#include <cmath>

#include "capi/provider/exports.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GLIBC__)
// The older versions give the same values. The newer ones differ in errno only, and would need glibc 2.35.
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
__asm__(".symver hypotf, hypotf@GLIBC_2.2.5");
#endif
// Functions on long vectors are compiled for processors that have them, and only called there: this library runs on any
// x86-64.
#define NML2_VECTORS(APPLY)                                         \
  APPLY(d2, __m128d, double, 2, )                                   \
  APPLY(d4, __m256d, double, 4, __attribute__((target("avx"))))     \
  APPLY(d8, __m512d, double, 8, __attribute__((target("avx512f")))) \
  APPLY(f4, __m128, float, 4, )                                     \
  APPLY(f8, __m256, float, 8, __attribute__((target("avx"))))       \
  APPLY(f16, __m512, float, 16, __attribute__((target("avx512f"))))
#elif defined(__aarch64__)
#include <arm_neon.h>
// Callers may rely on the vector calling convention, which preserves all that the base convention does and more.
#define NML2_VECTORS(APPLY)                                              \
  APPLY(d2, float64x2_t, double, 2, __attribute__((aarch64_vector_pcs))) \
  APPLY(f4, float32x4_t, float, 4, __attribute__((aarch64_vector_pcs)))
#else
#define NML2_VECTORS(APPLY)
#endif

// name, suffix with the accuracy in tenths of a unit in the last place
#define NML2_UNARY(APPLY, ...)     \
  APPLY(acos, _u10, __VA_ARGS__)   \
  APPLY(acosh, _u10, __VA_ARGS__)  \
  APPLY(asin, _u10, __VA_ARGS__)   \
  APPLY(asinh, _u10, __VA_ARGS__)  \
  APPLY(atan, _u10, __VA_ARGS__)   \
  APPLY(atanh, _u10, __VA_ARGS__)  \
  APPLY(cbrt, _u10, __VA_ARGS__)   \
  APPLY(cos, _u10, __VA_ARGS__)    \
  APPLY(cos, _u35, __VA_ARGS__)    \
  APPLY(cosh, _u10, __VA_ARGS__)   \
  APPLY(erf, _u10, __VA_ARGS__)    \
  APPLY(erfc, _u15, __VA_ARGS__)   \
  APPLY(exp, _u10, __VA_ARGS__)    \
  APPLY(exp2, _u10, __VA_ARGS__)   \
  APPLY(expm1, _u10, __VA_ARGS__)  \
  APPLY(lgamma, _u10, __VA_ARGS__) \
  APPLY(log, _u10, __VA_ARGS__)    \
  APPLY(log10, _u10, __VA_ARGS__)  \
  APPLY(log1p, _u10, __VA_ARGS__)  \
  APPLY(log2, _u10, __VA_ARGS__)   \
  APPLY(sin, _u10, __VA_ARGS__)    \
  APPLY(sin, _u35, __VA_ARGS__)    \
  APPLY(sinh, _u10, __VA_ARGS__)   \
  APPLY(tan, _u10, __VA_ARGS__)    \
  APPLY(tan, _u35, __VA_ARGS__)    \
  APPLY(tanh, _u10, __VA_ARGS__)   \
  APPLY(tgamma, _u10, __VA_ARGS__)

#define NML2_BINARY(APPLY, ...)   \
  APPLY(atan2, _u10, __VA_ARGS__) \
  APPLY(copysign, , __VA_ARGS__)  \
  APPLY(fmod, , __VA_ARGS__)      \
  APPLY(hypot, _u05, __VA_ARGS__) \
  APPLY(nextafter, , __VA_ARGS__) \
  APPLY(pow, _u10, __VA_ARGS__)

namespace neml2_capi::aoti::builtin {

#define NML2_DEFINE_UNARY(name, accuracy, kind, Vector, Real, lanes, target) \
  NML2_EXPORT target Vector nml2f_##name##kind##accuracy(Vector x) {         \
    auto lane = __builtin_bit_cast(std::array<Real, lanes>, x);              \
    for (Real & value : lane) value = std::name(value);                      \
    return __builtin_bit_cast(Vector, lane);                                 \
  }

#define NML2_DEFINE_BINARY(name, accuracy, kind, Vector, Real, lanes, target)       \
  NML2_EXPORT target Vector nml2f_##name##kind##accuracy(Vector x, Vector y) {      \
    auto lane = __builtin_bit_cast(std::array<Real, lanes>, x);                     \
    const auto other = __builtin_bit_cast(std::array<Real, lanes>, y);              \
    for (std::size_t i = 0; i < lanes; ++i) lane[i] = std::name(lane[i], other[i]); \
    return __builtin_bit_cast(Vector, lane);                                        \
  }

// Returns both values in one structure, the sine first.
#define NML2_DEFINE_SINCOS(kind, accuracy, Vector, Real, lanes, target)            \
  NML2_EXPORT target Pair_##kind nml2f_sincos##kind##accuracy(Vector x) {          \
    auto sine = __builtin_bit_cast(std::array<Real, lanes>, x);                    \
    auto cosine = sine;                                                            \
    for (Real & value : sine) value = std::sin(value);                             \
    for (Real & value : cosine) value = std::cos(value);                           \
    return {__builtin_bit_cast(Vector, sine), __builtin_bit_cast(Vector, cosine)}; \
  }

#define NML2_DEFINE_ALL(kind, Vector, Real, lanes, target)           \
  struct Pair_##kind {                                               \
    Vector x, y;                                                     \
  };                                                                 \
  NML2_UNARY(NML2_DEFINE_UNARY, kind, Vector, Real, lanes, target)   \
  NML2_BINARY(NML2_DEFINE_BINARY, kind, Vector, Real, lanes, target) \
  NML2_DEFINE_SINCOS(kind, _u10, Vector, Real, lanes, target)        \
  NML2_DEFINE_SINCOS(kind, _u35, Vector, Real, lanes, target)

NML2_VECTORS(NML2_DEFINE_ALL)

}  // namespace neml2_capi::aoti::builtin
