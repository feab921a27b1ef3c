#include "capi/model/implicit.h"

#include <algorithm>
#include <limits>

#include "capi/error.h"
#include "capi/newton/rows.h"

namespace neml2_capi::model {
namespace {

std::vector<ValueGroup> value_groups(const std::vector<artifact::Group>& groups, ValueGroup::Role role, Scope& scope) {
  std::vector<ValueGroup> out;
  for (const artifact::Group& group : groups) out.emplace_back(group, role, scope);
  return out;
}

void expect_row(const Package& package, std::size_t output, const Dims& row) {
  if (!(package.output_shape(output) == row))
    throw Error(NEML2_ERROR_ARTIFACT, package.name(),
                join("Output ", output, " of ", package.name(), " has the point shape ",
                     package.output_shape(output).str(), "; the metadata says ", row.str(), "."));
}

newton::Groups row_major(std::vector<Tensor> tensors) {
  for (Tensor& tensor : tensors) tensor = tensor.row_major();
  return tensors;
}

}  // namespace

// The residual and its direct solve, as packages: residual and Jacobian take (unknowns, givens, parameters), the solve
// takes what the Jacobian returns.
class ImplicitSegment::PackageSystem : public newton::System {
 public:
  PackageSystem(const ImplicitSegment& segment, newton::Groups givens, std::vector<Tensor> parameters)
      : segment_(segment), givens_(std::move(givens)), parameters_(std::move(parameters)) {}

  newton::Groups residual(const newton::Groups& u) override {
    return row_major(segment_.residual_.run(u.front().sizes()[0], inputs(u)));
  }

  newton::Groups linearize(const newton::Groups& u) override {
    operator_ = row_major(segment_.jacobian_.run(u.front().sizes()[0], inputs(u)));
    return newton::Groups(operator_.end() - static_cast<std::ptrdiff_t>(segment_.num_residuals_), operator_.end());
  }

  newton::Groups step(std::vector<std::int32_t>& singular) override {
    const std::int64_t points = operator_.front().sizes()[0];
    aoti::SingularInfo info;
    newton::Groups du = row_major(segment_.solve_.run(points, operator_, &info));
    // A package may solve several systems for one point, one after another or one beside the other.
    singular.assign(static_cast<std::size_t>(points), 0);
    const std::size_t each = info.size() / static_cast<std::size_t>(points);
    for (std::size_t i = 0; i < info.size(); ++i)
      if (info[i] != 0) singular[each ? i / each : i] = info[i];
    return du;
  }

  void keep(const std::vector<std::int64_t>& rows) override {
    givens_ = newton::select_rows(givens_, rows);
    parameters_ = newton::select_rows(parameters_, rows);
    operator_ = newton::select_rows(operator_, rows);
  }

  bool can_shrink() const override {
    const auto packages = segment_.packages();
    return std::all_of(packages.begin(), packages.end(), [](const Package* p) { return p->baked_batch() == 0; });
  }

 private:
  std::vector<Tensor> inputs(const newton::Groups& u) const {
    std::vector<Tensor> tensors = u;
    tensors.insert(tensors.end(), givens_.begin(), givens_.end());
    segment_.tail_.append_to(tensors, parameters_);
    return tensors;
  }

