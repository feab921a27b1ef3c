#include "capi/evaluation/solve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/results.h"
#include "capi/newton/rules.h"

namespace neml2_capi::model {
namespace {

Vector<std::int32_t> checked_status(const std::int32_t* status, std::size_t points) {
  if (!status) return Vector<std::int32_t>(points, NEML2_OK);
  for (std::size_t p = 0; p < points; ++p)
    if (status[p] != NEML2_OK && status[p] != NEML2_NOT_CONVERGED && status[p] != NEML2_SINGULAR)
      throw Error(NEML2_ERROR_ARGUMENT, "status",
                  join("The status of point ", p, " is ", status[p],
                       "; expected NEML2_OK, NEML2_NOT_CONVERGED or NEML2_SINGULAR."));
  return {status, status + points};
}

// The points of a solve form one batch.
Bindings one_batch(const Model& model, Bindings bindings) {
  const std::int64_t points = bindings.points, baked = model.baked_batch();
  if (points == 0) return bindings;
  if (baked != 0 && points != baked)
    throw Error(NEML2_ERROR_SHAPE, model.limiting_package(),
                join(model.limiting_package(), " was compiled for a fixed batch of ", baked, " points; got ", points,
                     ". Solve ", baked, ", or compile the model with --dynamic-batch."));
  if (points > model.greatest_batch())
    throw Error(NEML2_ERROR_SHAPE, "points",
                join("The points of a solve form one batch, and the packages take at most ", model.greatest_batch(),
                     "; got ", points, ". Solve fewer points at once."));
  for (std::size_t index : model.uniform_parameters()) {
    const Variable& parameter = model.variables(Kind::parameter)[index];
    if (length_of_equal(bindings.parameters[index], parameter, 0, points) < points)
      throw Error(NEML2_ERROR_SHAPE, parameter.name,
                  join("A package takes one value of '", parameter.name,
                       "' for all points of a run, so it cannot vary within a solve. Solve points of equal values."));
  }
  return bindings;
}

// What is handed out is the systems of packages, whether or not there are kernels.
Options without_kernels(Options options) {
  options.set("kernels", std::string_view("off"));
  return options;
}

}  // namespace

Solve::Solve(std::shared_ptr<const Routes> routes, Bindings bindings, const Options& options)
    : routes_(std::move(routes)),
      bindings_(one_batch(routes_->model(), std::move(bindings))),
      plan_(*routes_, without_kernels(options), Request(bindings_)),
      route_(routes_->model()) {
  if (routes_->model().is_around_another())
    throw Error(NEML2_ERROR_UNSUPPORTED, "solve",
                "A solve hands out the systems of a law, and this model is a view of one. Open the law as it is.");
  if (options.rescue() > 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, "rescue",
                "The option rescue is of the library's own Newton's method, and this solve is yours: set rescue = 0.");
  if (points() == 0) return;  // arrays may be NULL
  inputs_to_copy(routes_->model(), bindings_, options.miters());
  bindings_.copies.assign(bindings_.inputs.size(), false);
  own(bindings_.inputs, Kind::input);
  own(bindings_.parameters, Kind::parameter);
  bad_ = BoundsCheck(routes_->model(), options).find(bindings_, {0, points()}, exceeded_);
  route_.fill(chunk_, plan_, bindings_, 0, points());
}

void Solve::own(std::vector<Points>& arrays, Kind kind) {
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Variable& variable = routes_->model().variables(kind)[i];
    Tensor copy = gather(arrays[i], variable, 0, points(), true);
    arrays[i] = {copy.data_as<char>(), variable.point_shape.product()};
    copies_.push_back(std::move(copy));
  }
}

void Solve::expect_accepted() const {
  if (system_ && !accepted_)
    throw Error(NEML2_ERROR_ARGUMENT, "system",
                "The system was not accepted: call neml2_system_accept with its solution first.");
}

