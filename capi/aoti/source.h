// What a package's own source says about its inputs and outputs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "capi/aoti/graph.h"

namespace neml2_capi::aoti {

// One axis of one input.
struct Axis {
  std::int64_t input;
  std::int64_t axis;
};

struct Signature {
  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  CallSpec call_spec;
  Device::Type device = Device::Type::cpu;           // of all inputs
  std::vector<std::vector<Axis>> equal_axes;         // groups of dynamic axes that always have one size
  std::map<std::string, Axis, std::less<>> symbols;  // the names of sizes in the source, and an axis that has each

  bool has_kernels = false;  // code of its own, beside what it calls
  // Kernels on integers note a division by zero through a pointer to the stack of the running thread, and one image has
  // one such pointer: they must run one at a time.
  bool has_integer_kernels = false;
};

// Read the text of a package's *.wrapper.cpp: its metadata says nothing about sizes, but the source states what each
// input must be, in checks that are compiled in and usually off. Throws Error NEML2_ERROR_ARTIFACT, naming the input,
// where the text cannot be understood, NEML2_ERROR_UNSUPPORTED for an input that has gaps, or is on another device than
// the CPU and CUDA, or than the others.
Signature read_signature(std::string_view source);

}  // namespace neml2_capi::aoti
