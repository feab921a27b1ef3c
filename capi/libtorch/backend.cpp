// libtorch, for packages and for tensors of devices: a backend.
#include "capi/graph/backend.h"

#include "capi/libtorch/algebra.h"
#include "capi/libtorch/graph.h"
#include "capi/libtorch/library.h"
#include "capi/libtorch/schema.h"

namespace neml2_capi::aoti::libtorch {
namespace {

std::string library(graph::Runtime runtime) {
  const bool own = runtime == graph::Runtime::libtorch || runtime == graph::Runtime::tensors;
  return own ? "libtorch " + Library::get().version() : "";
}

graph::Library open_library() { return {Library::get().path().c_str(), Library::get().version().c_str()}; }

const TensorAlgebra algebra;
graph::Backend backend{.name = "libtorch",
                       .library = library,
                       .algebra = &algebra,
                       .declare_operator = declare,
                       .suggest_library = Library::suggest,
                       .open_library = open_library};
const graph::Registration registration(backend);

constexpr Elsewhere packages{require_algebra, bind};
[[maybe_unused]] const bool offered = (elsewhere = &packages);

}  // namespace
}  // namespace neml2_capi::aoti::libtorch
