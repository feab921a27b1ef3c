#include "capi/kernels/workspace.h"

#include <map>
#include <string>
#include <utility>

#include "capi/base/error.h"
#include "capi/kernels/memory.h"

namespace neml2_capi::kernels {
namespace {

[[noreturn]] void refuse(const std::string& who, const std::string& why) {
  throw Error(NEML2_ERROR_UNSUPPORTED, who, join(who, " cannot run in lanes: ", why, "."));
}

template <class T>
class Segments final : public Workspace {
 public:
  Segments(const Folder& folder, const artifact::Metadata& metadata, const Boundary& boundary, bool derivatives)
      : folder_(folder),
        metadata_(metadata),
        boundary_(boundary),
        derivatives_(derivatives),
        functions_(*functions<T>(folder.target().c_str())),
        iterates_(boundary.unknowns.size()) {
    if (derivatives && metadata.segments.size() > 1)
      refuse("The model", "derivatives of several segments are not there");
    for (std::size_t i = 0; i < boundary.inputs.size(); ++i)
      inputs_.push_back(bound(values_[metadata.inputs[i].name] = place(size_of(boundary.inputs[i]))));
    for (std::size_t i = 0; i < boundary.parameters.size(); ++i)
      inputs_.push_back(bound(parameters_[metadata.parameters[i].name] = place(size_of(boundary.parameters[i]))));
    for (const artifact::Segment& segment : metadata.segments)
      if (const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment))
        add(*implicit);
      else
        add(std::get<artifact::ForwardSegment>(segment));
    for (std::size_t i = 0; i < boundary.outputs.size(); ++i) {
      outputs_.push_back(bound(value(metadata.outputs[i].name)));
      if (outputs_.back().components != size_of(boundary.outputs[i]))
        refuse(boundary.outputs[i].name, "its kernel has another shape than its package");
    }
  }

  void run(const Request& request, std::int64_t begin, std::int64_t end, Counts& counts) override {
    bind(inputs_, 0, request.inputs);
    bind(inputs_, request.inputs.size(), request.parameters);
    bind(outputs_, 0, request.outputs);
    Walk<T> walk;
    walk.begin = begin;
    walk.end = end;
    walk.inputs = list(inputs_);
    walk.outputs = list(outputs_);
    if (!request.iterates.empty()) {
      bind(iterates_, 0, request.iterates);
      walk.iterates = list(iterates_);
    }
    if (derivatives_) bind_blocks(request);
    walk.blocks = list(bound_blocks_);
    walk.steps = list(steps_);
    const newton::Settings& rules = request.rules;
    walk.rules = {rules.atol,         rules.rtol,       rules.miters, rules.strong_wolfe,
                  rules.ls_max_iters, rules.ls_cutback, rules.ls_c};
    const auto report = [&](auto& array, int kind) {
      using Array = std::remove_reference_t<decltype(array)>;
      const model::Points& points = request.report[static_cast<std::size_t>(kind)];
      array = Array();
      array.data = reinterpret_cast<decltype(array.data)>(points.data);
      array.stride = points.stride;
    };
    report(walk.reports.status, NEML2_REPORT_STATUS);
    report(walk.reports.iterations, NEML2_REPORT_ITERATIONS);
    report(walk.reports.residual_norm, NEML2_REPORT_RESIDUAL_NORM);
    report(walk.reports.suggested_cut, NEML2_REPORT_SUGGESTED_CUT);
    report(walk.reports.history, NEML2_REPORT_RESIDUAL_HISTORY);
    walk.reports.history.components = rules.miters;
    walk.mark_failed = request.mark_failed;
    walk.input_first = request.input_first;
    functions_.walk(walk, counts);
  }

 private:
  // Components side by side in the scratch.
  struct Place {
    T* at = nullptr;
    std::int64_t components = 0;
  };
  // A derivative, where it is found.
  struct Found {
    const T* at = nullptr;    // as a kernel returns it
    std::int64_t row = 0;     // else among the unknowns,
    std::int64_t column = 0;  // and among the givens
    bool zero = false;
  };

