// Code of packages in the process, and the provider that it is bound to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "capi/base/locks.h"
#include "capi/provider/provider.h"

namespace neml2_capi::aoti {

// File name of the provider, and its SONAME; it takes the place of libtorch_cpu.so in packages.
extern const char provider_file[sizeof("libtorch_cpu.so")];

// Provider library, opened when it is first needed.
struct Provider {
  void* library;
  FindOperator find_operator;
  SupportedOperators supported_operators;
  LastError last_error;

  // Throws Error NEML2_ERROR_FILE.
  static const Provider& get();

  // Returns what packages get for a function that they call ("aoti_torch_clone", "GOMP_parallel"), or 0.
  std::uintptr_t address_of(std::string_view name) const;
};

// Name and handle, as the AOTI runtime pairs them.
struct ConstantEntry {
  const char* name;
  void* handle;
};

// Functions that a package exports: the C ABI of the AOTI runtime. Each returns 0 on success.
struct EntryPoints {
  using Container = struct ContainerOpaque*;
  std::int32_t (*create)(Container*, std::size_t num_models, const char* device, const char* cubin_folder);
  std::int32_t (*destroy)(Container);
  std::int32_t (*num_inputs)(Container, std::size_t*);
  std::int32_t (*num_outputs)(Container, std::size_t*);
  // Handles are the provider's: a Tensor* or libtorch's AtenTensorHandle.
  std::int32_t (*run)(Container, void** inputs, std::size_t, void** outputs, std::size_t, void* stream, void* proxy);
  std::int32_t (*last_error)(const char**);  // null in packages of torch before 2.13

  // Null in packages of an older torch, all or none: see has_constants().
  std::int32_t (*num_constants)(Container, std::size_t*);
  std::int32_t (*constant_name)(Container, std::size_t index, const char**);
  std::int32_t (*constant_original_name)(Container, std::size_t index, const char**);
  std::int32_t (*constant_is_folded)(Container, std::size_t index, bool*);
  std::int32_t (*constants)(Container, const ConstantEntry**, std::size_t*, bool unused);
  std::int32_t (*use_constants)(Container, const ConstantEntry*, std::size_t, bool unused, bool all);
  std::int32_t (*swap_constants)(Container);
  std::int32_t (*free_unused_constants)(Container);
  bool has_constants() const {
    return num_constants && constant_name && constant_original_name && constant_is_folded && constants &&
           use_constants && swap_constants && free_unused_constants;
  }
};

// Code of one package. It stays for the life of the process: packages cannot be unmapped (a thread_local pins them), so
// each content is mapped once, however often it is loaded.
class Image {
 public:
  // Maps an edited object. `name` is for people. Throws Error NEML2_ERROR_UNSUPPORTED with the reason of the dynamic
  // loader, NEML2_ERROR_FILE if it cannot read the object, NEML2_ERROR_ARTIFACT for one that does not export a
  // package's functions.
  static Image& map(std::string_view name, std::string_view object);

  const EntryPoints& entry() const { return entry_; }

  // Mutex that a run holds to be the only one of this image. It may call a function of the host; the child of a fork
  // runs what had not come to its end once more.
  locks::FreedMutex& alone() { return alone_; }

  // Must be called before each run: packages read AOTI_RUNTIME_CHECK_INPUTS when they first run, and never again.
  void note_run() {
    if (checks_inputs_.load(std::memory_order_relaxed) == unknown) remember_checks();
  }
  // Tells whether the package checks its inputs itself; before the first run, whether it would.
  bool checks_inputs() const;

 private:
  Image(std::string_view name, std::string_view object);
  void remember_checks();

  static constexpr int unknown = -1;
  EntryPoints entry_{};
  locks::FreedMutex alone_;
  std::atomic<int> checks_inputs_ = unknown;
};

}  // namespace neml2_capi::aoti
