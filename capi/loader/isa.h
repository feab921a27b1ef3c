// What a package needs of the machine: the device, the processor and the C library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti {

// What the package's metadata says that it was compiled for.
struct Target {
  std::string device;            // AOTI_DEVICE_KEY: "cpu"
  std::string machine;           // AOTI_MACHINE: "x86_64"
  std::string instruction_sets;  // AOTI_CPU_ISA: "AVX2", "AVX512 AVX512_VNNI"; coarse
};

// Throws Error NEML2_ERROR_UNSUPPORTED where the package is for another device, or another kind of machine.
void check_machine(const Target& target);

// Throws Error NEML2_ERROR_UNSUPPORTED, naming what this machine lacks, before the first illegal instruction.
// `producers` are the compilers' command lines, where debug information tells them: the metadata alone does not say it
// all.
void check_processor(const Target& target, const std::vector<std::string>& producers);

// Throws Error NEML2_ERROR_UNSUPPORTED where a "GLIBC_2.34" among `versions` is newer than the C library of the
// process.
void check_c_library(const std::vector<std::string>& versions);

}  // namespace neml2_capi::aoti
