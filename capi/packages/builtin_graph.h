// Packages on the built-in provider.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capi/graph/graph.h"
#include "capi/loader/elf.h"
#include "capi/loader/image.h"
#include "capi/package/operator_node.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Gives every node its function. Throws NEML2_ERROR_UNSUPPORTED with all that the provider lacks.
void resolve_builtin(const Object& object, const Signature& signature, std::vector<OperatorNode>& nodes);

std::shared_ptr<graph::Graph> open_builtin(const std::string& package, Signature signature,
                                           std::vector<OperatorNode> nodes, Image& image);

}  // namespace neml2_capi::aoti
