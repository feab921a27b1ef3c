#include "capi/devices/host_arrays.h"

#include <algorithm>
#include <utility>

#include "capi/devices/evaluate.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/graph/algebra.h"

namespace neml2_capi::model {
namespace {

// Request of an evaluation over arrays of the host, with respect to the inputs or to the parameters.
class Transfer {
 public:
  Transfer(const Model& model, const Bindings& bindings)
      : model_(model), bindings_(bindings), batch_{bindings.points} {}

  DeviceRequest request(Kind kind) const {
    const bool of_parameters = kind == Kind::parameter;
    DeviceRequest asked{batch_, taken(bindings_.inputs, Kind::input), parameters(), {}, {}};
    asked.tangents = taken(bindings_.tangents, Kind::input);
    asked.cotangents = taken(bindings_.cotangents, Kind::output);
    asked.jvp = !of_parameters && any_bound(bindings_.jvps);
    asked.vjp = any_bound(adjoints(kind));
    asked.blocks = any_bound(blocks(kind));
    asked.by_parameters = of_parameters;
    asked.adjoint_batches.assign(adjoints(kind).size(), batch_);
    asked.blocks_vary = true;
    return asked;
  }

  const std::vector<Points>& adjoints(Kind kind) const {
    return kind == Kind::parameter ? bindings_.parameter_adjoints : bindings_.adjoints;
  }
  const std::vector<Points>& blocks(Kind kind) const {
    return kind == Kind::parameter ? bindings_.parameter_blocks : bindings_.blocks;
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

// Results of a device, written to the arrays that are bound.
class Writer {
 public:
  // Adds to the status of the points: derivatives with respect to parameters may not be finite if all else is.
  Writer(const Bindings& bindings, const DeviceResults& results, Vector<std::int32_t>& status)
      : bindings_(bindings), status_(status) {
    const Tensor own = algebra::moved(results.report[NEML2_REPORT_STATUS], {});
    for (std::size_t p = 0; p < status.size(); ++p)
      status[p] = std::max(status[p], own.data_as<const std::int32_t>()[p]);
    write_status(bindings, 0, status);
  }

  void write(const Vector<Tensor>& results, const std::vector<Variable>& variables,
             const std::vector<Points>& arrays) const {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (arrays[i].data) write(here(results[i]), variables[i], arrays[i]);
  }
  void write_blocks(const Vector<Tensor>& blocks, const Derivatives& of, const std::vector<Points>& arrays) const {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (!arrays[i].data) continue;
      const Derivative& derivative = of.all()[i];
      const Tensor block = here(blocks[i]);
      const bool turned = bindings_.input_first && block.data();
      write(turned ? transposed(block, derivative.rows, derivative.columns) : block, derivative.block, arrays[i]);
    }
  }
  // Writes a report, which is of all points, failed ones too.
  void write_report(int kind, const Tensor& values) const {
    const Points& array = bindings_.report[kind];
    if (!array.data || !values.data()) return;
    const Variable variable{"", "", values.dtype(), values.sizes().last(values.ndim() - 1), 0};
    scatter(here(values), variable, array, 0, Vector<std::int32_t>(status_.size(), NEML2_OK), false);
  }
  // Writes unknowns, which are NaN already at points that did not fail.
  void write_unknowns(const Vector<Tensor>& unknowns) const {
    for (std::size_t i = 0; i < unknowns.size(); ++i) bindings_.unknowns->at(i) = here(unknowns[i]);
  }

 private:
  static Tensor here(const Tensor& result) { return result.data() ? algebra::moved(result, {}) : Tensor(); }
  void write(const Tensor& value, const Variable& variable, const Points& array) const {
    scatter(value, variable, array, 0, status_, bindings_.mark_failed);
  }

  const Bindings& bindings_;
  const Vector<std::int32_t>& status_;
};

}  // namespace

void HostArrays::check(const Options& options, std::int64_t points) const { check_on_device(model_, options, points); }

void HostArrays::run(const Plan& plan, const Bindings& bindings, const Range&, Workspace&, Tally& tally) const {
  const graph::OnStream here(model_.compute_device());
  const Transfer transfer(model_, bindings);
  const Request& request = plan.request();
  Options options = plan.options();
  options.set("collect_history", request.history ? 1.0 : 0.0);
  const bool by_inputs = request.jvps || request.adjoints || request.blocks;
  Vector<std::int32_t> status(static_cast<std::size_t>(bindings.points), NEML2_OK);
  for (const Kind kind : {Kind::input, Kind::parameter}) {
    if (kind == Kind::parameter ? !request.by_parameters() : request.by_parameters() && !by_inputs) continue;
    const DeviceResults results = evaluate_on_device(model_, transfer.request(kind), options);
    const Writer writer(bindings, results, status);
    writer.write(results.adjoints, model_.variables(kind), transfer.adjoints(kind));
    writer.write_blocks(results.blocks, model_.derivatives(kind), transfer.blocks(kind));
    if (kind == Kind::parameter && by_inputs) continue;  // all else is there
    writer.write(results.outputs, model_.variables(Kind::output), bindings.outputs);
    writer.write(results.jvps, model_.variables(Kind::output), bindings.jvps);
    for (int report = NEML2_REPORT_ITERATIONS; report < 5; ++report)
      writer.write_report(report, results.report[static_cast<std::size_t>(report)]);
    if (bindings.unknowns) writer.write_unknowns(results.unknowns);
  }
  tally.add(status, 0);
}

}  // namespace neml2_capi::model
