#include "capi/graph/backend.h"

#include <string_view>
#include <utility>

#include "capi/base/error.h"
#include "capi/platform/process.h"

namespace neml2_capi::graph {
namespace {

constinit Backend* first = nullptr;

const Backend& opener_of(const Source& source) {
  for (const Backend* each = first; each; each = each->next)
    if (each->open && (!each->opens || each->opens(source))) return *each;
  refuse_without_backend("open compiled packages");
}

}  // namespace

// One that opens whatever no other does stands last.
Registration::Registration(Backend& backend) {
  Backend** at = &first;
  while (!backend.opens && *at) at = &(*at)->next;
  backend.next = std::exchange(*at, &backend);
}

Backend* first_backend() { return first; }

void refuse_without_backend(const char* what) {
  std::string names;
  for (const Backend* each = first; each; each = each->next) add_name(names, each->name);
  throw Error(NEML2_ERROR_UNSUPPORTED, "backend",
              join("No backend of this library can ", what, "; it was built with: ", names.empty() ? "none" : names,
                   ". Run a model that has all its kernels (neml2-capi compile INPUT.i)",
                   platform::system_name == std::string_view("linux")
                       ? ", or build the library with -DNEML2_CAPI_BACKENDS='packages;libtorch;opencl;cuda'."
                       : ": compiled packages run on Linux alone."));
}

std::shared_ptr<Graph> open(const Source& source, const Wanted& wanted) {
  return opener_of(source).open(source, wanted);
}

Runtime check(const Source& source, const Wanted& wanted) {
  const Backend& backend = opener_of(source);
  if (!backend.check) refuse_without_backend("check a graph without opening it");
  return backend.check(source, wanted);
}

std::string library_of(Runtime runtime) {
  for (const Backend* each = first; each; each = each->next)
    if (std::string name = each->library ? each->library(runtime) : ""; !name.empty()) return name;
  return "";
}

const Algebra& algebra_of(Device device) {
  for (const Backend* each = first; each; each = each->next)
    if (each->algebra && (device.is_host() || each->algebra->serves(device))) return *each->algebra;
  refuse_without_backend("compute on tensors of a device");
}

const Driver& driver_of(Device device) {
  for (const Backend* each = first; each; each = each->next)
    if (each->driver && each->driver->serves(device)) return *each->driver;
  refuse_without_backend(join("run kernels on ", device.str()).c_str());
}

}  // namespace neml2_capi::graph