  const ImplicitSegment& segment_;
  newton::Groups givens_;
  std::vector<Tensor> parameters_;
  newton::Groups operator_;  // the blocks of A, then the residual
};

ImplicitSegment::ImplicitSegment(const artifact::ImplicitSegment& segment, Scope& scope)
    : residual_(scope.leaf() / segment.residual_package),
      jacobian_(scope.leaf() / segment.jacobian_package),
      solve_(scope.leaf() / segment.solve_package),
      num_residuals_(segment.residuals.size()) {
  scope.note_dtype(residual_);
  dtype_ = scope.dtype();
  givens_ = value_groups(segment.givens, ValueGroup::Role::given, scope);
  unknowns_ = value_groups(segment.unknowns, ValueGroup::Role::unknown, scope);
  if (segment.max_substepping_level > 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, "max_substepping_level",
                "The model was compiled with adaptive substepping, which this version cannot run. Compile it with "
                "max_substepping_level = 0.");
  const std::size_t groups = unknowns_.size() + givens_.size();
  const std::size_t blocks = num_residuals_ * unknowns_.size();
  expect_arity(residual_, groups + segment.parameters.size(), num_residuals_);
  expect_arity(jacobian_, groups + segment.parameters.size(), blocks + num_residuals_);
  expect_arity(solve_, blocks + num_residuals_, unknowns_.size());
  for (std::size_t i = 0; i < num_residuals_; ++i) {
    expect_row(residual_, i, row_shape(segment.residuals[i]));
    expect_row(jacobian_, blocks + i, row_shape(segment.residuals[i]));
  }
  for (std::size_t i = 0; i < unknowns_.size(); ++i) expect_row(solve_, i, unknowns_[i].row_shape());
  tail_ = ParameterTail(segment.parameters, residual_, groups, scope);
  if (segment.feedback) {
    const artifact::Feedback& feedback = *segment.feedback;
    const Dims shape = feedback.sub_batch_shape.then(feedback.base_shape);
    loop_ = Loop{scope.provide(feedback.input), scope.provide(feedback.output), feedback.iterations, shape};
    scope.declare(loop_->input, shape, dtype_, "the predictor's loop");
  }
  if (segment.predictor) predictor_.emplace(*segment.predictor, scope);
}

std::vector<const Package*> ImplicitSegment::packages() const {
  std::vector<const Package*> packages = {&residual_, &jacobian_, &solve_};
  if (predictor_) packages.push_back(&predictor_->package());
  return packages;
}

std::vector<std::size_t> ImplicitSegment::uniform_parameters() const {
  std::vector<std::size_t> uniform = tail_.uniform();
  if (predictor_)
    uniform.insert(uniform.end(), predictor_->uniform_parameters().begin(), predictor_->uniform_parameters().end());
  return uniform;
}

// The initial guess: what an earlier segment or the caller left in the unknowns, else zero; then what the predictor
// says.
void ImplicitSegment::predict(Chunk& chunk) const {
  const auto zeros = [&](std::size_t value, const Dims& point_shape) {
    chunk.values[value] = Tensor::zeros(dtype_, Dims{chunk.points}.then(point_shape));
  };
  for (const ValueGroup& group : unknowns_)
    for (std::size_t i = 0; i < group.values().size(); ++i)
      if (!chunk.values[group.values()[i]].data()) zeros(group.values()[i], group.point_shape(i));
  if (!predictor_) return;
  if (loop_) zeros(loop_->input, loop_->point_shape);
  for (std::int64_t pass = 0; pass < (loop_ ? loop_->passes : 1); ++pass) {
    predictor_->run(chunk);
    if (loop_) chunk.values[loop_->input] = chunk.values[loop_->output];
  }
}

void ImplicitSegment::run(Chunk& chunk) const {
  predict(chunk);
  newton::Groups u, givens;
  for (const ValueGroup& group : unknowns_) u.push_back(group.pack(chunk, dtype_));
  for (const ValueGroup& group : givens_) givens.push_back(group.pack(chunk, dtype_));
  PackageSystem system(*this, std::move(givens), chunk.parameters);
  const newton::Outcome outcome = newton::solve(system, u, chunk.newton);
  merge(outcome, u, chunk);
  for (std::size_t i = 0; i < u.size(); ++i) unknowns_[i].unpack(u[i], chunk);
}

// Add the outcome to what earlier segments reported. The unknowns of failed points become NaN, so that nothing after
// them takes them for a solution.
void ImplicitSegment::merge(const newton::Outcome& outcome, newton::Groups& u, Chunk& chunk) const {
  for (std::size_t p = 0; p < chunk.status.size(); ++p) {
    chunk.iterations[p] += outcome.iterations[p];
    if (!(outcome.residual_norm[p] <= chunk.residual_norm[p])) chunk.residual_norm[p] = outcome.residual_norm[p];
    if (outcome.status[p] == NEML2_OK) continue;
    if (chunk.status[p] == NEML2_OK) chunk.status[p] = outcome.status[p];
    for (Tensor& group : u)
      newton::with_scalar(dtype_, [&](auto* type) {
        using Scalar = std::remove_pointer_t<decltype(type)>;
        const std::int64_t n = newton::row_size(group);
        std::fill_n(group.data_as<Scalar>() + static_cast<std::int64_t>(p) * n, n,
                    std::numeric_limits<Scalar>::quiet_NaN());
      });
  }
  chunk.history = outcome.history;
}

}  // namespace neml2_capi::model
