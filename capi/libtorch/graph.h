// Packages on libtorch.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "capi/libtorch/kernel_folder.h"
#include "capi/libtorch/operators.h"
#include "capi/loader/elf.h"
#include "capi/loader/image.h"
#include "capi/package/graph.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti::libtorch {

// Returns a copy of the package's object whose calls go to libtorch. Throws Error as Library::get() does, and
// NEML2_ERROR_UNSUPPORTED with all that libtorch lacks.
Object bind(std::string_view object);

std::shared_ptr<Graph> open(const std::string& package, Signature signature, std::vector<OperatorCall> calls,
                            Image& image, Device device, const std::vector<KernelFile>& kernels);

}  // namespace neml2_capi::aoti::libtorch
