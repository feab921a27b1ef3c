#include "capi/segments/sensitivity.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "capi/base/error.h"
#include "capi/newton/krylov.h"
#include "capi/segments/krylov_system.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

// Column `c` of (points, n, m), times -1.
Tensor negative_column(const Tensor& given, std::int64_t c) {
  const Tensor matrix = given.row_major();
  const std::int64_t width = matrix.sizes()[2];
  Tensor column = Tensor::empty(matrix.dtype(), matrix.sizes().first(2));
  with_scalar(matrix.dtype(), [&](auto* type) {
    using Scalar = std::remove_pointer_t<decltype(type)>;
    for (std::int64_t r = 0; r < column.numel(); ++r)
      column.data_as<Scalar>()[r] = -matrix.data_as<const Scalar>()[r * width + c];
  });
  return column;
}

// Write a vector, whose parts are groups of (points, n_k), to column `c` of a matrix of (points, n, m).
void set_column(Tensor& matrix, std::int64_t c, const Groups& vector) {
  const std::int64_t points = matrix.sizes()[0], n = matrix.sizes()[1], m = matrix.sizes()[2];
  std::int64_t offset = 0;
  for (const Tensor& group : vector) {
    with_scalar(matrix.dtype(), [&](auto* type) {
      using Scalar = std::remove_pointer_t<decltype(type)>;
      const std::int64_t rows = row_size(group);
      for (std::int64_t p = 0; p < points; ++p)
        for (std::int64_t r = 0; r < rows; ++r)
          matrix.data_as<Scalar>()[(p * n + offset + r) * m + c] = group.data_as<const Scalar>()[p * rows + r];
    });
    offset += row_size(group);
  }
}

// Minus the product of one row of blocks, (points, n, size of the group) for each group of givens, with direction `k`
// of these givens: (points, n).
Tensor negative_product(std::span<const Tensor> blocks, const std::vector<ValueGroup>& givens,
                        const Directions& directions, std::int64_t k) {
  Tensor product = Tensor::zeros(blocks.front().dtype(), blocks.front().sizes().first(2));
  const std::int64_t points = product.sizes()[0], n = product.sizes()[1], count = directions.count;
  with_scalar(product.dtype(), [&](auto* type) {
    using Scalar = std::remove_pointer_t<decltype(type)>;
    for (std::size_t j = 0; j < givens.size(); ++j) {
      const std::int64_t width = blocks[j].sizes()[2];
      std::int64_t first = 0;
      for (std::size_t v = 0; v < givens[j].values().size(); ++v) {
        const std::int64_t size = givens[j].point_shape(v).product();
        const Tensor& direction = directions.of[givens[j].values()[v]];
        if (direction.data())
          for (std::int64_t p = 0; p < points; ++p)
            for (std::int64_t r = 0; r < n; ++r) {
              const Scalar* row = blocks[j].data_as<const Scalar>() + (p * n + r) * width + first;
              const Scalar* t = direction.data_as<const Scalar>() + p * size * count + k;
              Scalar sum = 0;
              for (std::int64_t c = 0; c < size; ++c) sum += row[c] * t[c * count];
              product.data_as<Scalar>()[p * n + r] -= sum;
            }
        first += size;
      }
    }
  });
  return product;
}

// Direction `k` of the values of a group, from (points, size of the group).
void set_directions(const Tensor& rows, const ValueGroup& group, std::int64_t k, Directions& directions) {
  with_scalar(rows.dtype(), [&](auto* type) {
    using Scalar = std::remove_pointer_t<decltype(type)>;
    const std::int64_t width = rows.sizes()[1], count = directions.count;
    std::int64_t first = 0;
    for (std::size_t v = 0; v < group.values().size(); ++v) {
      const std::int64_t size = group.point_shape(v).product();
      Scalar* to = directions.at(group.values()[v], size).template data_as<Scalar>();
      for (std::int64_t p = 0; p < directions.points; ++p)
        for (std::int64_t i = 0; i < size; ++i)
          to[(p * size + i) * count + k] = rows.data_as<const Scalar>()[p * width + first + i];
      first += size;
    }
  });
}

void expect_one_dense_operator(const Vector<Tensor>& blocks, const std::string& package) {
  if (blocks.size() != 1 || blocks.front().ndim() != 3)
    throw Error(NEML2_ERROR_UNSUPPORTED, package,
                "An iterative sensitivity solver needs one dense group of unknowns. Compile the model with a direct "
                "sensitivity solver.");
}

