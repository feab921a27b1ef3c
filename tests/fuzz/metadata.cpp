// Reader of metadata.json, of every schema: in an artifact in memory that has each package which the text may name.
#include "capi/artifact/metadata.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/zip.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::vector<fuzz::ZipEntry> entries = {{"metadata.json", std::string(text)}};
  std::set<std::string_view> packages;
  for (std::size_t end = text.find(".pt2\""); end != std::string_view::npos; end = text.find(".pt2\"", end + 1)) {
    const std::size_t quote = text.rfind('"', end);
    if (quote == std::string_view::npos || end - quote > 255 || packages.size() > 255) break;
    if (packages.insert(text.substr(quote + 1, end + 3 - quote)).second)
      entries.push_back({"cpu/float64/" + std::string(text.substr(quote + 1, end + 3 - quote)), ""});
  }
  if (packages.empty()) entries.push_back({"cpu/float64/none.pt2", ""});
  const std::string artifact = fuzz::zip(entries);
  fuzz::read_untrusted([&] {
    const artifact::Metadata metadata = artifact::read_metadata_in_memory(artifact, "cpu", "float64");
    fuzz::require(nlohmann::json::parse(artifact::describe(metadata)).is_object(), "a description is JSON");
  });
  return 0;
}
