// The table of backends: what opens graphs, and what computes on devices. Each backend puts itself there, and nothing
// else knows it by name.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "capi/graph/algebra.h"
#include "capi/graph/driver.h"
#include "capi/graph/graph.h"
#include "capi/graph/operators.h"

namespace neml2_capi::graph {

// Source of a graph: a file, or its content, which may go once the graph is open.
struct Source {
  Source(std::filesystem::path path) : path(std::move(path)) {}
  static Source in_memory(std::string_view content) {
    Source source("");
    source.content = content;
    return source;
  }

  std::filesystem::path path;
  std::optional<std::string_view> content;
};

// Library of a backend that is found at run time.
struct Library {
  const char *path, *version;  // valid for the life of the process
};

// Functions of a backend; null if it lacks one.
struct Backend {
  const char* name;  // as -DNEML2_CAPI_BACKENDS has it

  // Tells whether a source is one of this backend's; null: whatever no other backend opens.
  bool (*opens)(const Source&) = nullptr;
  // Throws Error: NEML2_ERROR_FILE, _ARTIFACT, _UNSUPPORTED, with a line for each failed check.
  std::shared_ptr<Graph> (*open)(const Source&, const Wanted&) = nullptr;
  // Makes all checks of open() that need no mapped code, and throws its errors. Returns the runtime that it would take.
  Runtime (*check)(const Source&, const Wanted&) = nullptr;
  // Names the library that graphs call on a runtime; empty for a runtime of another backend.
  std::string (*library)(Runtime) = nullptr;

  const Algebra* algebra = nullptr;
  const Driver* driver = nullptr;

  // Registers an operator for the graphs that are loaded from now on. Throws NEML2_ERROR_ARGUMENT for a malformed or
  // unsupported schema, and for a name that is taken.
  void (*register_operator)(std::string_view schema, OperatorFunction function) = nullptr;
  // Unregisters an operator by its name or schema: waits until no thread is in the function, which is never called
  // again. Throws NEML2_ERROR_NAME for an unknown operator, NEML2_ERROR_ARGUMENT for a call by the function itself.
  void (*unregister_operator)(std::string_view name) = nullptr;
  // Makes the schema of an operator of the backend's library known to this process. Throws NEML2_ERROR_ARGUMENT.
  void (*declare_operator)(std::string_view schema) = nullptr;

  void (*suggest_library)(const std::filesystem::path& place) = nullptr;
  Library (*open_library)() = nullptr;

  Backend* next = nullptr;
};

// Puts a backend into the table: a static object of the backend's.
class Registration {
 public:
  explicit Registration(Backend& backend);
};

Backend* first_backend();

// Throws NEML2_ERROR_UNSUPPORTED: no backend does `what`.
[[noreturn]] void refuse_without_backend(const char* what);

#ifdef NEML2_CAPI_WITHOUT_BACKENDS
inline constexpr bool has_backends = false;
#else
inline constexpr bool has_backends = true;
#endif

// Returns what a function of the rooms of devices gives. They are not in a library without backends: there nothing calls it.
template <class Function>
auto on_devices(const Function& function) -> decltype(function()) {
  if constexpr (has_backends)
    return function();
  else
    refuse_without_backend("compute on devices");
}

// Returns a member of the first backend that has it: offered(&Backend::declare_operator, "declare operators").
template <class Function>
Function offered(Function Backend::*member, const char* what) {
  for (const Backend* each = first_backend(); each; each = each->next)
    if (each->*member) return each->*member;
  refuse_without_backend(what);
}

// Do as the functions of the backend that opens the source.
std::shared_ptr<Graph> open(const Source& source, const Wanted& wanted = {});
Runtime check(const Source& source, const Wanted& wanted = {});

// Names the library that graphs call on a runtime; empty if none does.
std::string library_of(Runtime runtime);

}  // namespace neml2_capi::graph
