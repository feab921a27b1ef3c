// What a package needs of the machine, from its metadata and its debug information.
#include <sys/utsname.h>

#include <algorithm>

#include "capi/loader/isa.h"
#include "capi/platform/processor.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::check_processor;
using aoti::Target;

namespace {

Target here(const std::string& instruction_sets) {
  utsname system{};
  uname(&system);
  return {"cpu", system.machine, instruction_sets};
}

void other_machines_are_refused() {
  Target target = here("");
  aoti::check_machine(target);
  target.device = "cuda";
  aoti::check_machine(target);
  target.device = "xpu";
  expect_error(NEML2_ERROR_UNSUPPORTED, "the device \"xpu\"", [&] { aoti::check_machine(target); });
  target = here("");
  target.machine = "s390x";
  expect_error(NEML2_ERROR_UNSUPPORTED, "the machine \"s390x\"", [&] { aoti::check_machine(target); });
}

void unknown_instruction_sets_are_refused() {
  check_processor(here("INVALID_VEC_ISA"), {});
  expect_error(NEML2_ERROR_UNSUPPORTED, "\"AVX9\"", [] { check_processor(here("INVALID_VEC_ISA AVX9"), {}); });
}

#if defined(__x86_64__)
// AVX-512ER was in Xeon Phi only. The producer string counts, not the coarse metadata.
void the_flags_of_the_compiler_count() {
  const auto check = [](const std::string& flags) {
    check_processor(here("INVALID_VEC_ISA"), {"GNU C++20 12.2.0 " + flags + " -g1 -O3"});
  };
  check("-march=x86-64 -mtune=generic");
  check("-march=x86-64 -maes -msha -mno-such -mtune=znver9");  // not used by compilers on their own
  check("-march=x86-64 -mavx512er -mno-avx512er");             // as -march=native is recorded
  expect_error(NEML2_ERROR_UNSUPPORTED, "avx512er, which this one lacks", [&] { check("-march=x86-64 -mavx512er"); });
  expect_error(NEML2_ERROR_UNSUPPORTED, "TORCHINDUCTOR_CPP_MARCH=x86-64-v3", [&] { check("-mavx512er"); });
}

using Features = std::vector<std::string>;

Features operator+(Features a, const Features& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The check must ask for these and no more; AVX-512ER makes sure that something lacks.
void asks_for(Features features, const std::string& instruction_sets, const std::string& flags) {
  features.emplace_back("avx512er");
  std::sort(features.begin(), features.end());
  std::string missing;
  for (const std::string& feature : features)
    if (!processor::has(feature)) add_name(missing, feature);
  expect_error(NEML2_ERROR_UNSUPPORTED, "for a processor with " + missing + ", which this one lacks", [&] {
    check_processor(here(instruction_sets), {"GNU C++20 12.2.0 " + flags, "-mavx512er"});
  });
}

void each_processor_has_the_instruction_sets_of_its_level() {
  const Features second = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"};
  const Features third = second + Features{"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
  const Features fourth = third + Features{"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
  asks_for({}, "INVALID_VEC_ISA", "-march=x86-64");
  for (const char* march : {"x86-64-v2", "nehalem"}) asks_for(second, "", join("-march=", march));
  for (const char* march : {"x86-64-v3", "haswell", "znver3"}) asks_for(third, "", join("-march=", march));
  for (const char* march : {"x86-64-v4", "skylake-avx512", "znver5"}) asks_for(fourth, "", join("-march=", march));
  asks_for(third, "AVX2", "");
  asks_for(fourth, "AVX512", "");
  asks_for(fourth + Features{"avx512vnni", "amx-tile"}, "AVX512 AVX512_VNNI AMX_TILE", "");
  asks_for(second + Features{"xop"}, "", "-march=x86-64-v2 -mxop");
}
#endif

}  // namespace

int main() {
  other_machines_are_refused();
  unknown_instruction_sets_are_refused();
#if defined(__x86_64__)
  the_flags_of_the_compiler_count();
  each_processor_has_the_instruction_sets_of_its_level();
#endif
  return 0;
}
