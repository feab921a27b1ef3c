// What a package needs of the machine, as told by its metadata and its debug information.
#include <sys/utsname.h>

#include "capi/loader/isa.h"
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
#endif

}  // namespace

int main() {
  unknown_instruction_sets_are_refused();
#if defined(__x86_64__)
  the_flags_of_the_compiler_count();
#endif
}
