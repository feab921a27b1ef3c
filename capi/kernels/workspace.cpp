#include "capi/kernels/workspace.h"

#include <algorithm>
#include <optional>

#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/kernels/solve_log.h"
#include "capi/values/steps.h"

namespace neml2_capi::kernels {
namespace {

const Functions& functions_for(const Folder& folder, const Boundary& boundary) {
  if (folder.target().empty()) refuse("The model", "none of its graphs has a kernel");
  for (const auto* variables : {&boundary.inputs, &boundary.outputs, &boundary.parameters})
    for (const model::Variable& variable : *variables)
      if (variable.dtype != folder.real())
        refuse(variable.name, join("it is ", name_of(variable.dtype), ", and kernels are ", name_of(folder.real())));
  return *functions(folder.target().c_str(), itemsize(folder.real()));
}

void bind_all(std::vector<Bound>& places, const std::vector<model::Points>& arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) places[i].array = arrays[i];
}

// Binds arrays of the caller's, from some of their elements on.
void bind_all(std::vector<Bound>& places, const std::vector<std::int64_t>& offsets, const model::Bindings& arrays,
              std::int64_t itemsize) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto [part, index] = places[i].named;
    model::Points& array = places[i].array;
    array = index < 0 ? model::Points() : arrays.of(part)[static_cast<std::size_t>(index)];
    if (array.data) array.data += offsets[i] * itemsize;
  }
}

// Points after which the host may interrupt.
constexpr std::int64_t MOST_POINTS = 2048;

}  // namespace

Workspace::Workspace(const Folder& folder, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked,
                     const Condensation* condensation)
    : functions_(functions_for(folder, boundary)),
      layout_(folder, asked, functions_),
      has_sites_in_lanes_(folder.has_sites_in_lanes()) {
  Places inputs, outputs;
  for (std::size_t i = 0; i < boundary.inputs.size(); ++i) {
    inputs.push_back(layout_.place(boundary.inputs[i].point_shape.product()));
    layout_.values[metadata.inputs[i].name] = inputs.back();  // an output of the name may take its place
  }
  for (std::size_t i = 0; i < boundary.parameters.size(); ++i)
    layout_.parameters[metadata.parameters[i].name] = layout_.place(boundary.parameters[i].point_shape.product());
  steps_ = model::steps_of(boundary.inputs);
  increments_.resize(steps_.size());
  for (const artifact::Segment& segment : metadata.segments) layout_.add(segment);
  for (std::size_t i = 0; i < boundary.outputs.size(); ++i) {
    outputs.push_back(layout_.value(metadata.outputs[i].name));
    if (outputs.back().components != boundary.outputs[i].point_shape.product())
      refuse(boundary.outputs[i].name, "its kernel has another shape than its package");
  }
  for (const Place& iterate : layout_.iterates) iterates_.push_back(bound(iterate, model::Part::output, 0));
  guesses_ = iterates_;
  if (asked.any()) chains_.emplace(layout_, metadata, boundary, asked);
  if (condensation)
    condenser_.emplace(*condensation, boundary, inputs, outputs, layout_, chains_ ? &*chains_ : nullptr);
  const auto add = [&](std::vector<Bound>& bounds, std::vector<std::int64_t>& offsets, model::Part part,
                       const Places& places) {
    for (std::size_t i = 0; i < places.size() && !condensation; ++i) bounds.push_back(bound(places[i], part, i));
    offsets.resize(bounds.size());
    if (!condensation) return;
    for (const auto& [piece, offset] : condenser_->pieces(part)) {
      bounds.push_back(piece);
      offsets.push_back(offset);
    }
  };
  add(inputs_, input_offsets_, model::Part::input, inputs);
  for (std::size_t i = 0; i < boundary.parameters.size(); ++i)
    inputs_.push_back(bound(layout_.parameter(metadata.parameters[i].name), model::Part::parameter, i));
  input_offsets_.resize(inputs_.size());
  add(outputs_, output_offsets_, model::Part::output, outputs);
  if (!chains_ && !condenser_) rows_ = layout_.on_rows(inputs_, outputs_);
  scratch_ = layout_.make_scratch();
}

void Workspace::run(const model::Bindings& arrays, const newton::Settings& rules, std::int64_t begin, std::int64_t end,
                    model::Counts& counts) {
  Walk walk;
  walk.begin = begin;
  walk.scratch = scratch_;
  walk.size = layout_.size();
  walk.blocks_in_turn = layout_.blocks_in_turn();
  walk.rules = rules;
  walk.report = arrays.report;
  walk.mark_failed = arrays.mark_failed;
  walk.input_first = arrays.input_first;
  walk.has_sites_in_lanes = has_sites_in_lanes_;
  inputs_.resize(input_offsets_.size());
  bind_all(inputs_, input_offsets_, arrays, functions_.real_size);
  bind_all(outputs_, output_offsets_, arrays, functions_.real_size);
  bind_all(iterates_, arrays.iterates);
  bind_all(guesses_, arrays.guesses);
  for (std::size_t i = 0; i < outputs_.size() && !arrays.solution.empty(); ++i) {
    Bound known = outputs_[i];
    known.array =
        known.named.index < 0 ? model::Points() : arrays.solution[static_cast<std::size_t>(known.named.index)];
    if (!known.array.data) continue;
    known.array.data += output_offsets_[i] * functions_.real_size;
    inputs_.push_back(known);
    walk.begins_at_solution = true;
  }
  if (chains_) chains_->add_to(walk, inputs_, condenser_ ? condenser_->wanted(arrays, scratch_) : arrays);
  if (condenser_) condenser_->add_to(walk, arrays);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    increments_[i] = {arrays.inputs[steps_[i].first], arrays.inputs[steps_[i].second]};
  walk.inputs = list(inputs_);
  walk.outputs = list(outputs_);
  if (!arrays.iterates.empty()) walk.iterates = list(iterates_);
  if (!arrays.guesses.empty()) walk.guesses = list(guesses_);
  walk.increments = list(increments_);
  walk.steps = list(layout_.steps);
  if (end - begin >= functions_.lanes) rows_.add_to(walk);
  std::optional<SolveLog> solve_log;
  const bool is_told =
      log::on(log::Channel::newton, log::Level::info) || log::on(log::Channel::substep, log::Level::info);
  if (!layout_.systems.empty() && is_told) walk.traces = solve_log.emplace(layout_.systems.size(), rules).traces();
  for (; walk.begin < end; walk.begin = walk.end) {
    if (walk.begin > begin) interrupt::check();
    walk.end = std::min(walk.begin + MOST_POINTS, end);
    functions_.walk(walk, counts);
  }
  if (solve_log) solve_log->write(layout_.systems, begin, end - begin);
}

}  // namespace neml2_capi::kernels
