#include "capi/accelerator/program_cache.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

#include "capi/archive/files.h"
#include "capi/archive/sha256.h"
#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/platform/files.h"
#include "capi/platform/process.h"

namespace neml2_capi::accelerator {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t digits = 64;  // of a checksum, which a file begins with

// Returns the folder, empty if the user has no place for caches.
fs::path folder() {
  for (const auto& [variable, below] : {std::pair{"XDG_CACHE_HOME", ""}, {"LOCALAPPDATA", ""}, {"HOME", ".cache"}})
    if (const char* place = std::getenv(variable); place && *place)
      return fs::path(place) / below / "neml2_capi" / "device-programs";
  return {};
}

std::optional<std::string> read(const fs::path& file) {
  if (file.empty()) return std::nullopt;
  const std::optional<std::string> content = archive::read(file);
  if (!content) return std::nullopt;
  if (content->size() < digits) return std::nullopt;
  std::string binary = content->substr(digits);
  if (content->compare(0, digits, archive::sha256(binary)) != 0) return std::nullopt;
  return binary;
}

// Writes a draft beside the file, so that no other process reads half of it.
bool write(const fs::path& file, const std::string& binary) {
  static constinit std::atomic<std::uint64_t> drafts = 0;
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path draft = file.string() + join(".", platform::process_id(), ".", drafts++);
  platform::File out;
  if (!out.create(draft)) return false;
  const bool whole = out.write(archive::sha256(binary)) && out.write(binary);
  if (out.close() && whole) {
    fs::rename(draft, file, error);
    if (!error) return true;
  }
  fs::remove(draft, error);
  return false;
}

}  // namespace

void with_cached(const std::string& key, const std::function<std::string()>& make,
                 const std::function<void(const std::string&)>& take) {
  const fs::path place = folder(), file = place.empty() ? place : place / archive::sha256(key);
  if (const std::optional<std::string> kept = read(file)) try {
      return take(*kept);
    } catch (const Error& error) {
      log::write(log::Channel::model, log::Level::warning, file.string(), " is compiled again: ", error.what());
    }
  const std::string binary = make();
  take(binary);
  if (!file.empty() && !write(file, binary))
    log::write(log::Channel::model, log::Level::warning, place.string(),
               " cannot be written: what was compiled for a device is not kept");
}

std::shared_ptr<const graph::DeviceProgram> program_of(const graph::OpenDevice& device, std::string_view text) {
  std::shared_ptr<const graph::DeviceProgram> program;
  with_cached(
      join(archive::sha256(text), "\n", device.key()),
      [&] {
        log::write(log::Channel::model, log::Level::info, "compiling kernels for ", device.name());
        return device.compile(text);
      },
      [&](const std::string& binary) { program = device.load(binary); });
  return program;
}

}  // namespace neml2_capi::accelerator
