#include "capi/opencl/library.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "capi/base/once.h"
#include "capi/platform/library_functions.h"

namespace neml2_capi::opencl {
namespace {

constexpr const char* variable = "NEML2_CAPI_OPENCL";
#if defined(_WIN32)
constexpr const char* file = "OpenCL.dll";
#elif defined(__APPLE__)
constexpr const char* file = "/System/Library/Frameworks/OpenCL.framework/OpenCL";
#else
constexpr const char* file = "libOpenCL.so.1";
#endif

Error missing(const std::string& what) {
  return Error(NEML2_ERROR_UNSUPPORTED, "opencl",
               join("OpenCL cannot be used: ", what,
                    ". Install its loader and the driver of a device (in Debian, ocl-icd-libopencl1 "
                    "and pocl-opencl-icd for the processor), or set ",
                    variable, " to the file of the loader."));
}

Functions looked_up() {
  const char* named = std::getenv(variable);
  std::string reason;
  void* library = platform::open_shared(named && *named ? named : file, reason, platform::Opening::for_ever);
  if (!library) throw missing(reason);
  Functions found;
  std::string lacking;
#define NEML2_LOOK_UP(name, ...) platform::look_up(library, #name, found.name, lacking);
  NEML2_OPENCL_FUNCTIONS(NEML2_LOOK_UP)
  if (!lacking.empty()) throw missing(join(named && *named ? named : file, " lacks ", lacking));
  NEML2_OPENCL_LATER_FUNCTIONS(NEML2_LOOK_UP)
#undef NEML2_LOOK_UP
  return found;
}

}  // namespace

const Functions& functions() {
  static constinit std::atomic<const Functions*> found = nullptr;
  return once(found, looked_up);
}

void require(Number status, const char* what) {
  if (status >= 0) return;
  constexpr Number no_memory[] = {-4, -5, -6};  // of an object, of the device, of the host
  for (const Number each : no_memory)
    if (status == each)
      throw Error(NEML2_ERROR_MEMORY, "opencl",
                  join("The OpenCL device has no memory left for ", what, " (error ", status,
                       "). Evaluate fewer points at once: set the option chunk."));
  throw Error(NEML2_ERROR_RUNTIME, "opencl",
              join("OpenCL failed: ", what, " gave error ", status, " (CL/cl.h tells its name)."));
}

void require_done(Number status) {
  if (status >= 0) return;
  throw Error(NEML2_ERROR_RUNTIME, "opencl",
              join("OpenCL failed: a kernel or a copy ended with error ", status,
                   " (CL/cl.h tells its name): arrays may be smaller than they were said to be, or the device has no "
                   "memory left. Arrays that were to be written hold anything."));
}

}  // namespace neml2_capi::opencl
