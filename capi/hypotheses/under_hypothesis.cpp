#include "capi/hypotheses/under_hypothesis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/cut_points.h"
#include "capi/evaluation/gathered.h"
#include "capi/evaluation/lanes.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"
#include "capi/hypotheses/inverse.h"
#include "capi/hypotheses/law_arrays.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

// A point is solved when the stresses that are to vanish are that small beside all stresses, or the next correction
// beside all strains; and when they go down no more, if they are below what the solve of the law leaves.
constexpr double tight = 1e-10, loose = 1e-7;
constexpr int most_cuts = 8;

struct FreeStrain {
  std::int64_t point = 0;
  std::array<double, 5> now{}, step{};
  double residual = INFINITY;  // of the last one that was no worse
  std::int32_t status = NEML2_OK, iterations = 0;
  int cuts = 0;
  double norm = 0, cut = 1;
};

kernels::Asked asked_of_lanes(const Request& request, const Reduction& reduction, const Model& law) {
  kernels::Asked asked;
  asked.by_parameters = request.parameter_blocks;
  asked.by_values =
      request.blocks || !reduction.hypothesis().free.empty() || (request.parameter_blocks && law.carries_parameters());
  return asked;
}

template <class Scalar>
class Evaluation {
 public:
  Evaluation(const Plan& plan, const Routes& law, const Reduction& reduction, const kernels::Engine* lanes,
             const Bindings& bindings, const Range& range, LawMemory& memory)
      : plan_(plan),
        lanes_(lanes),
        reduction_(reduction),
        free_(reduction.hypothesis().free),
        bindings_(bindings),
        range_(range),
        options_(plan.options().in_one_thread().with_bounds_checked()),
        law_(law.model()),
        check_(law_, plan.options()),
        memory_(memory),
        arrays_(law, reduction, bindings, range, memory) {}

  Tally run() {
    const bool has_products = plan_.request().jvps || has_adjoints();
    Vector<std::size_t> open = lanes_ ? run_in_lanes(has_products) : Vector<std::size_t>(), left;
    if (!lanes_)
      for (std::int64_t p = range_.begin; p < range_.begin + range_.points; ++p) begin(p, open);
    for (std::int64_t round = 0; !open.empty(); ++round) {
      interrupt::check();
      evaluate(open);
      left.clear();
      for (std::size_t row = 0; row < open.size(); ++row)
        if (!is_done(points_[open[row]], row, round + 1 >= options_.miters())) left.push_back(open[row]);
      std::swap(open, left);
    }
    if (has_products) products();
    conclude();
    return std::move(tally_);
  }

 private:
  const Scalar* law_row(Part part, std::size_t index, std::size_t row) const {
    return reinterpret_cast<const Scalar*>(arrays_.row(part, index, row));
  }
  Scalar* outside(Part part, std::size_t index, std::int64_t p) const {
    const Points& array = bindings_.of(part)[index];
    return array.data ? reinterpret_cast<Scalar*>(point(array, p, sizeof(Scalar))) : nullptr;
  }

