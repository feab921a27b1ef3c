// Vectors of the instruction set that the including file is compiled for: one lane for each point of a block.
//
// All lies in a namespace of the set, since the linker keeps one copy of an inline function. Products are never fused with
// sums: a lane holds the same bits for every set, place and neighbour.
#pragma once

#include <cstdint>
#include <type_traits>

#include "capi/lanes/simd.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

using lanes::NML2_INSTRUCTION_SET::absolute;
using lanes::NML2_INSTRUCTION_SET::any;
using lanes::NML2_INSTRUCTION_SET::Integer;
using lanes::NML2_INSTRUCTION_SET::multiply_add;
using lanes::NML2_INSTRUCTION_SET::vector_bytes;
using lanes::NML2_INSTRUCTION_SET::VectorOf;

// Kernels have vectors of 32 bytes at least.
template <class T>
inline constexpr int width = (vector_bytes > 32 ? vector_bytes : 32) / static_cast<int>(sizeof(T));
template <class T>
using Lanes = typename VectorOf<T, width<T>>::type;
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

// Sets the lanes of a mask in a vector in memory. The whole vector is stored: clang would make a masked store of the
// choice, which AMD's processors take ten times as long for, and no load is served from one.
template <class V, class M>
[[gnu::always_inline]] inline void set_where(const M& mask, V& to, const V& value) {
  V chosen = mask ? value : to;
#if defined(__clang__) && defined(__AVX__)
  if constexpr (sizeof(V) <= 32) __asm__("" : "+x"(chosen));
#endif
  to = chosen;
}

#if defined(__AVX2__)
inline constexpr bool has_pairs = true;

// Two numbers of two rows each, side by side: halves are read from memory, so that few shuffles are left.
[[gnu::always_inline]] inline __m256d two_rows(const double* low, const double* high) {
  return _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(low)), _mm_loadu_pd(high), 1);
}

// Two numbers of each of four rows, as two vectors.
template <class Rows>
[[gnu::always_inline]] inline void four_rows(const Rows& rows, int at, std::int64_t c, __m256d& first,
                                             __m256d& second) {
  const __m256d even = two_rows(rows[at] + c, rows[at + 2] + c), odd = two_rows(rows[at + 1] + c, rows[at + 3] + c);
  first = _mm256_unpacklo_pd(even, odd);
  second = _mm256_unpackhi_pd(even, odd);
}

// Whole vectors are stored: what is stored in halves, no vector is loaded from soon after.
template <class Rows>
[[gnu::always_inline]] inline void pair_to_vectors(const Rows& rows, std::int64_t c, double* to) {
  __m256d first, second;
  four_rows(rows, 0, c, first, second);
#if defined(__AVX512F__)
  __m256d more_of_first, more_of_second;
  four_rows(rows, 4, c, more_of_first, more_of_second);
  _mm512_storeu_pd(to, _mm512_insertf64x4(_mm512_castpd256_pd512(first), more_of_first, 1));
  _mm512_storeu_pd(to + 8, _mm512_insertf64x4(_mm512_castpd256_pd512(second), more_of_second, 1));
#else
  _mm256_storeu_pd(to, first);
  _mm256_storeu_pd(to + 4, second);
#endif
}

template <class Rows>
[[gnu::always_inline]] inline void pair_to_rows(const double* from, const Rows& rows, std::int64_t c) {
#pragma GCC unroll 2
  for (int l = 0; l < width<double>; l += 4) {
    const __m256d first = _mm256_loadu_pd(from + l), second = _mm256_loadu_pd(from + width<double> + l);
    const __m256d even = _mm256_unpacklo_pd(first, second), odd = _mm256_unpackhi_pd(first, second);
    _mm_storeu_pd(rows[l] + c, _mm256_castpd256_pd128(even));
    _mm_storeu_pd(rows[l + 1] + c, _mm256_castpd256_pd128(odd));
    _mm_storeu_pd(rows[l + 2] + c, _mm256_extractf128_pd(even, 1));
    _mm_storeu_pd(rows[l + 3] + c, _mm256_extractf128_pd(odd, 1));
  }
}

// Writes six numbers of each point, with nothing between the points. Halves are joined before they are stored.
[[gnu::always_inline]] inline void tensors_to_rows(const double* from, double* to) {
  constexpr int lanes = width<double>;
#pragma GCC unroll 2
  for (int l = 0; l < lanes; l += 4, to += 24) {
    __m256d even[3], odd[3];
#pragma GCC unroll 3
    for (int pair = 0; pair < 3; ++pair) {
      const double* const first = from + 2 * pair * lanes + l;
      const __m256d low = _mm256_loadu_pd(first), high = _mm256_loadu_pd(first + lanes);
      even[pair] = _mm256_unpacklo_pd(low, high);
      odd[pair] = _mm256_unpackhi_pd(low, high);
    }
    _mm256_storeu_pd(to, _mm256_permute2f128_pd(even[0], even[1], 0x20));
    _mm256_storeu_pd(to + 4, _mm256_permute2f128_pd(even[2], odd[0], 0x20));
    _mm256_storeu_pd(to + 8, _mm256_permute2f128_pd(odd[1], odd[2], 0x20));
    _mm256_storeu_pd(to + 12, _mm256_permute2f128_pd(even[0], even[1], 0x31));
    _mm256_storeu_pd(to + 16, _mm256_permute2f128_pd(even[2], odd[0], 0x31));
    _mm256_storeu_pd(to + 20, _mm256_permute2f128_pd(odd[1], odd[2], 0x31));
  }
}
#else
inline constexpr bool has_pairs = false;
[[gnu::always_inline]] inline void tensors_to_rows(const double*, double*) {}
template <class Rows>
void pair_to_vectors(const Rows&, std::int64_t, double*) {}
template <class Rows>
void pair_to_rows(const double*, const Rows&, std::int64_t) {}
#endif

