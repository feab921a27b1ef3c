#include "capi/kernels/chains.h"

#include <algorithm>
#include <utility>

namespace neml2_capi::kernels {

Chains::Chains(Layout& layout, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked)
    : layout_(layout),
      metadata_(metadata),
      boundary_(boundary),
      asked_(asked),
      inputs_{boundary.derivatives, metadata.derivatives, model::Part::block, model::Part::adjoint},
      parameters_{boundary.parameter_derivatives, metadata.parameter_derivatives, model::Part::parameter_block,
                  model::Part::parameter_adjoint} {
  std::int64_t most = 0;
  for (const auto* variables : {&boundary.inputs, &boundary.parameters})
    for (const model::Variable& variable : *variables) most += variable.point_shape.product();
  const auto outputs = static_cast<std::int64_t>(boundary.outputs.size());
  most = std::max(most, outputs);
  const bool sited = make_rooms(most);
  direct_ = layout.links.size() == 1 && !layout.links.front().system;
  if (sited && (!direct_ || asked.products || asked.slopes)) refuse("The model", "its derivatives have sub-batch axes");
  for (const artifact::Variable& output : metadata.outputs)
    for (const artifact::Variable& input : metadata.inputs)
      if (output.name == input.name && !is_made(output.name)) refuse(output.name, "it is an input that is handed on");
  const auto make = [&](const std::vector<model::Variable>& variables, auto... parts) {
    for (const model::Variable& variable : variables)
      (places(parts).push_back(layout.place(variable.point_shape.product())), ...);
  };
  make(boundary.inputs, model::Part::tangent, model::Part::adjoint);
  make(boundary.parameters, model::Part::parameter_adjoint);
  make(boundary.outputs, model::Part::cotangent, model::Part::jvp);
  for (const model::Variable& input : boundary.inputs)
    seeds_.push_back(layout.place(input.point_shape.product() * outputs));
  if (!asked.slopes) return;
  for (const model::Variable& input : boundary.inputs) {
    slopes_.push_back(layout.place(input.point_shape.product() * most));
    moving_.push_back(layout.place(input.point_shape.product() * most));
  }
}

bool Chains::make_rooms(std::int64_t most) {
  bool sited = false;
  for (const Links& links : layout_.links) {
    std::map<std::string, At> rooms;
    for (const Local& local : links.locals) {
      sited = sited || local.rows == 0;
      if (!links.system && !rooms.contains(local.output))
        rooms[local.output] = layout_.place(layout_.value(local.output).components * most).at;
    }
    if (links.system) rooms[""] = layout_.place(links.system->unknowns * most).at;
    if (links.system && links.system->newton_step.kernel && links.system->newton_step.kernel->prepare)
      rooms[" "] = layout_.place(links.system->unknowns * most).at;
    for (const Part& part : links.unknowns)
      if (!part.is_whole()) rooms[part.name] = layout_.place(part.size() * most).at;
    rooms_.push_back(std::move(rooms));
    rooms_of_parts_.emplace_back();
    if (links.roles.empty()) continue;
    rooms_of_parts_.back()[""] = {layout_.place(links.system->unknowns * most).at, nowhere};
    for (const artifact::Substep& given : links.roles) {
      const std::int64_t size = layout_.value(given.name).components * most;
      rooms_of_parts_.back()[given.name] = {layout_.place(size).at, layout_.place(size).at};
    }
  }
  return sited;
}

Rows Chains::rows_of(model::Part part, std::size_t i) const {
  for (const Matrix& matrix : plan_.matrices)
    if (matrix.named.part == part && matrix.named.index == static_cast<std::int64_t>(i))
      return {matrix.at, matrix.row_stride};
  return {};
}

void Chains::add_to(Walk& walk, std::vector<Bound>& inputs, const model::Bindings& arrays) {
  if (!is_planned(arrays)) {
    std::vector<std::size_t> asked = std::exchange(planned_, {});
    plan(arrays);
    planned_ = std::move(asked);
  }
  for (Matrix& matrix : plan_.matrices)
    matrix.array = arrays.of(matrix.named.part)[static_cast<std::size_t>(matrix.named.index)];
  const std::size_t seeds = plan_.given.size() - plan_.slopes.size();
  for (std::size_t i = 0; i < seeds; ++i) {
    const auto [part, index] = plan_.given[i].named;
    plan_.given[i].array = arrays.of(part)[static_cast<std::size_t>(index)];
  }
  for (std::size_t i = 0; i < plan_.slopes.size(); ++i)
    plan_.given[seeds + i].array = arrays.slopes[plan_.slopes[i]].array;
  inputs.insert(inputs.end(), plan_.given.begin(), plan_.given.end());
  walk.seeds = list(plan_.seeds);
  walk.blocks = list(plan_.matrices);
  walk.zeros = list(plan_.zeros);
  walk.products = list(plan_.products);
  walk.pulled = list(plan_.pulled);
}

// A history asks at every step: what is bound of a part that is asked for is a number, and so is a slope.
bool Chains::is_planned(const model::Bindings& arrays) {
  std::size_t at = 0;
  bool same = true;
  const auto note = [&](std::size_t value) {
    if (at == planned_.size()) planned_.push_back(~value);
    std::size_t& known = planned_.data()[at++];
    same &= known == value;
    known = value;
  };
  const auto look = [&](model::Part part) {
    const model::Points *each = arrays.of(part).data(), *const end = each + arrays.of(part).size();
    do {
      std::size_t bound = 0;
      for (const model::Points* const last = each + std::min<std::ptrdiff_t>(end - each, 64); each != last; ++each)
        bound = bound << 1 | static_cast<std::size_t>(each->data != nullptr);
      note(bound);
    } while (each != end);
  };
  look(model::Part::block);
  if (asked_.by_parameters) look(model::Part::parameter_block);
  if (asked_.products)
    for (const model::Part part : {model::Part::tangent, model::Part::jvp, model::Part::cotangent, model::Part::adjoint,
                                   model::Part::parameter_adjoint})
      look(part);
  for (const model::Slope& slope : arrays.slopes) {
    const bool of_some = slope.components || slope.of_variable;
    const std::size_t kind = static_cast<std::size_t>(slope.kind) << 2 | static_cast<std::size_t>(of_some) << 1 | 1;
    note(slope.array.data ? slope.input << 32 | slope.variable << 8 | kind : 0);
    if (!slope.array.data || !of_some) continue;
    note(first_of(slope.components));
    note(first_of(slope.of_variable));
  }
  same = same && at == planned_.size();
  planned_.resize(at);
  return same;
}

bool Chains::is_made(const std::string& name) const {
  for (const Links& links : layout_.links) {
    for (const Part& part : links.unknowns)
      if (part.name == name) return true;
    for (const Local& local : links.locals)
      if (local.output == name) return true;
  }
  return false;
}

void Chains::plan(const model::Bindings& arrays) {
  plan_ = {};
  for (const model::Part part : {model::Part::tangent, model::Part::cotangent})
    for (std::size_t i = 0; asked_.products && i < arrays.of(part).size(); ++i)
      if (is_bound(arrays, part, i)) plan_.given.push_back(bound(places(part)[i], part, i));
  const bool jvps_alone = !any_bound(arrays.blocks) && !any_bound(arrays.parameter_blocks) &&
                          !any_bound(arrays.adjoints) && !any_bound(arrays.parameter_adjoints);
  if (jvps_alone) return plan_jvps(arrays);
  const bool blocks_alone = direct_ && !any_bound(arrays.jvps) && !any_bound(arrays.adjoints) &&
                            !any_bound(arrays.parameter_adjoints) && arrays.slopes.empty();
  for (const By* by : {&inputs_, &parameters_})
    if (!blocks_alone) start(*by, arrays);
  for (std::size_t i = 0; i < arrays.slopes.size(); ++i)
    if (arrays.slopes[i].array.data) move(arrays, i);
  Names read;
  for (const By* by : {&inputs_, &parameters_})
    for (std::size_t i = 0; i < by->derivatives.size(); ++i)
      if (is_asked(*by, i, arrays)) read.insert(by->pairs[i].output);
  push_forward(plan_, &Step::chain, std::move(read));
  for (const By* by : {&inputs_, &parameters_}) add_blocks(*by, arrays);
  add_products(arrays);
  for (const By* by : {&inputs_, &parameters_}) add_adjoints(*by, arrays);
}

void Chains::plan_jvps(const model::Bindings& arrays) {
  std::vector<std::vector<bool>> sets, of_output(boundary_.outputs.size());
  for (auto& set : of_output) set.resize(boundary_.inputs.size());
  for (const model::Derivative& derivative : boundary_.derivatives)
    of_output[derivative.output][derivative.input] = is_bound(arrays, model::Part::tangent, derivative.input);
  const auto number_of = [&](std::size_t output) {
    const auto number = std::find(sets.begin(), sets.end(), of_output[output]) - sets.begin();
    if (number == std::ssize(sets)) sets.push_back(of_output[output]);
    return static_cast<std::int64_t>(number);
  };
  for (std::size_t i = 0; i < arrays.jvps.size(); ++i)
    if (arrays.jvps[i].data) number_of(i);
  plan_.count = std::ssize(sets);
  for (std::size_t i = 0; i < boundary_.inputs.size(); ++i)
    if (is_bound(arrays, model::Part::tangent, i)) seed(i, sets);
  Names read;
  for (std::size_t i = 0; i < arrays.jvps.size(); ++i)
    if (arrays.jvps[i].data) read.insert(metadata_.outputs[i].name);
  push_forward(plan_, &Step::chain, std::move(read));
  for (std::size_t i = 0; i < arrays.jvps.size(); ++i) {
    if (!arrays.jvps[i].data) continue;
    Matrix result;
    (plan_.count == 1 ? result.columns : result.rows) = places(model::Part::jvp)[i].components;
    result.row_stride = plan_.count;
    if (const At at = direction_of(metadata_.outputs[i].name, plan_.of_values).at; at != nowhere)
      result.at = at + number_of(i);
    add(result, model::Part::jvp, i);
  }
}

void Chains::seed(std::size_t input, const std::vector<std::vector<bool>>& sets) {
  const Place& tangent = places(model::Part::tangent)[input];
  for (std::size_t k = 0; k < sets.size(); ++k)
    for (std::int64_t c = 0; c < tangent.components; ++c)
      plan_.seeds.push_back({sets[k][input] ? tangent.at + c : nowhere,
                             seeds_[input].at + c * plan_.count + static_cast<std::int64_t>(k), 1});
  plan_.of_values[metadata_.inputs[input].name] = {seeds_[input].at};
}

void Chains::start(const By& by, const model::Bindings& arrays) {
  const bool parameters = &by == &parameters_;
  for (std::size_t i = 0; i < by.derivatives.size(); ++i) {
    const std::string& name = by.pairs[i].input;
    Direction& direction = (parameters ? plan_.of_parameters : plan_.of_values)[name];
    if (!is_asked(by, i, arrays) || direction.first >= 0) continue;
    direction.first = (parameters ? plan_.parameter_columns : plan_.input_columns)[name] = plan_.count;
    direction.count = (parameters ? layout_.parameter(name) : layout_.value(name)).components;
    plan_.count += direction.count;
  }
}

void Chains::move(const model::Bindings& arrays, std::size_t number) {
  const model::Slope& slope = arrays.slopes[number];
  const bool by_parameter = slope.kind == model::Kind::parameter;
  const std::string &input = metadata_.inputs[slope.input].name, &variable = name_of(slope);
  const auto& columns = columns_by(slope.kind);
  const auto column = columns.find(variable);
  if (column == columns.end()) return;  // nothing is derived by it
  const std::int64_t all = layout_.value(input).components, count = plan_.count,
                     size = (by_parameter ? layout_.parameter(variable) : layout_.value(variable)).components;
  const auto count_of = [](const std::vector<std::int64_t>* some, std::int64_t whole) {
    return some ? std::ssize(*some) : whole;
  };
  std::int64_t before = 0;  // entries of other components
  for (std::size_t i = 0; i < number; ++i)
    if (const model::Slope& other = arrays.slopes[i];
        other.input == slope.input && other.kind == slope.kind && other.variable == slope.variable)
      before += count_of(other.components, all) * count_of(other.of_variable, size);
  const std::int64_t rows = count_of(slope.components, all), width = count_of(slope.of_variable, size);
  const At to = moving_[slope.input].at;
  Direction& direction = plan_.of_values[input];
  plan_.slopes.push_back(number);
  if (has_all_columns(arrays, slope.input)) {
    direction = {to};
    Bound given = bound({to + column->second, all}, model::Part::input, slope.input);
    given.apart = count;
    return plan_.given.push_back(given);
  }
  const Place from = {slopes_[slope.input].at + all * column->second + before, rows * width};
  plan_.given.push_back(bound(from, model::Part::input, slope.input));
  if (direction.at == nowhere) plan_.seeds.push_back({nowhere, to, all * count});
  direction.at = to;
  if (!by_parameter && slope.variable == slope.input) direction.first = -1;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t component = slope.components ? (*slope.components)[static_cast<std::size_t>(row)] : row;
    const At begin = to + component * count + column->second;
    if (!slope.of_variable) plan_.seeds.push_back({from.at + row * size, begin, size});
    for (std::int64_t k = 0; slope.of_variable && k < width; ++k)
      plan_.seeds.push_back({from.at + row * width + k, begin + (*slope.of_variable)[static_cast<std::size_t>(k)], 1});
  }
}

