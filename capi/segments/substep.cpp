#include "capi/segments/substep.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/base/sort.h"
#include "capi/newton/messages.h"
#include "capi/segments/implicit.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

using Rows = Vector<std::int64_t>;
using Role = SubstepPlan::Role;

// Writes the rows of `part` to these rows of `whole`.
void put(const Tensor& part, const Rows& rows, Tensor& whole) {
  Groups target = {whole};
  for (std::size_t i = 0; i < rows.size(); ++i) copy_row({part}, static_cast<std::int64_t>(i), target, rows[i]);
}

// Returns from + (to - from) * fraction.
Tensor between(const Tensor& from, const Tensor& to, double fraction) {
  Tensor out = Tensor::empty(from.dtype(), from.sizes());
  with_scalar(from.dtype(), [&]<class Scalar>(Scalar*) {
    const Scalar* x = from.data_as<const Scalar>();
    const Scalar* y = to.data_as<const Scalar>();
    for (std::int64_t i = 0; i < out.numel(); ++i)
      out.data_as<Scalar>()[i] = x[i] + (y[i] - x[i]) * static_cast<Scalar>(fraction);
  });
  return out;
}

Tensor times(double factor, const Tensor& tensor) {
  return between(Tensor::zeros(tensor.dtype(), tensor.sizes()), tensor, factor);
}

class Substepping {
 public:
  Substepping(const ImplicitSegment& segment, const SubstepPlan& plan, Chunk& chunk)
      : segment_(segment), plan_(plan), chunk_(chunk), solution_(chunk) {
    reports_.begin(chunk.points, NEML2_NOT_CONVERGED, chunk.newton);
    reports_.initial_norm.assign(reports_.status.size(), 0.0);
    dtype_ = chunk.values[plan.givens.front().value].dtype();
    derivatives_ = chunk.by_values || chunk.by_parameters;
    solution_.values.assign(chunk.values.size(), Tensor());
    old_.assign(chunk.values.size(), Tensor());
    if (derivatives_) {
      of_solution_ = no_directions(chunk.points);
      of_old_ = no_directions(chunk.points);
    }
    for (const SubstepPlan::Given& given : plan.givens) {
      if (given.role != Role::old_state) continue;
      old_[given.value] = chunk.values[given.value].copy();
      if (derivatives_)
        of_old_.of[given.value] = identity(chunk.points, given.size, given.column, plan.num_columns, dtype_);
    }
  }

  Vector<Block> run() {
    Rows all(static_cast<std::size_t>(chunk_.points));
    std::iota(all.begin(), all.end(), 0);
    solve(0.0, 1.0, all, 0);
    if (cuts_.points > 0) newton::tell_cuts(owner(), chunk_.points, cuts_);
    Groups unknowns;
    for (const ValueGroup& group : segment_.unknowns()) {
      for (std::size_t i = 0; i < group.values().size(); ++i)
        if (Tensor& value = solution_.values[group.values()[i]]; !value.data())
          value = Tensor::zeros(dtype_, Dims{chunk_.points}.then(group.point_shape(i)));
      unknowns.push_back(group.pack(solution_, dtype_));
    }
    segment_.finish(std::move(unknowns), std::move(reports_), chunk_);
    return derivatives_ ? blocks() : Vector<Block>{};
  }

