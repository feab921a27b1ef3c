// Vectors of the instruction set that the including file is compiled for: one lane for each point of a block.
//
// All lies in a namespace of the set, since the linker keeps one copy of an inline function. Products are never fused with
// sums: a lane holds the same bits for every set, place and neighbour.
#pragma once

#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

#if defined(__AVX512F__)
inline constexpr int vector_bytes = 64;
#else
inline constexpr int vector_bytes = 32;
#endif

template <class T>
inline constexpr int width = vector_bytes / static_cast<int>(sizeof(T));

template <class T, int lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(lanes * sizeof(T)), aligned(lanes * sizeof(T))));
};
template <class T>
using Lanes = typename VectorOf<T, width<T>>::type;
template <class T>
using Integer = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
template <class T>
using Mask = typename VectorOf<Integer<T>, width<T>>::type;
// Of a block of T: norms are computed in doubles.
template <class T>
using Wide = typename VectorOf<double, width<T>>::type;
template <class T>
using WideMask = typename VectorOf<std::int64_t, width<T>>::type;

template <class V>
[[gnu::always_inline]] inline V all_of(double value) {
  using T = std::remove_reference_t<decltype(V{}[0])>;
  return static_cast<T>(value) - V{};
}

// Lane by lane: one or the other, both of which are there.
template <class V, class M>
[[gnu::always_inline]] inline V where(const M& mask, const V& value, const V& other) {
  return mask ? value : other;
}

template <class M>
[[gnu::always_inline]] inline bool any(const M& mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(M) == 64) {
    const __m512i bits = __builtin_bit_cast(__m512i, mask);
    return _mm512_test_epi64_mask(bits, bits) != 0;
  }
#elif defined(__AVX2__)
  if constexpr (sizeof(M) == 32) {
    const __m256i bits = __builtin_bit_cast(__m256i, mask);
    return !_mm256_testz_si256(bits, bits);
  }
#endif
  constexpr int count = sizeof(M) / sizeof(mask[0]);
  auto bits = mask[0];
  for (int l = 1; l < count; ++l) bits |= mask[l];
  return bits != 0;
}

template <class T>
[[gnu::always_inline]] inline Lanes<T> absolute(const Lanes<T>& x) {
  using I = Integer<T>;
  constexpr I most = static_cast<I>(static_cast<std::make_unsigned_t<I>>(-1) >> 1);
  return __builtin_bit_cast(Lanes<T>, __builtin_bit_cast(Mask<T>, x) & most);
}

// Of the doubles of a block of T.
template <class T>
[[gnu::always_inline]] inline Wide<T> square_root(const Wide<T>& x) {
#if defined(__AVX512F__)
  if constexpr (sizeof(x) == 64) return _mm512_maskz_sqrt_pd(0xff, x);
#elif defined(__AVX2__)
  if constexpr (sizeof(x) == 32) return _mm256_sqrt_pd(x);
#endif
  Wide<T> result;
  for (int l = 0; l < width<T>; ++l) result[l] = __builtin_sqrt(x[l]);
  return result;
}

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