  // Evaluates all points in lanes. Returns those that are left, which may need smaller steps, pivots or a word on why they
  // fail. The others are done, and are among the points if products are wanted.
  Vector<std::size_t> run_in_lanes(bool has_products) {
    Bindings& own = memory_.outside = bindings_;
    own.mark_failed = false;
    own.unknowns = nullptr;
    const auto add = [&](Points& array, Vector<char>& room, std::int64_t size, std::int64_t itemsize) {
      if (array.data) return;
      room.resize(static_cast<std::size_t>(range_.points * size * itemsize));
      array = {room.data() - range_.begin * size * itemsize, size};
    };
    add(own.report[NEML2_REPORT_STATUS], memory_.status, 1, sizeof(std::int32_t));
    const auto free = static_cast<std::size_t>(reduction_.free_output());
    if (has_products) {
      add(own.report[NEML2_REPORT_ITERATIONS], memory_.iterations, 1, sizeof(std::int32_t));
      add(own.report[NEML2_REPORT_RESIDUAL_NORM], memory_.norms, 1, sizeof(double));
    }
    if (has_products || check_.is_needed()) {
      if (!free_.empty()) add(own.outputs[free], memory_.free, std::ssize(free_), sizeof(Scalar));
    }
    Counts counts;
    lanes_->run(own, options_.newton(), asked_of_lanes(plan_.request(), reduction_, law_), range_.begin,
                range_.begin + range_.points, counts);
    if (check_.is_needed()) look_at_bounds(own, free);
    Vector<std::size_t> open;
    if (!has_products && counts.count[NEML2_OK] > 0)
      tally_.add(NEML2_OK, counts.first[NEML2_OK], counts.count[NEML2_OK]);
    if (!has_products && counts.count[NEML2_OK] == range_.points) return open;
    const auto report = [&]<class Number>(int kind, std::int64_t p, Number) {
      return *reinterpret_cast<const Number*>(point(own.report[kind], p, sizeof(Number)));
    };
    for (std::int64_t p = range_.begin; p < range_.begin + range_.points; ++p) {
      if (report(NEML2_REPORT_STATUS, p, std::int32_t()) != NEML2_OK) {
        begin(p, open);
      } else if (has_products) {
        FreeStrain& each = points_.emplace_back();
        each.point = p;
        each.iterations = report(NEML2_REPORT_ITERATIONS, p, std::int32_t());
        each.norm = report(NEML2_REPORT_RESIDUAL_NORM, p, double());
        for (std::size_t k = 0; k < free_.size(); ++k)
          each.now[k] =
              static_cast<double>(reinterpret_cast<const Scalar*>(point(own.outputs[free], p, sizeof(Scalar)))[k]);
      }
    }
    return open;
  }

  // Looks at what the law was given in lanes. No point fails there for its bounds: see lanes_for().
  void look_at_bounds(const Bindings& own, std::size_t free) {
    numbers_.clear();
    at_free_.clear();
    for (std::int64_t p = range_.begin; p < range_.begin + range_.points; ++p) {
      if (*reinterpret_cast<const std::int32_t*>(point(own.report[NEML2_REPORT_STATUS], p, 4)) != NEML2_OK) continue;
      numbers_.push_back(p);
      for (std::size_t k = 0; k < free_.size(); ++k)
        at_free_.push_back(
            static_cast<double>(reinterpret_cast<const Scalar*>(point(own.outputs[free], p, sizeof(Scalar)))[k]));
    }
    if (numbers_.empty()) return;
    arrays_.take(numbers_);
    arrays_.give(Part::input, reduction_.strain(), free_.empty() ? nullptr : &at_free_);
    Vector<Exceeded> exceeded;
    check_.find(arrays_.bindings(), {0, std::ssize(numbers_)}, exceeded);
    for (Exceeded& each : exceeded) {
      each.point = numbers_[static_cast<std::size_t>(each.point)];
      model::add(tally_.exceeded, each);
    }
  }

  // Begins at the free strains of the step before; at zero if there are none.
  void begin(std::int64_t p, Vector<std::size_t>& open) {
    open.push_back(points_.size());
    FreeStrain& each = points_.emplace_back();
    each.point = p;
    if (reduction_.free_before() < 0) return;
    const Scalar* before = outside(Part::input, static_cast<std::size_t>(reduction_.free_before()), p);
    for (std::size_t k = 0; k < free_.size(); ++k) each.now[k] = static_cast<double>(before[k]);
  }

  void take(const Vector<std::size_t>& some) {
    numbers_.clear();
    at_free_.clear();
    for (const std::size_t i : some) {
      numbers_.push_back(points_[i].point);
      for (std::size_t k = 0; k < free_.size(); ++k) at_free_.push_back(points_[i].now[k]);
    }
    arrays_.take(numbers_);
    arrays_.give(Part::input, reduction_.strain(), free_.empty() ? nullptr : &at_free_);
    if (free_.empty()) return;
    arrays_.ask(Part::output, reduction_.stress());
    arrays_.ask(Part::block, static_cast<std::size_t>(reduction_.tangent()));
  }

