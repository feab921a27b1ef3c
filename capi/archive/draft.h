// A file that appears under its name when it is complete.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "capi/platform/files.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::archive {

// File under a temporary name, which disappears unless it is published under its final one. All functions throw
// NEML2_ERROR_FILE if the system refuses.
class Draft {
 public:
  explicit Draft(const std::filesystem::path& path);
  ~Draft();
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void put(std::string_view bytes);
  // Give the file its name: as a new one, or in place of the one that is there.
  void publish();
  void replace();

  [[noreturn]] void fail(const std::string& why) const;

 private:
  void close();

  const refusals::QuietWrites quiet_;
  std::filesystem::path path_, draft_;
  platform::File file_;
};

}  // namespace neml2_capi::archive
