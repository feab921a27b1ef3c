#include "capi/hypotheses/results.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace neml2_capi::model {

template <class Scalar>
void ResultsUnder<Scalar>::write_outputs(Part part, const double* of_free, std::int64_t p, std::size_t row) const {
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
    Scalar* to = outside(part, i, p);
    if (static_cast<std::int64_t>(i) == s_.reduction.free_output()) {
      for (std::size_t k = 0; k < s_.free.size(); ++k) to[k] = static_cast<Scalar>(of_free[k]);
      continue;
    }
    const Hypothesis& hypothesis = s_.reduction.hypothesis();
    const Scalar* from = of_law(part, s_.reduction.stress(), row);
    for (const std::int64_t c : i < outputs.size() ? hypothesis.given : hypothesis.zero) *to++ = from[c];
  }
}

template <class Scalar>
void ResultsUnder<Scalar>::write_blocks(std::int64_t p, std::size_t row, const Inverse* inverse) const {
  keep_slopes(p);
  for (const Part part : {Part::block, Part::parameter_block})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i)
      if (s_.bindings.of(part)[i].data) write_block(part, i, p, row, inverse);
}

template <class Scalar>
void ResultsUnder<Scalar>::keep_slopes(std::int64_t p) const {
  Vector<double>& kept = s_.memory.slopes;
  kept.clear();
  for (const Slope& slope : s_.bindings.slopes) {
    if (!slope.array.data) continue;
    const Scalar* const from = reinterpret_cast<const Scalar*>(point(slope.array, p, sizeof(Scalar)));
    kept.insert(kept.end(), from, from + entries(slope));
  }
}

// Total derivatives: d(output)/d(input) d(input)/d(variable) is added for each input that moves. It replaces the unit matrix
// that a variable is by itself.
template <class Scalar>
void ResultsUnder<Scalar>::write_block(Part part, std::size_t index, std::int64_t p, std::size_t row,
                                       const Inverse* inverse) const {
  const Derivative& own = s_.plan.model().derivatives(kind_of(part)).all()[index];
  const std::int64_t by_row = s_.bindings.input_first ? 1 : own.columns,
                     by_column = s_.bindings.input_first ? own.rows : 1;
  Scalar* const to = outside(part, index, p);
  condense(part, index, row, inverse, [=](std::int64_t r, std::int64_t c, double value) {
    to[r * by_row + c * by_column] = static_cast<Scalar>(value);
  });
  for_each_slope(part, index, [&](std::size_t, std::size_t by_input) {
    if (by_input == index && part == Part::block) std::fill_n(to, own.rows * own.columns, Scalar(0));
  });
  for_each_slope(part, index, [&](std::size_t kept, std::size_t by_input) {
    const double* const moves = s_.memory.slopes.data() + kept;
    condense(Part::block, by_input, row, inverse, [&](std::int64_t r, std::int64_t k, double value) {
      for (std::int64_t c = 0; c < own.columns; ++c)
        to[r * by_row + c * by_column] += static_cast<Scalar>(value * moves[k * own.columns + c]);
    });
  });
}

template <class Scalar>
template <class Take>
void ResultsUnder<Scalar>::condense(Part part, std::size_t index, std::size_t row, const Inverse* inverse,
                                    Take&& take) const {
  const Reduction::Condensed& of = s_.reduction.condensed(kind_of(part))[index];
  const auto law_block = [&](Part which, std::int64_t at) {
    return at < 0 ? nullptr : of_law(which, static_cast<std::size_t>(at), row);
  };
  const Scalar* direct = law_block(part, of.direct);
  const Scalar* by_strain = law_block(Part::block, of.by_free);
  const Scalar* of_stress = law_block(part, of.of_output);
  const std::size_t rows = of.rows.size(), columns = of.columns.size(), n = s_.free.size();
  for (std::size_t c = 0; c < columns; ++c) {
    double solved[5] = {};  // d free strains / d variable
    if (of_stress)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < n; ++j)
          solved[k] -=
              inverse->exists()
                  ? (*inverse)(k, j) * static_cast<double>(of_stress[s_.free[j] * of.model_columns + of.columns[c]])
                  : NAN;
    for (std::size_t r = 0; r < rows; ++r) {
      double value = direct ? static_cast<double>(direct[of.rows[r] * of.model_columns + of.columns[c]]) : 0;
      if (of.is_of_free) value = solved[r];
      if (by_strain)
        for (std::size_t k = 0; k < n; ++k)
          value += static_cast<double>(by_strain[of.rows[r] * symmetric_size + s_.free[k]]) * solved[k];
      take(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c), value);
    }
  }
}

template <class Scalar>
std::optional<std::size_t> ResultsUnder<Scalar>::of_adjoint(Part part, std::size_t index) const {
  if (part == Part::parameter_adjoint || index < s_.law.variables(Kind::input).size()) return index;
  const auto& roles = s_.reduction.roles(Kind::input);
  for (std::size_t i = 0; i < roles.size(); ++i)
    if (roles[i].others == static_cast<std::int64_t>(index)) return i;
  return std::nullopt;
}

template <class Scalar>
void ResultsUnder<Scalar>::write_adjoints(std::int64_t p, std::size_t row) const {
  for (const Part part : {Part::adjoint, Part::parameter_adjoint})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i) {
      Scalar* to = outside(part, i, p);
      if (!to) continue;
      const std::int64_t size = s_.plan.model().variable(part, i).point_shape.product();
      const std::optional<std::size_t> of = of_adjoint(part, i);
      if (!of) {
        std::fill_n(to, size, Scalar(0));
        continue;
      }
      const Scalar* from = of_law(part, *of, row);
      if (part == Part::parameter_adjoint || !s_.reduction.roles(Kind::input)[*of].is_reduced) {
        std::copy_n(from, size, to);
        continue;
      }
      const Reduction::Role& role = s_.reduction.roles(Kind::input)[*of];
      for (const std::int64_t c : i == *of ? s_.reduction.hypothesis().given : role.held) *to++ = from[c];
    }
}

template class ResultsUnder<double>;
template class ResultsUnder<float>;

}  // namespace neml2_capi::model
