#include "capi/model/capsule_folder.h"

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/platform/process.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::model {
namespace {

namespace fs = std::filesystem;

// Refuses a folder in the installed Python package, which pip replaces.
void require_outside_package(std::string_view path) {
  std::error_code error;
  const fs::path package = fs::canonical(fs::path(platform::library_folder()), error).parent_path();
  if (error || !fs::is_regular_file(package / "__init__.py", error)) return;  // a prefix such as /usr has no package
  const fs::path inside = fs::weakly_canonical(fs::absolute(path, error), error).lexically_relative(package);
  if (error || inside.empty() || *inside.begin() == "..") return;
  throw Error(NEML2_ERROR_ARGUMENT, "capsule",
              join("The option 'capsule' names ", path, ", which is inside the installed package, ", package.string(),
                   ": nothing is written there, since pip replaces it. Name a folder of your own."));
}

using Folders = std::map<std::string, std::unique_ptr<const CapsuleFolder>, std::less<>>;

constinit locks::Lazy<Folders> all_folders;
constinit locks::Mutex mutex;

}  // namespace

const CapsuleFolder* CapsuleFolder::of(std::string_view path) {
  require_outside_package(path);
  Folders& folders = all_folders.get();
  const std::lock_guard lock(mutex);
  auto it = folders.find(path);
  if (it == folders.end()) it = folders.emplace(path, std::make_unique<const CapsuleFolder>(path)).first;
  return it->second.get();
}

std::int64_t CapsuleFolder::next_number() const {
  const std::int64_t self = platform::process_id();
  std::int64_t before = owner_.load();
  if (before != self && owner_.compare_exchange_strong(before, self)) count_.store(0);
  return ++count_;
}

}  // namespace neml2_capi::model
