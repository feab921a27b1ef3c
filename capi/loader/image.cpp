#include "capi/loader/image.h"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/loader/elf.h"
#include "capi/platform/memory_file.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::aoti {
namespace {

template <class Function>
void look_up(Function*& function, void* library, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

// Opens the C++ library that packages need.
StreamParts stream_parts() {
  std::string reason;
  void* const library = platform::open_shared(stream_library, reason, platform::Opening::for_ever);
  StreamParts parts{};
  if (library) {
    parts.buffer_table = platform::function_of(library, stream_symbols[0]);
    look_up(parts.make_buffer, library, stream_symbols[1]);
    look_up(parts.make_stream, library, stream_symbols[2]);
  }
  if (!parts.buffer_table || !parts.make_buffer || !parts.make_stream)
    throw Error(NEML2_ERROR_FILE, stream_library,
                join("The C++ library of compiled packages, ", stream_library, ", cannot be used: ",
                     library ? "it lacks streams" : reason.c_str(), ". Install it: it is GCC's libstdc++."));
  return parts;
}

Provider open_provider() {
  const std::filesystem::path path = std::filesystem::path(platform::library_folder()) / provider_file;
  const auto fail = [&](const std::string& why) {
    return Error(NEML2_ERROR_FILE, provider_file,
                 join("The built-in runtime ", path.string(), " cannot be used: ", why,
                      ". Install it beside this library, from the same build."));
  };
  Provider provider{};
  // Local, since its symbols are for packages, which name it as the library that they need.
  std::string reason, ignored;
  provider.library = platform::open_shared(path.c_str(), reason);
  // A plug-in has no file beside it, and opened the provider from memory first.
  if (!provider.library)
    provider.library = platform::open_shared(provider_file, ignored, platform::Opening::only_if_there);
  if (!provider.library) throw fail(reason);
  look_up(provider.find_operator, provider.library, "nml2_find_operator");
  look_up(provider.supported_operators, provider.library, "nml2_supported_operators");
  look_up(provider.last_error, provider.library, "nml2_last_error");
  UseMemory use_memory = nullptr;
  UseOutput use_output = nullptr;
  OpenStreams open_streams = nullptr;
  look_up(use_memory, provider.library, "nml2_use_memory");
  look_up(use_output, provider.library, "nml2_use_output");
  look_up(open_streams, provider.library, "nml2_open_streams");
  if (!provider.find_operator || !provider.supported_operators || !provider.last_error || !use_memory || !use_output ||
      !open_streams)
    throw fail("it is of another version");
  open_streams(stream_parts());
  use_memory(memory::allocate_for, memory::release_for);
  use_output([](const char* text, std::size_t size) {
    log::write(log::Channel::model, log::Level::info, "a package printed: ", std::string_view(text, size));
  });
  return provider;
}

// Returns the load addresses of all libraries of the process. No exception may pass through the C library, which takes
// memory for that.
std::set<ElfW(Addr)> loaded_addresses() {
  struct Found {
    std::set<ElfW(Addr)> addresses = {};
    bool lacked_memory = false;
  } found;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& [addresses, lacked_memory] = *static_cast<Found*>(out);
        try {
          addresses.insert(info->dlpi_addr);
        } catch (const std::bad_alloc&) {
          lacked_memory = true;
        }
        return lacked_memory ? 1 : 0;
      },
      &found);
  if (found.lacked_memory) throw std::bad_alloc();
  return std::move(found.addresses);
}

// Returns the load address of the library with this function, or 0.
ElfW(Addr) address_of_library(const void* function) {
  struct Search {
    ElfW(Addr) address;
    ElfW(Addr) found;
  } search{reinterpret_cast<ElfW(Addr)>(function), 0};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        auto& [address, found] = *static_cast<Search*>(out);
        for (const auto* segment = info->dlpi_phdr; segment != info->dlpi_phdr + info->dlpi_phnum; ++segment) {
          const ElfW(Addr) begin = info->dlpi_addr + segment->p_vaddr;
          if (segment->p_type != PT_LOAD || address < begin || address - begin >= segment->p_memsz) continue;
          found = info->dlpi_addr;
          return 1;
        }
        return 0;
      },
      &search);
  return search.found;
}

