#include "capi/devices/host_arrays.h"

#include "capi/devices/evaluate.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/graph/algebra.h"

namespace neml2_capi::model {
namespace {

// Request of an evaluation over arrays of the host.
class Transfer {
 public:
  Transfer(const Model& model, const Bindings& bindings)
      : model_(model), bindings_(bindings), batch_{bindings.points} {}

  DeviceRequest request() const {
    DeviceRequest asked;
    asked.batch = batch_;
    for (const Part part : given_parts)
      asked.given[part] = part == Part::parameter ? parameters() : taken(bindings_.of(part), kind_of(part));
    for (const Part part : derived_parts) {
      asked.wants[part] = any_bound(bindings_.of(part));
      asked.adjoint_batches[part].assign(model_.count(part), batch_);
    }
    asked.blocks_vary = true;
    return asked;
  }

 private:
  // Returns one value per point, or one for all; empty if nothing is bound.
  Tensor taken(const Points& array, const Variable& variable, bool one) const {
    if (!array.data) return {};
    const Tensor rows = gather(array, variable, 0, one ? 1 : bindings_.points, true);
    const Dims sizes = one ? variable.point_shape : rows.sizes();
    return algebra::moved(Tensor(rows.storage(), rows.dtype(), sizes, sizes.row_major()), model_.compute_device());
  }
  Vector<Tensor> taken(const std::vector<Points>& arrays, Kind kind) const {
    Vector<Tensor> tensors;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      tensors.push_back(taken(arrays[i], model_.variables(kind)[i], arrays[i].stride == 0));
    return tensors;
  }
  // Returns one value if all points have the same: some packages take one for all points of a run.
  Vector<Tensor> parameters() const {
    Vector<Tensor> tensors;
    for (std::size_t i = 0; i < bindings_.parameters.size(); ++i) {
      const Points& array = bindings_.parameters[i];
      const Variable& variable = model_.variables(Kind::parameter)[i];
      const bool one = length_of_equal(array, variable, 0, bindings_.points) == bindings_.points;
      tensors.push_back(taken(array, variable, one));
    }
    return tensors;
  }

  const Model& model_;
  const Bindings& bindings_;
  Dims batch_;
};

Tensor on_host(const Tensor& result) { return result.data() ? algebra::moved(result, {}) : Tensor(); }

Vector<Tensor> on_host(const Vector<Tensor>& results) {
  Vector<Tensor> all;
  for (const Tensor& result : results) all.push_back(on_host(result));
  return all;
}

template <class T>
Vector<T> numbers(const Tensor& report) {
  const Tensor values = on_host(report);
  const T* const first = values.data_as<const T>();
  return values.data() ? Vector<T>(first, first + values.numel()) : Vector<T>();
}

// Brings outputs and reports of a device to a chunk of all points.
void take(const Model& model, const DeviceResults& results, Chunk& chunk) {
  chunk.values.resize(model.num_values());
  const auto& outputs = results.of[Part::output];
  for (std::size_t i = 0; i < outputs.size(); ++i) chunk.values[model.values_of(Kind::output)[i]] = on_host(outputs[i]);
  chunk.reports.status = numbers<std::int32_t>(results.report[NEML2_REPORT_STATUS]);
  chunk.reports.iterations = numbers<std::int32_t>(results.report[NEML2_REPORT_ITERATIONS]);
  chunk.reports.residual_norm = numbers<double>(results.report[NEML2_REPORT_RESIDUAL_NORM]);
  chunk.reports.suggested_cut = numbers<double>(results.report[NEML2_REPORT_SUGGESTED_CUT]);
  chunk.reports.history = numbers<double>(results.report[NEML2_REPORT_RESIDUAL_HISTORY]);
}

}  // namespace

void HostArrays::check(const Options& options, std::int64_t points) const { check_on_device(model_, options, points); }

void HostArrays::run(const Plan& plan, const Bindings& bindings, const Range&, Workspace&, Tally& tally) const {
  const graph::OnStream here(model_.compute_device());
  Options options = plan.options();
  options.set("collect_history", plan.request().history ? 1.0 : 0.0);
  const DeviceResults results = evaluate_on_device(model_, Transfer(model_, bindings).request(), options);
  Chunk chunk;
  chunk.points = bindings.points;
  chunk.newton = options.newton();
  take(model_, results, chunk);
  if (bindings.unknowns) *bindings.unknowns = on_host(results.unknowns);  // NaN at points that did not fail
  Derived derived;
  for (const Part part : derived_parts) derived[part] = on_host(results.of[part]);
  write_results(model_, bindings, chunk);
  write_derivatives(model_, bindings, chunk, derived);
  tally.has_no_rescue = true;
  tally.add(chunk.reports.status, 0);
}

}  // namespace neml2_capi::model
