// Vectors of the instruction set that the including file is compiled for.
//
// Code that depends on the instruction set lives in a namespace of that set, so that no inline function of one set
// stands in for another set's. Every operation rounds like its scalar counterpart, and a product is fused with a sum
// only in multiply_add(): a lane's value depends neither on its place nor on the other lanes.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace neml2_capi::lanes::NML2_INSTRUCTION_SET {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
inline constexpr int vector_bytes = 32;
#else
inline constexpr int vector_bytes = 16;
#endif

#if defined(__FMA__) || defined(__aarch64__)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

template <class T, int count>
struct VectorOf {
  typedef T type __attribute__((vector_size(count * sizeof(T))));
};
// Type of the lanes of a comparison, which are -1 or 0.
template <class T>
using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

template <class T>
inline constexpr int lane_count = vector_bytes / static_cast<int>(sizeof(T));
template <class T>
using Lanes = typename VectorOf<T, lane_count<T>>::type;

template <class T>
Lanes<T> broadcast(T value) {
  return value - Lanes<T>{};  // keeps -0.0
}

template <class T>
Lanes<T> load(const T* from) {
  Lanes<T> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class T>
void store(T* to, const Lanes<T>& v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// Loads lane i from `from[i * stride]`.
template <class T>
Lanes<T> load_strided(const T* from, std::int64_t stride) {
  if (stride == 1) return load(from);
  if (stride == 0) return broadcast(*from);
  Lanes<T> v;
  for (int i = 0; i < lane_count<T>; ++i) v[i] = from[i * stride];
  return v;
}

inline double absolute(double x) { return __builtin_fabs(x); }
inline float absolute(float x) { return __builtin_fabsf(x); }
template <class V>
[[gnu::always_inline]] inline V absolute(const V& x) {
  using I = Integer<std::remove_cvref_t<decltype(x[0])>>;
  using Bits = typename VectorOf<I, sizeof(V) / sizeof(I)>::type;
  constexpr I most = static_cast<I>(static_cast<std::make_unsigned_t<I>>(-1) >> 1);
  return __builtin_bit_cast(V, __builtin_bit_cast(Bits, x) & most);
}

// Tells whether a comparison holds in any lane.
inline bool any(bool mask) { return mask; }
template <class Mask>
[[gnu::always_inline]] inline bool any(const Mask& mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(Mask) == 64) {
    const __m512i bits = __builtin_bit_cast(__m512i, mask);
    return _mm512_test_epi32_mask(bits, bits) != 0;
  }
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(Mask) == 32) {
    const __m256i bits = __builtin_bit_cast(__m256i, mask);
    return !_mm256_testz_si256(bits, bits);
  }
#endif
  constexpr int count = sizeof(Mask) / sizeof(std::int64_t);
  const auto bits = __builtin_bit_cast(typename VectorOf<std::int64_t, count>::type, mask);
  std::int64_t all = bits[0];
  for (int l = 1; l < count; ++l) all |= bits[l];
  return all != 0;
}

// a b + c, rounded once if the instruction set can.
inline double multiply_add(double a, double b, double c) {
  if constexpr (has_fma) return __builtin_fma(a, b, c);
  return a * b + c;
}
inline float multiply_add(float a, float b, float c) {
  if constexpr (has_fma) return __builtin_fmaf(a, b, c);
  return a * b + c;
}
template <class V>
V multiply_add(const V& a, const V& b, const V& c) {
  [[maybe_unused]] constexpr bool doubles = std::is_same_v<V, Lanes<double>>;
#if defined(__AVX512F__)
  if constexpr (doubles)
    return _mm512_fmadd_pd(a, b, c);
  else
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__) && defined(__FMA__)
  if constexpr (doubles)
    return _mm256_fmadd_pd(a, b, c);
  else
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  if constexpr (doubles)
    return __builtin_bit_cast(V, vfmaq_f64(__builtin_bit_cast(float64x2_t, c), __builtin_bit_cast(float64x2_t, a),
                                           __builtin_bit_cast(float64x2_t, b)));
  else
    return __builtin_bit_cast(V, vfmaq_f32(__builtin_bit_cast(float32x4_t, c), __builtin_bit_cast(float32x4_t, a),
                                           __builtin_bit_cast(float32x4_t, b)));
#else
  static_assert(!has_fma);
  return a * b + c;
#endif
}

// c - a b, rounded once if the instruction set can.
template <class V>
V subtract_product(const V& c, const V& a, const V& b) {
  return multiply_add(-a, b, c);
}

}  // namespace neml2_capi::lanes::NML2_INSTRUCTION_SET
