#include "capi/abi/arguments.h"

#include <algorithm>

#include "capi/base/log.h"
#include "capi/graph/algebra.h"
#include "capi/values/broadcast.h"

namespace neml2_capi::abi {

using model::Kind;
using model::Variable;

void Arguments::add(const Tensor& tensor, Dims& batch) {
  const Variable& variable = variables[tensors.size()];
  const Dims& point = variable.point_shape;
  if (tensor.dtype() != variable.dtype)
    throw Error(NEML2_ERROR_DTYPE, variable.name,
                join("The ", kind, " '", variable.name, "' must be ", name_of(variable.dtype), "; got ",
                     name_of(tensor.dtype()), ". Convert it first."));
  if (tensor.ndim() < point.size() || !(tensor.sizes().last(point.size()) == point))
    throw Error(NEML2_ERROR_SHAPE, variable.name,
                join("The ", kind, " '", variable.name, "' has the shape ", tensor.sizes().str(),
                     "; expected batch axes and then ", point.str(), "."));
  const bool is_there = tensor.device().as_seen() == device.as_seen();
  if (!is_there && !origin)
    throw Error(NEML2_ERROR_UNSUPPORTED, variable.name,
                join("The ", kind, " '", variable.name, "' is on ", tensor.device().str(), ", and the model on ",
                     device.str(), ". Move it there first, or load the model there."));
  const Dims own = tensor.sizes().first(tensor.ndim() - point.size());
  const auto common = model::broadcast(batch, own);
  if (!common)
    throw Error(NEML2_ERROR_SHAPE, variable.name,
                join("The ", kind, " '", variable.name, "' has the batch ", own.str(),
                     ", which does not broadcast with the batch ", batch.str(), " of those before it."));
  batch = *common;
  const graph::OnStream there(is_there ? Device() : tensor.device());
  tensors.push_back(is_there ? tensor.as_on(device) : algebra::moved(tensor, device));
  if (!is_there && origin->is_host()) *origin = tensor.device();
  batches.push_back(own);
}

void Arguments::add(const neml2_tensor* handle, Dims& batch) {
  Argument named(variables[tensors.size()].name.c_str());
  named.kind = kind;
  const Shared use(handle, named);
  add(use->value, batch);
}

void Arguments::skip() {
  tensors.emplace_back();
  batches.emplace_back();
}

void Arguments::add_present(neml2_tensor* const* handles, Dims& batch) {
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (handles && handles[i])
      add(handles[i], batch);
    else
      skip();
}

bool Arguments::vary() const {
  return std::any_of(batches.begin(), batches.end(), [](const Dims& batch) { return batch.product() != 1; });
}

void Arguments::bind(const Dims& batch, std::vector<model::Points>& arrays) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const void* given = tensors[i].data();
    if (!given && tensors[i].numel() != 0) continue;
    arrays[i] = model::as_points(tensors[i], batch, variables[i].point_shape);
    if (arrays[i].data != given)
      log::write(log::Channel::tensor, log::Level::debug, "the ", kind, " '", variables[i].name, "' was copied: it is ",
                 batches[i] == batch ? "not row-major" : join("repeated to the batch ", batch.str()));
  }
}

// Names all that are missing, the first of which is number `first`.
[[noreturn]] static void refuse_missing(const std::vector<Variable>& variables, neml2_tensor* const* handles,
                                        std::size_t first) {
  std::string others;
  for (std::size_t i = first + 1; i < variables.size(); ++i)
    if (!handles[i]) others += join(others.empty() ? " So are '" : ", '", variables[i].name, "'");
  throw Error(NEML2_ERROR_MISSING, variables[first].name,
              join("The input '", variables[first].name, "' is missing; every input must be given. Its shape is ",
                   "batch axes and then ", variables[first].point_shape.str(), ".", others, others.empty() ? "" : "."));
}

Arguments given_inputs(const model::Model& model, neml2_tensor* const* handles, Dims& batch, Device* origin) {
  Arguments given{model.variables(Kind::input), "input", model.device(), origin};
  for (std::size_t i = 0; i < given.variables.size(); ++i) {
    if (!handles[i]) refuse_missing(given.variables, handles, i);
    given.add(handles[i], batch);
  }
  return given;
}

Arguments given_parameters(const model::Model& model, neml2_tensor* const* handles, const Vector<Tensor>& stored,
                           Dims& batch, Device* origin) {
  Arguments promoted{model.variables(Kind::parameter), "parameter", model.device(), origin};
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (handles && handles[i]) {
      promoted.add(handles[i], batch);
    } else {
      const Variable& variable = promoted.variables[i];
      // The results would be empty, though none of the arrays of this evaluation is.
      if (stored[i].numel() == 0 && variable.point_shape.product() != 0 && batch.product() != 0)
        throw Error(NEML2_ERROR_SHAPE, variable.name,
                    join("The parameter '", variable.name, "' was set to no values, ", stored[i].sizes().str(),
                         ", and there are points: set it to one value, or to one for each point."));
      promoted.add(stored[i], batch);
    }
  return promoted;
}

void add_result(Vector<Tensor>& results, const Dims& batch, bool batched, const Variable& variable,
                model::Points& array) {
  const bool rows = batched || batch.product() == 0;
  results.push_back(Tensor::empty(variable.dtype, (rows ? batch : Dims()).then(variable.point_shape)));
  array = {results.back().data_as<char>(), rows ? variable.point_shape.product() : 0};
}

std::unique_ptr<ReportObject> bind_report(const model::Model& model, const Dims& batch, const model::Options& options,
                                          model::Bindings& bindings) {
  auto report = std::make_unique<ReportObject>();
  auto& tensors = report->tensors;
  const std::int64_t miters = options.miters();
  for (int kind = 0; kind < model::num_reports; ++kind) {
    const bool history = kind == NEML2_REPORT_RESIDUAL_HISTORY, rescue = kind == NEML2_REPORT_RESCUE_SOLVES;
    const DType dtype = model::dtype_of_report(kind);
    if (history)
      tensors.push_back(options.collect_history() ? Tensor::empty(dtype, batch.then({miters})) : Tensor());
    else
      tensors.push_back(rescue && options.rescue() == 0 ? Tensor() : Tensor::zeros(dtype, batch));
    bindings.report[kind] = {tensors.back().data_as<char>(), history ? miters : 1};
  }
  report->unknowns.resize(model.variables(Kind::unknown).size());
  bindings.unknowns = &report->unknowns;
  return report;
}

std::unique_ptr<ReportObject> finished(std::unique_ptr<ReportObject> report, const model::Model& model,
                                       const Dims& batch) {
  const auto has_data = [](const Tensor& tensor) { return tensor.data() != nullptr; };
  if (std::none_of(report->unknowns.begin(), report->unknowns.end(), has_data)) return report;
  for (std::size_t i = 0; i < report->unknowns.size(); ++i) {
    Tensor& unknown = report->unknowns[i];
    const model::Variable& variable = model.variables(Kind::unknown)[i];
    const Dims sizes = batch.then(variable.point_shape);
    if (unknown.data()) {
      unknown = Tensor(unknown.storage(), unknown.dtype(), sizes, sizes.row_major());
    } else {  // only another segment failed
      unknown = Tensor::empty(variable.dtype, sizes);
      model::fill_nan(unknown.data_as<char>(), variable.dtype, unknown.numel());
    }
  }
  return report;
}

}  // namespace neml2_capi::abi