 private:
  // Solves the part [a, b] of the increment for these points; returns those that could.
  Rows solve(double a, double b, const Rows& rows, std::int64_t level) {
    if (rows.empty()) return {};
    Chunk span = chunk_.select(rows);
    span.newton.whole_batch = false;
    span.newton.step_tol = chunk_.substep_del_tol;
    for (const SubstepPlan::Given& given : plan_.givens) span.values[given.value] = given_at(given, a, b, rows);
    for (std::size_t value : plan_.held) span.values[value] = select_rows(chunk_.values[value], rows);
    Operands at = segment_.prepare(span);
    const auto system = segment_.system(at, false);
    const newton::Reports found = newton::solve(*system, at.unknowns, span.newton, owner(rows.data()));
    note(found, rows, level);
    segment_.unpack(at.unknowns, span);

    Rows solved, converged, failed;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool good = found.status[i] == NEML2_OK;
      (good ? solved : failed).push_back(rows[i]);
      if (good) converged.push_back(static_cast<std::int64_t>(i));
    }
    if (level > 0)
      log::write(log::Channel::substep, log::Level::debug, owner(rows.data()).str(std::ssize(rows)), ": ",
                 solved.size(), " solved from ", a, " to ", b, " of the increment");
    cuts_.deepest = std::max(cuts_.deepest, level);
    if (level == 0) cuts_.points = std::ssize(failed);
    if (!solved.empty()) {
      if (derivatives_) differentiate(a, b, at, converged, solved, span, level);
      accept(span, converged, solved);
    }
    if (failed.empty()) return solved;
    if (level == plan_.levels) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (found.status[i] != NEML2_OK) give_up(span, static_cast<std::int64_t>(i), rows[i], found.status[i]);
      return solved;
    }
    const double middle = 0.5 * (a + b);
    const Rows rescued = solve(middle, b, solve(a, middle, failed, level + 1), level + 1);
    solved.insert(solved.end(), rescued.begin(), rescued.end());
    heap_sort(solved);
    return solved;
  }

  Tensor given_at(const SubstepPlan::Given& given, double a, double b, const Rows& rows) const {
    return in_part(given, a, b, old_[given.value], rows,
                   [&](std::size_t value) { return select_rows(chunk_.values[value], rows); });
  }

  // Returns the derivatives of the givens of a part of the increment with respect to the whole's.
  Tensor given_directions(const SubstepPlan::Given& given, double a, double b, const Rows& rows) const {
    const auto points = static_cast<std::int64_t>(rows.size());
    return in_part(given, a, b, of_old_.of[given.value], rows, [&](std::size_t value) {
      for (const SubstepPlan::Given& other : plan_.givens)
        if (other.value == value) return identity(points, other.size, other.column, plan_.num_columns, dtype_);
      return Tensor::zeros(dtype_, {points, given.size, plan_.num_columns});
    });
  }

  // Returns what `given` is in the part [a, b] of an increment, or its derivatives there, from the whole's.
  template <class Whole>
  static Tensor in_part(const SubstepPlan::Given& given, double a, double b, const Tensor& old, const Rows& rows,
                        Whole&& whole) {
    switch (given.role) {
      case Role::old_state: return select_rows(old, rows);
      case Role::old_force: return between(whole(given.value), whole(given.partner), a);
      case Role::force: return between(whole(given.partner), whole(given.value), b);
      case Role::increment: return times(b - a, whole(given.value));
      default: return whole(given.value);
    }
  }

  void differentiate(double a, double b, const Operands& at, const Rows& converged, const Rows& rows, const Chunk& span,
                     std::int64_t level) {
    if (level > 0 && !segment_.has_given_sensitivity())
      throw Error(
          NEML2_ERROR_UNSUPPORTED, "max_substepping_level",
          "The tangent through substeps needs the derivatives of the unknowns with respect to the givens, which "
          "were not compiled. Compile the model with neml2-compile -d : for all pairs.");
    Chunk points = span.select(converged);
    points.by_values = segment_.has_given_sensitivity();
    const Operands solution = {select_rows(at.unknowns, converged), select_rows(at.givens, converged),
                               points.parameters};
    const Vector<Block> local = segment_.differentiate(solution, points, true);
    Directions directions = no_directions(points.points);
    for (const SubstepPlan::Given& given : plan_.givens)
      directions.of[given.value] = given_directions(given, a, b, rows);
    for (std::size_t i = 0; i < plan_.parameter_sizes.size(); ++i)
      directions.of[chunk_.values.size() + i] =
          identity(points.points, plan_.parameter_sizes[i], plan_.parameter_columns[i], plan_.num_columns, dtype_);
    push_forward(local, segment_.outputs(), directions);
    for (std::size_t unknown : segment_.outputs()) {
      if (!directions.of[unknown].data()) continue;
      Tensor& whole = of_solution_.at(unknown, directions.of[unknown].sizes()[1]);
      put(directions.of[unknown], rows, whole);
    }
    for (const SubstepPlan::Given& given : plan_.givens)
      if (given.role == Role::old_state && directions.of[given.partner].data())
        put(directions.of[given.partner], rows, of_old_.of[given.value]);
  }

  // Takes the solution of a part as the old state of the next.
  void accept(const Chunk& span, const Rows& converged, const Rows& rows) {
    for (std::size_t unknown : segment_.outputs()) {
      const Tensor& value = span.values[unknown];
      Tensor& whole = solution_.values[unknown];
      if (!whole.data()) whole = Tensor::zeros(value.dtype(), Dims{chunk_.points}.then(point_shape(value)));
      put(select_rows(value, converged), rows, whole);
    }
    for (const SubstepPlan::Given& given : plan_.givens)
      if (given.role == Role::old_state)
        put(select_rows(span.values[given.partner], converged), rows, old_[given.value]);
  }

  // Takes the last iterate of a point that failed at the last level.
  void give_up(const Chunk& span, std::int64_t from, std::int64_t row, std::int32_t status) {
    accept(span, {from}, {row});
    reports_.fail(static_cast<std::size_t>(row), status);
    ++cuts_.failed;
  }

  void note(const newton::Reports& found, const Rows& rows, std::int64_t level) {
    const auto miters = static_cast<std::size_t>(chunk_.newton.miters);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::size_t>(rows[i]);
      reports_.status[row] = NEML2_OK;
      reports_.iterations[row] += found.iterations[i];
      reports_.residual_norm[row] = found.residual_norm[i];
      if (level > 0) continue;
      reports_.initial_norm[row] = found.initial_norm[i];
      if (!found.history.empty())
        std::copy_n(found.history.begin() + static_cast<std::ptrdiff_t>(i * miters), miters,
                    reports_.history.begin() + static_cast<std::ptrdiff_t>(row * miters));
    }
  }

  Vector<Block> blocks() const {
    Vector<Block> blocks;
    for (const PlacedPair& placed : plan_.pairs) {
      const PairInfo& pair = placed.info;
      if (pair.of_parameter ? !chunk_.by_parameters : !chunk_.by_values) continue;
      const Tensor& whole = of_solution_.of[pair.output];
      if (whole.data()) blocks.push_back(pair.block(columns_of(whole, placed.column, pair.shape.input_size()), chunk_));
    }
    return blocks;
  }

  Directions no_directions(std::int64_t points) const {
    Directions directions{points, plan_.num_columns, dtype_, {}};
    directions.of.resize(chunk_.values.size() + chunk_.parameters.size());
    return directions;
  }

  static Dims point_shape(const Tensor& value) { return value.sizes().last(value.ndim() - 1); }

  newton::Owner owner(const std::int64_t* rows = nullptr) const {
    return {segment_.name().c_str(), chunk_.begin, rows};
  }

  const ImplicitSegment& segment_;
  const SubstepPlan& plan_;
  Chunk& chunk_;
  DType dtype_;
  bool derivatives_;
  newton::Reports reports_;
  Chunk solution_;      // holds the unknowns
  Vector<Tensor> old_;  // old states at the beginning of the next part
  Directions of_solution_, of_old_;
  newton::Cuts cuts_;  // for the log
};

}  // namespace

