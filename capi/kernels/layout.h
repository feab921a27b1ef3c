// Where everything of a model stands in the scratch of a workspace, and which kernel reads and writes what.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/kernels/block.h"
#include "capi/kernels/folder.h"
#include "capi/kernels/memory.h"
#include "capi/kernels/request.h"

namespace neml2_capi::kernels {

[[noreturn]] inline void refuse(const std::string& who, const std::string& why) {
  throw Error(NEML2_ERROR_UNSUPPORTED, who, join(who, " cannot run in lanes: ", why, "."));
}

// Components side by side in the scratch.
template <class T>
struct Place {
  T* at = nullptr;
  std::int64_t components = 0;
};

// A block of derivatives that a kernel of a segment returns: of an output of a forward segment, or of the residual from a
// row on, with respect to a value or parameter.
template <class T>
struct Local {
  std::string output, input;
  bool of_parameter = false;
  std::int64_t row = 0;
  const T* block = nullptr;
  std::int64_t stride = 0, rows = 0, columns = 0;
};

// The derivatives that a segment has.
template <class T>
struct Links {
  std::vector<Run> operators;
  std::vector<Local<T>> locals;
  const Implicit<T>* system = nullptr;
  std::map<std::string, std::int64_t> rows;  // of unknowns
};

template <class T>
class Layout {
 public:
  using Places = std::vector<Place<T>>;

  Layout(const Folder& folder, Asked asked, const Functions<T>& functions)
      : folder_(folder), asked_(asked), functions_(functions) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  Place<T> place(std::int64_t components) {
    const auto bytes = static_cast<std::size_t>(components * functions_.lanes) * sizeof(T);
    return {static_cast<T*>(memory.take(bytes)), components};
  }
  T* offset(T* at, std::int64_t components) const { return at + components * functions_.lanes; }
  const T* offset(const T* at, std::int64_t components) const { return at + components * functions_.lanes; }

  const Place<T>& value(const std::string& name) const { return found(values, name, "nothing before makes it"); }
  const Place<T>& parameter(const std::string& name) const { return found(parameters, name, "it is no parameter"); }

  void add(const artifact::Segment& segment) {
    links.emplace_back();
    std::visit([&](const auto& one) { add(one); }, segment);
  }

  Memory memory;
  std::map<std::string, Place<T>> values, parameters;
  std::vector<Place<T>> iterates;    // by unknown: the last of them
  std::vector<std::string> systems;  // by implicit segment: its name
  std::vector<Step<T>> steps;
  std::vector<Links<T>> links;  // by step

 private:
  static const Place<T>& found(const std::map<std::string, Place<T>>& places, const std::string& name,
                               const char* otherwise) {
    const auto it = places.find(name);
    if (it == places.end()) refuse(name, otherwise);
    return it->second;
  }

  // A kernel that is called with these arrays, where their sizes are what it takes and returns. Outputs that have no place
  // yet get one.
  Run run_of(const std::string& package, const Places& inputs, Places& outputs) {
    const neml2_kernel& kernel = folder_.find(package);
    if (kernel.lanes != functions_.lanes || kernel.real_size != static_cast<std::int32_t>(sizeof(T)))
      refuse(package, "its kernel has other lanes");
    for (auto i = static_cast<std::int32_t>(outputs.size()); i < kernel.output_count; ++i)
      outputs.push_back(place(kernel.outputs[i].components));
    const auto check = [&](const neml2_kernel_array* arrays, std::int32_t count, const Places& places) {
      bool fits = count == static_cast<std::int32_t>(places.size());
      for (std::int32_t i = 0; fits && i < count; ++i)
        fits = arrays[i].components == places[static_cast<std::size_t>(i)].components;
      if (!fits) refuse(package, "its kernel takes or returns other arrays");
    };
    check(kernel.inputs, kernel.input_count, inputs);
    check(kernel.outputs, kernel.output_count, outputs);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const Place<T>& each : inputs) from.push_back(each.at);
    for (const Place<T>& each : outputs) to.push_back(each.at);
    return {&kernel, memory.keep(from).items, memory.keep(to).items, place(kernel.kept).at};
  }

