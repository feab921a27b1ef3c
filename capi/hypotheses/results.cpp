#include "capi/hypotheses/results.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace neml2_capi::model {
namespace {

void fill_with_zero(const Numbers& to, std::int64_t count) {
  for (std::int64_t k = 0; k < count; ++k) to.set(k, 0);
}

}  // namespace

void ResultsUnder::write_outputs(Part part, const double* of_free, std::int64_t p, std::size_t row) const {
  const auto& outputs = s_.law.variables(Kind::output);
  for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i) {
    const Points& array = s_.bindings.of(part)[i];
    if (!array.data) continue;
    if (i < outputs.size() && !s_.reduction.roles(Kind::output)[i].is_reduced) {
      const std::int64_t size = itemsize(outputs[i].dtype);
      std::memcpy(point(array, p, size), s_.arrays.row(part, i, row),
                  static_cast<std::size_t>(outputs[i].point_shape.product() * size));
      continue;
    }
    const Numbers to = outside(part, i, p);
    if (static_cast<std::int64_t>(i) == s_.reduction.free_output()) {
      for (std::size_t k = 0; k < s_.free.size(); ++k) to.set(k, of_free[k]);
      continue;
    }
    const Hypothesis& hypothesis = s_.reduction.hypothesis();
    const Components& at = i < outputs.size() ? hypothesis.given : hypothesis.zero;
    const Numbers from = of_law(part, s_.reduction.stress(), row);
    for (std::size_t k = 0; k < at.size(); ++k) to.set(k, from[at[k]]);
  }
}

void ResultsUnder::write_blocks(std::int64_t p, std::size_t row, const Inverse* inverse) const {
  keep_slopes(p);
  for (const Part part : {Part::block, Part::parameter_block})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i)
      if (s_.bindings.of(part)[i].data) write_block(part, i, p, row, inverse);
}

void ResultsUnder::keep_slopes(std::int64_t p) const {
  Vector<double>& kept = s_.memory.slopes;
  kept.clear();
  for (const Slope& slope : s_.bindings.slopes) {
    if (!slope.array.data) continue;
    const Numbers from = of_point(slope.array, p);
    for (std::int64_t k = 0; k < entries(slope); ++k) kept.push_back(from[k]);
  }
}

// Total derivatives: d(output)/d(input) d(input)/d(variable) is added for each input that moves. It replaces the unit matrix
// that a variable is by itself.
void ResultsUnder::write_block(Part part, std::size_t index, std::int64_t p, std::size_t row,
                               const Inverse* inverse) const {
  const Derivative& own = s_.plan.model().derivatives(kind_of(part)).all()[index];
  const std::int64_t by_row = s_.bindings.input_first ? 1 : own.columns,
                     by_column = s_.bindings.input_first ? own.rows : 1;
  const Numbers to = outside(part, index, p);
  condense(part, index, row, inverse,
           [=](std::int64_t r, std::int64_t c, double value) { to.set(r * by_row + c * by_column, value); });
  for_each_slope(part, index, [&](std::size_t, std::size_t by_input) {
    if (by_input == index && part == Part::block) fill_with_zero(to, own.rows * own.columns);
  });
  for_each_slope(part, index, [&](std::size_t kept, std::size_t by_input) {
    const double* const moves = s_.memory.slopes.data() + kept;
    condense(Part::block, by_input, row, inverse, [&](std::int64_t r, std::int64_t k, double value) {
      for (std::int64_t c = 0; c < own.columns; ++c)
        to.add(r * by_row + c * by_column, value * moves[k * own.columns + c]);
    });
  });
}

template <class Take>
void ResultsUnder::condense(Part part, std::size_t index, std::size_t row, const Inverse* inverse, Take&& take) const {
  const Reduction::Condensed& of = s_.reduction.condensed(kind_of(part))[index];
  const auto law_block = [&](Part which, std::int64_t at) {
    return at < 0 ? Numbers() : of_law(which, static_cast<std::size_t>(at), row);
  };
  const Numbers direct = law_block(part, of.direct);
  const Numbers by_strain = law_block(Part::block, of.by_free);
  const Numbers of_stress = law_block(part, of.of_output);
  const std::size_t rows = of.rows.size(), columns = of.columns.size(), n = s_.free.size();
  for (std::size_t c = 0; c < columns; ++c) {
    double solved[5] = {};  // d free strains / d variable
    if (of_stress)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < n; ++j)
          solved[k] -=
              inverse->exists() ? (*inverse)(k, j) * of_stress[s_.free[j] * of.model_columns + of.columns[c]] : NAN;
    for (std::size_t r = 0; r < rows; ++r) {
      double value = direct ? direct[of.rows[r] * of.model_columns + of.columns[c]] : 0;
      if (of.is_of_free) value = solved[r];
      if (by_strain)
        for (std::size_t k = 0; k < n; ++k) value += by_strain[of.rows[r] * symmetric_size + s_.free[k]] * solved[k];
      take(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c), value);
    }
  }
}

std::optional<std::size_t> ResultsUnder::of_adjoint(Part part, std::size_t index) const {
  if (part == Part::parameter_adjoint || index < s_.law.variables(Kind::input).size()) return index;
  const auto& roles = s_.reduction.roles(Kind::input);
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (roles[i].others == static_cast<std::int64_t>(index)) return i;
  return std::nullopt;
}

void ResultsUnder::write_adjoints(std::int64_t p, std::size_t row) const {
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i) {
      const Numbers to = outside(part, i, p);
      if (!to) continue;
      const std::int64_t size = s_.plan.model().variable(part, i).point_shape.product();
      const std::optional<std::size_t> of = of_adjoint(part, i);
      if (!of) {
        fill_with_zero(to, size);
        continue;
      }
      const Numbers from = of_law(part, *of, row);
      if (part == Part::parameter_adjoint || !s_.reduction.roles(Kind::input)[*of].is_reduced) {
        for (std::int64_t k = 0; k < size; ++k) to.set(k, from[k]);
        continue;
      }
      const Components& at = i == *of ? s_.reduction.hypothesis().given : s_.reduction.roles(Kind::input)[*of].held;
      for (std::size_t k = 0; k < at.size(); ++k) to.set(k, from[at[k]]);
    }
}

}  // namespace neml2_capi::model
