// The derivatives of a model, by the chain rule: what each segment does to the columns of the inputs and parameters that
// are asked about.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "capi/kernels/layout.h"
#include "capi/kernels/request.h"

namespace neml2_capi::kernels {

template <class T>
class Chains {
 public:
  // The layout must outlive it, and all its segments must be there.
  Chains(Layout<T>& layout, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked)
      : layout_(layout), metadata_(metadata), boundary_(boundary) {
    for (const auto& [name, value] : layout.values) initial_[name] = {};
    std::int64_t most = 0;
    for (const auto* variables : {&boundary.inputs, &boundary.parameters})
      for (const model::Variable& variable : *variables) most += variable.point_shape.product();
    const auto outputs = static_cast<std::int64_t>(boundary.outputs.size());
    most = std::max(most, outputs);
    bool sited = false;
    for (const Links<T>& links : layout.links) {
      std::map<std::string, T*> rooms;
      for (const Local<T>& local : links.locals) {
        sited = sited || local.rows == 0;
        if (!links.system && !rooms.contains(local.output))
          rooms[local.output] = layout.place(layout.value(local.output).components * most).at;
      }
      if (links.system) rooms[""] = layout.place(links.system->unknowns * most).at;
      for (const Part& part : links.unknowns)
        if (!part.is_whole()) rooms[part.name] = layout.place(part.size() * most).at;
      rooms_.push_back(std::move(rooms));
    }
    direct_ = layout.links.size() == 1 && !layout.links.front().system;
    if (sited && (!direct_ || asked.products)) refuse("The model", "its derivatives have sub-batch axes");
    for (const artifact::Variable& output : metadata.outputs)
      for (const artifact::Variable& input : metadata.inputs)
        if (output.name == input.name && !is_made(output.name)) refuse(output.name, "it is an input that is handed on");
    for (const model::Variable& input : boundary.inputs) {
      tangents_.push_back(layout.place(input.point_shape.product()));
      seeds_.push_back(layout.place(input.point_shape.product() * outputs));
      adjoints_.push_back(layout.place(input.point_shape.product()));
    }
    for (const model::Variable& parameter : boundary.parameters)
      parameter_adjoints_.push_back(layout.place(parameter.point_shape.product()));
    for (const model::Variable& output : boundary.outputs) {
      cotangents_.push_back(layout.place(output.point_shape.product()));
      jvps_.push_back(layout.place(output.point_shape.product()));
    }
  }

  // The plan of a walk for a request. It is made again only if other arrays are bound than before.
  void add_to(Walk<T>& walk, std::vector<Bound<T>>& inputs, const Request& request) {
    bound_.clear();
    for (const auto* arrays : {&request.blocks, &request.parameter_blocks, &request.tangents, &request.jvps,
                               &request.cotangents, &request.adjoints, &request.parameter_adjoints})
      for (const model::Points& points : *arrays) bound_.push_back(points.data != nullptr);
    if (bound_ != planned_) {
      plan(request);
      planned_ = bound_;
    }
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const model::Named& named = matrices_[i].named;
      const model::Points& points = request.of(named.part)[static_cast<std::size_t>(named.index)];
      matrices_[i].data = reinterpret_cast<T*>(points.data);
      matrices_[i].stride = points.stride;
    }
    const auto gather = [&](model::Part part, const std::vector<Place<T>>& places) {
      const auto arrays = request.of(part);
      for (std::size_t i = 0; i < arrays.size(); ++i)
        if (arrays[i].data) {
          inputs.emplace_back();
          inputs.back().data = reinterpret_cast<T*>(arrays[i].data);
          inputs.back().stride = arrays[i].stride;
          inputs.back().components = places[i].components;
          inputs.back().scratch = places[i].at;
          inputs.back().named = {part, static_cast<std::int64_t>(i)};
        }
    };
    gather(model::Part::tangent, tangents_);
    gather(model::Part::cotangent, cotangents_);
    walk.seeds = list(moves_to_seeds_);
    walk.blocks = list(matrices_);
    walk.zeros = list(zeros_);
    walk.products = list(products_);
    walk.pulled = list(pulled_);
  }

