// Structures behind the opaque handles of the header.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "capi/abi/guard.h"
#include "capi/devices/dispatch.h"
#include "capi/package/graph.h"
#include "capi/tensor/tensor.h"

struct neml2_tensor {
  neml2_capi::Tensor value;
};

struct neml2_graph {
  std::shared_ptr<neml2_capi::aoti::Graph> value;
};

struct neml2_model {
  explicit neml2_model(std::shared_ptr<neml2_capi::model::Model> own)
      : value(std::move(own)), routes(std::make_shared<const neml2_capi::model::Routes>(value)) {}
  explicit neml2_model(std::shared_ptr<const neml2_capi::model::Dispatch> of)
      : value(of->primary()), dispatch(of), routes(std::make_shared<const neml2_capi::model::Routes>(value, of)) {}

  std::shared_ptr<neml2_capi::model::Model> value;              // of several devices, that of the first
  std::shared_ptr<const neml2_capi::model::Dispatch> dispatch;  // null without a scheduler
  std::shared_ptr<const neml2_capi::model::Routes> routes;
};

struct neml2_report {
  std::vector<neml2_capi::Tensor> tensors;          // by NEML2_REPORT_*
  neml2_capi::Vector<neml2_capi::Tensor> unknowns;  // those of failed points; empty where none failed
};

namespace neml2_capi::abi {

// Deletes what a handle points to and sets it to NULL.
template <class Handle>
void release(Handle** handle) noexcept {
  if (!handle) return;
  delete *handle;
  *handle = nullptr;
}

// Returns sizes as they are given; throws where they are too many, or NULL.
Dims shape_of(std::int64_t ndim, const std::int64_t* shape);

// Returns the number of elements of a tensor; throws for sizes that none can have.
std::int64_t count_of(const Dims& sizes);

// Returns a tensor over memory of somebody else, row-major where `strides` is NULL; throws for what cannot be one.
// `deleter` is only called when this succeeded.
Tensor view_of(void* data, DType dtype, const Dims& sizes, const std::int64_t* strides, Storage::Deleter deleter,
               void* context, Device device = {});

// Makes handles; NULL for a tensor that is not there.
using Handles = std::vector<std::unique_ptr<neml2_tensor>>;
Handles handles_of(Vector<Tensor> tensors);
void hand_out(neml2_tensor** out, Handles handles) noexcept;

// Returns the kind to differentiate by; throws for what is no input or parameter.
model::Kind differentiation_kind(std::int32_t kind);

// Throws NEML2_ERROR_UNSUPPORTED where no derivative with respect to variables of this kind was compiled.
void require_derivatives(const model::Model& model, model::Kind kind);

// Throws NEML2_ERROR_UNSUPPORTED, telling what was asked for, where the model computes over tensors of a device.
void require_host(const model::Model& model, const char* what);

// Returns the status of an evaluation. Records a positive one with a message that says what failed, and in which parts
// of it, and what is wrong with the inputs of a point that could not even begin.
std::int32_t conclude(const model::Tally& tally, std::int64_t points, const std::string& remark = "");
std::int32_t conclude(const model::Tally& tally, const model::Model& model, const model::Bindings& bindings);

}  // namespace neml2_capi::abi
