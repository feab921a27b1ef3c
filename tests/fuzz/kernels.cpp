// Reader of kernels.json, in an artifact in memory that has packages, and objects that are no code.
#include "capi/archive/files.h"
#include "capi/kernels/folder.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/zip.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string package = fuzz::zip({{"archive_format", "pt2"}});
  const std::string artifact = fuzz::zip({{"cpu/float64/elasticity.pt2", package},
                                          {"kernels/float64/kernels.json", std::string(fuzz::text_of(data, size))}});
  fuzz::read_untrusted([&] {
    const archive::Mount mount(artifact);
    kernels::Folder::open(mount.path() / "cpu" / "float64");
  });
  return 0;
}
