// The provider's functions of OpenMP, called as compiled code calls them: a region runs once, here, and takes all of a loop.
//
//     test_openmp PROVIDER
#include <dlfcn.h>

#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;

namespace {

using Int = std::int32_t;
using Region = void (*)(Int*, Int*, ...);

void* provider = nullptr;

template <class Signature>
Signature* find(const char* name) {
  void* symbol = dlsym(provider, name);
  expect(symbol != nullptr, join("the provider exports ", name));
  return reinterpret_cast<Signature*>(symbol);
}

struct Seen {
  int runs = 0;
  int threads = 0;
  int thread = -1;
  std::thread::id where;
};

// As g++ compiles "#pragma omp parallel": data in one block.
void code_of_gcc_runs_once_and_here() {
  Seen region;
  const auto run = +[](void* data) {
    auto& seen = *static_cast<Seen*>(data);
    ++seen.runs;
    seen.threads = find<int()>("nml2get_num_threads")();
    seen.thread = find<int()>("nml2get_thread_num")();
    seen.where = std::this_thread::get_id();
    find<void()>("nml2_barrier")();
    expect(find<bool()>("nml2_single_start")(), "this thread does what one alone does");
  };
  find<void(void (*)(void*), void*, unsigned, unsigned)>("nml2_parallel")(run, &region, 8, 0);
  expect(region.runs == 1 && region.threads == 1 && region.thread == 0, "a team of one");
  expect(region.where == std::this_thread::get_id(), "the calling thread");
  expect(find<int()>("nml2get_max_threads")() == 1 && find<int()>("nml2in_parallel")() == 0, "no other thread");
}

// A region of clang's code: it sums its variables, each of which is its own number, from 1 on.
std::int64_t count = 0, sum = 0;

void sum_up(Int* thread, Int* in_team, ...) {
  expect(*thread == 0 && *in_team == 0, "a team of one");
  va_list variables;
  va_start(variables, in_team);
  for (std::int64_t i = 0; i < count; ++i) sum += *va_arg(variables, std::int64_t*);
  va_end(variables);
}

// As clang compiles "#pragma omp parallel": the address of each variable.
template <std::size_t... i>
void run_with(std::index_sequence<i...>) {
  std::int64_t numbers[] = {static_cast<std::int64_t>(i + 1)..., 0};
  count = sizeof...(i);
  sum = 0;
  find<void(void*, Int, Region, ...)>("nml2pc_fork_call")(nullptr, static_cast<Int>(count), sum_up, &numbers[i]...);
  expect(sum == count * (count + 1) / 2, join(count, " variables arrive"));
}

void never(Int*, Int*, ...) { std::abort(); }

void code_of_clang_gets_its_variables() {
  run_with(std::make_index_sequence<0>());
  run_with(std::make_index_sequence<5>());
  run_with(std::make_index_sequence<16>());
  run_with(std::make_index_sequence<17>());
  run_with(std::make_index_sequence<256>());
  try {
    find<void(void*, Int, Region, ...)>("nml2pc_fork_call")(nullptr, 257, never);
    expect(false, "it is refused");
  } catch (const std::runtime_error& error) {
    expect(std::string(error.what()).find("more than 256 variables") != std::string::npos, error.what());
  }
  find<void(void*, Int, Int)>("nml2pc_push_num_threads")(nullptr, 0, 8);
  find<void(void*, Int)>("nml2pc_barrier")(nullptr, 0);
  expect(find<Int(void*)>("nml2pc_global_thread_num")(nullptr) == 0, "this thread is the first");
  expect(find<Int(void*, Int)>("nml2pc_single")(nullptr, 0) == 1, "this thread does what one alone does");
  find<void(void*, Int)>("nml2pc_end_single")(nullptr, 0);
}

// Bounds are the loop's, and the stride leads beyond them.
template <class Number, class Signed>
void a_loop_stays_whole(const char* name, Number first, Number last, Signed step, Signed stride_expected) {
  Int is_last = 0;
  Number lower = first, upper = last;
  Signed stride = 0;
  constexpr Int static_schedule = 34;
  find<void(void*, Int, Int, Int*, Number*, Number*, Signed*, Signed, Signed)>(name)(
      nullptr, 0, static_schedule, &is_last, &lower, &upper, &stride, step, 1);
  expect(is_last == 1 && lower == first && upper == last && stride == stride_expected, name);
  find<void(void*, Int)>("nml2pc_for_static_fini")(nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  expect(argc == 2, "usage: test_openmp PROVIDER");
  provider = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  expect(provider != nullptr, "the provider is opened");
  code_of_gcc_runs_once_and_here();
  code_of_clang_gets_its_variables();
  a_loop_stays_whole<std::int32_t, std::int32_t>("nml2pc_for_static_init_4", 0, 99, 1, 100);
  a_loop_stays_whole<std::int32_t, std::int32_t>("nml2pc_for_static_init_4", 9, 0, -1, -10);
  a_loop_stays_whole<std::uint32_t, std::int32_t>("nml2pc_for_static_init_4u", 0, 99, 1, 100);
  a_loop_stays_whole<std::int64_t, std::int64_t>("nml2pc_for_static_init_8", -5, 4, 1, 10);
  a_loop_stays_whole<std::uint64_t, std::int64_t>("nml2pc_for_static_init_8u", 0, 6, 2, 7);
  return 0;
}
