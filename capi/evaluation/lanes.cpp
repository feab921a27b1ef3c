#include "capi/evaluation/lanes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <variant>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/results.h"

namespace neml2_capi::model {
namespace {

// Rows of one range, instead of arrays that are numbered from the first point of all.
class Rows {
 public:
  explicit Rows(const Range& range) : range_(range) {}

  Points add(const Variable& variable, bool nan) {
    const Dims sizes = Dims{range_.points}.then(variable.point_shape);
    rows_.push_back(nan ? Tensor::empty(variable.dtype, sizes) : Tensor::zeros(variable.dtype, sizes));
    const Tensor& rows = rows_.back();
    if (nan) fill_nan(rows.data_as<char>(), rows.dtype(), rows.numel());
    const std::int64_t size = variable.point_shape.product(), before = range_.begin * size * rows.itemsize();
    return {reinterpret_cast<char*>(reinterpret_cast<std::intptr_t>(rows.data()) - before), size};
  }
  const Tensor& operator[](std::size_t i) const { return rows_[i]; }

 private:
  const Range& range_;
  Vector<Tensor> rows_;
};

// Adjoints with a row per point instead of each sum.
class Sums {
 public:
  Sums(const std::vector<Points>& sums, const std::vector<Variable>& variables, const Range& range)
      : sums_(sums), variables_(variables), rows_(range) {
    if (std::ranges::none_of(sums, is_one_value)) return;
    arrays_.assign(sums.begin(), sums.end());
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (is_one_value(sums[i])) arrays_[i] = rows_.add(variables[i], false);
  }
  std::span<const Points> arrays() const {
    return arrays_.empty() ? std::span<const Points>(sums_) : std::span<const Points>(arrays_);
  }

  // In the order of the points. One that failed is there as zero, or NaN.
  void write(std::int64_t points) const {
    if (arrays_.empty()) return;
    const Vector<std::int32_t> good(static_cast<std::size_t>(points), NEML2_OK);
    for (std::size_t i = 0, k = 0; i < sums_.size(); ++i)
      if (is_one_value(sums_[i])) accumulate(rows_[k++], variables_[i], sums_[i], good, false);
  }

 private:
  const std::vector<Points>& sums_;
  const std::vector<Variable>& variables_;
  Vector<Points> arrays_;  // empty if nothing is summed
  Rows rows_;
};

// The last iterates of the range, among all iterates.
void write_iterates(const Model& model, const Bindings& bindings, const Range& range, const Rows& iterates) {
  const auto alone = range.turns ? range.turns->alone() : std::unique_lock<locks::FreedMutex>();
  const auto& unknowns = model.variables(Kind::unknown);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    char* all = iterates_of_all(bindings, i, unknowns[i]).data_as<char>();
    iterates[i].copy_to(all + range.begin * unknowns[i].point_shape.product() * iterates[i].itemsize());
  }
}

bool is_cut(const artifact::Metadata& metadata) {
  return std::ranges::any_of(metadata.segments, [](const artifact::Segment& segment) {
    const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment);
    return implicit && implicit->max_substepping_level > 0;
  });
}

}  // namespace

Lanes::Lanes(const Model& model, std::shared_ptr<const Route> substeps) : model_(model) {
  if (is_cut(model.metadata())) substeps_ = std::move(substeps);
  if (!model.takes_kernels()) return;
  auto engine = std::make_unique<const kernels::Engine>(
      model.metadata(),
      kernels::Boundary{model.variables(Kind::input), model.variables(Kind::output), model.variables(Kind::parameter),
                        model.variables(Kind::unknown), model.derivatives(Kind::input).all(),
                        model.derivatives(Kind::parameter).all()},
      model.kernels());
  if (!engine->exists()) return;
  if (const std::string& reason = engine->reason({}); !reason.empty())
    log::write(log::Channel::model, log::Level::warning, model.metadata().leaf.string(),
               ": kernels are not used: ", reason);
  engine_ = std::move(engine);
}

kernels::Asked Lanes::asked_of(const Request& request) const {
  kernels::Asked asked;
  asked.products = request.jvps || request.adjoints || request.parameter_adjoints;
  asked.by_parameters = request.by_parameters();
  // What a parameter does to one segment goes on through the values of the next.
  asked.by_values =
      request.blocks || request.jvps || request.adjoints || (asked.by_parameters && model_.segments().size() > 1);
  return asked;
}