SubstepPlan::SubstepPlan(const std::vector<artifact::Substep>& substeps, const std::vector<std::size_t>& unknowns,
                         const std::vector<std::size_t>& needed, const std::vector<std::size_t>& predicted_from,
                         std::int64_t most, Scope& scope)
    : levels(most) {
  const auto contains = [](const std::vector<std::size_t>& values, std::size_t value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  const auto refuse = [](const std::string& name, const std::string& why) {
    throw Error(NEML2_ERROR_ARTIFACT, name,
                join("'", name, "' ", why, " Was the metadata edited by hand? Compile the model again."));
  };
  std::vector<std::size_t> listed;
  for (const artifact::Substep& substep : substeps) {
    const std::string who = "a given of a residual with substeps";
    Given given{scope.require(substep.name, who), substep.role, 0, num_columns, 0};
    if (contains(listed, given.value)) refuse(substep.name, "is listed twice among the givens of a residual.");
    listed.push_back(given.value);
    if (substep.role != Role::fixed && substep.role != Role::increment) {
      given.partner = scope.require(substep.partner, who);
      // The old end of a force need not enter the residual: then it has the shape of the new end.
      if (!scope.values()[given.value].known && substep.role == Role::old_force)
        scope.declare(given.value, scope.values()[given.partner].point_shape, scope.dtype(), who);
      if (!(scope.values()[given.value].point_shape == scope.values()[given.partner].point_shape))
        refuse(substep.name, join("and its partner '", substep.partner, "' have different shapes."));
      if (substep.role == Role::old_state && !contains(unknowns, given.partner))
        refuse(substep.name, join("is the old state of '", substep.partner, "', which is not solved for."));
      if (substep.role != Role::old_state && contains(unknowns, given.partner))
        refuse(substep.name, join("is a force beside '", substep.partner, "', which is solved for."));
    }
    given.size = scope.values()[given.value].point_shape.product();
    num_columns += given.size;
    givens.push_back(given);
  }
  for (std::size_t value : needed)
    if (!contains(listed, value)) refuse(scope.values()[value].name, "has no role in the parts of an increment.");
  for (std::size_t value : predicted_from)
    if (!contains(listed, value) && !contains(unknowns, value)) held.push_back(value);
  for (const artifact::Parameter& parameter : scope.parameters()) {
    parameter_columns.push_back(num_columns);
    parameter_sizes.push_back(parameter.base_shape.product());
    num_columns += parameter_sizes.back();
  }
  for (std::size_t unknown : unknowns) {
    const Value& output = scope.values()[unknown];
    for (const Given& given : givens)
      pairs.push_back({dense_pair({output.name, scope.values()[given.value].name}, false, scope), 0, given.column});
    for (std::size_t i = 0; i < parameter_columns.size(); ++i)
      pairs.push_back({dense_pair({output.name, scope.parameters()[i].name}, true, scope), 0, parameter_columns[i]});
  }
}

Vector<Block> run_substepped(const ImplicitSegment& segment, const SubstepPlan& plan, Chunk& chunk) {
  return Substepping(segment, plan, chunk).run();
}

}  // namespace neml2_capi::model