  static std::int64_t size_of(const model::Variable& variable) { return variable.point_shape.product(); }
  template <class X>
  static List<X> list(const std::vector<X>& items) {
    return {items.data(), static_cast<std::int64_t>(items.size())};
  }

  T* offset(T* at, std::int64_t components) const { return at + components * functions_.lanes; }
  Place place(std::int64_t components) {
    const auto bytes = static_cast<std::size_t>(components * functions_.lanes) * sizeof(T);
    return {static_cast<T*>(memory_.take(bytes)), components};
  }
  static Bound<T> bound(const Place& place) {
    Bound<T> array;
    array.components = place.components;
    array.scratch = place.at;
    return array;
  }
  const Place& value(const std::string& name) const {
    const auto it = values_.find(name);
    if (it == values_.end()) refuse(name, "nothing before makes it");
    return it->second;
  }
  const Place& parameter(const std::string& name) const {
    const auto it = parameters_.find(name);
    if (it == parameters_.end()) refuse(name, "it is no parameter");
    return it->second;
  }

  // A kernel that is called with these arrays, where their sizes are what it takes and returns. The first `made` outputs
  // have places already; those after them get new ones.
  Run run_of(const std::string& package, std::vector<Place> inputs, std::vector<Place>& outputs) {
    const neml2_kernel& kernel = folder_.find(package);
    const auto check = [&](const neml2_kernel_array* arrays, std::int32_t count, std::vector<Place>& places,
                           bool made) {
      if (made)
        for (auto i = static_cast<std::int32_t>(places.size()); i < count; ++i)
          places.push_back(place(arrays[i].components));
      if (count != static_cast<std::int32_t>(places.size())) refuse(package, "its kernel takes other arrays");
      for (std::int32_t i = 0; i < count; ++i)
        if (arrays[i].components != places[static_cast<std::size_t>(i)].components)
          refuse(package, join("its kernel has another size of ", arrays[i].name));
    };
    if (kernel.lanes != functions_.lanes || kernel.real_size != static_cast<std::int32_t>(sizeof(T)))
      refuse(package, "its kernel has other lanes");
    check(kernel.inputs, kernel.input_count, inputs, false);
    check(kernel.outputs, kernel.output_count, outputs, true);
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const Place& place : inputs) from.push_back(place.at);
    for (const Place& place : outputs) to.push_back(place.at);
    return {&kernel, memory_.keep(from).items, memory_.keep(to).items, place(kernel.kept).at};
  }

  std::vector<Place> arguments(const std::vector<std::string>& names,
                               const std::vector<std::string>& parameters) const {
    std::vector<Place> places;
    for (const std::string& name : names) places.push_back(value(name));
    for (const std::string& name : parameters) places.push_back(parameter(name));
    return places;
  }

  void add(const artifact::ForwardSegment& segment) {
    const bool with_blocks = derivatives_ && !segment.jacobian_package.empty();
    const artifact::NamedGraph& graph = segment.value;
    std::vector<Place> outputs;
    Step<T> step;
    step.run = run_of(with_blocks ? segment.jacobian_package : graph.package, arguments(graph.inputs, graph.parameters),
                      outputs);
    const std::size_t values = graph.outputs.size();
    if (outputs.size() != values + (with_blocks ? segment.pairs.size() : 0))
      refuse(graph.package, "its kernel returns other arrays");
    for (std::size_t i = 0; i < values; ++i) values_[graph.outputs[i]] = outputs[i];
    for (std::size_t i = 0; with_blocks && i < segment.pairs.size(); ++i)
      found_[{segment.pairs[i].output, segment.pairs[i].input}].at = outputs[values + i].at;
    steps_.push_back(step);
  }

  // Groups side by side; each part is that of a group.
  struct Packed {
    Place all;
    std::vector<Place> groups;
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
  // Calls f(name, place) for each variable of packed groups.
  template <class F>
  void for_each(const std::vector<artifact::Group>& groups, const Packed& packed, F&& f) const {
    T* next = packed.all.at;
    for (const artifact::Group& group : groups)
      for (const artifact::Variable& variable : group.variables) {
        const std::int64_t size = variable.point_shape().product();
        f(variable.name, Place{next, size});
        next = offset(next, size);
      }
  }

