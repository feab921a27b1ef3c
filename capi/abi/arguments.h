// Arguments and results of evaluations with tensors: handles in, handles out, brought to one batch.
#pragma once

#include <memory>
#include <vector>

#include "capi/abi/handles.h"

namespace neml2_capi::abi {

// Tensors of one kind, and their arrays once the common batch is known. One that is not there is empty.
struct Arguments {
  const std::vector<model::Variable>& variables;
  const char* kind;
  Device device = {};  // that they must be on
  // Receives the first other device that they are on, and they are copied; null if they must not be on another.
  Device* origin = nullptr;
  Vector<Tensor> tensors = {};
  std::vector<Dims> batches = {};  // as they were given

  // Checks element type and trailing shape, and widens `batch` by the batch of this argument.
  void add(const Tensor& tensor, Dims& batch);
  void add(const neml2_tensor* handle, Dims& batch);
  void skip();
  // Adds each tensor of `handles` that is not null; none if `handles` is null.
  void add_present(neml2_tensor* const* handles, Dims& batch);
  void bind(const Dims& batch, std::vector<model::Points>& arrays);
  // Tells whether any of them has more than one value.
  bool vary() const;
};

// Returns all inputs; throws NEML2_ERROR_MISSING if one is not there.
Arguments given_inputs(const model::Model& model, neml2_tensor* const* handles, Dims& batch, Device* origin = nullptr);
// Returns all parameters: from `handles`, which may be null, and else the stored ones.
Arguments given_parameters(const model::Model& model, neml2_tensor* const* handles, const Vector<Tensor>& stored,
                           Dims& batch, Device* origin = nullptr);

// Makes room for a result whose array of one point is `variable`.
void add_result(Vector<Tensor>& results, const Dims& batch, bool batched, const model::Variable& variable,
                model::Points& array);

// Makes a report that the evaluation will fill; the history, which is large, on request.
std::unique_ptr<ReportObject> bind_report(const model::Model& model, const Dims& batch, const model::Options& options,
                                          model::Bindings& bindings);
// Returns the report once it is filled.
std::unique_ptr<ReportObject> finished(std::unique_ptr<ReportObject> report, const model::Model& model,
                                       const Dims& batch);

}  // namespace neml2_capi::abi
