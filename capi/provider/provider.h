// Functions that the built-in provider exports to libneml2_capi.
//
// The provider is a shared library of its own. It exports the aoti_torch_* functions that packages call, under names in
// which the first four characters are replaced by "nml2" (aoti_torch_clone: nml2_torch_clone; Sleef_expd4_u10:
// nml2f_expd4_u10; GOMP_parallel: nml2_parallel), what they print with, register destructors with and make static
// variables with (_ZSt4cerr: nml24cerr), and the functions below. It is opened with dlopen, RTLD_LOCAL, from the folder of libneml2_capi.
// An AtenTensorHandle is a Tensor* that was made with new.
#pragma once

#include <cstddef>
#include <cstdint>

#include "capi/package/operator_node.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::aoti {

// Exported, extern "C":
//   Operator nml2_find_operator(const char* target)   null for an unsupported operator
//   const char* nml2_supported_operators()            their names, separated by spaces
//   const char* nml2_last_error()                     reason of this thread's last failure, or ""; a call clears it
using FindOperator = Operator (*)(const char* target);
using SupportedOperators = const char* (*)();
using LastError = const char* (*)();
// Message of nml2_last_error() if memory lacked.
inline constexpr char lack_of_memory[] = "out of memory";
//   void nml2_use_memory(memory::Allocate, memory::Release)
//                                                     sets the caches of libneml2_capi, before the first package runs
using UseMemory = void (*)(memory::Allocate, memory::Release);
//   void nml2_use_output(Output)                      sets what takes a line that a package prints
using Output = void (*)(const char* text, std::size_t size);
using UseOutput = void (*)(Output);
//   void nml2_open_streams(const StreamParts&)        opens std::cerr, cout and clog of packages, before the first runs
// Parts of libstdc++, which packages are compiled with: std::streambuf's virtual functions and constructor, and
// std::ostream's constructor.
struct StreamParts {
  const void* buffer_table;
  void (*make_buffer)(void* self);
  void (*make_stream)(void* self, void* buffer);
};
inline constexpr char stream_library[] = "libstdc++.so.6";
inline constexpr const char* stream_symbols[] = {"_ZTVSt15basic_streambufIcSt11char_traitsIcEE",
                                                 "_ZNSt15basic_streambufIcSt11char_traitsIcEEC2Ev",
                                                 "_ZNSoC1EPSt15basic_streambufIcSt11char_traitsIcEE"};
using OpenStreams = void (*)(const StreamParts&);

}  // namespace neml2_capi::aoti
