// Reader of the HIT stub beside an artifact (*.i), in a file without a name.
#include <sys/mman.h>
#include <unistd.h>

#include "capi/artifact/metadata.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = memfd_create("stub.i", MFD_CLOEXEC);
  static const std::string path = join("/proc/self/fd/", file);
  fuzz::require(ftruncate(file, 0) == 0 && pwrite(file, data, size, 0) == static_cast<ssize_t>(size),
                "a file in memory can be written");
  for (const char* name : {"", "elasticity"}) fuzz::read_untrusted([&] { artifact::read_stub(path, name); });
  return 0;
}
