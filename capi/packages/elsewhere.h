// Packages on another library than the built-in provider: a backend of its own may have that library.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capi/graph/graph.h"
#include "capi/loader/elf.h"
#include "capi/loader/image.h"
#include "capi/package/operator_node.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti {

// Device code of a package.
struct KernelFile {
  std::string name;
  std::string bytes;
};

// Copy of a package's object whose calls go to the other library, and what makes a graph of its image.
struct Bound {
  Object object;
  std::function<std::shared_ptr<graph::Graph>(const std::string& package, Signature signature, Image& image,
                                              Device device, const std::vector<KernelFile>& kernels)>
      open;
};

struct Elsewhere {
  // Throws NEML2_ERROR_UNSUPPORTED with all that the library lacks for a device.
  void (*require)(Device device);
  // Throws Error if the library is not there, and NEML2_ERROR_UNSUPPORTED with all that it lacks.
  Bound (*bind)(std::string_view object, const std::vector<OperatorNode>& nodes);
};

// Set by the backend that has the library.
inline constinit const Elsewhere* elsewhere = nullptr;

}  // namespace neml2_capi::aoti
