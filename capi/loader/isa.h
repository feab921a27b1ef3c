// Requirements of a package on the machine: the device and the processor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti {

// Target that a package was compiled for, from its metadata.
struct Target {
  std::string device;            // AOTI_DEVICE_KEY: "cpu"
  std::string machine;           // AOTI_MACHINE: "x86_64"
  std::string instruction_sets;  // AOTI_CPU_ISA: "AVX2", "AVX512 AVX512_VNNI"; coarse
};

// Throws Error NEML2_ERROR_UNSUPPORTED if the package is for another device, or another kind of machine.
void check_machine(const Target& target);

// Throws Error NEML2_ERROR_UNSUPPORTED with the instruction sets that this machine lacks, before the first illegal
// instruction. `producers` are the compilers' command lines, if debug information tells them, since the metadata is
// coarse.
void check_processor(const Target& target, const std::vector<std::string>& producers);

}  // namespace neml2_capi::aoti
