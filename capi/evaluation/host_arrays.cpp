#include "capi/evaluation/host_arrays.h"

#include <algorithm>
#include <utility>

#include "capi/libtorch/algebra.h"
#include "capi/libtorch/stream.h"

namespace neml2_capi::model {
namespace {

namespace libtorch = aoti::libtorch;

// A request for what an evaluation asks for, with respect to the inputs or to the parameters.
class Transfer {
 public:
  Transfer(const Model& model, const Evaluation& evaluation)
      : model_(model), evaluation_(evaluation), batch_{evaluation.points} {}

  DeviceRequest request(Kind kind) const {
    const bool of_parameters = kind == Kind::parameter;
    DeviceRequest asked{batch_, taken(evaluation_.inputs, Kind::input), parameters(), {}, {}};
    asked.tangents = taken(evaluation_.tangents, Kind::input);
    asked.cotangents = taken(evaluation_.cotangents, Kind::output);
    asked.jvp = !of_parameters && any_bound(evaluation_.jvps);
    asked.vjp = any_bound(adjoints(kind));
    asked.blocks = any_bound(blocks(kind));
    asked.by_parameters = of_parameters;
    asked.adjoint_batches.assign(adjoints(kind).size(), batch_);
    asked.blocks_vary = true;
    return asked;
  }

  const std::vector<Points>& adjoints(Kind kind) const {
    return kind == Kind::parameter ? evaluation_.parameter_adjoints : evaluation_.adjoints;
  }
  const std::vector<Points>& blocks(Kind kind) const {
    return kind == Kind::parameter ? evaluation_.parameter_blocks : evaluation_.blocks;
  }

 private:
  // One value per point, or one for all; empty where nothing is bound.
  Tensor taken(const Points& array, const Variable& variable, bool one) const {
    if (!array.data) return {};
    const Tensor rows = gather(array, variable, 0, one ? 1 : evaluation_.points, true);
    const Dims sizes = one ? variable.point_shape : rows.sizes();
    return libtorch::moved(Tensor(rows.storage(), rows.dtype(), sizes, sizes.row_major()), model_.compute_device());
  }
  Vector<Tensor> taken(const std::vector<Points>& arrays, Kind kind) const {
    Vector<Tensor> tensors;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      tensors.push_back(taken(arrays[i], model_.variables(kind)[i], arrays[i].stride == 0));
    return tensors;
  }
  // There a package that takes one value for all points of a run takes all points in one run.
  Vector<Tensor> parameters() const {
    Vector<Tensor> tensors;
    for (std::size_t i = 0; i < evaluation_.parameters.size(); ++i) {
      const Points& array = evaluation_.parameters[i];
      const Variable& variable = model_.variables(Kind::parameter)[i];
      const bool one = length_of_equal(array, variable, 0, evaluation_.points) == evaluation_.points;
      tensors.push_back(taken(array, variable, one));
    }
    return tensors;
  }

  const Model& model_;
  const Evaluation& evaluation_;
  Dims batch_;
};

// Results of a device, written to the arrays that are bound.
class Writer {
 public:
  Writer(const Evaluation& evaluation, const DeviceResults& results)
      : evaluation_(evaluation), status_(static_cast<std::size_t>(evaluation.points)) {
    const Tensor status = libtorch::moved(results.report[NEML2_REPORT_STATUS], {});
    std::copy_n(status.data_as<const std::int32_t>(), evaluation.points, status_.begin());
  }

  const Vector<std::int32_t>& status() const { return status_; }

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
      const bool turned = evaluation_.input_first && block.data();
      write(turned ? transposed(block, derivative.rows, derivative.columns) : block, derivative.block, arrays[i]);
    }
  }
  // Reports are of all points, failed ones too.
  void write_report(int kind, const Tensor& values) const {
    const Points& array = evaluation_.report[kind];
    if (!array.data || !values.data()) return;
    const Variable variable{"", "", values.dtype(), values.sizes().last(values.ndim() - 1), 0};
    scatter(here(values), variable, array, 0, Vector<std::int32_t>(status_.size(), NEML2_OK), false);
  }
  // They are NaN at points that did not fail already.
  void write_unknowns(const Vector<Tensor>& unknowns) const {
    for (std::size_t i = 0; i < unknowns.size(); ++i) evaluation_.unknowns->at(i) = here(unknowns[i]);
  }

 private:
  static Tensor here(const Tensor& result) { return result.data() ? libtorch::moved(result, {}) : Tensor(); }
  void write(const Tensor& value, const Variable& variable, const Points& array) const {
    scatter(value, variable, array, 0, status_, evaluation_.mark_failed);
  }

  const Evaluation& evaluation_;
  Vector<std::int32_t> status_;
};

}  // namespace

Tally evaluate_on_device(const Model& model, const Evaluation& evaluation, const Options& options) {
  const libtorch::OnStream here(model.compute_device());
  const Transfer transfer(model, evaluation);
  Options asked = options;
  asked.set("collect_history", evaluation.report[NEML2_REPORT_RESIDUAL_HISTORY].data ? 1.0 : 0.0);
  const bool by_parameters = any_bound(evaluation.parameter_adjoints) || any_bound(evaluation.parameter_blocks);
  const bool by_inputs = any_bound(evaluation.jvps) || any_bound(evaluation.adjoints) || any_bound(evaluation.blocks);

  Tally tally;
  for (const Kind kind : {Kind::input, Kind::parameter}) {
    if (kind == Kind::parameter ? !by_parameters : by_parameters && !by_inputs) continue;
    const DeviceRequest request = transfer.request(kind);
    const DeviceResults results = model.evaluate(request, asked);
    const Writer writer(evaluation, results);
    writer.write(results.adjoints, model.variables(kind), transfer.adjoints(kind));
    writer.write_blocks(results.blocks, model.derivatives(kind), transfer.blocks(kind));
    if (kind == Kind::parameter && by_inputs) continue;  // all else is there
    writer.write(results.outputs, model.variables(Kind::output), evaluation.outputs);
    writer.write(results.jvps, model.variables(Kind::output), evaluation.jvps);
    for (int report = 0; report < 5; ++report)
      writer.write_report(report, results.report[static_cast<std::size_t>(report)]);
    if (evaluation.unknowns) writer.write_unknowns(results.unknowns);
    tally.add(writer.status(), 0);
  }
  return tally;
}

}  // namespace neml2_capi::model
