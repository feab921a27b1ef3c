// Evaluation of a model and its derivatives with tensors, and the report.
#include "capi/devices/evaluate.h"

#include <algorithm>
#include <array>
#include <string>

#include "capi/abi/arguments.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/plan.h"
#include "capi/graph/algebra.h"
#include "capi/graph/backend.h"
#include "capi/model/remark.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::abi {
namespace {

using model::Kind;
using model::Model;
using model::Part;
using model::Variable;

// Returns the sum of a result over the batch axes along which its variable is one value for many points.
Tensor sum_to(const Tensor& value, const Dims& own, const Variable& variable) {
  const Dims wanted = own.then(variable.point_shape);
  if (value.sizes() == wanted) return value;
  Tensor sum = Tensor::zeros(value.dtype(), wanted);
  const Dims batch = value.sizes().first(value.ndim() - variable.point_shape.size());
  const std::int64_t n = variable.point_shape.product(), points = batch.product();
  const Dims strides = own.row_major();
  with_scalar(value.dtype(), [&]<class Scalar>(Scalar*) {
    const Scalar* from = value.data_as<const Scalar>();
    for (std::int64_t p = 0; p < points; ++p) {
      std::int64_t target = 0;
      for (std::int64_t axis = batch.size(), rest = p; axis-- > 0; rest /= batch[axis]) {
        const std::int64_t k = axis - (batch.size() - own.size());
        if (k >= 0 && own[k] != 1) target += (rest % batch[axis]) * strides[k];
      }
      Scalar* to = sum.data_as<Scalar>() + target * n;
      for (std::int64_t i = 0; i < n; ++i) to[i] += from[p * n + i];
    }
  });
  return sum;
}

// Request for an evaluation with tensors, of all that is not null.
struct Request {
  neml2_tensor** outputs = nullptr;
  neml2_report** report = nullptr;
  const neml2_model* model = nullptr;
  neml2_tensor* const* inputs = nullptr;
  neml2_tensor* const* parameters = nullptr;
  neml2_tensor* const* tangents = nullptr;
  neml2_tensor* const* cotangents = nullptr;
  neml2_tensor** jvps = nullptr;
  neml2_tensor** adjoints = nullptr;
  neml2_tensor** blocks = nullptr;
  Kind kind = Kind::input;  // of what is differentiated by

  // Returns the parts that there can be results of, and where they go.
  std::array<std::pair<Part, neml2_tensor**>, 4> results() const {
    const bool by_parameters = kind == Kind::parameter;
    return {{{Part::output, outputs},
             {Part::jvp, jvps},
             {by_parameters ? Part::parameter_adjoint : Part::adjoint, adjoints},
             {by_parameters ? Part::parameter_block : Part::block, blocks}}};
  }
};

// Tensors that were found, an empty one for each that there is not, and the report.
struct Found {
  model::ByPart<Vector<Tensor>> tensors;
  std::unique_ptr<ReportObject> report;  // null if it is not wanted

