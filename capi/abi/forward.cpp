// Evaluation of a model with tensors, and its report.
#include <string>

#include "capi/abi/handles.h"
#include "capi/model/broadcast.h"

namespace neml2_capi::abi {
namespace {

using model::Evaluation;
using model::Kind;
using model::Model;
using model::Variable;

// The tensors of one kind, and their arrays once the common batch is known.
struct Arguments {
  const std::vector<Variable>& variables;
  const char* kind;
  std::vector<Tensor> tensors;

  // Check element type and trailing shape, and widen `batch` by the batch of this argument.
  void add(const Tensor& tensor, Dims& batch) {
    const Variable& variable = variables[tensors.size()];
    const Dims& point = variable.point_shape;
    if (tensor.dtype() != variable.dtype)
      throw Error(NEML2_ERROR_DTYPE, variable.name,
                  join("The ", kind, " '", variable.name, "' must be ", name_of(variable.dtype), "; got ",
                       name_of(tensor.dtype()), ". Convert it first, or load the model with another dtype."));
    if (tensor.ndim() < point.size() || !(tensor.sizes().last(point.size()) == point))
      throw Error(NEML2_ERROR_SHAPE, variable.name,
                  join("The ", kind, " '", variable.name, "' has the shape ", tensor.sizes().str(),
                       "; expected batch axes and then ", point.str(), "."));
    const Dims own = tensor.sizes().first(tensor.ndim() - point.size());
    const auto common = model::broadcast(batch, own);
    if (!common)
      throw Error(NEML2_ERROR_SHAPE, variable.name,
                  join("The ", kind, " '", variable.name, "' has the batch ", own.str(),
                       ", which does not broadcast with the batch ", batch.str(), " of those before it."));
    batch = *common;
    tensors.push_back(tensor);
  }

  std::vector<model::Points> points(const Dims& batch) {
    std::vector<model::Points> arrays;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      arrays.push_back(model::as_points(tensors[i], batch, variables[i].point_shape));
    return arrays;
  }
};

// A tensor for each kind of report, bound to the evaluation; the history, which is large, on request.
std::vector<Tensor> bind_report(const Dims& batch, const model::Options& options, Evaluation& evaluation) {
  std::vector<Tensor> tensors = {Tensor::zeros(DType::int32, batch), Tensor::zeros(DType::int32, batch),
                                 Tensor::zeros(DType::float64, batch)};
  if (options.collect_history()) {
    Dims history = batch;
    history.push_back(options.newton().miters);
    tensors.push_back(Tensor::empty(DType::float64, history));
  }
  for (std::size_t kind = 0; kind < tensors.size(); ++kind)
    evaluation.report[kind] = {tensors[kind].data_as<char>(), 1};
  if (options.collect_history()) evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].stride = options.newton().miters;
  return tensors;
}

}  // namespace

std::int32_t conclude(const model::Tally& tally, std::int64_t points) {
  const char* what[] = {"", "are not finite", "did not converge", "met a singular Jacobian"};
  std::string message;
  for (std::int32_t status = NEML2_SINGULAR; status > NEML2_OK; --status)
    if (tally.count[status] > 0)
      message += join(message.empty() ? "" : "; ", tally.count[status], " of ", points, " points ", what[status],
                      " (the first is point ", tally.first[status], ")");
  const std::int32_t worst = tally.worst();
  if (worst > NEML2_NON_FINITE)
    message += join(tally.count[NEML2_OK] > 0 ? ". The other points hold good results" : "",
                    ". Reduce the step, or raise miters or ls_max_iters; a residual norm of NaN tells of bad inputs.");
  else if (worst > NEML2_OK)
    message += ". Check the inputs: the results were written as they are.";
  return worst > NEML2_OK ? record_recoverable(worst, message) : NEML2_OK;
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_model_forward(neml2_tensor** outputs, neml2_report** report, const neml2_model* model,
                            neml2_tensor* const* inputs, neml2_tensor* const* parameters) {
  return guarded([&] {
    const Model& target = *required(model, "model").value;
    required(outputs, "outputs");
    required(inputs, "inputs");

    Dims batch;
    Arguments given{target.variables(Kind::input), "input", {}};
    for (std::size_t i = 0; i < given.variables.size(); ++i) {
      if (!inputs[i])
        throw Error(
            NEML2_ERROR_MISSING, given.variables[i].name,
            join("The input '", given.variables[i].name, "' is missing; every input must be given. Its shape is ",
                 "batch axes and then ", given.variables[i].point_shape.str(), "."));
      given.add(inputs[i]->value, batch);
    }
    const std::vector<Tensor> stored = target.copy_parameters();
    Arguments promoted{target.variables(Kind::parameter), "parameter", {}};
    for (std::size_t i = 0; i < stored.size(); ++i)
      promoted.add(parameters && parameters[i] ? parameters[i]->value : stored[i], batch);

    const model::Options options = target.options();
    Evaluation evaluation;
    evaluation.points = count_of(batch);
    evaluation.inputs = given.points(batch);
    evaluation.parameters = promoted.points(batch);
    evaluation.mark_failed = true;
    std::vector<Tensor> results;
    for (const Variable& variable : target.variables(Kind::output)) {
      results.push_back(Tensor::empty(variable.dtype, batch.then(variable.point_shape)));
      evaluation.outputs.push_back({results.back().data_as<char>(), variable.point_shape.product()});
    }
    auto reported = std::make_unique<neml2_report>();
    if (report) reported->tensors = bind_report(batch, options, evaluation);

    const model::Tally tally = target.evaluate(evaluation, options);
    hand_out(outputs, std::move(results));
    if (report) *report = reported.release();
    return conclude(tally, evaluation.points);
  });
}

int32_t neml2_report_get(neml2_tensor** out, const neml2_report* report, int32_t kind) {
  return guarded([&] {
    required(out, "out");
    const auto& tensors = required(report, "report").tensors;
    if (kind == NEML2_REPORT_RESIDUAL_HISTORY && tensors.size() == NEML2_REPORT_RESIDUAL_HISTORY)
      throw Error(NEML2_ERROR_ARGUMENT, "collect_history",
                  "The report holds no residual history: set the option collect_history to 1 before the evaluation.");
    if (kind < 0 || kind >= static_cast<std::int32_t>(tensors.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "kind",
                  join("There is no report ", kind, "; see NEML2_REPORT_STATUS and the others."));
    *out = new neml2_tensor{tensors[static_cast<std::size_t>(kind)]};
    return NEML2_OK;
  });
}

void neml2_report_free(neml2_report** report) { release(report); }