  Places arguments(const artifact::NamedGraph& graph) const {
    Places places;
    for (const std::string& name : graph.inputs) places.push_back(value(name));
    for (const std::string& name : graph.parameters) places.push_back(parameter(name));
    return places;
  }

  void add(const artifact::ForwardSegment& segment) {
    const bool by_values = asked_.by_values && !segment.jacobian_package.empty();
    const artifact::NamedGraph& graph = segment.value;
    const Places given = arguments(graph);
    Places made;
    Step<T> step;
    step.run = run_of(by_values ? segment.jacobian_package : graph.package, given, made);
    const std::size_t count = graph.outputs.size();
    if (made.size() != count + (by_values ? segment.pairs.size() : 0))
      refuse(graph.package, "its kernel returns other arrays");
    for (std::size_t i = 0; i < count; ++i) values[graph.outputs[i]] = made[i];
    if (by_values) add_pairs(segment.pairs, made, count, false);
    if (asked_.by_parameters && !segment.parameter_jacobian_package.empty()) {
      Places blocks;
      links.back().operators.push_back(run_of(segment.parameter_jacobian_package, given, blocks));
      if (blocks.size() != segment.parameter_pairs.size()) refuse(graph.package, "its kernel returns other arrays");
      add_pairs(segment.parameter_pairs, blocks, 0, true);
    }
    steps.push_back(step);
  }

