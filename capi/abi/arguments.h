// What evaluations with tensors take and return: handles in, handles out, brought to one batch.
#pragma once

#include <memory>
#include <vector>

#include "capi/abi/handles.h"

namespace neml2_capi::abi {

// The tensors of one kind, and their arrays once the common batch is known. One that is not there is empty.
struct Arguments {
  const std::vector<model::Variable>& variables;
  const char* kind;
  Device device = {};  // that they must be on
  // Where it is not null, they may be on another device: they are copied, and it is told the first such device.
  Device* origin = nullptr;
  Vector<Tensor> tensors = {};
  std::vector<Dims> batches = {};  // as they were given

  // Check element type and trailing shape, and widen `batch` by the batch of this argument.
  void add(const Tensor& tensor, Dims& batch);
  void skip();
  // Those of `handles` that are there; none where it is null.
  void add_present(neml2_tensor* const* handles, Dims& batch);
  void bind(const Dims& batch, std::vector<model::Points>& arrays);
  // Does any of them have more than one value?
  bool vary() const;
};

// All inputs; throws NEML2_ERROR_MISSING where one is not there.
Arguments given_inputs(const model::Model& model, neml2_tensor* const* handles, Dims& batch, Device* origin = nullptr);
// All parameters: those of `handles`, which may be null, and else the stored ones.
Arguments given_parameters(const model::Model& model, neml2_tensor* const* handles, const Vector<Tensor>& stored,
                           Dims& batch, Device* origin = nullptr);

// Results of an evaluation, one tensor per variable or derivative; empty where there is none.
struct Results {
  neml2_tensor** out = nullptr;
  Vector<Tensor> tensors = {};

  // Room for a result whose array of one point is `variable`.
  void add(const Dims& batch, bool batched, const model::Variable& variable, model::Points& array);
};

// A report that the evaluation will fill; the history, which is large, on request.
std::unique_ptr<neml2_report> bind_report(const model::Model& model, const Dims& batch, const model::Options& options,
                                          model::Bindings& bindings);
// The same once it is filled.
std::unique_ptr<neml2_report> finished(std::unique_ptr<neml2_report> report, const model::Model& model,
                                       const Dims& batch);

}  // namespace neml2_capi::abi