  // Evaluates the law with all that the caller wants of it, but products.
  void evaluate(const Vector<std::size_t>& some) {
    take(some);
    for (std::size_t i = 0; i < bindings_.outputs.size(); ++i)
      if (bindings_.outputs[i].data)
        arrays_.ask(Part::output, i < law_.variables(Kind::output).size() ? i : reduction_.stress());
    for (const Part part : {Part::block, Part::parameter_block})
      for (std::size_t i = 0; i < bindings_.of(part).size(); ++i) {
        if (!bindings_.of(part)[i].data) continue;
        const auto& needed = reduction_.condensed(kind_of(part))[i];
        if (needed.direct >= 0) arrays_.ask(part, static_cast<std::size_t>(needed.direct));
        if (needed.by_free >= 0) arrays_.ask(Part::block, static_cast<std::size_t>(needed.by_free));
        if (needed.of_output >= 0) arrays_.ask(part, static_cast<std::size_t>(needed.of_output));
      }
    note(arrays_.evaluate(options_));
  }

  // Keeps what an operator of the user said.
  void note(const Tally& tally) {
    if (!tally.reason.empty())
      tally_.note(tally.reason.c_str(), numbers_[static_cast<std::size_t>(tally.reason_at)], tally.cause);
    tally_.rescue_failed |= tally.rescue_failed;
  }

  // Judges a point by the law's answer, and writes its results; else goes on to other free strains.
  bool is_done(FreeStrain& each, std::size_t row, bool is_last) {
    const auto status = *reinterpret_cast<const std::int32_t*>(arrays_.report(NEML2_REPORT_STATUS, row));
    each.iterations += *reinterpret_cast<const std::int32_t*>(arrays_.report(NEML2_REPORT_ITERATIONS, row));
    each.norm = *reinterpret_cast<const double*>(arrays_.report(NEML2_REPORT_RESIDUAL_NORM, row));
    each.cut = *reinterpret_cast<const double*>(arrays_.report(NEML2_REPORT_SUGGESTED_CUT, row));
    each.status = status;
    write_history(each, row);
    if (status > NEML2_NON_FINITE) {
      if (!is_last && cut_back(each)) return false;
      keep_iterates(each, row);
      return true;
    }
    if (free_.empty()) return accept(each, row, nullptr);
    const Scalar* stress = law_row(Part::output, reduction_.stress(), row);
    const Inverse inverse(law_row(Part::block, static_cast<std::size_t>(reduction_.tangent()), row), free_);
    double residual = 0, greatest = 0, strain = 0, correction = 0;
    for (std::int64_t c = 0; c < symmetric_size; ++c)
      greatest = std::max(greatest, std::fabs(static_cast<double>(stress[c])));
    for (const std::int64_t c : free_) residual = std::max(residual, std::fabs(static_cast<double>(stress[c])));
    const auto* full = law_row(Part::input, reduction_.strain(), row);
    for (std::int64_t c = 0; c < symmetric_size; ++c)
      strain = std::max(strain, std::fabs(static_cast<double>(full[c])));
    std::array<double, 5> step{};
    for (std::size_t i = 0; i < free_.size(); ++i) {
      for (std::size_t j = 0; j < free_.size(); ++j) step[i] -= inverse(i, j) * static_cast<double>(stress[free_[j]]);
      correction = std::max(correction, std::fabs(step[i]));
    }
    const bool small = residual <= tight * greatest || (inverse.exists() && correction <= tight * strain);
    const bool stalled = residual >= 0.5 * each.residual &&
                         (residual <= loose * greatest || (inverse.exists() && correction <= loose * strain));
    if (small || stalled) return accept(each, row, &inverse);
    if (status == NEML2_NON_FINITE || !std::isfinite(residual)) {
      each.status = NEML2_NON_FINITE;
      return write(each, row, &inverse);
    }
    if (is_last) return fail(each, NEML2_NOT_CONVERGED, residual);
    if (residual > each.residual && cut_back(each)) return false;
    if (!inverse.exists()) return fail(each, NEML2_SINGULAR, residual);
    each.residual = residual;
    each.step = step;
    each.cuts = 0;
    for (std::size_t k = 0; k < free_.size(); ++k) each.now[k] += step[k];
    return false;
  }