Vector<Tensor> joined(Vector<Tensor> first, const Vector<Tensor>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Throws where a pair would lie outside of a matrix.
void expect_inside(const std::vector<PlacedPair>& pairs, std::int64_t rows, std::int64_t columns) {
  for (const PlacedPair& pair : pairs) {
    const BlockShape& shape = pair.info.shape;
    if (pair.row > rows - shape.output_size() || pair.column > columns - shape.input_size())
      throw Error(
          NEML2_ERROR_ARTIFACT, shape.name,
          join("The metadata places the derivative ", shape.name, " at (", pair.row, ", ", pair.column,
               ") of a matrix of ", rows, " by ", columns, ", where it does not fit. Compile the model again."));
  }
}

std::optional<Package> load(const std::string& package, const Scope& scope) {
  if (package.empty()) return std::nullopt;
  return scope.load(package);
}

// Values of groups one after another, with the position of each in a flat vector.
struct FlatValue {
  std::size_t value;
  std::int64_t begin, end;
};

std::vector<FlatValue> flat_values(const std::vector<ValueGroup>& groups) {
  std::vector<FlatValue> values;
  std::int64_t offset = 0;
  for (const ValueGroup& group : groups)
    for (std::size_t i = 0; i < group.values().size(); ++i) {
      const std::int64_t begin = offset;
      offset += group.point_shape(i).product();
      values.push_back({group.values()[i], begin, offset});
    }
  return values;
}

}  // namespace

Vector<Tensor> StepPackages::linearize(const Operands& at) const {
  Vector<Tensor> blocks = jacobian->run(at.points(), at.inputs(*tail));
  blocks.resize(blocks.size() - num_residuals);
  return blocks;
}

GivenSensitivity::GivenSensitivity(const artifact::Sensitivity& sensitivity, const StepPackages& step,
                                   const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                                   const Scope& scope)
    : operator_(scope.load(sensitivity.operator_package)),
      solve_(load(sensitivity.solve_package, scope)),
      krylov_(sensitivity.krylov),
      step_(step),
      compiled_(solved_pairs(sensitivity.pairs, solve_ ? &*solve_ : nullptr, false, scope)) {
  expect_arity(operator_, step.jacobian->num_inputs(), step.num_residuals * givens.size());
  if (solve_) expect_arity(*solve_, step.num_residuals * (unknowns.size() + givens.size()), sensitivity.pairs.size());
  for (const auto* groups : {&unknowns, &givens})
    for (const ValueGroup& group : *groups) dense_ = dense_ && group.row_shape().size() == 1;
  const auto rows = flat_values(unknowns), columns = flat_values(givens);
  num_unknowns_ = rows.back().end;
  num_givens_ = columns.empty() ? 0 : columns.back().end;
  for (const FlatValue& u : rows)
    for (const FlatValue& g : columns) {
      const Value& output = scope.values()[u.value];
      const Value& input = scope.values()[g.value];
      artifact::Pair pair{output.name, input.name, output.point_shape, input.point_shape};
      all_.push_back({dense_pair(pair, false, scope), u.begin, g.begin});
    }
  if (krylov_) expect_inside(compiled_, num_unknowns_, num_givens_);
}

// A dense matrix of all unknowns by all givens: one run of the solve package for each given component.
Tensor GivenSensitivity::solve_by_columns(const Vector<Tensor>& a, const Vector<Tensor>& b) const {
  if (!dense_ || !step_.solve)
    throw Error(NEML2_ERROR_UNSUPPORTED, operator_.name(),
                "The tangent through substeps needs the derivatives of all unknowns with respect to all givens. "
                "Compile the model with neml2-compile -d : for all pairs.");
  const std::int64_t points = b.front().sizes()[0];
  const std::size_t residuals = step_.num_residuals, groups = b.size() / residuals;
  Tensor matrix;
  std::int64_t column = 0;
  for (std::size_t j = 0; j < groups; ++j)
    for (std::int64_t c = 0; c < b[j].sizes().back(); ++c, ++column) {
      Vector<Tensor> inputs = a;
      for (std::size_t k = 0; k < residuals; ++k) inputs.push_back(negative_column(b[k * groups + j], c));
      aoti::SingularInfo ignored;
      const Vector<Tensor> du = row_major(step_.solve->run(points, std::move(inputs), &ignored));
      if (!matrix.data()) matrix = Tensor::empty(du.front().dtype(), {points, num_unknowns_, num_givens_});
      set_column(matrix, column, du);
    }
  return matrix;
}