 private:
  // The derivative of a value: columns of the unit matrix from `first` on, or a matrix; else zero.
  struct Direction {
    const T* at = nullptr;
    std::int64_t first = -1;
    bool zero() const { return !at && first < 0; }
  };

  template <class X>
  static List<X> list(const std::vector<X>& items) {
    return {items.data(), static_cast<std::int64_t>(items.size())};
  }

  bool is_made(const std::string& name) const {
    for (const Links<T>& links : layout_.links) {
      for (const Part& part : links.unknowns)
        if (part.name == name) return true;
      for (const Local<T>& local : links.locals)
        if (local.output == name) return true;
    }
    return false;
  }

  void plan(const Request& request) {
    zeros_.clear();
    matrices_.clear();
    products_.clear();
    pulled_.clear();
    of_ = initial_;
    of_parameters_.clear();
    columns_.clear();
    moves_to_seeds_.clear();
    count_ = 0;
    if (asks_for_jvps_alone(request)) return plan_jvps(request);
    start(boundary_.derivatives, metadata_.derivatives, request.blocks, request.adjoints, &request.jvps, of_);
    start(boundary_.parameter_derivatives, metadata_.parameter_derivatives, request.parameter_blocks,
          request.parameter_adjoints, nullptr, of_parameters_);
    push_forward();
    add_blocks(boundary_.derivatives, metadata_.derivatives, model::Part::block, request, false);
    add_blocks(boundary_.parameter_derivatives, metadata_.parameter_derivatives, model::Part::parameter_block, request,
               true);
    add_products(request);
    add_adjoints(boundary_.derivatives, metadata_.derivatives, model::Part::adjoint, request, false, adjoints_);
    add_adjoints(boundary_.parameter_derivatives, metadata_.parameter_derivatives, model::Part::parameter_adjoint,
                 request, true, parameter_adjoints_);
  }

  static bool bound(std::span<const model::Points> arrays, std::size_t i) {
    return i < arrays.size() && arrays[i].data;
  }
  static bool asks_for_jvps_alone(const Request& request) {
    for (const auto* arrays :
         {&request.blocks, &request.parameter_blocks, &request.adjoints, &request.parameter_adjoints})
      for (const model::Points& points : *arrays)
        if (points.data) return false;
    return true;
  }

  // One direction for each distinct set of inputs that outputs sum over, instead of columns for all of them.
  void plan_jvps(const Request& request) {
    std::vector<std::vector<bool>> sets, of_output(boundary_.outputs.size());
    for (auto& set : of_output) set.resize(boundary_.inputs.size());
    for (const model::Derivative& derivative : boundary_.derivatives)
      of_output[derivative.output][derivative.input] = bound(request.tangents, derivative.input);
    const auto number_of = [&](std::size_t output) {
      const auto number = std::find(sets.begin(), sets.end(), of_output[output]) - sets.begin();
      if (number == std::ssize(sets)) sets.push_back(of_output[output]);
      return static_cast<std::int64_t>(number);
    };
    for (std::size_t i = 0; i < request.jvps.size(); ++i)
      if (bound(request.jvps, i)) number_of(i);
    count_ = static_cast<std::int64_t>(sets.size());
    for (std::size_t i = 0; i < boundary_.inputs.size(); ++i)
      if (bound(request.tangents, i)) seed(i, sets);
    push_forward();
    for (std::size_t i = 0; i < request.jvps.size(); ++i) {
      if (!bound(request.jvps, i)) continue;
      const Direction& direction = of_.at(metadata_.outputs[i].name);
      Matrix<T> result;
      (count_ == 1 ? result.columns : result.rows) = jvps_[i].components;
      result.row_stride = count_;
      if (direction.at) result.scratch = layout_.offset(direction.at, number_of(i));
      add(result, model::Part::jvp, i);
    }
  }

