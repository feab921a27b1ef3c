#include "capi/loader/versions.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <iterator>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/loader/image.h"

namespace neml2_capi::aoti {
namespace {

using namespace std::string_view_literals;

#if defined(__GLIBC__)

// Libraries that every package needs, and that a check may open.
constexpr std::string_view system_libraries[] = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1"};

// Replacements do the same; the length allows them to be written over the name.
struct Replacement {
  std::string_view symbol;
  std::string_view beginning;  // with a zero where the name ends; "" for the same symbol of another version
};
constexpr Replacement replacements[] = {
    // A hint that the process has one thread: ours is always false.
    {"__libc_single_threaded", "nml2"},
    // An exception of a derived type.
    {"_ZSt28__throw_bad_array_new_lengthv", "_ZSt17__throw_bad_allocv\0"sv},
    // std::stringbuf::str() of a temporary moves its text; the one in its place copies it.
    {"_ZNOSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv", "_ZNK"},
    // It was noexcept once.
    {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", ""},
    {"_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm", "nml2"},
    {"__cxa_call_terminate", "_ZSt9terminatev\0"sv},
    // It is named, and never called: see initialize_streams().
    {"_ZSt21ios_base_library_initv", "_ZNSt8ios_base4InitC1Ev\0"sv},
    // C23 adds numbers in base 2, which no package reads.
    {"__isoc23_strtol", "strtol\0"sv},
    {"__isoc23_strtoul", "strtoul\0"sv},
    {"__isoc23_strtoll", "strtoll\0"sv},
    {"__isoc23_strtoull", "strtoull\0"sv},
};

using Handles = std::array<void*, std::size(system_libraries)>;

constinit locks::Lazy<const Handles> all_handles;

// Returns a library of the system, opened once, or null for another.
void* open_library(std::string_view name) {
  const Handles& handles = all_handles.get([] {
    Handles opened;
    std::ranges::transform(system_libraries, opened.begin(),
                           [](std::string_view each) { return dlopen(each.data(), RTLD_LAZY); });
    return opened;
  });
  const auto found = std::find(std::begin(system_libraries), std::end(system_libraries), name);
  return found == std::end(system_libraries) ? nullptr
                                             : handles[static_cast<std::size_t>(found - std::begin(system_libraries))];
}

std::optional<std::string_view> beginning_for(std::string_view library, std::string_view symbol) {
  for (const Replacement& known : replacements)
    if (known.symbol == symbol) return known.beginning;
  // A newer version of a mathematical function differs in errno, and one of a thread function in its library.
  if (library == "libm.so.6" || symbol.starts_with("pthread_")) return "";
  return std::nullopt;
}

// Tells whether a package finds a symbol by this name, without a version.
bool has(void* library, const std::string& name) {
  return dlsym(library, name.c_str()) || dlsym(Provider::get().library, name.c_str());
}

// Constructs std::cout and its kin, which code of GCC 13 and later leaves to the C++ library.
void initialize_streams(void* library) {
  static char object;
  if (void* found = dlsym(library, "_ZNSt8ios_base4InitC1Ev")) reinterpret_cast<void (*)(void*)>(found)(&object);
}

std::string replaced(std::string_view symbol, std::string_view beginning) {
  const std::string name = std::string(beginning).append(symbol.substr(std::min(symbol.size(), beginning.size())));
  return name.c_str();  // to the zero
}

#endif

}  // namespace

void Versions::add(unsigned number, std::string_view library, std::string_view name) {
  versions_.insert_or_assign(number, Version{std::string(library), std::string(name), {}, false, false});
}

bool Versions::is_unused(unsigned number) const {
  const auto found = versions_.find(number);
  return found != versions_.end() && found->second.is_replaced && !found->second.is_used;
}

std::vector<std::string> Versions::names() const {
  std::vector<std::string> names;
  for (const auto& [number, version] : versions_) names.push_back(version.name);
  return names;
}

#if defined(__GLIBC__)

std::optional<std::string_view> Versions::replace(unsigned number, std::string_view symbol, bool required) {
  const auto found = versions_.find(number);
  if (found == versions_.end()) return std::nullopt;
  Version& version = found->second;
  void* library = open_library(version.library);
  const std::string name(symbol);
  if (library && !version.present.value_or(false))
    version.present = dlvsym(library, name.c_str(), version.name.c_str());
  if (!library || *version.present) {
    version.is_used = true;
    return std::nullopt;
  }
  const auto beginning = beginning_for(version.library, symbol);
  if (beginning ? has(library, replaced(symbol, *beginning)) : !required) {
    if (symbol == "_ZSt21ios_base_library_initv") initialize_streams(library);
    version.is_replaced = true;
    return beginning.value_or("");
  }
  version.is_used = true;
  missing_.push_back(join(symbol, " (", version.name, ")"));
  return std::nullopt;
}

void Versions::check() const {
  if (missing_.empty()) return;
  std::string list;
  for (const std::string& symbol : missing_) add_name(list, symbol);
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package was compiled on a newer system: it calls ", list, ", which this one, with glibc ",
                   gnu_get_libc_version(), ", lacks. Compile the model on a system as old as this one, or older."));
}

#else

std::optional<std::string_view> Versions::replace(unsigned, std::string_view, bool) { return std::nullopt; }

void Versions::check() const {
  for (const auto& [number, version] : versions_)
    if (version.name.starts_with("GLIBC_"))
      throw Error(
          NEML2_ERROR_UNSUPPORTED, "",
          "The package was compiled with glibc, and this system has another C library. Compile the model on a system "
          "like this one, or to kernels alone: neml2-capi compile --kernels only");
}

#endif

}  // namespace neml2_capi::aoti