const std::string& Chains::name_of(const model::Slope& slope) const {
  return slope.kind == model::Kind::parameter ? metadata_.parameters[slope.variable].name
                                              : metadata_.inputs[slope.variable].name;
}

bool Chains::has_all_columns(const model::Bindings& arrays, std::size_t input) const {
  if (layout_.value(metadata_.inputs[input].name).components > most_in_column) return false;
  std::int64_t found = 0;
  for (const model::Slope& slope : arrays.slopes) {
    const std::string& by = name_of(slope);
    if (slope.input != input || !slope.array.data || !columns_by(slope.kind).contains(by)) continue;
    const Place& place = slope.kind == model::Kind::parameter ? layout_.parameter(by) : layout_.value(by);
    if (slope.components || slope.of_variable || place.components != 1) return false;
    ++found;
  }
  return found == plan_.count;
}

void Chains::add_blocks(const By& by, const model::Bindings& arrays) {
  for (std::size_t i = 0; i < by.derivatives.size(); ++i) {
    if (!is_bound(arrays, by.block, i)) continue;
    const model::Derivative& derivative = by.derivatives[i];
    Matrix block;
    block.rows = derivative.rows;
    block.columns = derivative.columns;
    block.sites = derivative.block.point_shape.product() / std::max<std::int64_t>(block.rows * block.columns, 1);
    if (direct_ && arrays.slopes.empty()) {  // a model that is one package: its blocks as they are
      block.at = block_of(by.pairs[i]);
      block.row_stride = block.columns;
    } else {
      block.at = columns_of(by, i);
      block.row_stride = plan_.count;
    }
    add(block, by.block, i);
  }
}

