// The opening of a model for a device: by its packages, or by the text of its kernels.
#pragma once

#include <memory>

#include "capi/abi/sized.h"
#include "capi/accelerator/by_text.h"
#include "capi/graph/runtime.h"

namespace neml2_capi::abi {

struct OpenedModel {
  std::shared_ptr<model::Model> model;
  std::shared_ptr<const accelerator::ByText> text;  // on a device, by text; else null
};

// A model on OpenCL runs by text. On CUDA it does if the artifact has the text, and no packages for CUDA.
OpenedModel open_model(const neml2_source& source, Device device, graph::Runtime runtime);

}  // namespace neml2_capi::abi
