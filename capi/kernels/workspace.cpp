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

void bind_all(std::vector<Bound>& places, std::size_t first, const std::vector<model::Points>& arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) places[first + i].array = arrays[i];
}

// Points after which the host may interrupt.
constexpr std::int64_t MOST_POINTS = 2048;

}  // namespace

Workspace::Workspace(const Folder& folder, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked)
    : functions_(functions_for(folder, boundary)),
      layout_(folder, asked, functions_),
      has_sites_in_lanes_(folder.has_sites_in_lanes()) {
  const auto add = [&](const model::Variable& variable, Place& place, model::Part part, std::size_t i) {
    place = layout_.place(variable.point_shape.product());
    inputs_.push_back(bound(place, part, i));
  };
  for (std::size_t i = 0; i < boundary.inputs.size(); ++i)
    add(boundary.inputs[i], layout_.values[metadata.inputs[i].name], model::Part::input, i);
  for (std::size_t i = 0; i < boundary.parameters.size(); ++i)
    add(boundary.parameters[i], layout_.parameters[metadata.parameters[i].name], model::Part::parameter, i);
  num_inputs_ = inputs_.size();
  steps_ = model::steps_of(boundary.inputs);
  increments_.resize(steps_.size());
  for (const artifact::Segment& segment : metadata.segments) layout_.add(segment);
  for (std::size_t i = 0; i < boundary.outputs.size(); ++i) {
    outputs_.push_back(bound(layout_.value(metadata.outputs[i].name), model::Part::output, i));
    if (outputs_.back().components != boundary.outputs[i].point_shape.product())
      refuse(boundary.outputs[i].name, "its kernel has another shape than its package");
  }
  for (const Place& iterate : layout_.iterates) iterates_.push_back(bound(iterate, model::Part::output, 0));
  guesses_ = iterates_;
  if (asked.any()) chains_.emplace(layout_, metadata, boundary, asked);
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
  inputs_.resize(num_inputs_);
  bind_all(inputs_, 0, arrays.inputs);
  bind_all(inputs_, arrays.inputs.size(), arrays.parameters);
  bind_all(outputs_, 0, arrays.outputs);
  bind_all(iterates_, 0, arrays.iterates);
  bind_all(guesses_, 0, arrays.guesses);
  if (chains_) chains_->add_to(walk, inputs_, arrays);
  for (std::size_t i = 0; i < steps_.size(); ++i)
    increments_[i] = {arrays.inputs[steps_[i].first], arrays.inputs[steps_[i].second]};
  walk.inputs = list(inputs_);
  walk.outputs = list(outputs_);
  if (!arrays.iterates.empty()) walk.iterates = list(iterates_);
  if (!arrays.guesses.empty()) walk.guesses = list(guesses_);
  walk.increments = list(increments_);
  walk.steps = list(layout_.steps);
  std::optional<SolveLog> solve_log;
  if (!layout_.systems.empty() && log::on(log::Channel::newton, log::Level::info))
    walk.traces = solve_log.emplace(layout_.systems.size(), rules).traces();
  for (; walk.begin < end; walk.begin = walk.end) {
    if (walk.begin > begin) interrupt::check();
    walk.end = std::min(walk.begin + MOST_POINTS, end);
    functions_.walk(walk, counts);
  }
  if (solve_log) solve_log->write(layout_.systems, begin, end - begin);
}

}  // namespace neml2_capi::kernels