  // The rows of a matrix that is returned in blocks, put together; where it is one block, that is the matrix.
  T* assembled(const std::vector<Place>& blocks, const std::vector<Place>& rows, const std::vector<Place>& columns,
               std::vector<Move<T>>& moves) {
    if (rows.size() * columns.size() == 1) return blocks.front().at;
    std::int64_t height = 0, width = 0;
    for (const Place& row : rows) height += row.components;
    for (const Place& column : columns) width += column.components;
    const Place matrix = place(height * width);
    std::int64_t top = 0;
    for (std::size_t i = 0; i < rows.size(); top += rows[i++].components) {
      std::int64_t left = 0;
      for (std::size_t j = 0; j < columns.size(); left += columns[j++].components)
        for (std::int64_t r = 0; r < rows[i].components; ++r)
          moves.push_back({offset(blocks[i * columns.size() + j].at, r * columns[j].components),
                           offset(matrix.at, (top + r) * width + left), columns[j].components});
    }
    return matrix.at;
  }

  void expect_blocks(const std::string& package, const std::vector<Place>& blocks, const std::vector<Place>& rows,
                     const std::vector<Place>& columns) const {
    bool fits = blocks.size() >= rows.size() * columns.size();
    for (std::size_t i = 0; fits && i < rows.size() * columns.size(); ++i)
      fits = blocks[i].components == rows[i / columns.size()].components * columns[i % columns.size()].components;
    if (!fits) refuse(package, "its kernel returns other blocks");
  }

  void add(const artifact::ImplicitSegment& segment) {
    const std::string& who = segment.residual_package;
    if (segment.krylov) refuse(who, "its linear solver is iterative");
    if (segment.jacobian_package.empty()) refuse(who, "it has no Jacobian");
    if (segment.max_substepping_level > 0) refuse(who, "it is solved in substeps");
    Step<T> step;
    predict(segment, step);

    Implicit<T> system;
    const Packed unknowns = packed(segment.unknowns, who), givens = packed(segment.givens, who);
    const Packed residual = packed(segment.residuals, who), trial = packed(segment.unknowns, who);
    const Packed trial_residual = packed(segment.residuals, who);
    system.unknowns = unknowns.all.components;
    if (residual.all.components != system.unknowns) refuse(who, "it has more or fewer equations than unknowns");
    const auto operands = [&](const Packed& u) {
      std::vector<Place> places = u.groups;
      places.insert(places.end(), givens.groups.begin(), givens.groups.end());
      for (const std::string& name : segment.parameters) places.push_back(parameter(name));
      return places;
    };
    // The Jacobian in blocks, then the residual, whose groups have places already.
    const neml2_kernel& kernel = folder_.find(segment.jacobian_package);
    std::vector<Place> outputs;
    const std::size_t blocks = residual.groups.size() * unknowns.groups.size();
    if (static_cast<std::size_t>(kernel.output_count) != blocks + residual.groups.size())
      refuse(segment.jacobian_package, "its kernel returns other arrays");
    for (std::size_t i = 0; i < blocks; ++i) outputs.push_back(place(kernel.outputs[i].components));
    outputs.insert(outputs.end(), residual.groups.begin(), residual.groups.end());
    system.system = run_of(segment.jacobian_package, operands(unknowns), outputs);
    expect_blocks(segment.jacobian_package, outputs, residual.groups, unknowns.groups);
    std::vector<Move<T>> moves;
    system.jacobian = assembled(outputs, residual.groups, unknowns.groups, moves);
    system.assemble = memory_.keep(moves);
    std::vector<Place> residuals = trial_residual.groups;
    system.residual = run_of(segment.residual_package, operands(trial), residuals);
    system.u = unknowns.all.at;
    system.r = residual.all.at;
    system.trial = trial.all.at;
    system.trial_residual = trial_residual.all.at;
    const Packed newton_step = packed(segment.unknowns, who);
    system.step = newton_step.all.at;
    if (folder_.has(segment.solve_package)) {
      std::vector<Place> made = newton_step.groups;
      made.push_back(place(1));
      system.trusted = made.back().at;
      system.newton_step = run_of(segment.solve_package, outputs, made);
      system.pivoted = place(system.unknowns).at;
    }
    if (derivatives_) add_sensitivity(segment, operands(unknowns), residual.groups, givens, system);

    std::vector<Move<T>> pack, unpack;
    for_each(segment.givens, givens,
             [&](const std::string& name, const Place& to) { pack.push_back(whole(value(name), to, name)); });
    for_each(segment.unknowns, unknowns, [&](const std::string& name, const Place& to) {
      Place& guess = values_[name];
      if (!guess.at) guess = place(to.components);  // zeros
      pack.push_back(whole(guess, to, name));
      guess = place(to.components);
      unpack.push_back({to.at, guess.at, to.components});
      iterates_[next_unknown_++] = bound(to);
    });
    step.pack = memory_.keep(pack);
    system.unpack = memory_.keep(unpack);
    step.implicit = memory_.keep(std::vector<Implicit<T>>{system}).items;
    steps_.push_back(step);
  }

