#include "capi/views/material_axes.h"

#include <algorithm>
#include <cmath>

#include "capi/base/error.h"

namespace neml2_capi::model {
namespace {

using deformation::Matrix;

constexpr const char* axes_name = "material_axes";

MaterialAxes::Kind kind_of(const Variable& variable) {
  using Kind = MaterialAxes::Kind;
  const Dims base = variable.point_shape.last(variable.point_shape.size() - variable.sub_ndim);
  const bool unknown = variable.type.empty();
  if (base == Dims{6} && (unknown || variable.type == "SR2")) return Kind::symmetric;
  if (base == Dims({3, 3}) && (unknown || variable.type == "R2")) return Kind::tensor;
  if (variable.type == "Vec" || variable.type == "WR2") return Kind::vector;
  if (base.size() == 2 && variable.type.find("R4") != std::string::npos)
    throw Error(
        NEML2_ERROR_UNSUPPORTED, variable.name,
        join("'", variable.name, "' is a tensor of fourth order (", variable.type,
             "), which a view with material axes does not turn. Open the law as it is, and turn what it takes."));
  return Kind::not_at_all;
}

Vector<double> turn_of(MaterialAxes::Kind kind, const Matrix& q) {
  const auto list = [](const auto& all) { return Vector<double>(all.begin(), all.end()); };
  switch (kind) {
    case MaterialAxes::Kind::symmetric: return list(deformation::turn_of_six(q));
    case MaterialAxes::Kind::tensor: return list(deformation::turn_of_nine(q));
    default: return list(q);
  }
}

Matrix axes_of(const Change::Point& point) {
  Matrix q;
  std::copy_n(point.taken.back().begin(), 9, q.begin());
  return q;
}

void apply(const Vector<double>& turn, const Vector<double>& from, Vector<double>& to) {
  const std::size_t size = turn.size() == 81 ? 9 : turn.size() == 36 ? 6 : 3;
  to.assign(from.size(), 0);
  for (std::size_t s = 0; s < from.size(); s += size)
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) to[s + i] += turn[i * size + j] * from[s + j];
}

void set(Change::Slope& slope, const Vector<double>& turn) {
  const std::size_t size = turn.size() == 81 ? 9 : turn.size() == 36 ? 6 : 3;
  slope.set(size, size, turn.data());
}

}  // namespace

MaterialAxes::MaterialAxes(const Model& law) {
  const auto& inputs = law.variables(model::Kind::input);
  const auto& outputs = law.variables(model::Kind::output);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (const Kind kind = kind_of(inputs[i]); kind != Kind::not_at_all) {
      taken_.push_back({i, inputs[i]});
      taken_kinds_.push_back(kind);
    }
  for (std::size_t o = 0; o < outputs.size(); ++o)
    if (const Kind kind = kind_of(outputs[o]); kind != Kind::not_at_all) {
      made_.push_back({o, outputs[o], static_cast<std::int64_t>(o), -1});
      made_kinds_.push_back(kind);
    }
  if (taken_.empty())
    throw Error(NEML2_ERROR_UNSUPPORTED, axes_name,
                "The law takes no tensor and no vector that material axes could turn. Open it without them.");
  taken_.push_back({inputs.size(), {axes_name, "R2", law.dtype(), {3, 3}, 0}});
}

Change::Refusal MaterialAxes::before(Point& point, bool with_slopes) const {
  const Matrix q = axes_of(point), square = deformation::multiply(q, deformation::transpose(q));
  for (std::size_t k = 0; k < taken_kinds_.size(); ++k) {
    const Vector<double> turn = turn_of(taken_kinds_[k], q);
    apply(turn, point.taken[k], point.law_inputs[k]);
    if (with_slopes) set(point.of_input[k], turn);
  }
  constexpr double most = 1e-6;
  for (std::size_t i = 0; i < 9; ++i)
    if (!(std::abs(square[i] - deformation::unit[i]) <= most) || deformation::determinant(q) < 0)
      return {join("'", axes_name,
                   "' is no rotation: expected rows that are the unit vectors of the material's axes, at "
                   "right angles to each other and right-handed.")};
  return {};
}

void MaterialAxes::after(Point& point, bool with_slopes) const {
  for (std::size_t k = 0; with_slopes && k < taken_kinds_.size(); ++k)
    set(point.of_input[k], turn_of(taken_kinds_[k], axes_of(point)));
  const Matrix back = deformation::transpose(axes_of(point));
  for (std::size_t m = 0; m < made_kinds_.size(); ++m) {
    const Vector<double> turn = turn_of(made_kinds_[m], back);
    apply(turn, point.law_outputs[m], point.made[m]);
    if (with_slopes) set(point.of_law[m], turn);
  }
}

}  // namespace neml2_capi::model
