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

#if defined(__AVX2__)
inline constexpr bool has_tiles = true;

// Four rows of four numbers, transposed.
struct Tile {
  __m256d row[4];

  [[gnu::always_inline]] Tile(const double* first, const double* second, const double* third, const double* fourth) {
    const __m256d a = _mm256_loadu_pd(first), b = _mm256_loadu_pd(second);
    const __m256d c = _mm256_loadu_pd(third), d = _mm256_loadu_pd(fourth);
    const __m256d ab = _mm256_unpacklo_pd(a, b), cd = _mm256_unpacklo_pd(c, d);
    const __m256d ab2 = _mm256_unpackhi_pd(a, b), cd2 = _mm256_unpackhi_pd(c, d);
    row[0] = _mm256_permute2f128_pd(ab, cd, 0x20);
    row[1] = _mm256_permute2f128_pd(ab2, cd2, 0x20);
    row[2] = _mm256_permute2f128_pd(ab, cd, 0x31);
    row[3] = _mm256_permute2f128_pd(ab2, cd2, 0x31);
  }
};

// Four numbers of each row to four whole vectors: what is stored in halves, no vector is loaded from soon after.
[[gnu::always_inline]] inline void tile_to_vectors(const double* const* rows, std::int64_t c, double* to) {
  const Tile tile(rows[0] + c, rows[1] + c, rows[2] + c, rows[3] + c);
#if defined(__AVX512F__)
  const Tile more(rows[4] + c, rows[5] + c, rows[6] + c, rows[7] + c);
  for (int k = 0; k < 4; ++k)
    _mm512_storeu_pd(to + 8 * k, __builtin_shufflevector(tile.row[k], more.row[k], 0, 1, 2, 3, 4, 5, 6, 7));
#else
  for (int k = 0; k < 4; ++k) _mm256_storeu_pd(to + 4 * k, tile.row[k]);
#endif
}

[[gnu::always_inline]] inline void tile_to_rows(const double* from, double* const* rows, std::int64_t c) {
  for (int l = 0; l < width<double>; l += 4, from += 4) {
    const Tile tile(from, from + width<double>, from + 2 * width<double>, from + 3 * width<double>);
    for (int k = 0; k < 4; ++k) _mm256_storeu_pd(rows[l + k] + c, tile.row[k]);
  }
}

// The same of two numbers of each row: symmetric tensors have six.
[[gnu::always_inline]] inline void pair_to_vectors(const double* const* rows, std::int64_t c, double* to) {
  const auto pairs = [&](int l) {
    const __m256d low = _mm256_castpd128_pd256(_mm_loadu_pd(rows[l] + c));
    return _mm256_insertf128_pd(low, _mm_loadu_pd(rows[l + 2] + c), 1);
  };
  const __m256d even = pairs(0), odd = pairs(1);
  const __m256d first = _mm256_unpacklo_pd(even, odd), second = _mm256_unpackhi_pd(even, odd);
#if defined(__AVX512F__)
  const __m256d even2 = pairs(4), odd2 = pairs(5);
  const __m256d first2 = _mm256_unpacklo_pd(even2, odd2), second2 = _mm256_unpackhi_pd(even2, odd2);
  _mm512_storeu_pd(to, __builtin_shufflevector(first, first2, 0, 1, 2, 3, 4, 5, 6, 7));
  _mm512_storeu_pd(to + 8, __builtin_shufflevector(second, second2, 0, 1, 2, 3, 4, 5, 6, 7));
#else
  _mm256_storeu_pd(to, first);
  _mm256_storeu_pd(to + 4, second);
#endif
}

[[gnu::always_inline]] inline void pair_to_rows(const double* from, double* const* rows, std::int64_t c) {
  for (int l = 0; l < width<double>; l += 4, from += 4) {
    const __m256d first = _mm256_loadu_pd(from), second = _mm256_loadu_pd(from + width<double>);
    const __m256d even = _mm256_unpacklo_pd(first, second), odd = _mm256_unpackhi_pd(first, second);
    _mm_storeu_pd(rows[l] + c, _mm256_castpd256_pd128(even));
    _mm_storeu_pd(rows[l + 1] + c, _mm256_castpd256_pd128(odd));
    _mm_storeu_pd(rows[l + 2] + c, _mm256_extractf128_pd(even, 1));
    _mm_storeu_pd(rows[l + 3] + c, _mm256_extractf128_pd(odd, 1));
  }
}
#else
inline constexpr bool has_tiles = false;
inline void tile_to_vectors(const double* const*, std::int64_t, double*) {}
inline void tile_to_rows(const double*, double* const*, std::int64_t) {}
inline void pair_to_vectors(const double* const*, std::int64_t, double*) {}
inline void pair_to_rows(const double*, double* const*, std::int64_t) {}
#endif

// Rows of `count` numbers, one for each lane, to vectors; and back.
template <class T>
[[gnu::always_inline]] inline void rows_to_vectors(const T* const (&rows)[width<T>], T* vectors, std::int64_t count) {
  constexpr int lanes = width<T>;
  std::int64_t c = 0;
  if constexpr (has_tiles && std::is_same_v<T, double>) {
    for (; c + 4 <= count; c += 4) tile_to_vectors(rows, c, vectors + c * lanes);
    for (; c + 2 <= count; c += 2) pair_to_vectors(rows, c, vectors + c * lanes);
  }
  for (; c < count; ++c) {
    Lanes<T> v;
    for (int l = 0; l < lanes; ++l) v[l] = rows[l][c];
    *reinterpret_cast<Lanes<T>*>(vectors + c * lanes) = v;
  }
}

template <class T>
[[gnu::always_inline]] inline void vectors_to_rows(const T* vectors, T* const (&rows)[width<T>], std::int64_t count) {
  constexpr int lanes = width<T>;
  std::int64_t c = 0;
  if constexpr (has_tiles && std::is_same_v<T, double>) {
    for (; c + 4 <= count; c += 4) tile_to_rows(vectors + c * lanes, rows, c);
    for (; c + 2 <= count; c += 2) pair_to_rows(vectors + c * lanes, rows, c);
  }
  for (; c < count; ++c)
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) rows[l][c] = vectors[c * lanes + l];
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
