// Packages of AOTInductor, on the built-in provider: a backend.
#include "capi/graph/backend.h"

#include "capi/loader/image.h"
#include "capi/packages/load.h"
#include "capi/packages/registered_operators.h"

namespace neml2_capi::aoti {
namespace {

std::string library(graph::Runtime runtime) { return runtime == graph::Runtime::builtin ? provider_file : ""; }

graph::Backend backend{.name = "packages",
                       .open = load_graph,
                       .check = check_package,
                       .library = library,
                       .register_operator = register_operator,
                       .unregister_operator = unregister_operator};
const graph::Registration registration(backend);

}  // namespace
}  // namespace neml2_capi::aoti