  // Writes the results of a point, if what the law was given is within bounds.
  bool accept(FreeStrain& each, std::size_t row, const Inverse* inverse) {
    Vector<Exceeded> exceeded;
    const auto bad = check_.find(arrays_.bindings(), {static_cast<std::int64_t>(row), 1}, exceeded);
    for (Exceeded& found : exceeded) {
      found.point = each.point;
      model::add(tally_.exceeded, found);
    }
    if (bad.empty()) return write(each, row, inverse);
    each.status = NEML2_OUT_OF_BOUNDS;
    each.cut = bad.front().is_of_step ? 0.5 : 1.0;
    return true;
  }

  // Goes back by half of the last step; false if there is none, or it is too short.
  bool cut_back(FreeStrain& each) const {
    if (each.residual == INFINITY || each.cuts == most_cuts) return false;
    ++each.cuts;
    for (std::size_t k = 0; k < free_.size(); ++k) each.now[k] -= each.step[k] /= 2;
    return true;
  }

  bool fail(FreeStrain& each, std::int32_t status, double residual) {
    each.status = status;
    each.norm = residual;
    each.cut = 0.5;
    tally_.note(join("the stresses that vanish under the hypothesis ", reduction_.hypothesis().name,
                     " did not: their greatest is ", residual, ".")
                    .c_str(),
                each.point, NEML2_CAUSE_NONE);
    return true;
  }

  void write_history(const FreeStrain& each, std::size_t row) const {
    const Points& array = bindings_.report[NEML2_REPORT_RESIDUAL_HISTORY];
    if (array.data)
      std::memcpy(point(array, each.point, sizeof(double)), arrays_.report(NEML2_REPORT_RESIDUAL_HISTORY, row),
                  static_cast<std::size_t>(options_.miters()) * sizeof(double));
  }

  void keep_iterates(const FreeStrain& each, std::size_t row) const {
    if (!bindings_.unknowns) return;
    const auto alone = range_.turns ? range_.turns->alone() : std::unique_lock<locks::FreedMutex>();
    for (std::size_t k = 0; k < arrays_.unknowns().size(); ++k) {
      if (!arrays_.unknowns()[k].data()) continue;
      Groups all = {iterates_of_all(bindings_, k, law_.variables(Kind::unknown)[k])};
      copy_row({arrays_.unknowns()[k]}, static_cast<std::int64_t>(row), all, each.point);
    }
  }

  // Writes the results of a point that was solved. The inverse is of the tangent of the free strains.
  bool write(FreeStrain& each, std::size_t row, const Inverse* inverse) {
    write_outputs(Part::output, each.now.data(), each.point, row);
    bool is_finite = !inverse || inverse->exists();
    for (const Part part : {Part::block, Part::parameter_block})
      for (std::size_t i = 0; i < bindings_.of(part).size(); ++i)
        if (Scalar* to = outside(part, i, each.point)) {
          write_block(part, i, row, inverse, to);
          if (!is_finite) each.status = NEML2_NON_FINITE;
        }
    return true;
  }

  // Writes outputs, or their products with tangents, from the law's and from the free strains'.
  void write_outputs(Part part, const double* of_free, std::int64_t p, std::size_t row) const {
    const auto& outputs = law_.variables(Kind::output);
    for (std::size_t i = 0; i < bindings_.of(part).size(); ++i) {
      const Points& array = bindings_.of(part)[i];
      if (!array.data) continue;
      const bool is_whole = i < outputs.size() && !reduction_.roles(Kind::output)[i].is_reduced;
      if (is_whole) {
        const std::int64_t size = itemsize(outputs[i].dtype);
        std::memcpy(point(array, p, size), arrays_.row(part, i, row),
                    static_cast<std::size_t>(outputs[i].point_shape.product() * size));
        continue;
      }
      Scalar* to = outside(part, i, p);
      if (static_cast<std::int64_t>(i) == reduction_.free_output()) {
        for (std::size_t k = 0; k < free_.size(); ++k) to[k] = static_cast<Scalar>(of_free[k]);
        continue;
      }
      const Components& kept = i < outputs.size() ? reduction_.hypothesis().given : reduction_.hypothesis().zero;
      const Scalar* from = law_row(part, reduction_.stress(), row);
      for (const std::int64_t c : kept) *to++ = from[c];
    }
  }

