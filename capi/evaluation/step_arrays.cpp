#include "capi/evaluation/step_arrays.h"

#include <algorithm>

#include "capi/base/error.h"

namespace neml2_capi::model {
namespace {

std::int64_t bytes_of(const Variable& variable) { return variable.point_shape.product() * itemsize(variable.dtype); }

constexpr Part parts_of_steps[] = {Part::input, Part::output, Part::block, Part::parameter_block};

}  // namespace

StepArrays::StepArrays(const Model& model, const Bindings& first, Memory memory)
    : model_(model), first_(first), memory_(memory), steps_(first.steps) {
  for (const Part part : {Part::jvp, Part::adjoint, Part::parameter_adjoint})
    if (any_bound(first.of(part)))
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  "Products with tangents or cotangents are not made through steps. Take their arrays back, and run "
                  "one step after another, or bind derivatives.");
  if (steps_ > 1) {
    add_histories();
    add_guesses();
    add_slopes();
    // A solution of parts of an increment is no solution of the whole.
    if (!first_.slopes.empty() && !model_.cuts_increments()) add_solutions();
  }
  add_places();
}

StepArrays::Place StepArrays::place(Part part, std::size_t index) const {
  return {part, false, index, first_.of(part)[index].step * itemsize(model_.variable(part, index).dtype)};
}

// A history that has steps of its own is read there.
void StepArrays::add_histories() {
  const auto histories = model_.histories();
  for (const Model::History& each : histories) {
    const auto input = static_cast<std::size_t>(each.input);
    if ((each.output < 0 && each.current < 0) || first_.inputs[input].step != 0) continue;
    Carried carried{input,
                    each.output < 0 ? place(Part::input, static_cast<std::size_t>(each.current))
                                    : place(Part::output, static_cast<std::size_t>(each.output)),
                    {}};
    for (std::int64_t age = each.age; age > 0; --age) {
      const auto same = std::ranges::find_if(histories, [&](const Model::History& other) {
        return other.age == age && other.output == each.output && other.current == each.current;
      });
      const Variable& variable = model_.variables(Kind::input)[input];
      if (same == histories.end())
        throw Error(NEML2_ERROR_UNSUPPORTED, variable.name,
                    join("The history '", variable.name, "' cannot be carried from step to step: the model has no ",
                         "history of age ", age, " that it comes from. Give it a step stride."));
      carried.before.push_back(static_cast<std::size_t>(same->input));
    }
    check_source(carried);
    carried_.push_back(std::move(carried));
  }
}

// The solve of an output begins at the input of its name: where the output was before, unless that is prescribed.
void StepArrays::add_guesses() {
  const auto& inputs = model_.variables(Kind::input);
  const auto& outputs = model_.variables(Kind::output);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto same = std::ranges::find(outputs, inputs[i].name, &Variable::name);
    if (same == outputs.end() || first_.inputs[i].step != 0) continue;
    Carried carried{i, place(Part::output, static_cast<std::size_t>(same - outputs.begin())), {i}};
    check_source(carried);
    carried_.push_back(std::move(carried));
  }
}

void StepArrays::check_source(const Carried& carried) const {
  if (carried.source.part == Part::input) return;
  const std::string& input = model_.variables(Kind::input)[carried.input].name;
  const std::string& output = model_.variables(Kind::output)[carried.source.index].name;
  const Points& array = carried.source.of(first_);
  if (!array.data)
    throw Error(NEML2_ERROR_MISSING, output,
                join("The output '", output, "' is not bound, and is the input '", input,
                     "' of the next step: call neml2_call_bind()."));
  if (carried.age() > 1 && array.step == 0)
    throw Error(NEML2_ERROR_SHAPE, output,
                join("The output '", output, "' has no step stride, and is the input '", input, "' ", carried.age(),
                     " steps later: give it an array with a row for each step, and its stride."));
}

// The derivative of a history is what the block of its output was.
void StepArrays::add_slopes() {
  const auto slope_of = [&](std::int64_t input, const Slope& by) -> const Slope* {
    const auto found = std::ranges::find_if(first_.slopes, [&](const Slope& other) {
      return static_cast<std::int64_t>(other.input) == input && other.kind == by.kind && other.variable == by.variable;
    });
    return found == first_.slopes.end() ? nullptr : &*found;
  };
  const auto histories = model_.histories();
  for (std::size_t number = 0; number < first_.slopes.size(); ++number) {
    const Slope& slope = first_.slopes[number];
    const auto history = std::ranges::find(histories, static_cast<std::int64_t>(slope.input), &Model::History::input);
    if (history == histories.end()) continue;
    CarriedSlope carried{number, {}, {}, {}};
    for (std::int64_t age = history->age; age > 0; --age)
      for (const Model::History& other : histories)
        if (other.age == age && other.output == history->output && other.current == history->current)
          carried.before.push_back(slope_of(other.input, slope));
    if (history->output < 0)
      carried.current = slope_of(history->current, slope);
    else
      carried.source = block_of(static_cast<std::size_t>(history->output), slope, history->age);
    carried_slopes_.push_back(std::move(carried));
  }
}

