// Entry points of SLEEF, the library of vectorised elementary functions.
//
// A package computes whole vectors with them, and the rest of a batch with the scalar functions of libm. Every lane
// here uses that scalar function, so that a point's result does not depend on its place in the batch. Arrays are plain,
// since the linker could take an inline function of std::array for long vectors into code for every processor.
#include <cmath>
#include <cstddef>

#include "capi/provider/exports.h"

#if defined(__x86_64__)
#include <immintrin.h>
#if defined(__GLIBC__)
// The older versions give the same values. The newer ones differ in errno only, and would need glibc 2.35.
__asm__(".symver hypot, hypot@GLIBC_2.2.5");
__asm__(".symver hypotf, hypotf@GLIBC_2.2.5");
#endif
// Functions on long vectors are compiled for processors that have them, and only called there: this library runs on any
// x86-64. This file is compiled once for each length, since clang passes a vector in a register only if the whole
// file may use it, whatever attribute a function has.
#if defined(__AVX512F__)
#define NML2_VECTORS(APPLY)       \
  APPLY(d8, __m512d, double, 8, ) \
  APPLY(f16, __m512, float, 16, )
#elif defined(__AVX__)
#define NML2_VECTORS(APPLY)       \
  APPLY(d4, __m256d, double, 4, ) \
  APPLY(f8, __m256, float, 8, )
#else
#define NML2_VECTORS(APPLY)       \
  APPLY(d2, __m128d, double, 2, ) \
  APPLY(f4, __m128, float, 4, )
#endif
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
    Real lane[lanes];                                                        \
    __builtin_memcpy(lane, &x, sizeof x);                                    \
    for (Real & value : lane) value = std::name(value);                      \
    __builtin_memcpy(&x, lane, sizeof x);                                    \
    return x;                                                                \
  }

#define NML2_DEFINE_BINARY(name, accuracy, kind, Vector, Real, lanes, target)       \
  NML2_EXPORT target Vector nml2f_##name##kind##accuracy(Vector x, Vector y) {      \
    Real lane[lanes], other[lanes];                                                 \
    __builtin_memcpy(lane, &x, sizeof x);                                           \
    __builtin_memcpy(other, &y, sizeof y);                                          \
    for (std::size_t i = 0; i < lanes; ++i) lane[i] = std::name(lane[i], other[i]); \
    __builtin_memcpy(&x, lane, sizeof x);                                           \
    return x;                                                                       \
  }

// Returns both values in one structure, the sine first.
#define NML2_DEFINE_SINCOS(kind, accuracy, Vector, Real, lanes, target)   \
  NML2_EXPORT target Pair_##kind nml2f_sincos##kind##accuracy(Vector x) { \
    Real sine[lanes], cosine[lanes];                                      \
    __builtin_memcpy(sine, &x, sizeof x);                                 \
    __builtin_memcpy(cosine, &x, sizeof x);                               \
    for (Real & value : sine) value = std::sin(value);                    \
    for (Real & value : cosine) value = std::cos(value);                  \
    Pair_##kind pair;                                                     \
    __builtin_memcpy(&pair.x, sine, sizeof x);                            \
    __builtin_memcpy(&pair.y, cosine, sizeof x);                          \
    return pair;                                                          \
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
