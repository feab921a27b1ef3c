#include "capi/segments/sensitivity.h"

#include <algorithm>
#include <span>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/dense.h"
#include "capi/newton/krylov.h"
#include "capi/segments/krylov_system.h"
#include "capi/segments/misfit.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

// Returns column `c` of (points, n, m), times -1.
Tensor negative_column(const Tensor& matrix, std::int64_t c) {
  const Tensor column = part(matrix, 2, c, 1).copy();
  with_scalar(column.dtype(), [&]<class Scalar>(Scalar*) {
    for (std::int64_t i = 0; i < column.numel(); ++i) column.data_as<Scalar>()[i] = -column.data_as<Scalar>()[i];
  });
  return shaped(column, column.sizes().first(2));
}

// Returns minus the product of one row of blocks, (points, n, size of the group) for each group of givens, with
// direction `k` of these givens: (points, n).
Tensor negative_product(std::span<const Tensor> blocks, const std::vector<ValueGroup>& givens,
                        const Directions& directions, std::int64_t k) {
  Tensor product = Tensor::zeros(blocks.front().dtype(), blocks.front().sizes().first(2));
  const std::int64_t points = product.sizes()[0], n = product.sizes()[1], count = directions.count;
  with_scalar(product.dtype(), [&]<class Scalar>(Scalar*) {
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

// Throws if a pair would lie outside of a matrix.
void expect_inside(const std::vector<PlacedPair>& pairs, std::int64_t rows, std::int64_t columns) {
  for (const PlacedPair& pair : pairs) {
    const BlockShape& shape = pair.info.shape;
    if (pair.row > rows - shape.output_size() || pair.column > columns - shape.input_size())
      throw misfit(shape.name, "The metadata places the derivative ", shape.name, " at (", pair.row, ", ", pair.column,
                   ") of a matrix of ", rows, " by ", columns, ", if it does not fit");
  }
}

// Places of values that stand side by side: each with the number of its first component.
struct Places {
  explicit Places(const std::vector<ValueGroup>& groups) {
    for (const ValueGroup& group : groups)
      for (std::size_t v = 0; v < group.values().size(); ++v) add(group.values()[v], group.point_shape(v).product());
  }
  void add(std::size_t value, std::int64_t components) {
    of.emplace_back(value, size);
    size += components;
  }
  std::int64_t at(std::size_t value) const {
    const auto it = std::find_if(of.begin(), of.end(), [&](const auto& place) { return place.first == value; });
    if (it == of.end()) throw misfit("derivatives", "The metadata lists a derivative that its segment does not have");
    return it->second;
  }

  std::vector<std::pair<std::size_t, std::int64_t>> of;
  std::int64_t size = 0;
};

}  // namespace

Sensitivity::Sensitivity(const artifact::Sensitivity& sensitivity, const SolverPackages& solver,
                         const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                         const std::vector<std::string>& parameters, bool of_parameters, const Scope& scope)
    : solver_(solver),
      operator_(scope.load_if_named(sensitivity.operator_package)),
      solve_(scope.has_packages() || !operator_
                 ? scope.load_if_named(operator_ ? sensitivity.solve_package : sensitivity.block_package)
                 : std::nullopt),
      krylov_(sensitivity.krylov),
      of_parameters_(of_parameters) {
  if (operator_ && !of_parameters && !solver.jacobian)
    throw misfit(operator_->name(),
                 "The metadata lists derivatives of an implicit segment without the Jacobian that they need");
  const std::size_t groups = unknowns.size() + givens.size(), inputs = groups + parameters.size();
  const std::size_t right_sides = of_parameters ? 1 : solver.num_residuals * givens.size();
  const std::size_t all_sides = right_sides + (of_parameters ? 1 : solver.num_residuals * unknowns.size());
  if (operator_) expect_arity(*operator_, inputs, of_parameters ? all_sides : right_sides);
  if (solve_) expect_arity(*solve_, operator_ ? all_sides : inputs, num_tensors(sensitivity.pairs));
  expect_operands(operator_ ? *operator_ : *solve_, unknowns, givens);
  if (operator_ && solve_) {
    const std::size_t before = all_sides - operator_->num_outputs();
    if (before) expect_returned(*solve_, 0, *solver.jacobian, 0, before);
    expect_returned(*solve_, before, *operator_, 0, operator_->num_outputs());
  }
  tail_ = ParameterTail(parameters, operator_ ? *operator_ : *solve_, groups, scope);
  compiled_ = solved_pairs(sensitivity.pairs, solve_ ? &*solve_ : nullptr, of_parameters, scope);
  if (operator_ && !of_parameters) add_all_pairs(unknowns, givens, scope);
  if (!solve_) {
    residual_shapes_ = solver.residual_shapes();
    unknown_shapes_ = row_shapes(unknowns);
    given_shapes_ = row_shapes(givens);
    for (const auto* groups : {&unknowns, &givens})
      for (const ValueGroup& group : *groups)
        if (group.row_shape().size() > 1 && group.values().size() > 1)
          interleaved_.insert(group.values().begin(), group.values().end());
  }
  if (!solve_ && !krylov_) place_pairs(unknowns, givens, parameters, scope);
  if (!krylov_) return;
  const Dims& matrix = of_parameters ? operator_->output_shape(1) : Dims{num_unknowns_, num_givens_};
  if (matrix.size() != 2)
    throw misfit(operator_->name(), operator_->name(), " does not return a matrix for each point");
  expect_inside(compiled_, matrix[0], matrix[1]);
}

void Sensitivity::add_all_pairs(const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                                const Scope& scope) {
  for (const auto* groups : {&unknowns, &givens})
    for (const ValueGroup& group : *groups) dense_ = dense_ && group.row_shape().size() == 1;
  const Places rows(unknowns), columns(givens);
  for (const auto& [unknown, row] : rows.of)
    for (const auto& [given, column] : columns.of) {
      const Value &output = scope.values()[unknown], &input = scope.values()[given];
      const artifact::Pair pair{output.name, input.name, output.point_shape, input.point_shape};
      all_.push_back({dense_pair(pair, false, scope), row, column});
    }
  num_unknowns_ = rows.size;
  num_givens_ = columns.size;
}

void Sensitivity::place_pairs(const std::vector<ValueGroup>& unknowns, const std::vector<ValueGroup>& givens,
                              const std::vector<std::string>& parameters, const Scope& scope) {
  const Places rows(unknowns);
  Places columns(of_parameters_ ? std::vector<ValueGroup>() : givens);
  for (std::size_t i = 0; of_parameters_ && i < parameters.size(); ++i) {
    const std::size_t parameter = scope.parameter(parameters[i], operator_->name());
    columns.add(parameter, scope.parameters()[parameter].base_shape.product());
  }
  for (PlacedPair& pair : compiled_) {
    pair.row = rows.at(pair.info.output);
    pair.column = columns.at(pair.info.input);
  }
}

Tensor Sensitivity::solve_dense(const Tensor& a, const Tensor& b) const {
  if (krylov_) return newton::solve_dense_columns(a.row_major(), b.row_major(), linear_settings(*krylov_));
  graph::SingularInfo ignored;
  return graph::solve_linear(a.row_major(), b.row_major(), &ignored).row_major();
}

// Returns a dense matrix of all unknowns by all givens: one run of the solve package for each given component.
Tensor Sensitivity::solve_by_columns(const Vector<Tensor>& a, const Vector<Tensor>& b) const {
  if (!dense_ || !solver_.solve)
    throw Error(NEML2_ERROR_UNSUPPORTED, operator_->name(),
                "The tangent through substeps needs the derivatives of all unknowns with respect to all givens. "
                "Compile the model with neml2-compile -d : for all pairs.");
  const std::int64_t points = b.front().sizes()[0];
  const std::size_t residuals = solver_.num_residuals, groups = b.size() / residuals;
  Tensor matrix;
  std::int64_t column = 0;
  for (std::size_t j = 0; j < groups; ++j)
    for (std::int64_t c = 0; c < b[j].sizes().back(); ++c, ++column) {
      Vector<Tensor> inputs = a;
      for (std::size_t k = 0; k < residuals; ++k) inputs.push_back(negative_column(b[k * groups + j], c));
      graph::SingularInfo ignored;
      const Tensor du = side_by_side(solver_.solve->run(points, std::move(inputs), &ignored));
      if (!matrix.data()) matrix = Tensor::empty(du.dtype(), {points, num_unknowns_, num_givens_});
      set_column(matrix, column, du);
    }
  return matrix;
}

Vector<Block> Sensitivity::run(const Operands& at, const Chunk& chunk, bool all) const {
  graph::SingularInfo ignored;
  if (!operator_) return blocks_of(solve_->run(at.points(), at.inputs(tail_), &ignored), compiled_, chunk);
  Vector<Tensor> a = of_parameters_ ? Vector<Tensor>() : solver_.linearize(at), b = operators(at);
  if (of_parameters_) {
    a.push_back(b.front());
    b.erase(b.begin());
  }
  if (!solve_) {
    for (const PlacedPair& pair : all ? all_ : compiled_)
      if (interleaved_.contains(pair.info.output) || (!of_parameters_ && interleaved_.contains(pair.info.input)))
        throw Error(NEML2_ERROR_UNSUPPORTED, operator_->name(),
                    join("The derivative ", pair.info.shape.name,
                         " of a group whose variables stand site by site needs "
                         "a package that solves. Compile the model with a direct sensitivity solver, and with "
                         "packages."));
    const Tensor matrix = of_parameters_ ? a.front() : matrix_of(a, residual_shapes_, unknown_shapes_);
    const Tensor right = of_parameters_ ? b.front() : matrix_of(b, residual_shapes_, given_shapes_);
    return parts_of(solve_dense(matrix, right), all ? all_ : compiled_, -1.0, chunk);
  }
  if (all && compiled_.size() < all_.size()) return parts_of(solve_by_columns(a, b), all_, 1.0, chunk);
  a.insert(a.end(), b.begin(), b.end());
  return blocks_of(solve_->run(at.points(), std::move(a), &ignored), compiled_, chunk);
}

void Sensitivity::push_forward(const Operands& at, const std::vector<ValueGroup>& unknowns,
                               const std::vector<ValueGroup>& givens, Directions& directions) const {
  const Vector<Tensor> a = solver_.linearize(at);
  const Vector<Tensor> b = row_major(operators(at));
  Directions made{directions.points, directions.count, directions.dtype, {}};
  made.of.resize(directions.of.size());
  for (std::int64_t k = 0; k < directions.count; ++k) {
    Vector<Tensor> inputs = a;
    for (std::size_t i = 0; i < solver_.num_residuals; ++i)
      inputs.push_back(negative_product(std::span(b).subspan(i * givens.size(), givens.size()), givens, directions, k));
    graph::SingularInfo ignored;
    const Vector<Tensor> du = solver_.solve->run(at.points(), std::move(inputs), &ignored);
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      std::int64_t first = 0;
      for (std::size_t v = 0; v < unknowns[i].values().size(); ++v) {
        const std::int64_t size = unknowns[i].point_shape(v).product();
        set_column(made.at(unknowns[i].values()[v], size), k, part(du[i], 1, first, size).row_major());
        first += size;
      }
    }
  }
  for (const ValueGroup& group : unknowns)
    for (std::size_t value : group.values()) directions.of[value] = std::move(made.of[value]);
}

std::vector<const Package*> Sensitivity::packages() const {
  std::vector<const Package*> packages;
  for (const auto* package : {&operator_, &solve_})
    if (*package) packages.push_back(&**package);
  return packages;
}

}  // namespace neml2_capi::model