std::string Lanes::reason_against(const Request& request, const Options& options) const {
  if (!engine_) return "The model has no kernels that it could run on. Make them: neml2-capi compile INPUT.i";
  if (options.whole_batch()) return "A batch that converges as a whole does not run in lanes. Set convergence = point.";
  if (substeps_ && request.sums)
    return "Sums over points do not run in lanes if increments are cut. Bind an adjoint for each point.";
  return engine_->reason(asked_of(request));
}

bool Lanes::gives(const Request& request, const Options& options) const {
  const bool required = options.kernels() == Options::Kernels::required;
  if ((!engine_ && !required) || options.kernels() == Options::Kernels::off) return false;
  const std::string reason = reason_against(request, options);
  if (reason.empty() || !required) return reason.empty();
  throw Error(NEML2_ERROR_UNSUPPORTED, "kernels", join("The option kernels = required cannot be met. ", reason));
}

Route::ChunkSize Lanes::chunk_size(const Options& options, const Request& request) const {
  return {options.chunk() > 0 ? options.chunk() : request.points, options.chunk()};
}

void Lanes::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                Tally& tally) const {
  Rows iterates(range);
  Vector<Points> iterate_arrays;
  if (bindings.unknowns && !substeps_)
    for (const Variable& unknown : model_.variables(Kind::unknown))
      iterate_arrays.push_back(iterates.add(unknown, true));
  const Sums adjoints(bindings.adjoints, model_.variables(Kind::input), range);
  const Sums parameter_adjoints(bindings.parameter_adjoints, model_.variables(Kind::parameter), range);
  std::array<Points, 5> report;
  std::ranges::copy(bindings.report, report.begin());
  Rows own_status(range);
  Points& status = report[NEML2_REPORT_STATUS];
  if (substeps_ && !status.data) status = own_status.add(Variable{"", "", DType::int32, {}, 0}, false);
  newton::Settings rules = plan.options().newton();
  rules.step_tol = plan.options().substep_del_tol();
  const kernels::Request request = {.inputs = bindings.inputs,
                                    .parameters = bindings.parameters,
                                    .outputs = bindings.outputs,
                                    .iterates = iterate_arrays,
                                    .blocks = bindings.blocks,
                                    .parameter_blocks = bindings.parameter_blocks,
                                    .tangents = bindings.tangents,
                                    .jvps = bindings.jvps,
                                    .cotangents = bindings.cotangents,
                                    .adjoints = adjoints.arrays(),
                                    .parameter_adjoints = parameter_adjoints.arrays(),
                                    .report = report,
                                    .rules = rules,
                                    .mark_failed = bindings.mark_failed && !substeps_,
                                    .input_first = bindings.input_first};
  Counts counts;
  engine_->run(request, asked_of(plan.request()), range.begin, range.begin + range.points, counts);
  if (substeps_) tally.note(counts.non_finite);
  if (substeps_) return cut(plan, bindings, range, status, workspace, tally);
  const Tally own(counts);
  tally.add(own);
  if (bindings.unknowns && own.worst() > NEML2_NON_FINITE) write_iterates(model_, bindings, range, iterates);
  if (!begin_sums(plan, bindings, range)) return;
  adjoints.write(range.points);
  parameter_adjoints.write(range.points);
  end_sums(plan, range);
}

void Lanes::cut(const Plan& plan, const Bindings& bindings, const Range& range, const Points& status,
                Workspace& workspace, Tally& tally) const {
  const auto* found = reinterpret_cast<const std::int32_t*>(status.data);
  const auto failed = [&](std::int64_t p) { return found[p * status.stride] > NEML2_NON_FINITE; };
  const std::int64_t end = range.begin + range.points;
  for (std::int64_t p = range.begin, q = p; p < end; p = q) {
    if (!failed(p)) {
      tally.add(found[p * status.stride], p);
      q = p + 1;
      continue;
    }
    while (q < end && failed(q)) ++q;
    q = substeps_->end_of_range(plan.options(), bindings, p, q - p);
    substeps_->run(plan, bindings, {p, q - p, range.number, range.turns}, workspace, tally);
  }
}

}  // namespace neml2_capi::model
