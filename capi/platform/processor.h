// Instruction sets of this x86-64 processor, asked of itself: __builtin_cpu_supports finds none if a program brings
// another run time of the compiler than GCC's.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace neml2_capi::processor {

enum Register { eax, ebx, ecx, edx };

// Instruction set that compilers use on their own: the compiler's name, and the bit if cpuid reports it. Others
// (aes, sha, ...) stand in a command line, too, but only written intrinsics use them.
struct Feature {
  const char* name;
  unsigned leaf;
  unsigned subleaf;
  Register where;
  int bit;
};

inline constexpr Feature features[] = {
    {"sse3", 1, 0, ecx, 0},
    {"ssse3", 1, 0, ecx, 9},
    {"fma", 1, 0, ecx, 12},
    {"sse4.1", 1, 0, ecx, 19},
    {"sse4.2", 1, 0, ecx, 20},
    {"movbe", 1, 0, ecx, 22},
    {"popcnt", 1, 0, ecx, 23},
    {"avx", 1, 0, ecx, 28},
    {"f16c", 1, 0, ecx, 29},
    {"bmi", 7, 0, ebx, 3},
    {"avx2", 7, 0, ebx, 5},
    {"bmi2", 7, 0, ebx, 8},
    {"avx512f", 7, 0, ebx, 16},
    {"avx512dq", 7, 0, ebx, 17},
    {"avx512ifma", 7, 0, ebx, 21},
    {"avx512er", 7, 0, ebx, 27},
    {"avx512cd", 7, 0, ebx, 28},
    {"avx512bw", 7, 0, ebx, 30},
    {"avx512vl", 7, 0, ebx, 31},
    {"avx512vbmi", 7, 0, ecx, 1},
    {"avx512vbmi2", 7, 0, ecx, 6},
    {"gfni", 7, 0, ecx, 8},
    {"avx512vnni", 7, 0, ecx, 11},
    {"avx512bitalg", 7, 0, ecx, 12},
    {"avx512vpopcntdq", 7, 0, ecx, 14},
    {"amx-bf16", 7, 0, edx, 22},
    {"avx512fp16", 7, 0, edx, 23},
    {"amx-tile", 7, 0, edx, 24},
    {"amx-int8", 7, 0, edx, 25},
    {"avxvnni", 7, 1, eax, 4},
    {"avx512bf16", 7, 1, eax, 5},
    {"amx-fp16", 7, 1, eax, 21},
    {"avxifma", 7, 1, eax, 23},
    {"lzcnt", 0x80000001, 0, ecx, 5},
    {"xop", 0x80000001, 0, ecx, 11},
    {"fma4", 0x80000001, 0, ecx, 16},
    {"tbm", 0x80000001, 0, ecx, 21},
};

// Returns the registers that the operating system saves (XCR0). Instructions on others are as illegal as missing ones.
inline std::uint64_t saved_registers() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
  std::uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

// Returns for each feature whether the processor and the operating system have it.
inline std::array<bool, std::size(features)> ask() {
  constexpr std::uint64_t ymm = 0x6, zmm = 0xe6, tiles = 0x60000;
  const std::uint64_t saved = saved_registers();
  std::array<bool, std::size(features)> present{};
  unsigned found[4] = {};
  for (std::size_t i = 0; i < present.size(); ++i) {
    const Feature& feature = features[i];
    const bool is_next = i == 0 || feature.leaf != features[i - 1].leaf || feature.subleaf != features[i - 1].subleaf;
    if (is_next &&
        !__get_cpuid_count(feature.leaf, feature.subleaf, &found[eax], &found[ebx], &found[ecx], &found[edx]))
      std::fill(std::begin(found), std::end(found), 0u);
    const std::string_view name = feature.name;
    std::uint64_t needed = 0;
    if (name.starts_with("avx") || name.starts_with("fma") || name == "f16c" || name == "xop") needed = ymm;
    if (name.starts_with("avx512")) needed = zmm;
    if (name.starts_with("amx")) needed = tiles;
    present[i] = (found[feature.where] >> feature.bit & 1) && (saved & needed) == needed;
  }
  return present;
}

// `feature` is one of the table. The processor is asked once: a virtual machine takes 10 µs for each answer.
inline bool is_present(const Feature& feature) {
  constexpr std::uint64_t asked = std::uint64_t{1} << 63;
  static_assert(std::size(features) < 63);
  static constinit std::atomic<std::uint64_t> known = 0;
  std::uint64_t present = known.load(std::memory_order_relaxed);
  if (present == 0) {
    const auto answers = ask();
    for (std::size_t i = 0; i < answers.size(); ++i) present |= std::uint64_t{answers[i]} << i;
    known.store(present |= asked, std::memory_order_relaxed);
  }
  return present >> (&feature - features) & 1;
}

// Tells whether the processor has an instruction set, by the compiler's name. One that is not in the table is missing.
inline bool has(std::string_view name) {
  for (const Feature& feature : features)
    if (name == feature.name) return is_present(feature);
  return false;
}

}  // namespace neml2_capi::processor

#endif