  // The tangent of an input as a column of each set that has it, among zeros.
  void seed(std::size_t input, const std::vector<std::vector<bool>>& sets) {
    const Place<T>& tangent = tangents_[input];
    for (std::int64_t k = 0; k < count_; ++k)
      for (std::int64_t c = 0; c < tangent.components; ++c)
        moves_to_seeds_.push_back({sets[static_cast<std::size_t>(k)][input] ? layout_.offset(tangent.at, c) : nullptr,
                                   layout_.offset(seeds_[input].at, c * count_ + k), 1});
    of_[metadata_.inputs[input].name] = {seeds_[input].at, -1};
  }

  // Columns for all inputs that something is asked about.
  void start(const std::vector<model::Derivative>& derivatives, const std::vector<artifact::Pair>& pairs,
             std::span<const model::Points> blocks, std::span<const model::Points> adjoints,
             const std::span<const model::Points>* jvps, std::map<std::string, Direction>& of) {
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      const bool wanted =
          bound(blocks, i) || bound(adjoints, derivatives[i].input) || (jvps && bound(*jvps, derivatives[i].output));
      Direction& direction = of[pairs[i].input];
      if (!wanted || direction.first >= 0) continue;
      direction.first = count_;
      const bool parameter = &of == &of_parameters_;
      columns_[{parameter, pairs[i].input}] = count_;
      count_ += (parameter ? layout_.parameter(pairs[i].input) : layout_.value(pairs[i].input)).components;
    }
  }
  void push_forward() {
    chains_.assign(layout_.links.size(), {});
    chain_moves_.assign(layout_.links.size(), {});
    chain_unpacks_.assign(layout_.links.size(), {});
    chain_products_.assign(layout_.links.size(), {});
    for (std::size_t i = 0; i < layout_.links.size(); ++i) {
      const Links<T>& links = layout_.links[i];
      Chain<T>& chain = chains_[i];
      auto& products = chain_products_[i];
      std::map<std::string, Direction> made;
      for (const Local<T>& local : links.locals) {
        const auto& from = local.of_parameter ? of_parameters_ : of_;
        const auto direction = from.find(local.input);
        if (direction == from.end() || direction->second.zero() || local.rows == 0) continue;
        T* const room = rooms_[i].at(local.output);
        if (!links.system && made[local.output].zero()) {
          made[local.output] = {room, -1};
          chain_moves_[i].push_back({nullptr, room, local.rows * count_});
        }
        const T* const at = direction->second.at;
        products.push_back({local.block, local.stride, local.rows, local.columns,
                            at ? layout_.offset(at, local.column * count_) : nullptr,
                            direction->second.first + local.column, layout_.offset(room, local.row * count_)});
      }
      if (links.system) {
        T* const room = rooms_[i].at("");
        for (const Part& part : links.unknowns) {
          Direction& direction = made[part.name];
          if (products.empty()) continue;
          direction.at = layout_.offset(room, part.first * count_);
          if (part.is_whole()) continue;
          T* const to = rooms_[i].at(part.name);
          for (std::int64_t k = 0; k < part.pieces; ++k)
            chain_unpacks_[i].push_back({layout_.offset(direction.at, k * part.apart * count_),
                                         layout_.offset(to, k * part.piece * count_), part.piece * count_});
          direction.at = to;
        }
        if (!products.empty()) {
          chain_moves_[i].push_back({nullptr, room, links.system->unknowns * count_});
          chain.system = links.system;
          chain.right = room;
        }
      }
      for (const auto& [name, direction] : made) of_[name] = direction;
      chain.operators = list(links.operators);
      chain.zeros = list(chain_moves_[i]);
      chain.products = list(products);
      chain.unpack = list(chain_unpacks_[i]);
      chain.count = count_;
      layout_.steps[i].chain = &chain;
    }
  }

  void add_blocks(const std::vector<model::Derivative>& derivatives, const std::vector<artifact::Pair>& pairs,
                  model::Part part, const Request& request, bool of_parameters) {
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      if (!bound(request.of(part), i)) continue;
      Matrix<T> block;
      block.rows = derivatives[i].rows;
      block.columns = derivatives[i].columns;
      block.sites = derivatives[i].block.point_shape.product() / std::max<std::int64_t>(block.rows * block.columns, 1);
      if (direct_) {  // a model that is one package: its blocks as they are
        for (const Local<T>& local : layout_.links.front().locals)
          if (local.output == pairs[i].output && local.input == pairs[i].input) block.scratch = local.block;
        block.row_stride = block.columns;
      } else {
        block.scratch = part_of(pairs[i], of_parameters);
        block.row_stride = count_;
      }
      add(block, part, i);
    }
  }

  // The columns of an input in the derivatives of an output; null if they are zero.
  const T* part_of(const artifact::Pair& pair, bool of_parameter) const {
    const Direction& out = of_.at(pair.output);
    const auto column = columns_.find({of_parameter, pair.input});
    return out.at && column != columns_.end() ? layout_.offset(out.at, column->second) : nullptr;
  }

  void add(Matrix<T> matrix, model::Part part, std::size_t i) {
    matrix.named = {part, static_cast<std::int64_t>(i)};
    matrices_.push_back(matrix);
  }

  void add_result(const Place<T>& place, model::Part part, std::size_t i) {
    Matrix<T> result;
    result.rows = place.components;
    result.scratch = place.at;
    add(result, part, i);
    zeros_.push_back({nullptr, place.at, place.components});
  }

  // An output sums over the inputs for which a derivative of it was compiled.
  void add_products(const Request& request) {
    for (std::size_t i = 0; i < request.jvps.size(); ++i)
      if (bound(request.jvps, i)) add_result(jvps_[i], model::Part::jvp, i);
    for (std::size_t i = 0; i < boundary_.derivatives.size(); ++i) {
      const model::Derivative& derivative = boundary_.derivatives[i];
      const T* const matrix = part_of(metadata_.derivatives[i], false);
      if (!matrix || !bound(request.jvps, derivative.output) || !bound(request.tangents, derivative.input)) continue;
      const Place<T>& to = jvps_[derivative.output];
      const Place<T>& from = tangents_[derivative.input];
      products_.push_back({matrix, count_, to.components, from.components, from.at, 0, to.at});
    }
  }

  void add_adjoints(const std::vector<model::Derivative>& derivatives, const std::vector<artifact::Pair>& pairs,
                    model::Part part, const Request& request, bool of_parameters, const std::vector<Place<T>>& places) {
    for (std::size_t i = 0; i < request.of(part).size(); ++i)
      if (bound(request.of(part), i)) add_result(places[i], part, i);
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      const T* const matrix =
          bound(request.of(part), derivatives[i].input) ? part_of(pairs[i], of_parameters) : nullptr;
      if (!matrix || !bound(request.cotangents, derivatives[i].output)) continue;
      const Place<T>& from = cotangents_[derivatives[i].output];
      const Place<T>& to = places[derivatives[i].input];
      pulled_.push_back({matrix, count_, from.components, to.components, from.at, to.at});
    }
  }

  Layout<T>& layout_;
  const artifact::Metadata& metadata_;
  const Boundary& boundary_;
  bool direct_ = false;
  std::vector<std::map<std::string, T*>> rooms_;  // by segment and output: for directions; of an implicit one, for all
  std::vector<Place<T>> tangents_, seeds_, cotangents_, jvps_, adjoints_, parameter_adjoints_;
  std::vector<Move<T>> moves_to_seeds_;

  std::vector<char> bound_, planned_;  // which arrays there are: 0 or 1
  std::map<std::string, Direction> initial_, of_, of_parameters_;
  std::map<std::pair<bool, std::string>, std::int64_t> columns_;  // of parameters, or of inputs
  std::int64_t count_ = 0;
  std::vector<Chain<T>> chains_;
  std::vector<std::vector<Move<T>>> chain_moves_, chain_unpacks_;
  std::vector<std::vector<Product<T>>> chain_products_;
  std::vector<Matrix<T>> matrices_;
  std::vector<Move<T>> zeros_;
  std::vector<Product<T>> products_;
  std::vector<Adjoint<T>> pulled_;
};

}  // namespace neml2_capi::kernels
