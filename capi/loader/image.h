// The code of packages in the process, and the provider that it is bound to.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "capi/provider/provider.h"

namespace neml2_capi::aoti {

// The file name of the provider, which is its SONAME, too; it takes the place of libtorch_cpu.so in packages.
extern const char provider_file[sizeof("libtorch_cpu.so")];

// The provider library, opened when it is first needed.
struct Provider {
  void* library;
  FindOperator find_operator;
  SupportedOperators supported_operators;
  LastError last_error;
  SolveSystems solve_systems;

  // Throws Error NEML2_ERROR_FILE.
  static const Provider& get();
};

// A name and a handle, as the AOTI runtime pairs them.
struct ConstantEntry {
  const char* name;
  void* handle;
};

// How deep the parallel regions of a thread may be nested, in an OpenMP run time; null where there is none.
struct OpenMP {
  int (*levels)() = nullptr;
  void (*set_levels)(int) = nullptr;

  // The functions of the process come before those of `library` and of what it needs.
  static OpenMP find(void* library);
};

// What a package exports: the C ABI of the AOTI runtime. Each returns 0 on success.
struct EntryPoints {
  using Container = struct ContainerOpaque*;
  std::int32_t (*create)(Container*, std::size_t num_models, const char* device, const char* cubin_folder);
  std::int32_t (*destroy)(Container);
  std::int32_t (*num_inputs)(Container, std::size_t*);
  std::int32_t (*num_outputs)(Container, std::size_t*);
  // Handles are the provider's: a Tensor* or libtorch's AtenTensorHandle.
  std::int32_t (*run)(Container, void** inputs, std::size_t, void** outputs, std::size_t, void* stream, void* proxy);
  std::int32_t (*last_error)(const char**);  // may be null: it came with torch 2.13

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

  OpenMP openmp;  // that the package is bound to, where it has parallel regions
};

// The code of one package. It stays for the life of the process: packages cannot be unmapped (a thread_local pins
// them), so each content is mapped once, however often it is loaded.
class Image {
 public:
  // The image of an edited object. `name` is for people. Throws Error NEML2_ERROR_UNSUPPORTED with the reason of the
  // dynamic loader, NEML2_ERROR_ARTIFACT where it does not export what a package does.
  static Image& map(std::string_view name, std::string_view object, bool openmp);

  const EntryPoints& entry() const { return entry_; }

  // Held while a run must be the only one of this image.
  std::mutex& alone() { return alone_; }

  // Packages read AOTI_RUNTIME_CHECK_INPUTS when they first run, and never again. Call it before each run.
  void note_run() {
    if (checks_inputs_.load(std::memory_order_relaxed) == unknown) remember_checks();
  }
  // Whether the package checks its inputs itself; before it first ran, whether it would.
  bool checks_inputs() const;

 private:
  Image(std::string_view name, std::string_view object, bool openmp);
  void remember_checks();

  static constexpr int unknown = -1;
  EntryPoints entry_{};
  std::mutex alone_;
  std::atomic<int> checks_inputs_ = unknown;
};

}  // namespace neml2_capi::aoti
