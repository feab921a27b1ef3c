#include "capi/kernels/condenser.h"

#include <algorithm>

namespace neml2_capi::kernels {
namespace {

constexpr model::Part both[] = {model::Part::block, model::Part::parameter_block};

// Calls a function with the first position, the first component and the count of components that stand side by side.
template <class Take>
void for_each_run(const Condensation::Components& components, Take&& take) {
  for (std::size_t i = 0, end = 0; i < components.size(); i = end) {
    for (end = i + 1; end < components.size() && components[end] == components[end - 1] + 1;) ++end;
    take(static_cast<std::int64_t>(i), components[i], static_cast<std::int64_t>(end - i));
  }
}

}  // namespace

Condenser::Condenser(const Condensation& of, const Boundary& boundary, Places inputs, Places outputs, Layout& layout,
                     Chains* chains)
    : of_(of), inputs_(std::move(inputs)), outputs_(std::move(outputs)), layout_(layout), chains_(chains) {
  wanted_.blocks.resize(boundary.derivatives.size());
  wanted_.parameter_blocks.resize(boundary.parameter_derivatives.size());
  for (const model::Part part : both)
    for (const Condensation::Block& block : blocks(part))
      (part == model::Part::block ? by_inputs_ : by_parameters_)
          .push_back({layout.memory.keep(block.rows), layout.memory.keep(block.columns),
                      layout.place(std::ssize(block.rows) * std::ssize(block.columns)).at});
  if (of.free.empty()) return;
  expect_solvable();
  free_.input = inputs_[of.input].at;
  free_.output = outputs_[of.output].at;
  free_.first = of.free.front();
  free_.count = std::ssize(of.free);
  free_.normal = std::ranges::count_if(of.free, [](std::int64_t c) { return c < 3; });
  for (const Condensation::Held& each : of.inputs)
    if (static_cast<std::int64_t>(each.caller) == of.free_begin) free_.begin = inputs_[each.variable].at + free_.first;
  begins_alone_ = of.free_begin >= 0 && free_.begin == nowhere;
  if (begins_alone_) free_.begin = layout.place(free_.count).at;
  for (const Step& step : layout.steps) {
    if (!step.implicit) continue;
    free_.right = layout.place(step.implicit->unknowns * free_.count).at;
    std::vector<Move> pack;
    for (const Move& move : step.pack)
      if (!is_fixed(move.from)) pack.push_back(move);
    free_.pack = layout.memory.keep(pack);
    free_.moves_scalars = std::ranges::any_of(pack, [](const Move& move) { return move.components == 1; });
  }
  free_.derivative = chains->add_free(of, free_.first, free_.count);
}

void Condenser::expect_solvable() const {
  if (!chains_) refuse("The model", "the derivatives by what is solved for are not asked for");
  if (layout_.systems.size() > 1) refuse("The model", "several of its segments are solved");
  // A model that cuts increments has other results after a cut, and might cut with the components that are found.
  for (const Step& step : layout_.steps)
    if (step.implicit && step.implicit->is_cut) refuse(layout_.systems.front(), "its increments may be cut");
}

// Tells whether a place is of an input whose components are all given.
bool Condenser::is_fixed(At at) const {
  for (const Place& input : inputs_)
    if (at >= input.at && at < input.at + input.components) return input.at != free_.input;
  return false;
}

std::vector<Condenser::Piece> Condenser::pieces(model::Part part) {
  const bool given = part == model::Part::input;
  const auto& held = given ? of_.inputs : of_.outputs;
  const Places& places = given ? inputs_ : outputs_;
  std::vector<Piece> all;
  const auto add = [&](std::size_t caller, const Condensation::Components& components, At at) {
    for_each_run(components, [&](std::int64_t offset, std::int64_t component, std::int64_t count) {
      all.push_back({bound({at + component, count}, part, caller), offset});
    });
  };
  for (std::size_t i = 0; i < places.size(); ++i) {
    Bound whole = bound(places[i], part, i);
    const bool is_whole = std::ranges::none_of(held, [&](const auto& each) { return each.variable == i; });
    if (!is_whole) whole.named.index = -1;  // not bound
    // If something is solved for, all of the tensor was looked at.
    if (is_whole || (!given && of_.free.empty())) all.push_back({whole, 0});
  }
  for (const Condensation::Held& each : held) {
    const std::int64_t count = std::ssize(each.components);
    const At to = places[each.variable].at;
    if (each.components.back() - each.components.front() + 1 == count) {
      add(each.caller, each.components, to);
      continue;
    }
    const Place packed = layout_.place(count);  // a few components at a time would be slow to gather, and to scatter
    all.push_back({bound(packed, part, each.caller), 0});
    for (std::int64_t i = 0; i < count; ++i) {
      const At at = to + each.components[static_cast<std::size_t>(i)];
      if (given)
        spread_.push_back({packed.at + i, at, 1});
      else
        packed_.push_back({at, packed.at + i, 1});
    }
  }
  if (given && begins_alone_) add(static_cast<std::size_t>(of_.free_begin), of_.free, free_.begin - free_.first);
  if (!given && of_.free_output >= 0) add(static_cast<std::size_t>(of_.free_output), of_.free, free_.input);
  return all;
}

const model::Bindings& Condenser::wanted(const model::Bindings& arrays, char* any) {
  for (const model::Part part : both) std::ranges::fill(wanted_.of(part), model::Points());
  const auto want = [&](model::Part part, std::int64_t i) {
    if (i >= 0) wanted_.of(part)[static_cast<std::size_t>(i)].data = any;
  };
  for (const model::Part part : both)
    for (std::size_t i = 0; i < arrays.of(part).size(); ++i) {
      if (!arrays.of(part)[i].data) continue;
      const Condensation::Block& block = blocks(part)[i];
      want(part, block.direct);
      want(part, block.of_output);
      want(model::Part::block, block.by_free);
      if (!of_.free.empty()) want(model::Part::block, of_.tangent);
    }
  want_slopes(arrays);
  return wanted_;
}

// Leaves out a beginning of the free components that is no input of the model: nothing depends on it.
void Condenser::want_slopes(const model::Bindings& arrays) {
  wanted_.slopes.clear();
  for (const model::Slope& slope : arrays.slopes) {
    if (!slope.array.data) continue;
    if (begins_alone_ && static_cast<std::int64_t>(slope.input) == of_.free_begin) continue;
    model::Slope& own = wanted_.slopes.emplace_back(slope);
    to_model(own.input, own.components);
    if (slope.kind == model::Kind::input) to_model(own.variable, own.of_variable);
  }
}

// Replaces the number of a caller's input by the number of the model's input that has its components.
void Condenser::to_model(std::size_t& input, const Condensation::Components*& components) const {
  const auto held = std::ranges::find(of_.inputs, input, &Condensation::Held::caller);
  if (held == of_.inputs.end()) return;
  input = held->variable;
  components = &held->components;
}

void Condenser::add_to(Walk& walk, const model::Bindings& arrays) {
  condensed_.clear();
  matrices_.clear();
  const auto found = [&](model::Part part, std::int64_t i) {
    return i < 0 ? Rows() : chains_->rows_of(part, static_cast<std::size_t>(i));
  };
  for (const model::Part part : both)
    for (std::size_t i = 0; i < arrays.of(part).size(); ++i) {
      if (!arrays.of(part)[i].data) continue;
      const Condensation::Block& block = blocks(part)[i];
      const auto& [rows, columns, at] = (part == model::Part::block ? by_inputs_ : by_parameters_)[i];
      Rows by_free = found(model::Part::block, block.by_free);
      if (by_free.at != nowhere) by_free.at += free_.first;
      condensed_.push_back(
          {at, rows, columns, found(part, block.direct), by_free, found(part, block.of_output), block.is_of_free});
      matrices_.push_back(
          {arrays.of(part)[i], 1, rows.count, columns.count, at, columns.count, {part, static_cast<std::int64_t>(i)}});
    }
  walk.spread = list(spread_);
  walk.packed = list(packed_);
  walk.free = free_;
  if (!of_.free.empty() && !condensed_.empty()) {
    walk.free.condensed = found(model::Part::block, of_.tangent);
    walk.free.condensed.at += free_.first;
    walk.free.shears = chains_->first_direction(static_cast<std::size_t>(of_.tangent)) + free_.first + free_.normal;
  }
  walk.condensed = list(condensed_);
  walk.blocks = list(matrices_);
  walk.takes_good_alone = true;
}

}  // namespace neml2_capi::kernels