  Move<T> whole(const Place& from, const Place& to, const std::string& name) const {
    if (from.components != to.components) refuse(name, "it has another size before");
    return {from.at, to.at, to.components};
  }

  void predict(const artifact::ImplicitSegment& segment, Step<T>& step) {
    if (!segment.predictor) return;
    std::vector<Move<T>> begin;
    if (segment.feedback) {
      const artifact::Feedback& feedback = *segment.feedback;
      const Place first = place(feedback.sub_batch_shape.then(feedback.base_shape).product());
      values_[feedback.input] = first;
      begin.push_back({nullptr, first.at, first.components});
      step.passes = feedback.iterations;
    }
    // An unknown that nothing made before starts at zero.
    for (const artifact::Group& group : segment.unknowns)
      for (const artifact::Variable& variable : group.variables)
        if (Place& guess = values_[variable.name]; !guess.at) guess = place(variable.point_shape().product());
    const artifact::NamedGraph& graph = *segment.predictor;
    std::vector<Place> outputs;
    step.run = run_of(graph.package, arguments(graph.inputs, graph.parameters), outputs);
    if (outputs.size() != graph.outputs.size()) refuse(graph.package, "its kernel returns other arrays");
    for (std::size_t i = 0; i < outputs.size(); ++i) values_[graph.outputs[i]] = outputs[i];
    if (segment.feedback)
      step.feedback = whole(value(segment.feedback->output), value(segment.feedback->input), segment.feedback->input);
    step.begin = memory_.keep(begin);
  }

  void add_sensitivity(const artifact::ImplicitSegment& segment, const std::vector<Place>& operands,
                       const std::vector<Place>& rows, const Packed& givens, Implicit<T>& system) {
    if (!segment.given_sensitivity || !segment.given_sensitivity->block_package.empty())
      refuse(segment.residual_package, "the operator of its derivatives was not compiled");
    std::vector<Place> outputs;
    const std::string& package = segment.given_sensitivity->operator_package;
    system.by_givens = run_of(package, operands, outputs);
    expect_blocks(package, outputs, rows, givens.groups);
    std::vector<Move<T>> moves;
    given_matrix_ = assembled(outputs, rows, givens.groups, moves);
    given_moves_ = moves;
    num_givens_ = givens.all.components;
    system.of_givens = wanted_matrix_ = place(system.unknowns * num_givens_).at;
    const auto offset_in = [&](const std::vector<artifact::Group>& groups, const std::string& name) {
      std::int64_t at = 0;
      for (const artifact::Group& group : groups)
        for (const artifact::Variable& variable : group.variables) {
          if (variable.name == name) return at;
          at += variable.point_shape().product();
        }
      return std::int64_t{-1};
    };
    for (const artifact::Pair& pair : metadata_.derivatives) {
      Found& found = found_[{pair.output, pair.input}];
      found.row = offset_in(segment.unknowns, pair.output);
      found.column = offset_in(segment.givens, pair.input);
      found.zero = found.column < 0;  // the initial guess of an unknown
    }
  }

