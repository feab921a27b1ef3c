#include "capi/hypotheses/rounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/results.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

// A point is solved when the stresses that are to vanish are that small beside all stresses, or the next correction
// beside all strains; and when they go down no more, if they are below what the solve of the law leaves. A small
// correction of a stiff law leaves large stresses: it counts only if no part of the last one made them less.
constexpr double tight = 1e-10;
double loose(DType dtype) { return dtype == DType::float64 ? 1e-7 : 1e-5; }
// A whole step makes the stresses that are to vanish less by a quarter at least, or half of it is taken.
constexpr double decrease = 0.25;
constexpr int most_cuts = 8;

// NaN is larger than any number.
double larger(double one, double other) { return other <= one || one != one ? one : other; }

template <class Positions>
double greatest(const Numbers& values, const Positions& at) {
  double found = 0;
  for (const std::int64_t c : at) found = larger(found, std::fabs(values[c]));
  return found;
}

constexpr std::array<std::int64_t, symmetric_size> all = {0, 1, 2, 3, 4, 5};

}  // namespace

void Rounds::run(Vector<std::size_t> open) {
  Vector<std::size_t> left;
  for (std::int64_t round = 0; !open.empty(); ++round) {
    interrupt::check();
    evaluate(open);
    left.clear();
    for (std::size_t row = 0; row < open.size(); ++row)
      if (!is_done(s_.points[open[row]], row, round + 1 >= s_.options.miters())) left.push_back(open[row]);
    std::swap(open, left);
  }
}

// Evaluates the law with all that the caller wants of it, but products.
void Rounds::evaluate(const Vector<std::size_t>& some) {
  s_.take(some);
  const auto ask = [&](Part part, std::int64_t i) {
    if (i >= 0) s_.arrays.ask(part, static_cast<std::size_t>(i));
  };
  const auto ask_for = [&](Part part, std::size_t i) {
    const auto& needed = s_.reduction.condensed(kind_of(part))[i];
    ask(part, needed.direct);
    ask(Part::block, needed.by_free);
    ask(part, needed.of_output);
  };
  if (!s_.free.empty()) {
    s_.arrays.ask(Part::output, s_.reduction.stress());
    ask(Part::block, s_.reduction.tangent());
  }
  for (std::size_t i = 0; i < s_.bindings.outputs.size(); ++i)
    if (s_.bindings.outputs[i].data)
      s_.arrays.ask(Part::output, i < s_.law.variables(Kind::output).size() ? i : s_.reduction.stress());
  for (const Part part : {Part::block, Part::parameter_block})
    for (std::size_t i = 0; i < s_.bindings.of(part).size(); ++i) {
      if (!s_.bindings.of(part)[i].data) continue;
      ask_for(part, i);
      results_.for_each_slope(part, i, [&](std::size_t, std::size_t by_input) { ask_for(Part::block, by_input); });
    }
  s_.evaluate();
}

// Judges a point by the law's answer, and writes its results; else goes on to other free strains.
bool Rounds::is_done(FreeStrain& each, std::size_t row, bool is_last) {
  const LawArrays& arrays = s_.arrays;
  each.status = *reinterpret_cast<const std::int32_t*>(arrays.report(NEML2_REPORT_STATUS, row));
  each.iterations += *reinterpret_cast<const std::int32_t*>(arrays.report(NEML2_REPORT_ITERATIONS, row));
  each.norm = *reinterpret_cast<const double*>(arrays.report(NEML2_REPORT_RESIDUAL_NORM, row));
  each.cut = *reinterpret_cast<const double*>(arrays.report(NEML2_REPORT_SUGGESTED_CUT, row));
  if (const char* solves = arrays.report(NEML2_REPORT_RESCUE_SOLVES, row))
    each.rescues += *reinterpret_cast<const std::int32_t*>(solves);
  write_history(each, row);
  if (each.status > NEML2_NON_FINITE) {
    if (!is_last && cut_back(each)) return false;
    keep_iterates(each, row);
    return true;
  }
  return s_.free.empty() ? accept(each, row, nullptr) : correct(each, row, is_last);
}

