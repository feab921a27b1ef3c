#include "capi/cuda/library.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "capi/base/error.h"
#include "capi/base/once.h"
#include "capi/platform/library_functions.h"

namespace neml2_capi::cuda {
namespace {

constexpr const char* variable = "NEML2_CAPI_NVRTC";

// Opens the first of some files that is there; `reason` gets the words about the last one.
void* open_first(const std::vector<std::string>& files, std::string& reason) {
  for (const std::string& file : files)
    if (void* library = platform::open_shared(file.c_str(), reason, platform::Opening::for_ever)) return library;
  return nullptr;
}

DriverFunctions find_driver() {
  const auto missing = [](const std::string& what) {
    return Error(
        NEML2_ERROR_UNSUPPORTED, "cuda",
        join("CUDA cannot be used: ", what, ". Install the driver of an NVIDIA GPU, or open the model on the CPU."));
  };
#if defined(_WIN32)
  const std::vector<std::string> files = {"nvcuda.dll"};
#else
  const std::vector<std::string> files = {"libcuda.so.1"};
#endif
  std::string reason, lacking;
  void* library = open_first(files, reason);
  if (!library) throw missing(reason);
  DriverFunctions found;
#define NEML2_LOOK_UP(name, ...) platform::look_up(library, #name, found.name, lacking);
  NEML2_CUDA_FUNCTIONS(NEML2_LOOK_UP)
  if (!lacking.empty()) throw missing(join(files.front(), " lacks ", lacking));
  if (const Status status = found.cuInit(0)) {
    const char* words = nullptr;
    found.cuGetErrorString(status, &words);
    throw missing(join("the driver says ", words ? words : "nothing", " (error ", status, ")"));
  }
  return found;
}

// The compiler opens its builtins by their name, which finds them if they are open already.
void open_builtins_beside(const std::filesystem::path& compiler) {
  std::error_code ignored;
  std::string reason;
  for (const auto& entry : std::filesystem::directory_iterator(compiler.parent_path(), ignored))
    if (entry.path().filename().string().find("nvrtc-builtins") != std::string::npos)
      platform::open_shared(entry.path().string().c_str(), reason, platform::Opening::for_ever);
}

CompilerFunctions find_compiler() {
#if defined(_WIN32)
  std::vector<std::string> files = {"nvrtc64_130_0.dll", "nvrtc64_120_0.dll"};
#else
  std::vector<std::string> files = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
#endif
  if (const char* named = std::getenv(variable); named && *named) {
    files = {named};
    open_builtins_beside(named);
  }
  const auto missing = [&](const std::string& what) {
    return Error(NEML2_ERROR_UNSUPPORTED, "nvrtc",
                 join("CUDA's compiler cannot be used: ", what,
                      ". Install it (pip install nvidia-cuda-nvrtc, or the CUDA toolkit, version 12 or later), or set ",
                      variable, " to the file libnvrtc.so."));
  };
  std::string reason, lacking;
  void* library = open_first(files, reason);
  if (!library) throw missing(reason);
  CompilerFunctions found;
#define NEML2_LOOK_UP(name, ...) platform::look_up(library, #name, found.name, lacking);
  NEML2_NVRTC_FUNCTIONS(NEML2_LOOK_UP)
  if (!lacking.empty()) throw missing(join(files.front(), " lacks ", lacking));
  return found;
}

}  // namespace

const DriverFunctions& driver() {
  static constinit std::atomic<const DriverFunctions*> found = nullptr;
  return once(found, find_driver);
}

const CompilerFunctions& compiler() {
  static constinit std::atomic<const CompilerFunctions*> found = nullptr;
  return once(found, find_compiler);
}

void require(Status status, const char* what) {
  if (status == 0) return;
  if (status == out_of_memory)
    throw Error(NEML2_ERROR_MEMORY, "cuda",
                join("The CUDA device has no memory left for ", what,
                     ". Evaluate fewer points at once: set the option chunk."));
  const char* words = nullptr;
  driver().cuGetErrorString(status, &words);
  // Faults of a kernel, which the context keeps: an address, a time limit, an assertion, an instruction (cuda.h). A
  // context that is gone was reset by someone.
  const bool lasts = status == 700 || status == 702 || status == 710 || (status >= 714 && status <= 719);
  const bool is_gone = status == 201 || status == destroyed;
  throw Error(
      NEML2_ERROR_RUNTIME, "cuda",
      join("CUDA failed: ", what, ": ", words ? words : "an unknown error", " (error ", status, ").",
           lasts
               ? " The driver gives this error to all that this process asks of the device from now on: arrays may "
                 "be smaller than they were said to be. Models on the CPU go on; for the device start another process."
           : is_gone ? " Somebody has reset the device, cudaDeviceReset() for example: open the model again."
                     : ""));
}

}  // namespace neml2_capi::cuda
