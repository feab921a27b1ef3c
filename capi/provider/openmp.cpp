// Functions of OpenMP that compiled code calls: a parallel region runs on the calling thread, as a team of one, since the
// host decides about threads. GCC's code calls GOMP_*, clang's __kmpc_*; nml2pc_single is __kmpc_single.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "capi/provider/exports.h"

namespace {

using Int = std::int32_t;

// Code that clang makes of a region: it takes the address of each variable of the region.
using Region = void (*)(Int* thread, Int* thread_in_team, ...);

constexpr std::size_t most_variables = 256;
using Variables = std::array<void*, most_variables>;

// Passes null for variables that a region lacks: the caller clears arguments away, so that surplus ones do no harm.
template <std::size_t... i>
void call(Region region, const Variables& variables, std::index_sequence<i...>) {
  Int thread = 0, thread_in_team = 0;
  region(&thread, &thread_in_team, variables[i]...);
}

// The whole loop is one thread's.
template <class Number>
void take_whole_loop(Int* last, const Number* lower, const Number* upper, std::make_signed_t<Number>* stride,
                     std::make_signed_t<Number> step) {
  using Signed = std::make_signed_t<Number>;
  if (last) *last = 1;
  *stride = step > 0 ? static_cast<Signed>(*upper - *lower + 1) : -static_cast<Signed>(*lower - *upper + 1);
}

}  // namespace

NML2_EXPORT int nml2get_num_threads() { return 1; }
NML2_EXPORT int nml2get_max_threads() { return 1; }
NML2_EXPORT int nml2get_thread_num() { return 0; }
NML2_EXPORT int nml2in_parallel() { return 0; }

NML2_EXPORT void nml2_parallel(void (*region)(void*), void* data, unsigned, unsigned) { region(data); }
NML2_EXPORT void nml2_barrier() {}
NML2_EXPORT bool nml2_single_start() { return true; }

NML2_EXPORT void nml2pc_fork_call(void*, Int count, Region region, ...) {
  if (count > static_cast<Int>(most_variables))
    throw std::runtime_error("a parallel region has more than 256 variables; compile the model with g++");
  Variables variables{};
  va_list arguments;
  va_start(arguments, region);
  std::generate_n(variables.begin(), count, [&] { return va_arg(arguments, void*); });
  va_end(arguments);
  constexpr std::size_t few = 16;
  if (count <= static_cast<Int>(few))
    call(region, variables, std::make_index_sequence<few>());
  else
    call(region, variables, std::make_index_sequence<most_variables>());
}
NML2_EXPORT Int nml2pc_global_thread_num(void*) { return 0; }
NML2_EXPORT void nml2pc_push_num_threads(void*, Int, Int) {}
NML2_EXPORT void nml2pc_barrier(void*, Int) {}
NML2_EXPORT Int nml2pc_single(void*, Int) { return 1; }
NML2_EXPORT void nml2pc_end_single(void*, Int) {}
NML2_EXPORT void nml2pc_for_static_fini(void*, Int) {}

#define NML2_STATIC_LOOP(suffix, Number)                                                                          \
  NML2_EXPORT void nml2pc_for_static_init_##suffix(void*, Int, Int, Int* last, Number* lower, Number* upper,      \
                                                   std::make_signed_t<Number>* stride,                            \
                                                   std::make_signed_t<Number> step, std::make_signed_t<Number>) { \
    take_whole_loop(last, lower, upper, stride, step);                                                            \
  }
NML2_STATIC_LOOP(4, std::int32_t)
NML2_STATIC_LOOP(4u, std::uint32_t)
NML2_STATIC_LOOP(8, std::int64_t)
NML2_STATIC_LOOP(8u, std::uint64_t)
#undef NML2_STATIC_LOOP
