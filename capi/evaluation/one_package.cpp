#include "capi/evaluation/one_package.h"

#include <algorithm>
#include <cstring>

#include "capi/base/error.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/values/marks.h"

namespace neml2_capi::model {
namespace {

std::size_t position(const std::vector<std::size_t>& all, std::size_t value) {
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), value) - all.begin());
}

// The rows of one value for all points are kept while the value is the same and they are enough.
void copy_again(Tensor& rows, const Variable& variable, const Points& array, const Range& range, bool even_if_dense) {
  const auto bytes = static_cast<std::size_t>(variable.point_shape.product() * itemsize(variable.dtype));
  if (array.stride == 0 && rows.data() && rows.sizes()[0] >= range.points &&
      std::memcmp(rows.data(), array.data, bytes) == 0) {
    if (rows.sizes()[0] > range.points) rows = first_rows(rows, range.points);
    return;
  }
  rows = gather(array, variable, range.begin, range.points, even_if_dense);
}

}  // namespace

bool OnePackage::evaluates(const Model& model) {
  if (model.segments().size() != 1 || !model.uniform_parameters().empty() || model.baked_batch() != 0) return false;
  const GraphCall* graph = model.segments().front()->only_graph();
  const auto makes = [&](std::size_t value) { return position(graph->outputs(), value) < graph->outputs().size(); };
  return graph && std::ranges::all_of(model.values_of(Kind::output), makes);  // none is an input that is handed on
}

OnePackage::OnePackage(const Model& model, const ThroughSegments& segments)
    : PackageRoute(model),
      segments_(segments),
      values_(*model.segments().front()->only_graph()),
      jacobian_(model.segments().front()->only_jacobian()) {
  for (std::size_t value : values_.inputs()) inputs_.push_back(position(model.values_of(Kind::input), value));
  for (std::size_t value : model.values_of(Kind::output)) outputs_.push_back(position(values_.outputs(), value));
  if (jacobian_) find_blocks();
}

void OnePackage::find_blocks() {
  const auto& derivatives = model_.derivatives(Kind::input).all();
  const std::vector<const PairInfo*> pairs = model_.segments().front()->pairs();
  for (const Derivative& derivative : derivatives)
    for (std::size_t i = 0; i < pairs.size(); ++i)
      if (!pairs[i]->of_parameter && pairs[i]->output == model_.values_of(Kind::output)[derivative.output] &&
          pairs[i]->input == model_.values_of(Kind::input)[derivative.input])
        blocks_.emplace_back(values_.outputs().size() + i, pairs[i]);
  const bool same = jacobian_->inputs() == values_.inputs() && jacobian_->outputs() == values_.outputs();
  if (!same || blocks_.size() != derivatives.size()) jacobian_ = nullptr;
}

bool OnePackage::gives(const Request& request, const Options&) const {
  if (request.by_parameters() || request.adjoints || request.history) return false;
  return (!request.blocks && !request.jvps) || (jacobian_ && !(request.blocks && request.jvps));
}

void OnePackage::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                     Tally& tally) const {
  const Request& request = plan.request();
  const GraphCall& graph = graph_for(request);
  Handles given(graph.package().num_inputs()), returned(graph.package().num_outputs());
  give(graph, bindings, range, workspace, given);
  try {
    graph.package().run(range.points, given, returned);
  } catch (const Error& error) {  // an operator of the user's, perhaps
    if (error.status() < NEML2_OK) throw;
    return segments_.run_one_by_one(plan, bindings, range, workspace, tally);
  }
  Vector<Tensor> jvps;
  if (request.jvps) jvps = jvps_of(returned, bindings, range);
  bool finite = is_given_finite(bindings, range);
  finite &= write(returned, bindings, range);
  for (std::size_t i = 0; i < jvps.size(); ++i)
    if (bindings.jvps[i].data)
      finite &= write_finite(jvps[i], model_.variables(Kind::output)[i], bindings.jvps[i], range.begin, range.points);
  if (request.blocks) finite &= write_blocks(returned, bindings, range);
  write_good_report(bindings, range.begin, range.points);
  if (finite)  // no list of what became of each point
    tally.add(NEML2_OK, range.begin, range.points);
  else
    mark(graph, returned, bindings, range, workspace, tally);
}

// The tensors stay in the workspace. A run like the one before makes only those again that are copies.
void OnePackage::give(const GraphCall& graph, const Bindings& bindings, const Range& range, Workspace& workspace,
                      Handles& given) const {
  if (workspace.begin != range.begin || workspace.points != range.points)
    collect(graph, bindings, range, workspace);
  else
    for (const auto& [input, variable, array, even_if_dense] : workspace.copied)
      copy_again(workspace.inputs[input], *variable, array, range, even_if_dense);
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = new Tensor(workspace.inputs[i]);
}