  void add_pairs(const std::vector<artifact::Pair>& pairs, const Places& made, std::size_t first, bool of_parameter) {
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::int64_t rows = value(pairs[i].output).components;
      const std::int64_t columns = (of_parameter ? parameter(pairs[i].input) : value(pairs[i].input)).components;
      links.back().locals.push_back(
          {pairs[i].output, pairs[i].input, of_parameter, 0, made[first + i].at, columns, rows, columns});
      // A block for each site alone, which only the caller takes.
      if (made[first + i].components != rows * columns) links.back().locals.back().rows = 0;
    }
  }

  // Groups side by side; each part is that of a group.
  struct Packed {
    Place<T> all;
    Places groups;
  };
  Packed packed(const std::vector<artifact::Group>& groups, const std::string& who) {
    std::vector<std::int64_t> sizes;
    std::int64_t total = 0;
    for (const artifact::Group& group : groups) {
      if (group.block && group.sub_batch_shape.product() != 1) refuse(who, "its groups have sub-batch axes");
      std::int64_t size = 0;
      for (const artifact::Variable& variable : group.variables) size += variable.point_shape().product();
      sizes.push_back(size);
      total += size;
    }
    Packed made{place(total), {}};
    T* next = made.all.at;
    for (const std::int64_t size : sizes) {
      made.groups.push_back({next, size});
      next = offset(next, size);
    }
    return made;
  }
  // Calls f(name, place, group, offset in the group) for each variable of packed groups.
  template <class F>
  void for_each(const std::vector<artifact::Group>& groups, const Packed& packed, F&& f) const {
    T* next = packed.all.at;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      std::int64_t within = 0;
      for (const artifact::Variable& variable : groups[i].variables) {
        const std::int64_t size = variable.point_shape().product();
        f(variable.name, Place<T>{next, size}, i, within);
        next = offset(next, size);
        within += size;
      }
    }
  }

  void expect_blocks(const std::string& package, const Places& blocks, const Places& rows,
                     const Places& columns) const {
    bool fits = blocks.size() >= rows.size() * columns.size();
    for (std::size_t i = 0; fits && i < rows.size() * columns.size(); ++i)
      fits = blocks[i].components == rows[i / columns.size()].components * columns[i % columns.size()].components;
    if (!fits) refuse(package, "its kernel returns other blocks");
  }

  // The Jacobian in one matrix; where it is returned as one block, that is the matrix.
  void assemble(const Places& blocks, const Places& groups, Implicit<T>& system) {
    system.jacobian = blocks.front().at;
    if (groups.size() == 1) return;
    const std::int64_t n = system.unknowns;
    system.jacobian = place(n * n).at;
    std::vector<Move<T>> moves;
    std::int64_t top = 0;
    for (std::size_t i = 0; i < groups.size(); top += groups[i++].components) {
      std::int64_t left = 0;
      for (std::size_t j = 0; j < groups.size(); left += groups[j++].components)
        for (std::int64_t r = 0; r < groups[i].components; ++r)
          moves.push_back({offset(blocks[i * groups.size() + j].at, r * groups[j].components),
                           offset(system.jacobian, (top + r) * n + left), groups[j].components});
    }
    system.assemble = memory.keep(moves);
  }

  void add(const artifact::ImplicitSegment& segment) {
    const std::string& who = segment.residual_package;
    if (segment.jacobian_package.empty()) refuse(who, "it has no Jacobian");
    Step<T> step;
    predict(segment, step);

    Implicit<T> system;
    system.number = std::ssize(systems);
    systems.push_back(who);
    system.is_cut = segment.max_substepping_level > 0;
    const Packed unknowns = packed(segment.unknowns, who), givens = packed(segment.givens, who);
    const Packed residual = packed(segment.residuals, who), trial = packed(segment.unknowns, who);
    const Packed trial_residual = packed(segment.residuals, who), newton_step = packed(segment.unknowns, who);
    system.unknowns = unknowns.all.components;
    if (residual.all.components != system.unknowns) refuse(who, "it has more or fewer equations than unknowns");
    const auto operands = [&](const Packed& u) {
      Places places = u.groups;
      places.insert(places.end(), givens.groups.begin(), givens.groups.end());
      for (const std::string& name : segment.parameters) places.push_back(parameter(name));
      return places;
    };
    // The Jacobian in blocks, then the residual, whose groups have places already.
    Places outputs;
    for (const Place<T>& row : residual.groups)
      for (const Place<T>& column : unknowns.groups) outputs.push_back(place(row.components * column.components));
    outputs.insert(outputs.end(), residual.groups.begin(), residual.groups.end());
    system.system = run_of(segment.jacobian_package, operands(unknowns), outputs);
    assemble(outputs, unknowns.groups, system);
    Places residuals = trial_residual.groups;
    system.residual = run_of(segment.residual_package, operands(trial), residuals);
    system.u = unknowns.all.at;
    system.r = residual.all.at;
    system.trial = trial.all.at;
    system.trial_residual = trial_residual.all.at;
    system.step = newton_step.all.at;
    if (folder_.has(segment.solve_package)) {
      Places made = newton_step.groups;
      made.push_back(place(1));
      system.trusted = made.back().at;
      system.newton_step = run_of(segment.solve_package, outputs, made);
      system.pivoted = place(system.unknowns).at;
    }
    if (asked_.by_values) add_sensitivity(segment, operands(unknowns), residual.groups, givens);
    if (asked_.by_parameters) add_parameter_sensitivity(segment, operands(unknowns), system.unknowns);

    std::vector<Move<T>> pack, unpack;
    for_each(segment.givens, givens, [&](const std::string& name, const Place<T>& to, std::size_t, std::int64_t) {
      pack.push_back(whole(value(name), to, name));
    });
    std::int64_t row = 0;
    for_each(segment.unknowns, unknowns, [&](const std::string& name, const Place<T>& to, std::size_t, std::int64_t) {
      Place<T>& guess = values[name];
      if (!guess.at) guess = place(to.components);  // zeros
      pack.push_back(whole(guess, to, name));
      guess = place(to.components);
      unpack.push_back({to.at, guess.at, to.components});
      iterates.push_back(to);
      links.back().rows[name] = row;
      row += to.components;
    });
    step.pack = memory.keep(pack);
    system.unpack = memory.keep(unpack);
    step.implicit = links.back().system = memory.keep(std::vector<Implicit<T>>{system}).items;
    steps.push_back(step);
  }

  Move<T> whole(const Place<T>& from, const Place<T>& to, const std::string& name) const {
    if (from.components != to.components) refuse(name, "it has another size before");
    return {from.at, to.at, to.components};
  }

  void predict(const artifact::ImplicitSegment& segment, Step<T>& step) {
    if (!segment.predictor) return;
    std::vector<Move<T>> begin;
    if (segment.feedback) {
      const artifact::Feedback& feedback = *segment.feedback;
      const Place<T> first = place(feedback.sub_batch_shape.then(feedback.base_shape).product());
      values[feedback.input] = first;
      begin.push_back({nullptr, first.at, first.components});
      step.passes = feedback.iterations;
    }
    // An unknown that nothing made before starts at zero.
    for (const artifact::Group& group : segment.unknowns)
      for (const artifact::Variable& variable : group.variables)
        if (Place<T>& guess = values[variable.name]; !guess.at) guess = place(variable.point_shape().product());
    const artifact::NamedGraph& graph = *segment.predictor;
    Places outputs;
    step.run = run_of(graph.package, arguments(graph), outputs);
    if (outputs.size() != graph.outputs.size()) refuse(graph.package, "its kernel returns other arrays");
    for (std::size_t i = 0; i < outputs.size(); ++i) values[graph.outputs[i]] = outputs[i];
    if (segment.feedback)
      step.feedback = whole(value(segment.feedback->output), value(segment.feedback->input), segment.feedback->input);
    step.begin = memory.keep(begin);
  }

  // dr/dg, in blocks of groups.
  void add_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands, const Places& rows,
                       const Packed& givens) {
    if (!segment.given_sensitivity || !segment.given_sensitivity->block_package.empty())
      refuse(segment.residual_package, "its derivatives with respect to its givens were not compiled");
    Places blocks;
    const std::string& package = segment.given_sensitivity->operator_package;
    links.back().operators.push_back(run_of(package, operands, blocks));
    expect_blocks(package, blocks, rows, givens.groups);
    std::int64_t row = 0;
    for (std::size_t i = 0; i < rows.size(); row += rows[i++].components)
      for_each(segment.givens, givens,
               [&](const std::string& name, const Place<T>& given, std::size_t group, std::int64_t within) {
                 const T* const block = offset(blocks[i * givens.groups.size() + group].at, within);
                 links.back().locals.push_back({"", name, false, row, block, givens.groups[group].components,
                                                rows[i].components, given.components});
               });
  }

  // dr/dp, in one matrix behind dr/du.
  void add_parameter_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands,
                                 std::int64_t unknowns) {
    if (!segment.parameter_sensitivity) return;
    const std::string& package = segment.parameter_sensitivity->operator_package;
    if (package.empty())
      refuse(segment.residual_package, "its derivatives with respect to parameters are of an old form");
    Places matrices;
    links.back().operators.push_back(run_of(package, operands, matrices));
    if (matrices.size() != 2) refuse(package, "its kernel returns other blocks");
    const std::int64_t width = matrices[1].components / std::max<std::int64_t>(unknowns, 1);
    std::map<std::string, std::int64_t> columns;
    for (const artifact::Pair& pair : segment.parameter_sensitivity->pairs) columns[pair.input] = pair.column;
    for (const auto& [name, column] : columns)
      links.back().locals.push_back(
          {"", name, true, 0, offset(matrices[1].at, column), width, unknowns, parameter(name).components});
  }

  const Folder& folder_;
  const Asked asked_;
  const Functions<T>& functions_;
};

}  // namespace neml2_capi::kernels