  void write_block(Part part, std::size_t index, std::size_t row, const Inverse* inverse, Scalar* to) const {
    const Reduction::Condensed& of = reduction_.condensed(kind_of(part))[index];
    const auto law_block = [&](Part which, std::int64_t at) {
      return at < 0 ? nullptr : law_row(which, static_cast<std::size_t>(at), row);
    };
    const Scalar* direct = law_block(part, of.direct);
    const Scalar* by_strain = law_block(Part::block, of.by_free);
    const Scalar* of_stress = law_block(part, of.of_output);
    const std::size_t rows = of.rows.size(), columns = of.columns.size();
    for (std::size_t c = 0; c < columns; ++c) {
      double solved[5] = {};  // d free strains / d variable
      if (of_stress)
        for (std::size_t k = 0; k < free_.size(); ++k)
          for (std::size_t j = 0; j < free_.size(); ++j)
            solved[k] -=
                inverse->exists()
                    ? (*inverse)(k, j) * static_cast<double>(of_stress[free_[j] * of.model_columns + of.columns[c]])
                    : NAN;
      for (std::size_t r = 0; r < rows; ++r) {
        double value = direct ? static_cast<double>(direct[of.rows[r] * of.model_columns + of.columns[c]]) : 0;
        if (of.is_of_free) value = solved[r];
        if (by_strain)
          for (std::size_t k = 0; k < free_.size(); ++k)
            value += static_cast<double>(by_strain[of.rows[r] * symmetric_size + free_[k]]) * solved[k];
        to[bindings_.input_first ? c * rows + r : r * columns + c] = static_cast<Scalar>(value);
      }
    }
  }

  // Products with tangents and cotangents, by the implicit function theorem: the free strains have a tangent, and the
  // stresses that vanish a cotangent, which a first evaluation gives.
  void products() {
    Vector<std::size_t> good;
    for (std::size_t i = 0; i < points_.size(); ++i)
      if (points_[i].status <= NEML2_NON_FINITE) good.push_back(i);
    if (good.empty()) return;
    Vector<double> tangents(good.size() * free_.size()), cotangents(good.size() * free_.size());
    if (!free_.empty()) {
      take(good);
      give_directions(nullptr, nullptr);
      if (plan_.request().jvps) arrays_.ask(Part::jvp, reduction_.stress());
      if (has_adjoints()) arrays_.ask(Part::adjoint, reduction_.strain());
      note(arrays_.evaluate(options_));
      for (std::size_t row = 0; row < good.size(); ++row) solve_directions(row, good[row], tangents, cotangents);
    }
    take(good);
    give_directions(free_.empty() ? nullptr : &tangents, free_.empty() ? nullptr : &cotangents);
    for (std::size_t i = 0; i < bindings_.jvps.size(); ++i)
      if (bindings_.jvps[i].data)
        arrays_.ask(Part::jvp, i < law_.variables(Kind::output).size() ? i : reduction_.stress());
    for (const Part part : {Part::adjoint, Part::parameter_adjoint})
      for (std::size_t i = 0; i < bindings_.of(part).size(); ++i)
        if (bindings_.of(part)[i].data) ask_adjoint(part, i);
    note(arrays_.evaluate(options_));
    for (std::size_t row = 0; row < good.size(); ++row) {
      FreeStrain& each = points_[good[row]];
      const auto status = *reinterpret_cast<const std::int32_t*>(arrays_.report(NEML2_REPORT_STATUS, row));
      each.status = std::max(each.status, status);
      if (status > NEML2_NON_FINITE) continue;
      write_outputs(Part::jvp, tangents.data() + row * free_.size(), each.point, row);
      write_adjoints(each.point, row);
    }
  }

