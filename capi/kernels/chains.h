// The derivatives of a model, by the chain rule: what each segment does to the columns of the inputs and parameters that
// are asked about.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capi/kernels/boundary.h"
#include "capi/kernels/condensation.h"
#include "capi/kernels/layout.h"
#include "capi/values/bindings.h"

namespace neml2_capi::kernels {

class Chains {
 public:
  // The layout must outlive it, and all its segments must be there.
  Chains(Layout& layout, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked)
      : layout_(layout),
        metadata_(metadata),
        boundary_(boundary),
        inputs_{boundary.derivatives, metadata.derivatives, model::Part::block, model::Part::adjoint},
        parameters_{boundary.parameter_derivatives, metadata.parameter_derivatives, model::Part::parameter_block,
                    model::Part::parameter_adjoint} {
    std::int64_t most = 0;
    for (const auto* variables : {&boundary.inputs, &boundary.parameters})
      for (const model::Variable& variable : *variables) most += variable.point_shape.product();
    const auto outputs = static_cast<std::int64_t>(boundary.outputs.size());
    most = std::max(most, outputs);
    bool sited = false;
    for (const Links& links : layout.links) {
      std::map<std::string, At> rooms;
      for (const Local& local : links.locals) {
        sited = sited || local.rows == 0;
        if (!links.system && !rooms.contains(local.output))
          rooms[local.output] = layout.place(layout.value(local.output).components * most).at;
      }
      if (links.system) rooms[""] = layout.place(links.system->unknowns * most).at;
      if (links.system && links.system->newton_step.kernel && links.system->newton_step.kernel->prepare)
        rooms[" "] = layout.place(links.system->unknowns * most).at;
      for (const Part& part : links.unknowns)
        if (!part.is_whole()) rooms[part.name] = layout.place(part.size() * most).at;
      rooms_.push_back(std::move(rooms));
      rooms_of_parts_.emplace_back();
      if (links.roles.empty()) continue;
      rooms_of_parts_.back()[""] = {layout.place(links.system->unknowns * most).at, nowhere};
      for (const artifact::Substep& given : links.roles) {
        const std::int64_t size = layout.value(given.name).components * most;
        rooms_of_parts_.back()[given.name] = {layout.place(size).at, layout.place(size).at};
      }
    }
    direct_ = layout.links.size() == 1 && !layout.links.front().system;
    if (sited && (!direct_ || asked.products || asked.slopes))
      refuse("The model", "its derivatives have sub-batch axes");
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

  // Plans derivatives with respect to some components of an input alone. Returns where those of an output stand.
  Rows add_free(const Condensation& of, std::int64_t begin, std::int64_t count) {
    const artifact::Pair& pair = inputs_.pairs[static_cast<std::size_t>(of.tangent)];
    if (direct_) return {block_of(pair) + begin, layout_.value(pair.input).components};
    free_.count = count;
    free_.of_values[pair.input] = {nowhere, 0, begin, count};
    push_forward(free_, &Step::of_free);
    const auto made = free_.of_values.find(pair.output);
    if (made == free_.of_values.end() || made->second.at == nowhere)
      refuse(pair.output, "it does not depend on the strain");
    return {made->second.at, count};
  }

  // Returns where the derivatives of an array stand, which is bound in the last plan.
  Rows rows_of(model::Part part, std::size_t i) const {
    for (const Matrix& matrix : plan_.matrices)
      if (matrix.named.part == part && matrix.named.index == static_cast<std::int64_t>(i))
        return {matrix.at, matrix.row_stride};
    return {};
  }

  // The plan of a walk over these arrays. It is made again only if other ones are bound than before.
  void add_to(Walk& walk, std::vector<Bound>& inputs, const model::Bindings& arrays) {
    bound_.clear();
    for (const model::Part part :
         {model::Part::block, model::Part::parameter_block, model::Part::tangent, model::Part::jvp,
          model::Part::cotangent, model::Part::adjoint, model::Part::parameter_adjoint})
      for (const model::Points& points : arrays.of(part)) bound_.push_back(points.data != nullptr);
    for (const model::Slope& slope : arrays.slopes)
      if (slope.array.data)
        bound_.insert(bound_.end(), {slope.input, static_cast<std::size_t>(slope.kind), slope.variable,
                                     first_of(slope.components), first_of(slope.of_variable)});
      else
        bound_.push_back(0);
    if (bound_ != planned_) {
      plan(arrays);
      planned_ = bound_;
    }
    for (Matrix& matrix : plan_.matrices)
      matrix.array = arrays.of(matrix.named.part)[static_cast<std::size_t>(matrix.named.index)];
    for (const model::Part part : {model::Part::tangent, model::Part::cotangent})
      for (std::size_t i = 0; i < arrays.of(part).size(); ++i)
        if (is_bound(arrays, part, i)) inputs.push_back(bound(places(part)[i], part, i, arrays.of(part)[i]));
    for (const auto& [number, place] : plan_.slopes) {
      const model::Slope& slope = arrays.slopes[number];
      inputs.push_back(bound(place, model::Part::input, slope.input, slope.array));
    }
    walk.seeds = list(plan_.seeds);
    walk.blocks = list(plan_.matrices);
    walk.zeros = list(plan_.zeros);
    walk.products = list(plan_.products);
    walk.pulled = list(plan_.pulled);
  }

 private:
  // The derivative of a value: columns of the unit matrix from `first` on, or a matrix, or their sum; else zero.
  struct Direction {
    At at = nowhere;
    std::int64_t first = -1;
    std::int64_t begin = 0, count = 0;  // components that have such columns
    bool zero() const { return at == nowhere && first < 0; }
  };

  // The derivatives with respect to inputs, or to parameters, in the order of the boundary.
  struct By {
    const std::vector<model::Derivative>& derivatives;
    const std::vector<artifact::Pair>& pairs;
    model::Part block, adjoint;
  };

  // Parts of a segment's chain, which refers to these lists.
  struct Pushed {
    Chain chain;
    std::vector<Move> expand, zeros, unpack;
    std::vector<Product> products;
    // In parts of the increment.
    std::vector<Spread> begins, spreads;
    std::vector<Between> moving;
    std::vector<Product> of_parts;
    std::vector<Move> states;
  };
  struct RoomsInPart {
    At own, partner;
  };

  struct Plan {
    std::int64_t count = 0;  // of directions
    std::map<std::string, Direction> of_values, of_parameters;
    std::map<std::string, std::int64_t> input_columns, parameter_columns;
    std::vector<Pushed> pushed;                         // by segment
    std::vector<std::pair<std::size_t, Place>> slopes;  // those that are read, by number, and where they go
    std::vector<Move> seeds, zeros;
    std::vector<Matrix> matrices;
    std::vector<Product> products;
    std::vector<Adjoint> pulled;
  };

  static bool is_bound(const model::Bindings& arrays, model::Part part, std::size_t i) {
    return i < arrays.of(part).size() && arrays.of(part)[i].data;
  }
  Places& places(model::Part part) { return places_[static_cast<std::size_t>(part)]; }

  bool is_made(const std::string& name) const {
    for (const Links& links : layout_.links) {
      for (const Part& part : links.unknowns)
        if (part.name == name) return true;
      for (const Local& local : links.locals)
        if (local.output == name) return true;
    }
    return false;
  }

  void plan(const model::Bindings& arrays) {
    plan_ = {};
    const bool jvps_alone = !any_bound(arrays.blocks) && !any_bound(arrays.parameter_blocks) &&
                            !any_bound(arrays.adjoints) && !any_bound(arrays.parameter_adjoints);
    if (jvps_alone) return plan_jvps(arrays);
    const bool blocks_alone = direct_ && !any_bound(arrays.jvps) && !any_bound(arrays.adjoints) &&
                              !any_bound(arrays.parameter_adjoints) && arrays.slopes.empty();
    for (const By* by : {&inputs_, &parameters_})
      if (!blocks_alone) start(*by, arrays);
    for (std::size_t i = 0; i < arrays.slopes.size(); ++i)
      if (arrays.slopes[i].array.data) move(arrays, i);
    push_forward(plan_, &Step::chain);
    for (const By* by : {&inputs_, &parameters_}) add_blocks(*by, arrays);
    add_products(arrays);
    for (const By* by : {&inputs_, &parameters_}) add_adjoints(*by, arrays);
  }

  // One direction for each distinct set of inputs that outputs sum over, instead of columns for all of them.
  void plan_jvps(const model::Bindings& arrays) {
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
    push_forward(plan_, &Step::chain);
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

  // The tangent of an input as a column of each set that has it, among zeros.
  void seed(std::size_t input, const std::vector<std::vector<bool>>& sets) {
    const Place& tangent = places(model::Part::tangent)[input];
    for (std::size_t k = 0; k < sets.size(); ++k)
      for (std::int64_t c = 0; c < tangent.components; ++c)
        plan_.seeds.push_back({sets[k][input] ? tangent.at + c : nowhere,
                               seeds_[input].at + c * plan_.count + static_cast<std::int64_t>(k), 1});
    plan_.of_values[metadata_.inputs[input].name] = {seeds_[input].at};
  }

  // Columns for all inputs that something is asked about.
  void start(const By& by, const model::Bindings& arrays) {
    const bool parameters = &by == &parameters_;
    for (std::size_t i = 0; i < by.derivatives.size(); ++i) {
      const model::Derivative& derivative = by.derivatives[i];
      const std::string& name = by.pairs[i].input;
      const bool wanted = is_bound(arrays, by.block, i) || is_bound(arrays, by.adjoint, derivative.input) ||
                          (!parameters && is_bound(arrays, model::Part::jvp, derivative.output));
      Direction& direction = (parameters ? plan_.of_parameters : plan_.of_values)[name];
      if (!wanted || direction.first >= 0) continue;
      direction.first = (parameters ? plan_.parameter_columns : plan_.input_columns)[name] = plan_.count;
      direction.count = (parameters ? layout_.parameter(name) : layout_.value(name)).components;
      plan_.count += direction.count;
    }
  }

  static std::size_t first_of(const std::vector<std::int64_t>* components) {
    return components ? static_cast<std::size_t>(components->front()) : 0;
  }

  // An input that moves with a variable: its derivative stands in the columns of that variable, among zeros.
  void move(const model::Bindings& arrays, std::size_t number) {
    const model::Slope& slope = arrays.slopes[number];
    const bool by_parameter = slope.kind == model::Kind::parameter;
    const std::string& input = metadata_.inputs[slope.input].name;
    const std::string& variable =
        by_parameter ? metadata_.parameters[slope.variable].name : metadata_.inputs[slope.variable].name;
    const auto& columns = by_parameter ? plan_.parameter_columns : plan_.input_columns;
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
    const Place from = {slopes_[slope.input].at + all * column->second + before, rows * width};
    const At to = moving_[slope.input].at;
    Direction& direction = plan_.of_values[input];
    if (direction.at == nowhere) plan_.seeds.push_back({nowhere, to, all * count});
    direction.at = to;
    if (!by_parameter && slope.variable == slope.input) direction.first = -1;
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t component = slope.components ? (*slope.components)[static_cast<std::size_t>(row)] : row;
      const At begin = to + component * count + column->second;
      if (!slope.of_variable) plan_.seeds.push_back({from.at + row * size, begin, size});
      for (std::int64_t k = 0; slope.of_variable && k < width; ++k)
        plan_.seeds.push_back(
            {from.at + row * width + k, begin + (*slope.of_variable)[static_cast<std::size_t>(k)], 1});
    }
    plan_.slopes.emplace_back(number, from);
  }

  // Sets the chain of each step.
  void push_forward(Plan& plan, const Chain* Step::*chain) {
    const std::int64_t count = plan.count;
    plan.pushed.resize(layout_.links.size());
    for (std::size_t i = 0; i < layout_.links.size(); ++i) {
      const Links& links = layout_.links[i];
      Pushed& pushed = plan.pushed[i];
      std::map<std::string, Direction> made;
      for (const Local& local : links.locals) {
        const Direction direction = direction_of(local.input, local.of_parameter ? plan.of_parameters : plan.of_values);
        if (direction.zero() || local.rows == 0) continue;
        const At room = rooms_[i].at(local.output);
        const std::size_t before = pushed.products.size();
        push(local, direction, count, room, pushed.products);
        if (pushed.products.size() == before) continue;
        if (!links.system && made[local.output].zero()) {
          made[local.output] = {room};
          pushed.zeros.push_back({nowhere, room, local.rows * count});
        }
      }
      if (links.system) push_through(links, rooms_[i], count, pushed, made);
      if (pushed.chain.system && !links.roles.empty()) push_in_parts(plan, i, made, pushed);
      for (const auto& [name, direction] : made) plan.of_values[name] = direction;
      pushed.chain.operators = list(links.operators);
      for (const Move& move : links.expand)
        if (is_read(move, pushed.products) || is_read(move, pushed.of_parts)) pushed.expand.push_back(move);
      pushed.chain.expand = list(pushed.expand);
      pushed.chain.zeros = list(pushed.zeros);
      pushed.chain.products = list(pushed.products);
      pushed.chain.unpack = list(pushed.unpack);
      pushed.chain.count = count;
      layout_.steps[i].*chain = &pushed.chain;
    }
  }

  // Tells whether products read what is moved.
  static bool is_read(const Move& move, const std::vector<Product>& products) {
    return std::ranges::any_of(products, [&](const Product& product) {
      const At end = product.block + (product.rows - 1) * product.stride + product.columns;
      return product.block < move.to + move.components && move.to < end;
    });
  }

  // Adds the products of a block with the directions of its input to a room.
  static void push(const Local& local, const Direction& direction, std::int64_t count, At room,
                   std::vector<Product>& products) {
    const std::int64_t begin = std::max(local.column, direction.begin),
                       end = std::min(local.column + local.columns, direction.begin + direction.count),
                       columns = direction.first < 0 ? 0 : end - begin;
    const auto add = [&](std::int64_t column, std::int64_t width, At at, std::int64_t first) {
      products.push_back(
          {local.block + column - local.column, local.stride, local.rows, width, at, first, room + local.row * count});
    };
    if (direction.at != nowhere) add(local.column, local.columns, direction.at + local.column * count, 0);
    if (columns > 0) add(begin, columns, nowhere, direction.first + begin - direction.begin);
  }

  // The directions of givens and unknowns in a part of the increment.
  void push_in_parts(const Plan& plan, std::size_t i, const std::map<std::string, Direction>& made, Pushed& pushed) {
    using Role = artifact::Substep::Role;
    const Links& links = layout_.links[i];
    const auto& rooms = rooms_of_parts_[i];
    std::map<std::string, Direction> of_values = plan.of_values;
    for (const artifact::Substep& given : links.roles) {
      const Direction own = direction_of(given.name, plan.of_values),
                      partner = direction_of(given.partner, plan.of_values);
      const std::int64_t size = layout_.value(given.name).components;
      const auto [to, other] = rooms.at(given.name);
      const auto spread = [&](std::vector<Spread>& list, const Direction& direction, At at) {
        list.push_back(
            {direction.at, at, size, direction.begin, direction.first < 0 ? 0 : direction.count, direction.first});
      };
      const bool is_force = given.role == Role::old_force || given.role == Role::force;
      if (given.role != Role::old_state && own.zero() && (partner.zero() || !is_force)) continue;
      of_values[given.name] = {to};
      if (given.role == Role::old_state) {
        spread(pushed.begins, own, to);
        pushed.states.push_back({made.at(given.partner).at, to, size * plan.count});
        continue;
      }
      spread(pushed.spreads, own, to);
      if (is_force) spread(pushed.spreads, partner, other);
      pushed.moving.push_back(is_force ? between(given, to, other, {to, size})
                                       : Between{nowhere, to, Between::Place::width, to, size});
    }
    for (const Local& local : links.locals)
      if (local.rows > 0)
        push(local, direction_of(local.input, local.of_parameter ? plan.of_parameters : of_values), plan.count,
             rooms_[i].at(""), pushed.of_parts);
    pushed.chain.parts = {list(pushed.begins),   list(pushed.spreads), list(pushed.moving),
                          list(pushed.of_parts), list(pushed.states),  rooms.at("").own};
  }

  // The directions of the unknowns of a system, side by side in its room until they are solved for.
  static void push_through(const Links& links, const std::map<std::string, At>& rooms, std::int64_t count,
                           Pushed& pushed, std::map<std::string, Direction>& made) {
    const At room = rooms.at("");
    for (const Part& part : links.unknowns) {
      Direction& direction = made[part.name];
      if (pushed.products.empty()) continue;
      direction.at = room + part.first * count;
      if (part.is_whole()) continue;
      const At to = rooms.at(part.name);
      for (std::int64_t k = 0; k < part.pieces; ++k)
        pushed.unpack.push_back(
            {direction.at + k * part.apart * count, to + k * part.piece * count, part.piece * count});
      direction.at = to;
    }
    if (pushed.products.empty()) return;
    pushed.zeros.push_back({nowhere, room, links.system->unknowns * count});
    pushed.chain.system = links.system;
    pushed.chain.right = room;
    if (const auto solved = rooms.find(" "); solved != rooms.end()) pushed.chain.solved = solved->second;
  }

  void add_blocks(const By& by, const model::Bindings& arrays) {
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

  At block_of(const artifact::Pair& pair) const {
    for (const Local& local : layout_.links.front().locals)
      if (local.output == pair.output && local.input == pair.input) return local.block;
    return nowhere;
  }

  static Direction direction_of(const std::string& name, const std::map<std::string, Direction>& directions) {
    const auto it = directions.find(name);
    return it == directions.end() ? Direction{} : it->second;
  }

  // The columns of an input in the derivatives of an output; nowhere if they are zero.
  At columns_of(const By& by, std::size_t i) const {
    const At out = direction_of(by.pairs[i].output, plan_.of_values).at;
    const auto& columns = &by == &parameters_ ? plan_.parameter_columns : plan_.input_columns;
    const auto column = columns.find(by.pairs[i].input);
    return out != nowhere && column != columns.end() ? out + column->second : nowhere;
  }

  void add(Matrix matrix, model::Part part, std::size_t i) {
    matrix.named = {part, static_cast<std::int64_t>(i)};
    plan_.matrices.push_back(matrix);
  }

  // Sums of products with directions, which begin at zero.
  void add_sums(model::Part part, const model::Bindings& arrays) {
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

  // An output sums over the inputs for which a derivative of it was compiled.
  void add_products(const model::Bindings& arrays) {
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

  void add_adjoints(const By& by, const model::Bindings& arrays) {
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

  Layout& layout_;
  const artifact::Metadata& metadata_;
  const Boundary& boundary_;
  const By inputs_, parameters_;
  bool direct_ = false;
  std::vector<std::map<std::string, At>> rooms_;  // by segment and output: for directions; of an implicit one, for all
  std::array<Places, 10> places_;                 // by part: of arrays of derivatives
  std::vector<std::map<std::string, RoomsInPart>> rooms_of_parts_;  // by segment and given; of the solution by ""
  Places seeds_;                                                    // by input
  Places slopes_, moving_;                                          // by input: as they are given, and as columns
  std::vector<std::size_t> bound_, planned_;                        // which arrays there are: 0 or 1
  Plan plan_, free_;
};

}  // namespace neml2_capi::kernels