At Chains::block_of(const artifact::Pair& pair) const {
  for (const Local& local : layout_.links.front().locals)
    if (local.output == pair.output && local.input == pair.input) return local.block;
  return nowhere;
}

At Chains::columns_of(const By& by, std::size_t i) const {
  const At out = direction_of(by.pairs[i].output, plan_.of_values).at;
  const auto& columns = &by == &parameters_ ? plan_.parameter_columns : plan_.input_columns;
  const auto column = columns.find(by.pairs[i].input);
  return out != nowhere && column != columns.end() ? out + column->second : nowhere;
}

void Chains::add(Matrix matrix, model::Part part, std::size_t i) {
  matrix.named = {part, static_cast<std::int64_t>(i)};
  plan_.matrices.push_back(matrix);
}

void Chains::add_sums(model::Part part, const model::Bindings& arrays) {
  for (std::size_t i = 0; i < arrays.of(part).size(); ++i) {
    if (!is_bound(arrays, part, i)) continue;
    const Place& place = places(part)[i];
    Matrix result;
    result.rows = place.components;
    result.at = place.at;
    add(result, part, i);
    plan_.zeros.push_back({nowhere, place.at, place.components});
  }
}

void Chains::add_products(const model::Bindings& arrays) {
  add_sums(model::Part::jvp, arrays);
  for (std::size_t i = 0; i < boundary_.derivatives.size(); ++i) {
    const model::Derivative& derivative = boundary_.derivatives[i];
    const At matrix = columns_of(inputs_, i);
    if (matrix == nowhere || !is_bound(arrays, model::Part::jvp, derivative.output) ||
        !is_bound(arrays, model::Part::tangent, derivative.input))
      continue;
    const Place& to = places(model::Part::jvp)[derivative.output];
    const Place& from = places(model::Part::tangent)[derivative.input];
    plan_.products.push_back({matrix, plan_.count, to.components, from.components, from.at, 0, to.at});
  }
}

void Chains::add_adjoints(const By& by, const model::Bindings& arrays) {
  add_sums(by.adjoint, arrays);
  for (std::size_t i = 0; i < by.derivatives.size(); ++i) {
    const model::Derivative& derivative = by.derivatives[i];
    const At matrix = columns_of(by, i);
    if (matrix == nowhere || !is_bound(arrays, by.adjoint, derivative.input) ||
        !is_bound(arrays, model::Part::cotangent, derivative.output))
      continue;
    const Place& from = places(model::Part::cotangent)[derivative.output];
    const Place& to = places(by.adjoint)[derivative.input];
    plan_.pulled.push_back({matrix, plan_.count, from.components, to.components, from.at, to.at});
  }
}

}  // namespace neml2_capi::kernels