// An output whose history has steps of its own is known: it is the history of the next step. So is the solution if all
// unknowns are such outputs, and all histories have steps.
void StepArrays::add_solutions() {
  const auto& outputs = model_.variables(Kind::output);
  const auto& unknowns = model_.variables(Kind::unknown);
  std::size_t known = 0;
  for (const Model::History& each : model_.histories()) {
    if (each.age != 1 || each.output < 0) continue;
    const auto input = static_cast<std::size_t>(each.input), output = static_cast<std::size_t>(each.output);
    if (first_.inputs[input].step == 0) return solutions_.clear();
    solutions_.emplace_back(input, output);
    known += static_cast<std::size_t>(std::ranges::count(unknowns, outputs[output].name, &Variable::name));
  }
  if (known < unknowns.size()) solutions_.clear();
}

// Finds the block that becomes the derivative of a history.
StepArrays::Place StepArrays::block_of(std::size_t output, const Slope& slope, std::int64_t age) const {
  const Part part = slope.kind == Kind::parameter ? Part::parameter_block : Part::block;
  const auto& all = model_.derivatives(slope.kind).all();
  const auto found = std::ranges::find_if(
      all, [&](const Derivative& each) { return each.output == output && each.input == slope.variable; });
  const std::string pair =
      join(model_.variables(Kind::output)[output].name, ":", model_.variables(slope.kind)[slope.variable].name);
  const auto index = static_cast<std::size_t>(found - all.begin());
  if (found == all.end() || !first_.of(part)[index].data)
    throw Error(NEML2_ERROR_MISSING, pair,
                join("The derivative '", pair,
                     "' is not bound, and an input of the next step takes it: call "
                     "neml2_call_bind_derivative()."));
  const std::int64_t rows = model_.variables(Kind::output)[output].point_shape.product(),
                     columns = model_.variables(slope.kind)[slope.variable].point_shape.product();
  if (first_.input_first && rows > 1 && columns > 1)
    throw Error(NEML2_ERROR_UNSUPPORTED, pair,
                join("The derivative '", pair,
                     "' is the derivative of an input in the next step, which has the output first: call "
                     "neml2_call_block_order_set() with NEML2_OUTPUT_FIRST."));
  if (age > 1 && first_.of(part)[index].step == 0)
    throw Error(NEML2_ERROR_SHAPE, pair,
                join("The derivative '", pair, "' has no step stride, and an input takes it ", age,
                     " steps later: give it an array with a row for each step, and its stride."));
  return place(part, index);
}

bool StepArrays::is_carried(const Place& result) const {
  const auto is_source = [&](const auto& each) {
    return each.source.part == result.part && each.source.index == result.index;
  };
  return std::ranges::any_of(carried_, is_source) || std::ranges::any_of(carried_slopes_, is_source);
}

void StepArrays::add_places() {
  const auto add = [this](const Place& place) {
    const bool is_given = !place.is_report && model::is_given(place.part);
    if (!place.of(first_).data) return;
    if (!place.is_report) bytes_per_point_ += bytes_of(model_.variable(place.part, place.index));
    if (place.bytes != 0)
      moving_.push_back(place);
    else if (!is_given && (place.is_report || !is_carried(place)))
      last_.push_back(place);
  };
  for (const Part part : parts_of_steps)
    for (std::size_t i = 0; i < first_.of(part).size(); ++i) add(place(part, i));
  for (std::size_t kind = 0; kind < std::size(first_.report); ++kind) {
    const DType dtype = dtype_of_report(static_cast<int>(kind));
    add({Part::output, true, kind, first_.report[kind].step * itemsize(dtype)});
  }
}

Bindings StepArrays::at(std::int64_t step) const {
  Bindings bindings = first_;
  go_to(step, bindings);
  return bindings;
}

Points StepArrays::moved(const Place& place, std::int64_t steps) const {
  Points array = place.of(first_);
  if (memory_ == Memory::device)
    array.skip = steps * array.step;
  else
    array.data += steps * place.bytes;
  return array;
}

void StepArrays::go_to(std::int64_t step, Bindings& bindings) const {
  for (const Place& place : moving_) place.of(bindings) = moved(place, step);
  if (memory_ == Memory::host)
    for (const Place& place : last_) place.of(bindings).data = step + 1 == steps_ ? place.of(first_).data : nullptr;
  for (const Carried& each : carried_) {
    Points& input = bindings.inputs[each.input];
    if (step < each.age()) {
      input = first_.inputs[each.before[static_cast<std::size_t>(step)]];
      continue;
    }
    input = moved(each.source, step - each.age());
    if (!bindings.copies.empty()) bindings.copies[each.input] = is_in_place(each);
  }
  bindings.solution.clear();
  if (!solutions_.empty() && step + 1 < steps_) bindings.solution.resize(bindings.outputs.size());
  for (const auto& [input, output] : solutions_)
    if (step + 1 < steps_) bindings.solution[output] = moved(place(Part::input, input), step + 1);
  for (const CarriedSlope& each : carried_slopes_) {
    Points& array = bindings.slopes[each.slope].array;
    const auto age = std::ssize(each.before);
    const Slope* const same = step < age ? each.before[static_cast<std::size_t>(step)] : each.current;
    array = same ? same->array : Points{};
    if (step >= age && each.source.part != Part::input) array = moved(each.source, step - age);
  }
}

// Tells whether an output is written over what it was a step before.
bool StepArrays::is_in_place(const Carried& carried) {
  return carried.source.part == Part::output && carried.source.bytes == 0;
}

bool StepArrays::keep_last() const {
  return !last_.empty() || std::ranges::any_of(carried_, is_in_place) ||
         std::ranges::any_of(carried_slopes_, [](const CarriedSlope& each) {
           return each.source.part != Part::input && each.source.bytes == 0;
         });
}

}  // namespace neml2_capi::model