  bool has_adjoints() const { return plan_.request().adjoints || plan_.request().parameter_adjoints; }

  void give_directions(const Vector<double>* tangents, const Vector<double>* cotangents) {
    if (plan_.request().jvps)
      for (std::size_t i = 0; i < law_.variables(Kind::input).size(); ++i)
        arrays_.give(Part::tangent, i, i == reduction_.strain() ? tangents : nullptr);
    if (has_adjoints())
      for (std::size_t i = 0; i < law_.variables(Kind::output).size(); ++i)
        arrays_.give(Part::cotangent, i, i == reduction_.stress() ? cotangents : nullptr);
  }

  void solve_directions(std::size_t row, std::size_t i, Vector<double>& tangents, Vector<double>& cotangents) {
    const std::size_t n = free_.size();
    const Inverse inverse(law_row(Part::block, static_cast<std::size_t>(reduction_.tangent()), row), free_);
    if (!inverse.exists()) points_[i].status = NEML2_NON_FINITE;
    const auto entry = [&](std::size_t a, std::size_t b) { return inverse.exists() ? inverse(a, b) : NAN; };
    if (plan_.request().jvps) {
      const Scalar* stress = law_row(Part::jvp, reduction_.stress(), row);
      for (std::size_t a = 0; a < n; ++a)
        for (std::size_t b = 0; b < n; ++b)
          tangents[row * n + a] -= entry(a, b) * static_cast<double>(stress[free_[b]]);
    }
    if (!has_adjoints()) return;
    const Scalar* strain = law_row(Part::adjoint, reduction_.strain(), row);
    const Scalar* own = outside(Part::cotangent, static_cast<std::size_t>(reduction_.free_output()), points_[i].point);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = 0; b < n; ++b)
        cotangents[row * n + a] -=
            entry(b, a) * (static_cast<double>(strain[free_[b]]) + (own ? static_cast<double>(own[b]) : 0.0));
  }

  // The variable of the law that has the adjoint of one at the boundary; null if it is zero.
  std::optional<std::size_t> law_input(std::size_t index) const {
    if (index < law_.variables(Kind::input).size()) return index;
    const auto& roles = reduction_.roles(Kind::input);
    for (std::size_t i = 0; i < roles.size(); ++i)
      if (roles[i].others == static_cast<std::int64_t>(index)) return i;
    return std::nullopt;
  }

  void ask_adjoint(Part part, std::size_t index) {
    const std::optional<std::size_t> of = part == Part::adjoint ? law_input(index) : index;
    if (of) arrays_.ask(part, *of);
  }

  void write_adjoints(std::int64_t p, std::size_t row) const {
    for (const Part part : {Part::adjoint, Part::parameter_adjoint})
      for (std::size_t i = 0; i < bindings_.of(part).size(); ++i) {
        Scalar* to = outside(part, i, p);
        if (!to) continue;
        const Variable& variable = plan_.model().variable(part, i);
        const std::optional<std::size_t> of = part == Part::adjoint ? law_input(i) : i;
        if (!of) {
          std::fill_n(to, variable.point_shape.product(), Scalar(0));
          continue;
        }
        const Scalar* from = law_row(part, *of, row);
        if (part == Part::parameter_adjoint || !reduction_.roles(Kind::input)[*of].is_reduced) {
          std::copy_n(from, variable.point_shape.product(), to);
          continue;
        }
        const Reduction::Role& role = reduction_.roles(Kind::input)[*of];
        for (const std::int64_t c : i == *of ? reduction_.hypothesis().given : role.held) *to++ = from[c];
      }
  }

  // Writes the report, counts the points, and makes results of failed points NaN if the caller wants that.
  void conclude() {
    for (const FreeStrain& each : points_) {
      const auto put = [&](int kind, auto value) {
        const Points& array = bindings_.report[kind];
        if (array.data) std::memcpy(point(array, each.point, sizeof value), &value, sizeof value);
      };
      put(NEML2_REPORT_STATUS, each.status);
      put(NEML2_REPORT_ITERATIONS, each.iterations);
      put(NEML2_REPORT_RESIDUAL_NORM, each.norm);
      put(NEML2_REPORT_SUGGESTED_CUT, each.status == NEML2_OK ? 1.0 : each.cut);
      tally_.add_one(each.status, each.point);
      if (each.status <= NEML2_NON_FINITE) continue;
      if (each.status != NEML2_OUT_OF_BOUNDS) tally_.note({each.point, each.iterations, each.norm});
      if (!bindings_.mark_failed) continue;
      for_each_result(plan_.model(), bindings_, [&](const Points& array, const Variable& variable, Part, std::size_t) {
        if (!is_one_value(array))
          fill_nan(point(array, each.point, itemsize(variable.dtype)), variable.dtype, variable.point_shape.product());
      });
    }
  }

  const Plan& plan_;
  const kernels::Engine* lanes_;  // null if they do not give what is asked for
  const Reduction& reduction_;
  const Components& free_;
  const Bindings& bindings_;
  const Range& range_;
  const Options options_;
  const Model& law_;
  const BoundsCheck check_;
  LawMemory& memory_;
  LawArrays arrays_;
  Vector<FreeStrain> points_;
  Vector<std::int64_t> numbers_;
  Vector<double> at_free_;
  Tally tally_;
};

}  // namespace

