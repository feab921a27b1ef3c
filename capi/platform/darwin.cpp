// The platform of macOS.
#if defined(__APPLE__)
#include <sys/sysctl.h>

#include "capi/platform/process.h"

namespace neml2_capi::platform {

std::string processor_name() {
  char name[256] = "";
  std::size_t size = sizeof name;
  return sysctlbyname("machdep.cpu.brand_string", name, &size, nullptr, 0) == 0 ? name : "";
}

}  // namespace neml2_capi::platform
#endif
