#include "capi/libtorch/library.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::aoti::libtorch {
namespace {

namespace fs = std::filesystem;

constexpr const char* file_name = "libtorch_cpu.so";
constexpr const char* cuda_file_name = "libtorch_cuda.so";
constexpr const char* variable = "NEML2_CAPI_LIBTORCH";
constexpr std::uint64_t least = (2ULL << 56) | (10ULL << 48);

constinit locks::Mutex mutex;
constinit locks::Lazy<fs::path> suggestion;
constinit std::atomic<const Library*> opened = nullptr;  // never closed

fs::path& suggested() { return suggestion.get(); }

// Returns the library at a path: the file itself, or in that folder, or in its folder lib, as in a Python package.
std::optional<fs::path> library_at(const fs::path& path) {
  std::error_code ignored;
  for (const fs::path& file : {path, path / file_name, path / "lib" / file_name})
    if (fs::is_regular_file(file, ignored)) return file;
  return std::nullopt;
}

// Returns the file of the libtorch that is loaded, by anybody. No exception may pass through the C library.
std::optional<fs::path> library_in_process() {
  std::optional<std::string_view> found;  // in the dynamic loader's memory
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        const std::string_view path(info->dlpi_name ? info->dlpi_name : "");
        if (path.substr(path.rfind('/') + 1) != file_name) return 0;
        *static_cast<std::optional<std::string_view>*>(out) = path;
        return 1;
      },
      &found);
  return found ? std::optional<fs::path>(*found) : std::nullopt;
}

fs::path find_library() {
  const char* text = std::getenv(variable);
  const std::optional<fs::path> loaded = library_in_process();
  if (text && *text) {
    const auto named = library_at(text);
    if (!named)
      throw Error(NEML2_ERROR_FILE, variable,
                  join("There is no ", file_name, " at ", variable, "=", text,
                       ". Set it to the folder of the library, or of the Python package torch."));
    std::error_code ignored;
    if (loaded && !fs::equivalent(*loaded, *named, ignored))
      throw Error(NEML2_ERROR_UNSUPPORTED, variable,
                  join("The process has loaded ", loaded->string(), ", and ", variable, " names ", named->string(),
                       ": a process can hold one libtorch only. Unset ", variable, ", or import no other torch."));
    return *named;
  }
  if (loaded) return *loaded;
  if (const auto named = library_at(suggested())) return *named;
  throw Error(NEML2_ERROR_FILE, file_name,
              join("libtorch was not found. Install torch ", Library::least_version, " or later, and set ", variable,
                   " to the folder of ", file_name, "."),
              NEML2_CAUSE_LIBTORCH_MISSING);
}

// Looks a function up, and adds its name to `missing` if there is none.
template <class Function>
void look_up(void* library, const char* name, Function*& function, std::string& missing) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  if (!function) add_name(missing, name);
}

std::string version_text(std::uint64_t packed) {
  return join((packed >> 56) & 255, ".", (packed >> 48) & 255, ".", (packed >> 40) & 255);
}

}  // namespace

Library::Library(std::filesystem::path path) : path_(std::move(path)) {
  // Local, so that other libraries of the process keep their own symbols.
  std::string reason;
  library_ = platform::open_shared(path_.c_str(), reason, platform::Opening::for_ever);
  if (!library_)
    throw Error(NEML2_ERROR_UNSUPPORTED, file_name,
                join("libtorch cannot be opened: ", reason, ". Install torch again."));
  look_up_functions();
  openmp_ = OpenMP::find(library_);
}

void Library::look_up_functions() {
  std::string missing, ignored;
#define NML2_REQUIRE(name, ...) look_up(library_, #name, functions_.name, missing);
#define NML2_LOOK_UP(name, ...) look_up(library_, #name, functions_.name, ignored);
  NML2_TORCH_FUNCTIONS(NML2_REQUIRE)
  NML2_NEWER_FUNCTIONS(NML2_LOOK_UP)
  NML2_ALGEBRA_FUNCTIONS(NML2_LOOK_UP)

  const std::uint64_t packed = functions_.aoti_torch_abi_version ? functions_.aoti_torch_abi_version() : 0;
  version_ = packed ? version_text(packed) : "of an unknown version";
  const auto refuse = [&](const std::string& what) {
    return Error(NEML2_ERROR_UNSUPPORTED, file_name,
                 join("libtorch ", version_, " at ", path_.string(), " cannot be used: ", what, ". Install torch ",
                      least_version, " or later."));
  };
  if (!missing.empty()) throw refuse("it lacks " + missing);
  if (packed < least) throw refuse("it is too old");
}

const Library& Library::get() {
  if (const Library* library = opened.load(std::memory_order_acquire)) return *library;
  const std::lock_guard lock(mutex);
  if (!opened) opened = new Library(find_library());
  return *opened;
}

void Library::suggest(const std::filesystem::path& place) {
  const std::lock_guard lock(mutex);
  suggested() = place;
}

const CudaFunctions& Library::cuda() const {
  if (cuda_library_.load(std::memory_order_acquire)) return cuda_;
  const std::lock_guard lock(mutex);
  if (cuda_library_) return cuda_;
  const auto refuse = [&](const std::string& what) {
    return Error(NEML2_ERROR_UNSUPPORTED, cuda_file_name,
                 join("libtorch ", version_, " at ", path_.string(), " cannot be used for CUDA: ", what,
                      ". Install a torch that is built for CUDA."));
  };
  const fs::path file = path_.parent_path() / cuda_file_name;
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) throw refuse(join("there is no ", cuda_file_name, " beside it"));
  std::string reason;
  void* library = platform::open_shared(file.c_str(), reason, platform::Opening::for_ever);
  if (!library) throw refuse(join(cuda_file_name, " cannot be opened: ", reason));
  std::string missing;
#define NML2_REQUIRE_CUDA(name, ...) look_up(library, #name, cuda_.name, missing);
  NML2_CUDA_FUNCTIONS(NML2_REQUIRE_CUDA)
  if (!missing.empty()) throw refuse("it lacks " + missing);
  cuda_library_.store(library, std::memory_order_release);
  return cuda_;
}

std::uintptr_t Library::address_of(const std::string& name) const {
  for (void* library : {library_, cuda_library_.load(std::memory_order_acquire)})
    if (void* found = library ? dlsym(library, name.c_str()) : nullptr) return reinterpret_cast<std::uintptr_t>(found);
  return 0;
}

std::string Library::reason() const {
  const auto what = functions_.torch_exception_get_what_without_backtrace;
  const char* text = what ? what() : nullptr;
  return text ? text : "";
}

}  // namespace neml2_capi::aoti::libtorch