  template <class Arrays>
  static void bind(std::vector<Bound<T>>& arrays, std::size_t first, const Arrays& points) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      arrays[first + i].data = reinterpret_cast<T*>(points[i].data);
      arrays[first + i].stride = points[i].stride;
    }
  }

  // The blocks that are asked for; of an implicit segment, the columns of the givens that they need.
  void bind_blocks(const Request& request) {
    bound_blocks_.clear();
    std::map<std::int64_t, std::int64_t> columns;  // of givens: the wanted ones
    std::int64_t wanted = 0;
    wanted_moves_ = given_moves_;
    for (std::size_t i = 0; i < request.blocks.size(); ++i) {
      if (!request.blocks[i].data) continue;
      const model::Derivative& derivative = boundary_.derivatives[i];
      const Found& found = found_.at({metadata_.derivatives[i].output, metadata_.derivatives[i].input});
      Matrix<T> block;
      block.data = reinterpret_cast<T*>(request.blocks[i].data);
      block.stride = request.blocks[i].stride;
      block.rows = derivative.rows;
      block.columns = derivative.columns;
      block.sites = size_of(derivative.block) / std::max<std::int64_t>(block.rows * block.columns, 1);
      block.row_stride = block.columns;
      block.scratch = found.at;
      if (!found.at && !found.zero) {
        const auto [column, is_new] = columns.emplace(found.column, wanted);
        if (is_new) wanted += block.columns;
        block.row_stride = -found.row;  // until the number of columns is known
        block.scratch = offset(wanted_matrix_, column->second);
      }
      bound_blocks_.push_back(block);
    }
    if (!steps_.back().implicit) return;
    auto& system = const_cast<Implicit<T>&>(*steps_.back().implicit);
    system.wanted = wanted;
    for (Matrix<T>& block : bound_blocks_) {
      if (!block.scratch) continue;
      block.scratch = block.scratch - block.row_stride * wanted * functions_.lanes;
      block.row_stride = wanted;
    }
    for (std::int64_t r = 0; r < system.unknowns; ++r)
      for (const auto& [from, to] : columns)
        wanted_moves_.push_back(
            {offset(given_matrix_, r * num_givens_ + from), offset(wanted_matrix_, r * wanted + to), width_of(from)});
    system.assemble_givens = list(wanted_moves_);
  }

  // The number of columns of the given that begins at one.
  std::int64_t width_of(std::int64_t column) const {
    for (std::size_t i = 0; i < metadata_.derivatives.size(); ++i)
      if (found_.at({metadata_.derivatives[i].output, metadata_.derivatives[i].input}).column == column)
        return boundary_.derivatives[i].columns;
    return 0;
  }

  const Folder& folder_;
  const artifact::Metadata& metadata_;
  const Boundary boundary_;
  const bool derivatives_;
  const Functions<T>& functions_;
  Memory memory_;
  std::map<std::string, Place> values_, parameters_;
  std::vector<Bound<T>> inputs_, outputs_, iterates_;
  std::size_t next_unknown_ = 0;
  std::vector<Step<T>> steps_;

  std::map<std::pair<std::string, std::string>, Found> found_;  // by output and input
  std::vector<Move<T>> given_moves_, wanted_moves_;
  T *given_matrix_ = nullptr, *wanted_matrix_ = nullptr;
  std::int64_t num_givens_ = 0;
  std::vector<Matrix<T>> bound_blocks_;
};

}  // namespace

std::unique_ptr<Workspace> make_workspace(const Folder& folder, const artifact::Metadata& metadata,
                                          const Boundary& boundary, bool derivatives) {
  for (const auto* variables : {&boundary.inputs, &boundary.outputs, &boundary.parameters})
    for (const model::Variable& variable : *variables)
      if (variable.dtype != folder.real())
        refuse(variable.name, join("it is ", name_of(variable.dtype), ", and kernels are ", name_of(folder.real())));
  if (folder.real() == DType::float32)
    return std::make_unique<Segments<float>>(folder, metadata, boundary, derivatives);
  return std::make_unique<Segments<double>>(folder, metadata, boundary, derivatives);
}

}  // namespace neml2_capi::kernels