FlatSystem* Solve::next() {
  expect_accepted();
  if (system_) unknowns_ += system_->places().size();
  system_.reset();
  while (chunk_.points > 0 && blocks_.size() < routes_->model().segments().size()) {
    const Segment& segment = *routes_->model().segments()[blocks_.size()];
    if (const auto* implicit = dynamic_cast<const ImplicitSegment*>(&segment)) {
      accepted_ = false;
      return &system_.emplace(*implicit, implicit->prepare(chunk_), unknowns_, plan_.options().whole_batch());
    }
    blocks_.push_back(segment.run(chunk_));
  }
  return nullptr;
}

FlatSystem& Solve::current() {
  if (!system_)
    throw Error(NEML2_ERROR_ARGUMENT, "system", "There is no system now: neml2_solve_next gave none, or failed.");
  return *system_;
}

void Solve::accept(const double* u, const std::int32_t* status, const std::int32_t* iterations) {
  FlatSystem& system = current();
  if (accepted_)
    throw Error(NEML2_ERROR_ARGUMENT, "system", "The system was accepted before: go on with neml2_solve_next.");
  const auto points = static_cast<std::size_t>(system.points());
  newton::Reports reports;
  reports.begin(system.points(), NEML2_OK, chunk_.newton);
  const Vector<std::int32_t> of_caller = checked_status(status, points);
  if (iterations && std::any_of(iterations, iterations + points, [](std::int32_t n) { return n < 0; }))
    throw Error(NEML2_ERROR_ARGUMENT, "iterations", "The iterations of a point must be 0 or more.");
  if (iterations) std::copy_n(iterations, points, reports.iterations.begin());
  Operands solution = system.operands(u);
  reports.residual_norm = system.norms(solution.unknowns);
  // Without a word of the caller's, what is far above the tolerances of the model is no solution. A thousandfold leaves
  // room for other criteria, and for round-off if the start was near. The norms there also decide on the cut that is
  // suggested for a point that failed.
  reports.initial_norm = system.norms(system.start());
  newton::Settings generous = chunk_.newton;
  generous.atol *= 1e3;
  generous.rtol *= 1e3;
  for (std::size_t p = 0; p < points; ++p)
    if (of_caller[p] != NEML2_OK)
      reports.fail(p, of_caller[p]);
    else if (!status && !newton::Rules<newton::Scalars>::has_converged(reports.residual_norm[p],
                                                                       reports.initial_norm[p], true, generous))
      reports.fail(p, NEML2_NOT_CONVERGED);
  blocks_.push_back(system.segment().differentiate(solution, chunk_));
  system.segment().finish(std::move(solution.unknowns), std::move(reports), chunk_);
  accepted_ = true;
  judged_ |= status != nullptr;
}

Tally Solve::finish() {
  expect_accepted();
  Tally tally;
  if (chunk_.points == 0) return tally;
  if (blocks_.size() < routes_->model().segments().size())
    throw Error(NEML2_ERROR_ARGUMENT, "solve",
                "The solve is not at its end: call neml2_solve_next until it gives NULL for the system.");
  const Derived derived = route_.derive(chunk_, bindings_, blocks_);
  for (const BoundsCheck::Bad& each : bad_) {
    const auto p = static_cast<std::size_t>(each.point);
    chunk_.reports.status[p] = NEML2_OUT_OF_BOUNDS;
    chunk_.reports.suggested_cut[p] = each.is_of_step ? 0.5 : 1.0;
  }
  if (!bad_.empty()) begin_iterates(routes_->model(), bindings_);  // NaN, unless a solve failed, too
  clear_sums(routes_->model(), bindings_);
  route_.write(chunk_, bindings_, derived);
  tally.solved_by_caller = true;
  tally.judged_by_caller = judged_;
  tally.add(chunk_.reports.status, chunk_.reports.iterations, chunk_.reports.residual_norm, 0);
  tally.note(chunk_.non_finite);
  tally.exceeded = exceeded_;
  return tally;
}

}  // namespace neml2_capi::model
