#include "capi/hypotheses/products.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace neml2_capi::model {

void Products::run() {
  Vector<std::size_t> good;
  for (std::size_t i = 0; i < s_.points.size(); ++i)
    if (s_.points[i].status <= NEML2_NON_FINITE) good.push_back(i);
  if (good.empty()) return;
  const bool has_free = !s_.free.empty();
  if (has_free) good = solve_directions(good);
  if (good.empty()) return;
  s_.take(good);
  give_directions(has_free ? &tangents_ : nullptr, has_free ? &cotangents_ : nullptr);
  ask();
  evaluate();
  for (std::size_t row = 0; row < good.size(); ++row) {
    FreeStrain& each = s_.points[good[row]];
    if (!is_good(each, row)) continue;
    results_.write_outputs(Part::jvp, tangents_.data() + row * s_.free.size(), each.point, row);
    results_.write_adjoints(each.point, row);
  }
}

// Evaluates the law at what was found. If kernels found free strains and unknowns together, the law alone may need more
// iterations, or a rescue.
void Products::evaluate() { s_.evaluate(s_.options.with_more_solves()); }

// Takes over what the law says of a row.
bool Products::is_good(FreeStrain& each, std::size_t row) const {
  const auto status = *reinterpret_cast<const std::int32_t*>(s_.arrays.report(NEML2_REPORT_STATUS, row));
  each.status = std::max(each.status, status);
  if (status <= NEML2_NON_FINITE) return true;
  each.cut = *reinterpret_cast<const double*>(s_.arrays.report(NEML2_REPORT_SUGGESTED_CUT, row));
  each.norm = *reinterpret_cast<const double*>(s_.arrays.report(NEML2_REPORT_RESIDUAL_NORM, row));
  return false;
}

void Products::ask() {
  for (std::size_t i = 0; i < s_.bindings.jvps.size(); ++i)
    if (s_.bindings.jvps[i].data)
      s_.arrays.ask(Part::jvp, i < s_.law.variables(Kind::output).size() ? i : s_.reduction.stress());
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i)
      if (s_.bindings.of(part)[i].data)
        if (const std::optional<std::size_t> of = results_.of_adjoint(part, i)) s_.arrays.ask(part, *of);
}

void Products::give_directions(const Vector<double>* tangents, const Vector<double>* cotangents) {
  if (s_.plan.request().jvps)
    for (std::size_t i = 0; i < s_.law.variables(Kind::input).size(); ++i)
      s_.arrays.give(Part::tangent, i, i == s_.reduction.strain() ? tangents : nullptr);
  if (s_.has_adjoints())
    for (std::size_t i = 0; i < s_.law.variables(Kind::output).size(); ++i)
      s_.arrays.give(Part::cotangent, i, i == s_.reduction.stress() ? cotangents : nullptr);
}

Vector<std::size_t> Products::solve_directions(const Vector<std::size_t>& good) {
  tangents_.clear();
  cotangents_.clear();
  s_.take(good);
  s_.arrays.ask(Part::output, s_.reduction.stress());
  s_.arrays.ask(Part::block, static_cast<std::size_t>(s_.reduction.tangent()));
  give_directions(nullptr, nullptr);
  if (s_.plan.request().jvps) s_.arrays.ask(Part::jvp, s_.reduction.stress());
  if (s_.has_adjoints()) s_.arrays.ask(Part::adjoint, s_.reduction.strain());
  evaluate();
  Vector<std::size_t> left;
  for (std::size_t row = 0; row < good.size(); ++row) {
    FreeStrain& each = s_.points[good[row]];
    if (!is_good(each, row)) continue;
    left.push_back(good[row]);
    solve_directions(row, each);
  }
  return left;
}

void Products::solve_directions(std::size_t row, FreeStrain& each) {
  const Components& free = s_.free;
  const std::size_t n = free.size();
  const Inverse inverse(results_.of_law(Part::block, static_cast<std::size_t>(s_.reduction.tangent()), row), free);
  if (!inverse.exists()) each.status = NEML2_NON_FINITE;
  const auto entry = [&](std::size_t a, std::size_t b) { return inverse.exists() ? inverse(a, b) : NAN; };
  const auto add_row = [n](Vector<double>& rows) {
    rows.resize(rows.size() + n, 0.0);
    return rows.data() + rows.size() - n;
  };
  double *const tangent = add_row(tangents_), *const cotangent = add_row(cotangents_);
  if (s_.plan.request().jvps) {
    const Numbers stress = results_.of_law(Part::jvp, s_.reduction.stress(), row);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b) tangent[a] -= entry(a, b) * stress[free[b]];
  }
  if (!s_.has_adjoints()) return;
  const Numbers strain = results_.of_law(Part::adjoint, s_.reduction.strain(), row);
  const Numbers own =
      results_.outside(Part::cotangent, static_cast<std::size_t>(s_.reduction.free_output()), each.point);
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) cotangent[a] -= entry(b, a) * (strain[free[b]] + (own ? own[b] : 0.0));
}

}  // namespace neml2_capi::model