// Tells what the dynamic loader has against the file of an object.
Error cannot_load(const std::string& path, const std::string& reason) {
  for (const char* refused : {"cannot open shared object file", "cannot read file data", "cannot stat shared object"})
    if (reason.starts_with(path) && reason.find(refused) != std::string::npos)
      return Error(NEML2_ERROR_FILE, "",
                   join("The copy of the package's code cannot be read", reason.substr(path.size()), ". Try again."));
  return Error(NEML2_ERROR_UNSUPPORTED, "",
               join("The code of the package cannot be loaded: ", reason,
                    ". Compile the model on a system as old as this one, or older."));
}

// Reads AOTI_RUNTIME_CHECK_INPUTS as packages do.
bool wants_checks() {
  const char* value = std::getenv("AOTI_RUNTIME_CHECK_INPUTS");
  return value && *value != '0';
}

using Content = std::pair<std::size_t, std::size_t>;  // hash and size

constinit locks::Lazy<const Provider> provider;
constinit locks::Lazy<std::map<Content, Image*>> all_images;
constinit locks::Mutex mutex;

}  // namespace

const Provider& Provider::get() { return provider.get(open_provider); }

std::uintptr_t Provider::address_of(std::string_view name) const {
  return reinterpret_cast<std::uintptr_t>(dlsym(library, provided_name(name).c_str()));
}

Image::Image(std::string_view name, std::string_view object) {
  const platform::MemoryFile file(name, object);
  const auto before = loaded_addresses();
  std::string reason;
  void* library = platform::open_shared(file.path().c_str(), reason);
  if (!library) throw cannot_load(file.path(), reason);

  look_up(entry_.create, library, "AOTInductorModelContainerCreateWithDevice");
  look_up(entry_.destroy, library, "AOTInductorModelContainerDelete");
  look_up(entry_.num_inputs, library, "AOTInductorModelContainerGetNumInputs");
  look_up(entry_.num_outputs, library, "AOTInductorModelContainerGetNumOutputs");
  look_up(entry_.run, library, "AOTInductorModelContainerRunSingleThreaded");
  look_up(entry_.last_error, library, "AOTInductorGetLastError");
  look_up(entry_.num_constants, library, "AOTInductorModelContainerGetNumConstants");
  look_up(entry_.constant_name, library, "AOTInductorModelContainerGetConstantName");
  look_up(entry_.constant_original_name, library, "AOTInductorModelContainerGetConstantOriginalFQN");
  look_up(entry_.constant_is_folded, library, "AOTInductorModelContainerGetConstantFromFolded");
  look_up(entry_.constants, library, "AOTInductorModelContainerExtractConstantsMapEntries");
  look_up(entry_.use_constants, library, "AOTInductorModelContainerUpdateUserManagedConstantBufferPairs");
  look_up(entry_.swap_constants, library, "AOTInductorModelContainerSwapConstantBuffer");
  look_up(entry_.free_unused_constants, library, "AOTInductorModelContainerFreeInactiveConstantBuffer");
  const auto refuse = [&](std::int32_t status, const char* why) {
    dlclose(library);
    return Error(status, "", why);
  };
  if (!entry_.create || !entry_.destroy || !entry_.num_inputs || !entry_.num_outputs || !entry_.run)
    throw refuse(NEML2_ERROR_ARTIFACT,
                 "The code of the package does not export the AOTInductor model container. Compile the model again.");
  if (before.contains(address_of_library(reinterpret_cast<const void*>(entry_.create))))
    throw refuse(NEML2_ERROR_INTERNAL,
                 "The dynamic loader returned a library that was loaded before. Please report this as a bug.");
}

Image& Image::map(std::string_view name, std::string_view object) {
  auto& images = all_images.get();
  const Content content(std::hash<std::string_view>()(object), object.size());
  const std::lock_guard lock(mutex);
  // First a place, then the image: one that is mapped stays, and must be found again.
  auto& image = images[content];
  if (!image) image = new Image(name, object);
  return *image;
}

void Image::remember_checks() {
  int before = unknown;
  checks_inputs_.compare_exchange_strong(before, wants_checks());
}

bool Image::checks_inputs() const {
  const int checks = checks_inputs_.load(std::memory_order_relaxed);
  return checks == unknown ? wants_checks() : checks != 0;
}

}  // namespace neml2_capi::aoti