UnderHypothesis::UnderHypothesis(std::shared_ptr<const Routes> law, std::unique_ptr<const Reduction> reduction)
    : law_(std::move(law)), reduction_(std::move(reduction)) {
  const Model& model = law_->model();
  if (model.dtype() == DType::float64 && !model.is_around_another() && !may_cut(model.metadata()))
    lanes_ = engine_for(model, &reduction_->condensation());
}

const kernels::Engine* UnderHypothesis::lanes_for(const Plan& plan) const {
  if (!lanes_ || plan.options().kernels() == Options::Kernels::off) return nullptr;
  // Lanes write before anybody has looked.
  if (may_fail_for_bounds(law_->model(), plan.options())) return nullptr;
  return lanes_->reason(asked_of_lanes(plan.request(), *reduction_, law_->model())).empty() ? lanes_.get() : nullptr;
}

void UnderHypothesis::check(const Options& options, std::int64_t points) const {
  if (options.whole_batch())
    throw Error(NEML2_ERROR_UNSUPPORTED, "convergence",
                join("Under the hypothesis ", reduction_->hypothesis().name,
                     " each point converges on its own: set convergence = point."));
  Request request{Bindings()};
  request.points = points;
  const Plan plan(*law_, options, request);
}

Route::ChunkSize UnderHypothesis::chunk_size(const Options& options, const Request& request) const {
  return law_->choose(request, options).chunk_size(options, request);
}

std::int64_t UnderHypothesis::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                           std::int64_t size) const {
  return law_->choose(Request(bindings), options).end_of_range(options, bindings, begin, size);
}

void UnderHypothesis::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                          Tally& tally) const {
  if (!workspace.kept) workspace.kept = std::make_unique<LawMemory>();
  LawMemory& memory = static_cast<LawMemory&>(*workspace.kept);
  with_scalar(plan.model().dtype(), [&]<class Scalar>(Scalar*) {
    if (!plan.request().sums) {
      tally.add(Evaluation<Scalar>(plan, *law_, *reduction_, lanes_for(plan), bindings, range, memory).run());
      return;
    }
    Bindings own = bindings;
    const Sums sums(plan.model(), bindings, range.begin, range.points);
    sums.replace(own);
    tally.add(Evaluation<Scalar>(plan, *law_, *reduction_, lanes_for(plan), own, range, memory).run());
    if (!begin_sums(plan, bindings, range)) return;
    sums.write();
    end_sums(plan, range);
  });
}

}  // namespace neml2_capi::model