  template <class Change>
  void for_each(Change&& change) {
    for (const Part part : model::all_parts) std::ranges::for_each(tensors[part], change);
    if (!report) return;
    std::ranges::for_each(report->tensors, change);
    std::ranges::for_each(report->unknowns, change);
  }
};

// Hands over all that is wanted, or nothing if memory ends.
void hand_over(const Request& request, Found found) {
  Owned<neml2_report> report;
  if (found.report) report = Owned<neml2_report>(std::move(found.report));
  std::vector<Handles> handles;
  for (const auto& [part, out] : request.results()) handles.push_back(handles_of(std::move(found.tensors[part])));
  for (std::size_t i = 0; i < handles.size(); ++i)
    if (neml2_tensor** const out = request.results()[i].second) hand_out(out, std::move(handles[i]));
  if (request.report) *request.report = report.release();
}

// Returns the status. It waits for the number of points that failed, if any did.
std::int32_t conclude_on_device(const model::DeviceResults& results, std::int64_t points) {
  if (!results.any_failed) return NEML2_OK;
  const auto on_host = [&](std::size_t kind) { return algebra::moved(results.report[kind], {}); };
  const Tensor status = on_host(NEML2_REPORT_STATUS), iterations = on_host(NEML2_REPORT_ITERATIONS),
               norms = on_host(NEML2_REPORT_RESIDUAL_NORM);
  model::Tally tally;
  for (std::int64_t p = 0; p < points; ++p) {
    const std::int32_t of_point = status.data_as<const std::int32_t>()[p];
    tally.add(of_point, p);
    if (of_point > NEML2_NON_FINITE)
      tally.note({p, iterations.data_as<const std::int32_t>()[p], norms.data_as<const double>()[p]});
  }
  return record_recoverable(tally.worst(), tally.cause, tally.message(points));
}

// Evaluates over tensors of a device that the processor does not read.
std::int32_t evaluate_on_device(const Request& request, const Model& target, const model::Options& options,
                                const Dims& batch, const Arguments& given, const Arguments& promoted,
                                const Arguments& tangents, const Arguments& cotangents) {
  model::require_no_bounds(target, options);
  const bool of_parameters = request.kind == Kind::parameter;
  model::DeviceRequest asked;
  asked.batch = batch;
  asked.given[Part::input] = given.tensors;
  asked.given[Part::parameter] = promoted.tensors;
  asked.given[Part::tangent] = tangents.tensors;
  asked.given[Part::cotangent] = cotangents.tensors;
  for (const auto& [part, out] : request.results()) {
    asked.wants[part] = out != nullptr;
    if (is_adjoint(part)) asked.adjoint_batches[part] = (of_parameters ? promoted : given).batches;
  }
  asked.blocks_vary = of_parameters || promoted.vary();
  const model::DeviceResults results =
      graph::on_devices([&] { return model::evaluate_on_device(target, asked, options); });
  Found found;
  for (const auto& [part, out] : request.results()) found.tensors[part] = results.of[part];
  if (request.report)
    found.report.reset(new ReportObject{{results.report.begin(), results.report.end()}, results.unknowns});
  found.for_each([](Tensor& tensor) { tensor = tensor.as_on(tensor.device().as_seen()); });
  const std::int32_t status = conclude_on_device(results, count_of(batch));
  hand_over(request, std::move(found));
  return status;
}

std::int32_t evaluate(const Request& request) {
  const Shared use(request.model, "model");
  const Model& target = *use->value;
  required(request.inputs, "inputs");
  const graph::OnStream here(target.device());
  const bool differentiates = request.jvps || request.adjoints || request.blocks;
  if (differentiates) require_derivatives(target, request.kind);

  // A scheduler takes tensors of any device, and gives results back there.
  Device origin;
  Device* const from = use->dispatch ? &origin : nullptr;
  Dims batch;
  Arguments given = given_inputs(target, request.inputs, batch, from);
  model::Snapshot snapshot;
  target.take(snapshot);
  const model::Options& options = snapshot.options;
  Arguments promoted = given_parameters(target, request.parameters, snapshot.parameters, batch, from);
  Arguments tangents{target.variables(Kind::input), "tangent of", target.device(), from};
  tangents.add_present(request.tangents, batch);
  Arguments cotangents{target.variables(Kind::output), "cotangent of", target.device(), from};
  cotangents.add_present(request.cotangents, batch);
  if (!target.device().is_host())
    return evaluate_on_device(request, target, options, batch, given, promoted, tangents, cotangents);

  model::Bindings bindings = model::bindings_for(target);
  bindings.points = count_of(batch);
  bindings.mark_failed = true;
  given.bind(batch, bindings.inputs);
  promoted.bind(batch, bindings.parameters);
  tangents.bind(batch, bindings.tangents);
  cotangents.bind(batch, bindings.cotangents);

  const bool of_parameters = request.kind == Kind::parameter;
  const Arguments& by = of_parameters ? promoted : given;
  // Blocks that are the same for all points may still depend on a parameter that is not.
  const bool vary = of_parameters || promoted.vary();
  Found found;
  for (const auto& [part, out] : request.results())
    for (std::size_t i = 0; out && i < target.count(part); ++i)
      if (target.is_compiled(part, i))
        add_result(found.tensors[part], batch,
                   !is_block(part) || target.derivatives(request.kind).all()[i].batched || vary,
                   target.variable(part, i), bindings.of(part)[i]);
      else
        found.tensors[part].emplace_back();
  if (request.report) found.report = bind_report(target, batch, options, bindings);

  if (bindings.points > 0) bindings.copies = inputs_to_copy(target, bindings, options.miters());
  const model::Tally tally = model::evaluate(*use->routes, options, bindings);
  model::log_exceeded(target, tally.exceeded, bindings.points, 1);
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < found.tensors[part].size(); ++i)
      if (Tensor& adjoint = found.tensors[part][i]; target.is_compiled(part, i))
        adjoint = sum_to(adjoint, by.batches[i], by.variables[i]);
  if (request.report) found.report = finished(std::move(found.report), target, batch);
  if (!origin.is_host()) {
    const graph::OnStream there(origin);
    found.for_each([&](Tensor& tensor) {
      if (tensor.data()) tensor = algebra::moved(tensor, origin);
    });
  }
  hand_over(request, std::move(found));
  return conclude(tally, target, bindings);
}

}  // namespace

