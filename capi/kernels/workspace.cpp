#include "capi/kernels/workspace.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/kernels/chains.h"
#include "capi/kernels/layout.h"
#include "capi/kernels/solve_log.h"
#include "capi/values/steps.h"

namespace neml2_capi::kernels {
namespace {

template <class T>
class Segments final : public Workspace {
 public:
  Segments(const Folder& folder, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked)
      : functions_(*functions<T>(folder.target().c_str())), layout_(folder, asked, functions_) {
    const auto add = [&](const model::Variable& variable, Place<T>& place, model::Part part, std::size_t i) {
      place = layout_.place(variable.point_shape.product());
      inputs_.push_back(bound(place, part, i));
    };
    for (std::size_t i = 0; i < boundary.inputs.size(); ++i)
      add(boundary.inputs[i], layout_.values[metadata.inputs[i].name], model::Part::input, i);
    for (std::size_t i = 0; i < boundary.parameters.size(); ++i)
      add(boundary.parameters[i], layout_.parameters[metadata.parameters[i].name], model::Part::parameter, i);
    steps_ = model::steps_of(boundary.inputs);
    increments_.resize(steps_.size());
    num_inputs_ = inputs_.size();
    for (const artifact::Segment& segment : metadata.segments) layout_.add(segment);
    for (std::size_t i = 0; i < boundary.outputs.size(); ++i) {
      outputs_.push_back(bound(layout_.value(metadata.outputs[i].name), model::Part::output, i));
      if (outputs_.back().components != boundary.outputs[i].point_shape.product())
        refuse(boundary.outputs[i].name, "its kernel has another shape than its package");
    }
    for (const Place<T>& iterate : layout_.iterates) iterates_.push_back(bound(iterate, model::Part::output, 0));
    if (asked.any()) chains_.emplace(layout_, metadata, boundary, asked);
  }

  void run(const Request& request, std::int64_t begin, std::int64_t end, model::Counts& counts) override {
    Walk<T> walk;
    inputs_.resize(num_inputs_);
    bind(inputs_, 0, request.inputs);
    bind(inputs_, request.inputs.size(), request.parameters);
    bind(outputs_, 0, request.outputs);
    bind(iterates_, 0, request.iterates);
    if (chains_) chains_->add_to(walk, inputs_, request);
    walk.begin = begin;
    walk.end = end;
    walk.inputs = list(inputs_);
    walk.outputs = list(outputs_);
    if (!request.iterates.empty()) walk.iterates = list(iterates_);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      increments_[i] = {inputs_[steps_[i].first], inputs_[steps_[i].second]};
    walk.increments = list(increments_);
    walk.steps = list(layout_.steps);
    const newton::Settings& rules = request.rules;
    walk.rules = rules;
    bind(walk.reports.status, request, NEML2_REPORT_STATUS);
    bind(walk.reports.iterations, request, NEML2_REPORT_ITERATIONS);
    bind(walk.reports.residual_norm, request, NEML2_REPORT_RESIDUAL_NORM);
    bind(walk.reports.suggested_cut, request, NEML2_REPORT_SUGGESTED_CUT);
    bind(walk.reports.history, request, NEML2_REPORT_RESIDUAL_HISTORY);
    walk.reports.history.components = rules.miters;
    walk.mark_failed = request.mark_failed;
    walk.input_first = request.input_first;
    if (!layout_.systems.empty() && log::on(log::Channel::newton, log::Level::info)) {
      SolveLog solve_log(layout_.systems.size(), rules);
      walk.traces = solve_log.traces();
      run(walk, counts);
      solve_log.write(layout_.systems, begin, end - begin);
    } else {
      run(walk, counts);
    }
  }

 private:
  // Walks so many points at a time that the host can interrupt it.
  void run(Walk<T>& walk, model::Counts& counts) const {
    constexpr std::int64_t most = 2048;
    const std::int64_t end = walk.end;
    for (;; walk.begin = walk.end) {
      walk.end = std::min(walk.begin + most, end);
      functions_.walk(walk, counts);
      if (walk.end == end) return;
      interrupt::check();
    }
  }

  template <class X>
  static List<X> list(const std::vector<X>& items) {
    return {items.data(), static_cast<std::int64_t>(items.size())};
  }
  static Bound<T> bound(const Place<T>& place, model::Part part, std::size_t i) {
    Bound<T> array;
    array.named = {part, static_cast<std::int64_t>(i)};
    array.components = place.components;
    array.scratch = place.at;
    return array;
  }
  template <class X>
  static void bind(Bound<X>& array, const model::Points& points) {
    array.data = reinterpret_cast<X*>(points.data);
    array.stride = points.stride;
  }
  template <class X>
  static void bind(Bound<X>& array, const Request& request, int report) {
    bind(array, request.report[static_cast<std::size_t>(report)]);
  }
  static void bind(std::vector<Bound<T>>& arrays, std::size_t first, std::span<const model::Points> points) {
    for (std::size_t i = 0; i < points.size(); ++i) bind(arrays[first + i], points[i]);
  }

  const Functions<T>& functions_;
  Layout<T> layout_;
  std::vector<Bound<T>> inputs_, outputs_, iterates_;
  std::size_t num_inputs_ = 0;
  std::vector<std::pair<std::size_t, std::size_t>> steps_;
  std::vector<Increment<T>> increments_;
  std::optional<Chains<T>> chains_;
};

}  // namespace

std::unique_ptr<Workspace> make_workspace(const Folder& folder, const artifact::Metadata& metadata,
                                          const Boundary& boundary, Asked asked) {
  if (folder.target().empty()) refuse("The model", "none of its graphs has a kernel");
  for (const auto* variables : {&boundary.inputs, &boundary.outputs, &boundary.parameters})
    for (const model::Variable& variable : *variables)
      if (variable.dtype != folder.real())
        refuse(variable.name, join("it is ", name_of(variable.dtype), ", and kernels are ", name_of(folder.real())));
  if (folder.real() == DType::float32) return std::make_unique<Segments<float>>(folder, metadata, boundary, asked);
  return std::make_unique<Segments<double>>(folder, metadata, boundary, asked);
}

}  // namespace neml2_capi::kernels