// An array is taken where it lies, if it is dense and is not written to.
void OnePackage::collect(const GraphCall& graph, const Bindings& bindings, const Range& range,
                         Workspace& workspace) const {
  workspace.inputs.resize(graph.package().num_inputs());
  workspace.copied.clear();
  workspace.points = 0;  // until all hold the range
  std::size_t next = 0;
  const auto take = [&](const Points& array, const Variable& variable, bool copy) {
    Tensor& own = workspace.inputs[next];
    const bool is_copied = copy || !dense(array, variable, range.points);
    if (is_copied) {
      workspace.copied.push_back({next, &variable, array, copy});
      copy_again(own, variable, array, range, copy);
    } else {
      own = gather(array, variable, range.begin, range.points, false);
    }
    ++next;
  };
  for (std::size_t i : inputs_) take(bindings.inputs[i], model_.variables(Kind::input)[i], bindings.copies[i]);
  for (std::size_t i : graph.parameters().positions())
    take(bindings.parameters[i], model_.variables(Kind::parameter)[i], false);
  workspace.begin = range.begin;
  workspace.points = range.points;
}

Vector<Tensor> OnePackage::jvps_of(Handles& returned, const Bindings& bindings, const Range& range) const {
  Vector<Block> blocks;
  for (const auto& [result, pair] : blocks_)
    blocks.push_back({pair->output, pair->input, &pair->shape, pair->rows(*returned[result]), pair->batched});
  const Derivatives& derivatives = model_.derivatives(Kind::input);
  Directions directions{range.points, 0, model_.dtype(), Vector<Tensor>(model_.num_values())};
  derivatives.start_jvp(directions,
                        gather_bound(bindings.tangents, model_.variables(Kind::input), range.begin, range.points));
  push_forward(blocks, values_.outputs(), directions);
  return derivatives.end_jvp(directions);
}

bool OnePackage::is_given_finite(const Bindings& bindings, const Range& range) const {
  const auto are_finite = [&](const std::vector<Points>& arrays, Kind kind) {
    const auto& variables = model_.variables(kind);
    for (std::size_t i = 0; i < arrays.size(); ++i)
      if (!all_finite(Rows(arrays[i], variables[i], range.begin), range.points)) return false;
    return true;
  };
  return are_finite(bindings.inputs, Kind::input) && are_finite(bindings.parameters, Kind::parameter) &&
         are_finite(bindings.tangents, Kind::input);
}

bool OnePackage::write(Handles& returned, const Bindings& bindings, const Range& range) const {
  const auto& variables = model_.variables(Kind::output);
  bool finite = true;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    Tensor& result = *returned[outputs_[i]];
    result.make_row_major();
    finite &= write_finite(result, variables[i], bindings.outputs[i], range.begin, range.points);
  }
  return finite;
}

// Outputs may stand where inputs were, of which there are copies then.
void OnePackage::mark(const GraphCall& graph, Handles& returned, const Bindings& bindings, const Range& range,
                      const Workspace& workspace, Tally& tally) const {
  Vector<std::int32_t> status(static_cast<std::size_t>(range.points), NEML2_OK);
  Marks marks(status, range.begin);
  const auto named = [](Part part, std::size_t i) { return Named{part, static_cast<std::int64_t>(i)}; };
  std::size_t next = 0;
  for (std::size_t i : inputs_) marks.give(Rows(workspace.inputs[next++]), named(Part::input, i));
  for (std::size_t i : graph.parameters().positions())
    marks.give(Rows(workspace.inputs[next++]), named(Part::parameter, i));
  marks.give(bindings.tangents, model_.variables(Kind::input), Part::tangent);
  for (std::size_t i = 0; i < outputs_.size(); ++i) marks.look(Rows(*returned[outputs_[i]]), named(Part::output, i));
  for (const Part part : {Part::block, Part::jvp})
    for (std::size_t i = 0; i < bindings.of(part).size(); ++i)
      marks.look(Rows(bindings.of(part)[i], model_.variable(part, i), range.begin), named(part, i));
  write_status(bindings, range.begin, status);
  tally.add(status, range.begin);
  tally.note(marks.first());
}

// The blocks are for all points: no solve failed.
bool OnePackage::write_blocks(Handles& returned, const Bindings& bindings, const Range& range) const {
  bool finite = true;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const Points& array = bindings.blocks[i];
    if (!array.data) continue;
    const auto& [result, pair] = blocks_[i];
    const Derivative& derivative = model_.derivatives(Kind::input).all()[i];
    Tensor block = pair->view(*returned[result]);
    if (bindings.input_first) block = transposed(block, derivative.rows, derivative.columns);
    write_rows(block, derivative.block, array, range.begin, range.points);
    finite &= all_finite(Rows(array, derivative.block, range.begin), range.points);
  }
  return finite;
}

}  // namespace neml2_capi::model