// Corrects the free strains, unless the stresses vanish or the point fails.
bool Rounds::correct(FreeStrain& each, std::size_t row, bool is_last) {
  const Numbers stress = results_.of_law(Part::output, s_.reduction.stress(), row);
  const Inverse inverse(results_.of_law(Part::block, static_cast<std::size_t>(s_.reduction.tangent()), row), s_.free);
  const double residual = greatest(stress, s_.free), stresses = greatest(stress, all),
               strains = greatest(results_.of_law(Part::input, s_.reduction.strain(), row), all);
  std::array<double, 5> step{};
  double correction = 0;
  for (std::size_t i = 0; i < s_.free.size(); ++i) {
    for (std::size_t j = 0; j < s_.free.size(); ++j) step[i] -= inverse(i, j) * stress[s_.free[j]];
    correction = larger(correction, std::fabs(step[i]));
  }
  const auto vanish = [&](double tolerance) { return residual <= tolerance * stresses; };
  const auto is_corrected = [&](double tolerance) { return inverse.exists() && correction <= tolerance * strains; };
  if (vanish(tight) || is_corrected(tight) || (residual >= 0.5 * each.residual && vanish(loose(s_.law.dtype()))) ||
      (each.cuts == most_cuts && is_corrected(loose(s_.law.dtype()))))
    return accept(each, row, &inverse);
  // Goes on if something beside the stress and its tangent is not finite.
  if (!std::isfinite(stresses) || (each.status == NEML2_NON_FINITE && !inverse.exists())) {
    each.status = NEML2_NON_FINITE;
    s_.fill_with_nan(each);
    return true;
  }
  if (is_last) return fail(each, NEML2_NOT_CONVERGED, residual);
  const double enough = (1 - decrease * std::ldexp(1.0, -each.cuts)) * each.residual;
  if (residual > enough && cut_back(each)) return false;
  if (!inverse.exists()) return fail(each, NEML2_SINGULAR, residual);
  each.residual = residual;
  each.step = step;
  each.cuts = 0;
  for (std::size_t k = 0; k < s_.free.size(); ++k) each.now[k] += step[k];
  return false;
}

// Goes back by half of the last step; false if there is none, or it is too short.
bool Rounds::cut_back(FreeStrain& each) const {
  if (each.residual == INFINITY || each.cuts == most_cuts) return false;
  ++each.cuts;
  for (std::size_t k = 0; k < s_.free.size(); ++k) each.now[k] -= each.step[k] /= 2;
  return true;
}

bool Rounds::fail(FreeStrain& each, std::int32_t status, double residual) const {
  each.status = status;
  each.norm = residual;
  each.cut = 0.5;
  s_.tally.note(join("the stresses that vanish under the hypothesis ", s_.reduction.hypothesis().name,
                     " did not: their greatest is ", residual, ".")
                    .c_str(),
                each.point, NEML2_CAUSE_NONE);
  return true;
}

// Writes the results of a point, if what the law was given is within bounds.
bool Rounds::accept(FreeStrain& each, std::size_t row, const Inverse* inverse) const {
  s_.look_at_bounds(row, 1);
  return each.status == NEML2_OUT_OF_BOUNDS || write(each, row, inverse);
}

bool Rounds::write(FreeStrain& each, std::size_t row, const Inverse* inverse) const {
  results_.write_outputs(Part::output, each.now.data(), each.point, row);
  results_.write_blocks(each.point, row, inverse);
  if (inverse && !inverse->exists() && (s_.plan.request().blocks || s_.plan.request().parameter_blocks))
    each.status = NEML2_NON_FINITE;
  return true;
}

void Rounds::write_history(const FreeStrain& each, std::size_t row) const {
  const Points& array = s_.bindings.report[NEML2_REPORT_RESIDUAL_HISTORY];
  if (array.data)
    std::memcpy(point(array, each.point, sizeof(double)), s_.arrays.report(NEML2_REPORT_RESIDUAL_HISTORY, row),
                static_cast<std::size_t>(s_.options.miters()) * sizeof(double));
}

void Rounds::keep_iterates(const FreeStrain& each, std::size_t row) const {
  if (!s_.bindings.unknowns) return;
  const auto alone = s_.range.turns ? s_.range.turns->alone() : std::unique_lock<locks::FreedMutex>();
  for (std::size_t k = 0; k < s_.arrays.unknowns().size(); ++k) {
    if (!s_.arrays.unknowns()[k].data()) continue;
    Groups iterates = {iterates_of_all(s_.bindings, k, s_.law.variables(Kind::unknown)[k])};
    copy_row({s_.arrays.unknowns()[k]}, static_cast<std::int64_t>(row), iterates, each.point);
  }
}

}  // namespace neml2_capi::model