// Rows of an array, one for each lane: `stride` numbers apart, or `known` if that is not 0. Addresses are computed where they
// are used: compilers would keep an array of them in vectors, from which they are slow to take.
template <class T, std::int64_t known = 0>
struct RowsOf {
  T* first;
  std::int64_t stride;

  [[gnu::always_inline]] T* operator[](int l) const { return first + l * (known ? known : stride); }
};

// `count` numbers of each row to vectors; and back. If `count` is a constant, no loop is left.
template <class T, class Rows>
[[gnu::always_inline]] inline void transpose_to_vectors(const Rows& rows, T* vectors, std::int64_t count) {
  constexpr int lanes = width<T>;
  std::int64_t c = 0;
  if constexpr (has_pairs && std::is_same_v<T, double>) {
#pragma GCC unroll 3
    for (; c + 2 <= count; c += 2) pair_to_vectors(rows, c, vectors + c * lanes);
    if (c < count && count > 1) {  // a number once more, instead of one by itself
      pair_to_vectors(rows, count - 2, vectors + (count - 2) * lanes);
      return;
    }
  }
  for (; c < count; ++c) {
    Lanes<T> v;
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) v[l] = rows[l][c];
    *reinterpret_cast<Lanes<T>*>(vectors + c * lanes) = v;
  }
}

template <class T, class Rows>
[[gnu::always_inline]] inline void transpose_to_rows(const T* vectors, const Rows& rows, std::int64_t count) {
  constexpr int lanes = width<T>;
  std::int64_t c = 0;
  if constexpr (has_pairs && std::is_same_v<T, double>) {
#pragma GCC unroll 3
    for (; c + 2 <= count; c += 2) pair_to_rows(vectors + c * lanes, rows, c);
  }
  for (; c < count; ++c)
    for (int l = 0; l < lanes; ++l) rows[l][c] = vectors[c * lanes + l];
}

// Tells whether code is short instead of fast. In a small library it is, for processors that few machines have, and
// for single precision.
#if defined(NEML2_CAPI_SMALL) && defined(__x86_64__) && !defined(__AVX2__)
template <class T>
inline constexpr bool is_short = true;
inline constexpr int unrolled = 1;  // how many times the body of a short loop is written
#else
#if defined(NEML2_CAPI_SMALL)
template <class T>
inline constexpr bool is_short = sizeof(T) < sizeof(double);
#else
template <class T>
inline constexpr bool is_short = false;
#endif
inline constexpr int unrolled = 6;
#endif

// Calls a function with 0, 1, ... Most arrays hold a symmetric tensor, or a number.
template <class Take>
[[gnu::always_inline]] inline void count_to(std::int64_t count, Take&& take) {
  if (unrolled > 1 && count == 6) {
#pragma GCC unroll 6
    for (std::int64_t c = 0; c < 6; ++c) take(c);
  } else {
    for (std::int64_t c = 0; c < count; ++c) take(c);
  }
}

// Calls a function of any type with a count, or with a constant if it is of a tensor, or of components of one.
template <class T, class Take>
[[gnu::always_inline]] inline void as_constant(std::int64_t count, Take&& take) {
  if constexpr (is_short<T>) return take(count);
  switch (count) {
    case 1: return take(std::integral_constant<std::int64_t, 1>());
    case 2: return take(std::integral_constant<std::int64_t, 2>());
    case 3: return take(std::integral_constant<std::int64_t, 3>());
    case 4: return take(std::integral_constant<std::int64_t, 4>());
    case 5: return take(std::integral_constant<std::int64_t, 5>());
    case 6: return take(std::integral_constant<std::int64_t, 6>());
    default: return take(count);
  }
}

// A vector of numbers that stand side by side, wherever they stand.
template <class T>
struct Packed {
  typedef typename VectorOf<T, width<T>>::type type [[gnu::aligned(alignof(T)), gnu::may_alias]];
};

// Rows of `count` numbers, `stride` apart, to vectors; and back.
template <class T>
[[gnu::always_inline]] inline void rows_to_vectors(const T* first, std::int64_t stride, T* vectors,
                                                   std::int64_t count) {
  if (count == 1 && stride == 1) {
    *reinterpret_cast<Lanes<T>*>(vectors) = *reinterpret_cast<const typename Packed<T>::type*>(first);
    return;
  }
  // Most arrays hold a symmetric tensor of each point, and nothing between.
  if (count != 6)
    transpose_to_vectors<T>(RowsOf<const T>{first, stride}, vectors, count);
  else if (stride != 6)
    transpose_to_vectors<T>(RowsOf<const T>{first, stride}, vectors, 6);
  else
    transpose_to_vectors<T>(RowsOf<const T, 6>{first, 6}, vectors, 6);
}

template <class T>
[[gnu::always_inline]] inline void vectors_to_rows(const T* vectors, T* first, std::int64_t stride,
                                                   std::int64_t count) {
  if (count == 1 && stride == 1) {
    *reinterpret_cast<typename Packed<T>::type*>(first) = *reinterpret_cast<const Lanes<T>*>(vectors);
    return;
  }
  if (count != 6)
    transpose_to_rows<T>(vectors, RowsOf<T>{first, stride}, count);
  else if (stride != 6)
    transpose_to_rows<T>(vectors, RowsOf<T>{first, stride}, 6);
  else if constexpr (has_pairs && std::is_same_v<T, double>)
    tensors_to_rows(vectors, first);
  else
    transpose_to_rows<T>(vectors, RowsOf<T, 6>{first, 6}, 6);
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