void require_derivatives(const model::Model& model, Kind kind) {
  if (!model.derivatives(kind).all().empty()) return;
  const bool parameters = kind == Kind::parameter;
  throw Error(NEML2_ERROR_UNSUPPORTED, parameters ? "parameter_derivatives" : "derivatives",
              join("The artifact was compiled without derivatives with respect to ",
                   parameters ? "parameters. Compile it with neml2-compile -p PARAMETER -d OUTPUT:PARAMETER; export a "
                                "law in torch again "
                                "with parameters={...}, derivatives=True."
                              : "inputs. Compile it with neml2-compile -d OUTPUT:INPUT, or -d : for all; export a law "
                                "in torch again with "
                                "derivatives=True."));
}

void require_host(const model::Model& model, const char* what) {
  if (model.device().is_host()) return;
  throw Error(NEML2_ERROR_UNSUPPORTED, "device",
              join(what, " for arrays of the host, and the model computes over tensors on ", model.device().str(),
                   " (runtime \"tensors\"): evaluate it with neml2_model_forward() and the like, or load it for the "
                   "CPU and the runtime \"auto\"."));
}

std::int32_t conclude(const model::Tally& tally, const model::Model& model, const model::Bindings& bindings) {
  const std::int32_t worst = tally.worst();
  if (worst == NEML2_OK) return NEML2_OK;
  return record_recoverable(worst, tally.cause, model::message_of(model, bindings, tally, bindings.points),
                            tally.parts);
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_model_forward(neml2_tensor** outputs, neml2_report** report, const neml2_model* model,
                            neml2_tensor* const* inputs, neml2_tensor* const* parameters) {
  return guarded([&] {
    Request request{&required(outputs, "outputs"), report, model, inputs, parameters};
    return evaluate(request);
  });
}

int32_t neml2_model_jvp(neml2_tensor** outputs, neml2_tensor** jvps, neml2_report** report, const neml2_model* model,
                        neml2_tensor* const* inputs, neml2_tensor* const* tangents, neml2_tensor* const* parameters) {
  return guarded([&] {
    Request request{outputs, report, model, inputs, parameters};
    request.tangents = &required(tangents, "tangents");
    request.jvps = &required(jvps, "jvps");
    return evaluate(request);
  });
}

int32_t neml2_model_vjp(neml2_tensor** outputs, neml2_tensor** adjoints, neml2_report** report,
                        const neml2_model* model, int32_t kind, neml2_tensor* const* inputs,
                        neml2_tensor* const* cotangents, neml2_tensor* const* parameters) {
  return guarded([&] {
    Request request{outputs, report, model, inputs, parameters};
    request.kind = differentiation_kind(kind);
    request.cotangents = &required(cotangents, "cotangents");
    request.adjoints = &required(adjoints, "adjoints");
    return evaluate(request);
  });
}

int32_t neml2_model_jacobian(neml2_tensor** outputs, neml2_tensor** blocks, neml2_report** report,
                             const neml2_model* model, int32_t kind, neml2_tensor* const* inputs,
                             neml2_tensor* const* parameters) {
  return guarded([&] {
    Request request{outputs, report, model, inputs, parameters};
    request.kind = differentiation_kind(kind);
    request.blocks = &required(blocks, "blocks");
    return evaluate(request);
  });
}

int32_t neml2_report_get(neml2_tensor** out, const neml2_report* report, int32_t kind) {
  return shared(report, "report", [&](auto& its) {
    required(out, "out");
    const auto& tensors = its.tensors;
    if (kind < 0 || kind >= static_cast<std::int32_t>(tensors.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "kind",
                  join("There is no report ", kind, "; see NEML2_REPORT_STATUS and the others."));
    if (kind == NEML2_REPORT_RESIDUAL_HISTORY && !tensors[NEML2_REPORT_RESIDUAL_HISTORY].data())
      throw Error(NEML2_ERROR_ARGUMENT, "collect_history",
                  "The report holds no residual history: set the option collect_history to 1 before the bindings.");
    if (kind == NEML2_REPORT_RESCUE_SOLVES && !tensors[NEML2_REPORT_RESCUE_SOLVES].data())
      throw Error(NEML2_ERROR_ARGUMENT, "rescue",
                  "The report holds no solves of a rescue: set the option rescue to more than 0 before.");
    *out = opened<neml2_tensor>(tensors[static_cast<std::size_t>(kind)]);
  });
}

int32_t neml2_report_get_unknown(neml2_tensor** out, const neml2_report* report, int64_t index) {
  return shared(report, "report", [&](auto& its) {
    required(out, "out");
    const auto& unknowns = its.unknowns;
    const Tensor& unknown = entry_of(unknowns, index, "The model", "unknowns");
    if (!unknown.data()) throw Error(NEML2_ERROR_MISSING, "unknown", "No point failed, so there are no last iterates.");
    *out = opened<neml2_tensor>(unknown);
  });
}

void neml2_report_free(neml2_report** report) { release(report); }
