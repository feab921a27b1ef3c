#if !defined(_WIN32)
#include "capi/platform/shared_object.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <string_view>
#include <system_error>

#include "capi/platform/refusals.h"

namespace neml2_capi::platform {
namespace {

// Tells whether the loader's words are those for a lack of memory: the system's, in the language of both, or its own. A
// mapping that is refused for another reason has that reason behind.
bool tell_of_memory(const char* words) {
  if (!words) return true;
  const std::string_view reason(words);
  return reason.ends_with(std::strerror(ENOMEM)) || reason.find("out of memory") != reason.npos ||
         reason.ends_with("failed to map segment from shared object");
}

}  // namespace

void require_memory_for_loader() {
  // Below the size at which glibc gives freed memory back to the system: it waits for the loader.
  constexpr std::size_t enough = std::size_t{120} << 10;
  void* const block = std::malloc(enough);
  if (!block) throw std::bad_alloc();
  std::free(block);
}

void* open_shared(const char* path, std::string& reason, Opening how) {
  require_memory_for_loader();
  errno = 0;
  const int more = how == Opening::for_ever ? RTLD_NODELETE : how == Opening::only_if_there ? RTLD_NOLOAD : 0;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL | more);
  if (library) return library;
  const bool lacked_memory = errno == ENOMEM;  // the loader does not always say it
  const char* words = dlerror();
  if (!words && how == Opening::only_if_there) return nullptr;  // that is no error of the loader's
  if (lacked_memory || tell_of_memory(words)) throw std::bad_alloc();
  reason = words;
  for (const int limit : {EMFILE, ENFILE})
    if (reason.ends_with(std::strerror(limit)))
      throw Error(
          NEML2_ERROR_FILE, path,
          join("The library ", path, " cannot be opened: ", refusals::why(limit), ". ", refusals::remedy(limit, "")));
  return nullptr;
}

void* function_of(void* object, const char* name) { return dlsym(object, name); }

std::string library_folder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&library_folder), &info) || !info.dli_fname) return {};
  std::error_code error;
  return std::filesystem::absolute(info.dli_fname, error).parent_path().string();
}

}  // namespace neml2_capi::platform
#endif
