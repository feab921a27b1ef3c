// CUDA's compiler, without a GPU: texts become machine code of three architectures, and what is wrong is told. A text in
// a file that is named after the provider is compiled instead.
#include <cstdlib>

#include "capi/accelerator/kernels.h"
#include "capi/accelerator/program_cache.h"
#include "capi/cuda/compiler.h"
#include "capi/cuda/library.h"
#include "capi/graph/driver.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;

namespace {

constexpr const char* architectures[] = {"sm_80", "sm_90", "sm_100"};
constexpr const char* doubling =
    "NEML2_KERNEL void neml2_law(long n, const double *x, double *y) {"
    "  const long i = blockIdx.x * (long)blockDim.x + threadIdx.x;"
    "  if (i < n) y[i] = 2 * x[i] + 1; }";

bool is_object(const std::string& cubin) {
  return cubin.starts_with(
      "\x7f"
      "ELF");
}

void a_text_becomes_machine_code() {
  for (const char* architecture : architectures) {
    const std::string cubin = cuda::compile(accelerator::with_kernels(doubling, DType::float64), architecture);
    expect(is_object(cubin), "it is machine code");
    for (const char* name : graph::kernel_names) expect(cubin.find(name) != cubin.npos, name);
  }
}

void what_is_wrong_is_told() {
  expect_error(NEML2_ERROR_ARTIFACT, "identifier \"nothing\" is undefined",
               [] { cuda::compile("NEML2_KERNEL void neml2_law() { nothing(); }", "sm_90"); });
  expect_error(NEML2_ERROR_ARTIFACT, "build-kernels ARTIFACT --target cuda",
               [] { cuda::compile("NEML2_KERNEL void neml2_law() { nothing(); }", "sm_90"); });
  expect_error(NEML2_ERROR_UNSUPPORTED, "sm_1", [] { cuda::compile(doubling, "sm_1"); });
}

void a_cubin_is_kept() {
  const Scratch folder;
  setenv("XDG_CACHE_HOME", (folder / "caches").c_str(), 1);
  std::string first, second;
  int compiled = 0;
  const auto make = [&] { return ++compiled, cuda::compile(doubling, "sm_90"); };
  const std::string key = "text\n" + cuda::compiler_key("sm_90");
  accelerator::with_cached(key, make, [&](const std::string& cubin) { first = cubin; });
  accelerator::with_cached(key, make, [&](const std::string& cubin) { second = cubin; });
  expect(compiled == 1 && first == second && is_object(first), "the second is the first one's file");
  expect(key != "text\n" + cuda::compiler_key("sm_80"), "an architecture has its own");
}

void a_machine_without_a_driver_is_refused() {
  try {
    cuda::driver();
  } catch (const Error&) {
    expect_error(NEML2_ERROR_UNSUPPORTED, "Install the driver of an NVIDIA GPU, or open the model on the CPU", [] {
      graph::driver_of({Device::Type::cuda, false, 0}).open({Device::Type::cuda, false, 0});
    });
  }
}

void the_text_of_a_file_compiles(const char* path) {
  const std::string text = read_file(path);
  for (const char* architecture : architectures) expect(is_object(cuda::compile(text, architecture)), architecture);
}

}  // namespace

int main(int argc, char** argv) {
  a_machine_without_a_driver_is_refused();
  try {
    cuda::compiler();
  } catch (const Error& error) {
    expect(std::string(error.what()).find("pip install nvidia-cuda-nvrtc") != std::string::npos, "it says what to do");
    return 77;
  }
  if (argc > 2) {
    the_text_of_a_file_compiles(argv[2]);
  } else {
    a_text_becomes_machine_code();
    what_is_wrong_is_told();
    a_cubin_is_kept();
  }
  return 0;
}