Vector<Block> GivenSensitivity::run(const Operands& at, const Chunk& chunk, bool all) const {
  const Vector<Tensor> a = step_.linearize(at);
  const Vector<Tensor> b = operator_.run(at.points(), at.inputs(*step_.tail));
  if (krylov_) {
    expect_one_dense_operator(a, operator_.name());
    const Tensor x = newton::solve_dense_columns(a.front().row_major(), side_by_side(b), linear_settings(*krylov_));
    return parts_of(x, all ? all_ : compiled_, -1.0, chunk);
  }
  if (all && compiled_.size() < all_.size()) return parts_of(solve_by_columns(a, b), all_, 1.0, chunk);
  aoti::SingularInfo ignored;
  return blocks_of(solve_->run(at.points(), joined(a, b), &ignored), compiled_, chunk);
}

void GivenSensitivity::push_forward(const Operands& at, const std::vector<ValueGroup>& unknowns,
                                    const std::vector<ValueGroup>& givens, Directions& directions) const {
  const Vector<Tensor> a = step_.linearize(at);
  const Vector<Tensor> b = row_major(operator_.run(at.points(), at.inputs(*step_.tail)));
  Directions made{directions.points, directions.count, directions.dtype, {}};
  made.of.resize(directions.of.size());
  for (std::int64_t k = 0; k < directions.count; ++k) {
    Vector<Tensor> inputs = a;
    for (std::size_t i = 0; i < step_.num_residuals; ++i)
      inputs.push_back(negative_product(std::span(b).subspan(i * givens.size(), givens.size()), givens, directions, k));
    aoti::SingularInfo ignored;
    const Vector<Tensor> du = row_major(step_.solve->run(at.points(), std::move(inputs), &ignored));
    for (std::size_t i = 0; i < unknowns.size(); ++i) set_directions(du[i], unknowns[i], k, made);
  }
  for (const ValueGroup& group : unknowns)
    for (std::size_t value : group.values()) directions.of[value] = std::move(made.of[value]);
}

std::vector<const Package*> GivenSensitivity::packages() const {
  std::vector<const Package*> packages = {&operator_};
  if (solve_) packages.push_back(&*solve_);
  return packages;
}

ParameterSensitivity::ParameterSensitivity(const artifact::Sensitivity& sensitivity,
                                           const std::vector<std::string>& parameters, std::size_t groups,
                                           const Scope& scope)
    : operator_(scope.load(sensitivity.operator_package)),
      solve_(load(sensitivity.solve_package, scope)),
      krylov_(sensitivity.krylov),
      pairs_(solved_pairs(sensitivity.pairs, solve_ ? &*solve_ : nullptr, true, scope)) {
  expect_arity(operator_, groups + parameters.size(), 2);
  if (solve_) expect_arity(*solve_, 2, sensitivity.pairs.size());
  tail_ = ParameterTail(parameters, operator_, groups, scope);
  if (const Dims& matrix = operator_.output_shape(1); krylov_ && matrix.size() == 2)
    expect_inside(pairs_, matrix[0], matrix[1]);
  else if (krylov_)
    throw Error(NEML2_ERROR_ARTIFACT, operator_.name(),
                join(operator_.name(), " does not return a matrix for each point. Compile the model again."));
}

Vector<Block> ParameterSensitivity::run(const Operands& at, const Chunk& chunk) const {
  Vector<Tensor> operators = operator_.run(at.points(), at.inputs(tail_));
  if (!krylov_) {
    aoti::SingularInfo ignored;
    return blocks_of(solve_->run(at.points(), std::move(operators), &ignored), pairs_, chunk);
  }
  const Tensor x =
      newton::solve_dense_columns(operators[0].row_major(), operators[1].row_major(), linear_settings(*krylov_));
  return parts_of(x, pairs_, -1.0, chunk);
}

std::vector<const Package*> ParameterSensitivity::packages() const {
  std::vector<const Package*> packages = {&operator_};
  if (solve_) packages.push_back(&*solve_);
  return packages;
}

}  // namespace neml2_capi::model
