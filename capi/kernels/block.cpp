// Blocks of points through the segments of a model, for one instruction set: this file is compiled once for each.
//
// No function of another header may be compiled here with it: the linker keeps one copy of an inline function, and it
// must run on every processor.
#include "capi/kernels/block.h"

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class Block {
  using V = Lanes<T>;
  static constexpr int lanes = width<T>;

 public:
  explicit Block(const Walk& walk) : walk_(walk), scratch_(walk.scratch), is_explicit_(gives_values_alone(walk)) {
    for (int kind = 0; kind <= NEML2_REPORT_SUGGESTED_CUT; ++kind) is_reported_ |= walk.report[kind].data != nullptr;
    for (std::int64_t i = 0; i < walk.inputs.count; ++i)
      if (const Bound& input = walk.inputs.items[i]; input.array.stride != 0 || !input.lasts) last_new_ = i + 1;
  }

  void run(model::Counts& counts) {
    for (begin_ = walk_.begin; begin_ < walk_.end; begin_ += used_) {
      used_ = walk_.end - begin_ < lanes ? static_cast<int>(walk_.end - begin_) : lanes;
      if (walk_.has_sites_in_lanes && used_ <= most_one_by_one) used_ = 1;
      scratch_.is_one = used_ == 1;
      if (is_explicit_ && used_ == lanes && run_explicit(counts)) continue;
      gather<false>();
      scratch_.copy(walk_.seeds);
      BlockReport<T> report;
      report.begin = begin_;
      report.used = used_;
      start_history(report);
      for (const Step& step : walk_.steps) {
        run_forward(step);
        solve_and_derive(step, report);
      }
      scratch_.copy(walk_.zeros);
      for (const Product& product : walk_.products) scratch_.push_forward(product, 1);
      for (const Adjoint& adjoint : walk_.pulled) pull_back(adjoint);
      note_non_finite(report, counts);
      scatter(report);
      write_reports(report, counts);
    }
  }

 private:
  // Tells whether nothing is solved or derived.
  static bool gives_values_alone(const Walk& walk) {
    for (const Step& step : walk.steps)
      if (step.implicit || step.chain) return false;
    return walk.seeds.count + walk.blocks.count + walk.zeros.count + walk.products.count + walk.pulled.count == 0;
  }

  // A point in every lane, of values alone. False if something is not finite: then nothing is written.
  [[gnu::always_inline]] bool run_explicit(model::Counts& counts) {
    gather<true>();
    for (const Step& step : walk_.steps) run_forward(step);
    Mask<T> bits = given_;
    for (const Bound& output : walk_.outputs) bits |= bits_of(output);
    if (any(non_finite_in(bits))) return false;
    for (const Bound& output : walk_.outputs) {
      if (!output.array.data) continue;
      vectors_to_rows<T>(numbers(output.at), at(output.array, begin_), output.array.stride, output.components);
    }
    if (is_reported_) write_good_reports();
    count_good(counts);
    return true;
  }

  T* numbers(At place) const { return reinterpret_cast<T*>(scratch_[place]); }
  template <class X = T>
  static X* at(const model::Points& array, std::int64_t point) {
    return reinterpret_cast<X*>(array.data) + point * array.stride;
  }

  // Rows of a block that is not full: lanes without a point of their own repeat the last one.
  struct SomeRows {
    const T* first;
    std::int64_t stride;
    int used;

    const T* operator[](int l) const { return first + (l < used ? l : used - 1) * stride; }
  };

  template <bool is_full>
  [[gnu::always_inline]] void take_rows(const Bound& from) const {
    const T* const first = at(from.array, begin_);
    if (is_full || used_ == lanes)
      rows_to_vectors<T>(first, from.array.stride, numbers(from.at), from.components);
    else
      transpose_to_vectors<T>(SomeRows{first, from.array.stride, used_}, numbers(from.at), from.components);
  }

  static void repeat(const T* values, V* to, std::int64_t components) {
    count_to(components, [&](std::int64_t c) { to[c] = values[c] - V{}; });
  }

  template <bool is_full>
  [[gnu::always_inline]] void gather() {
    Mask<T> given{};
    const std::int64_t count = begin_ == walk_.begin ? walk_.inputs.count : last_new_;
    for (const Bound& input : List<Bound>{walk_.inputs.items, count}) {
      V* const to = scratch_[input.at];
      const T* const values = at(input.array, begin_);
      if (input.array.stride == 0) {
        if (begin_ == walk_.begin || !input.lasts) repeat(values, to, input.components);
        if (begin_ == walk_.begin) of_all_ |= bits_of(to, input.components);
        continue;
      }
      if (!is_full && used_ == 1) {
        repeat(values, to, input.components);
        given |= bits_of(to, input.components);
        continue;
      }
      take_rows<is_full>(input);
      given |= bits_of(to, input.components);
    }
    given_ = given | of_all_;
  }

  void start_history(BlockReport<T>& report) const {
    const model::Points& history = walk_.report[NEML2_REPORT_RESIDUAL_HISTORY];
    if (!history.data) return;
    report.history = at<double>(history, begin_);
    report.history_stride = history.stride;
    for (int l = 0; l < used_; ++l)
      for (std::int64_t i = 0; i < walk_.rules.miters; ++i) report.history[l * history.stride + i] = no_number<double>;
  }

  void solve_and_derive(const Step& step, BlockReport<T>& report) {
    scratch_.copy(step.pack);
    if (step.implicit) solve_implicit(*step.implicit, report);
    if (step.chain) derive(*step.chain);
  }

  [[gnu::always_inline]] void run_forward(const Step& step) {
    scratch_.copy(step.begin);
    if (step.run.kernel) {
      scratch_.prepare(step.run);
      for (std::int64_t pass = 1;; ++pass) {
        scratch_.call(step.run);
        if (pass >= step.passes) break;
        scratch_.copy(step.feedback);
      }
    }
  }

  void solve_implicit(const Implicit& system, BlockReport<T>& report) {
    Trace* const trace = walk_.traces ? walk_.traces + system.number : nullptr;
    Newton<T> newton(system, scratch_, walk_.rules, report, trace);
    if (walk_.guesses.count > 0) {
      newton.take_reference();
      take_guesses(system);
    }
    const WideMask<T> failed = newton.run();
    scratch_.copy(system.unpack);
    scratch_.copy(system.iterates);
    if (any(failed)) mark_failed(system, __builtin_convertvector(failed, Mask<T>));
  }

  void take_guesses(const Implicit& system) const {
    scratch_.copy(system.iterates);
    for (std::int64_t i = 0; i < system.parts; ++i) {
      const Bound& guess = walk_.guesses.items[system.first_part + i];
      const SomeRows from{at(guess.array, begin_), guess.array.stride, used_};
      T* const to = numbers(guess.at);
      for (std::int64_t c = 0; c < guess.components; ++c)
        for (int l = 0; l < lanes; ++l) to[c * lanes + l] = from[l][c] == from[l][c] ? from[l][c] : to[c * lanes + l];
    }
    for (const Move& move : system.iterates) scratch_.copy({move.to, move.from, move.components});
  }

  void derive(const Chain& chain) const {
    for (const Run& run : chain.operators) scratch_.call(run);
    scratch_.copy(chain.expand);
    scratch_.copy(chain.zeros);
    for (const Product& product : chain.products) scratch_.push_forward(product, chain.count);
    if (chain.system && chain.count > 0) solve_sensitivity(chain);
    scratch_.copy(chain.unpack);
  }

  void solve_sensitivity(const Chain& chain) const {
    // By the implicit function theorem, with the operator at the solution: a line search leaves another one.
    const Implicit& system = *chain.system;
    if (walk_.rules.ls_max_iters > 1) scratch_.call(system.system);
    V* const right = scratch_[chain.right];
    if (!system.newton_step.kernel || (chain.count > 1 && chain.solved == nowhere))
      solve_by_pivoting(chain, right);
    else if (scratch_.is_one && chain.count > 1)
      solve_steps_of_one(chain, right);
    else
      solve_steps(chain, right);
  }

  void solve_by_pivoting(const Chain& chain, V* right) const {
    const std::int64_t entries = chain.system->unknowns * chain.count;
    for (std::int64_t i = 0; i < entries; ++i) right[i] = -right[i];
    scratch_.solve_by_pivoting(*chain.system, right, chain.count);
  }

  // A direction is a Newton step more, from another residual and by the same factors; with row pivoting if that does not
  // trust its pivots.
  void solve_steps(const Chain& chain, V* right) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count;
    V *const r = scratch_[system.r], *const step = scratch_[system.step];
    V* const solved = count == 1 ? step : scratch_[chain.solved];
    Mask<T> bad{};
    scratch_.prepare(system.newton_step);
    for (std::int64_t k = 0; k < count; ++k) {
      for (std::int64_t i = 0; i < n; ++i) r[i] = -right[i * count + k];
      scratch_.call(system.newton_step);
      bad |= *scratch_[system.trusted] != T(1);
      for (std::int64_t i = 0; count > 1 && i < n; ++i) solved[i * count + k] = step[i];
    }
    if (any(bad)) solve_by_pivoting(chain, right);
    for (std::int64_t i = 0; i < n * count; ++i) set_where(~bad, right[i], solved[i]);
  }

  // The same for one point, whose directions are in the lanes.
  void solve_steps_of_one(const Chain& chain, V* right) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count, packs = (count + lanes - 1) / lanes;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const solved = scratch_[chain.solved];
    Mask<T> bad{};
    scratch_.prepare(system.newton_step);
    for (std::int64_t p = 0; p < packs; ++p) {
      for (std::int64_t i = 0; i < n; ++i) {
        const V* const from = right + i * count;
        V directions{};
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) directions[l] = from[p * lanes + l < count ? p * lanes + l : 0][0];
        r[i] = -directions;
      }
      scratch_.call(system.newton_step, system.newton_step.kernel->run);
      bad |= *scratch_[system.trusted] != T(1);
      for (std::int64_t i = 0; i < n; ++i) solved[i * packs + p] = step[i];
    }
    if (any(bad)) return solve_by_pivoting(chain, right);
    const T* const row = numbers(chain.solved);
    for (std::int64_t i = 0; i < n; ++i) repeat(row + i * packs * lanes, right + i * count, count);
  }

  void pull_back(const Adjoint& adjoint) const {
    V* const to = scratch_[adjoint.to];
    for (std::int64_t r = 0; r < adjoint.rows; ++r)
      for (std::int64_t c = 0; c < adjoint.columns; ++c)
        to[c] += scratch_[adjoint.matrix][r * adjoint.stride + c] * scratch_[adjoint.from][r];
  }

  // So that nothing after them takes the unknowns of failed points for a solution.
  void mark_failed(const Implicit& system, const Mask<T>& failed) const {
    for (const Move& move : system.unpack) {
      V* const values = scratch_[move.to];
      for (std::int64_t c = 0; c < move.components; ++c) set_where(failed, values[c], all_of<V>(no_number<double>));
    }
  }

  // x - x is zero or NaN: whatever bits of NaN are joined make one again. A sum would wait for every addition.
  [[gnu::always_inline]] static Mask<T> bits_of(const V* values, std::int64_t components) {
    Mask<T> bits{};
    const auto join = [&](std::int64_t count) {
#pragma GCC unroll 6
      for (std::int64_t c = 0; c < count; ++c) bits |= __builtin_bit_cast(Mask<T>, values[c] - values[c]);
    };
    if (components == 6)
      join(6);
    else
      join(components);
    return bits;
  }
  Mask<T> bits_of(const Bound& output) const { return bits_of(scratch_[output.at], output.components); }
  Mask<T> bits_of(const Matrix& block) const {
    Mask<T> bits{};
    if (block.at == nowhere) return bits;
    const V* const values = scratch_[block.at];
    if (block.row_stride == block.columns) return bits_of(values, block.sites * block.rows * block.columns);
    for (std::int64_t row = 0; row < block.sites * block.rows; ++row)
      bits |= bits_of(values + row * block.row_stride, block.columns);
    return bits;
  }
  static Mask<T> non_finite_in(const Mask<T>& bits) { return __builtin_bit_cast(V, bits) != T(0); }

  // By the rule of model::Marks.
  void note_non_finite(BlockReport<T>& report, model::Counts& counts) const {
    Mask<T> bits{};
    for (const Bound& output : walk_.outputs) bits |= bits_of(output);
    for (const Matrix& block : walk_.blocks) bits |= bits_of(block);
    const Mask<T> given = non_finite_in(given_);
    if (!any(given) && !any(report.status) && !any(non_finite_in(bits))) return;
    const WideMask<T> bad = __builtin_convertvector(non_finite_in(bits), WideMask<T>);
    report.status = (bad & (report.status == newton::ok)) ? InLanes<T>::status(newton::non_finite) : report.status;
    for (int l = 0; l < used_; ++l) {
      const bool has_failed = failed(report, l);
      if (given[l] && (has_failed || gives_nan(l))) report.status[l] = newton::non_finite;
      if (has_failed && given[l]) report.lost[l] = -1;
      if (has_failed && (given[l] || is_step_of_zero(report, l))) report.suggested_cut[l] = 1.0;
      if (report.status[l] == newton::non_finite && counts.non_finite.point < 0)
        counts.non_finite = {begin_ + l, reason(l, given[l] != 0)};
    }
  }

  // Inputs of a lane, before a result is written over them.
  const T* given_to(const model::Points& array, int l) const { return at(array, begin_ + l); }

  bool gives_nan(int l) const {
    for (const Bound& input : walk_.inputs)
      for (std::int64_t c = 0; c < input.components; ++c)
        if (const T x = given_to(input.array, l)[c]; x != x) return true;
    return false;
  }

  bool is_step_of_zero(const BlockReport<T>& report, int l) const {
    if (report.iterations[l] != 0 || report.residual_norm[l] - report.residual_norm[l] == 0.0) return false;
    for (const Increment& step : walk_.increments)
      if (*given_to(step.now, l) == *given_to(step.before, l)) return true;
    return false;
  }

  // The first array that is not finite in a lane.
  model::Named reason(int l, bool given) const {
    if (given)
      for (const Bound& input : walk_.inputs)
        for (std::int64_t c = 0; c < input.components; ++c)
          if (const T x = given_to(input.array, l)[c]; x - x != T(0)) return input.named;
    for (const Bound& output : walk_.outputs)
      if (non_finite_in(bits_of(output))[l]) return output.named;
    for (const Matrix& block : walk_.blocks)
      if (non_finite_in(bits_of(block))[l]) return block.named;
    return {};
  }

  // A point in every lane, and none failed.
  bool all_are_good(const BlockReport<T>& report) const {
    return used_ == lanes && !any((report.status > newton::non_finite) | report.lost);
  }
  bool has_results(const BlockReport<T>& report, int l) const { return !failed(report, l) && !report.lost[l]; }
  bool becomes_nan(const BlockReport<T>& report, int l) const { return walk_.mark_failed || report.lost[l]; }
  bool failed(const BlockReport<T>& report, int l) const { return report.status[l] > newton::non_finite; }

  void scatter(const BlockReport<T>& report) const {
    const bool all = all_are_good(report);
    for (const Bound& output : walk_.outputs) scatter(output, report, all);
    for (const Matrix& block : walk_.blocks) scatter(block, report, all);
    for (const Bound& iterate : walk_.iterates)
      for (int l = 0; l < used_; ++l)
        if (walk_.guesses.count > 0 || failed(report, l)) write(iterate, l);
  }

  void write(const Bound& output, int l) const {
    T* const to = at(output.array, begin_ + l);
    const T* const from = numbers(output.at) + l;
    count_to(output.components, [&](std::int64_t c) { to[c] = from[c * lanes]; });
  }

  static void fill_nan(T* to, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = no_number<T>;
  }

  void scatter(const Bound& output, const BlockReport<T>& report, bool all) const {
    if (!output.array.data) return;
    if (all)
      return vectors_to_rows<T>(numbers(output.at), at(output.array, begin_), output.array.stride, output.components);
    for (int l = 0; l < used_; ++l)
      if (has_results(report, l))
        write(output, l);
      else if (becomes_nan(report, l))
        fill_nan(at(output.array, begin_ + l), output.components);
  }

  void scatter(const Matrix& block, const BlockReport<T>& report, bool all) const {
    if (block.at != nowhere && !walk_.input_first && all) {
      T* to = at(block.array, begin_);
      for (std::int64_t row = 0; row < block.sites * block.rows; ++row, to += block.columns)
        vectors_to_rows<T>(numbers(block.at + row * block.row_stride), to, block.array.stride, block.columns);
      return;
    }
    for (int l = 0; l < used_; ++l) {
      T* const to = at(block.array, begin_ + l);
      if (has_results(report, l))
        write(block, l, to);
      else if (becomes_nan(report, l))
        fill_nan(to, block.sites * block.rows * block.columns);
    }
  }

  void write(const Matrix& block, int l, T* to) const {
    const bool turned = walk_.input_first;
    const std::int64_t by_row = turned ? 1 : block.columns, by_column = turned ? block.rows : 1;
    for (std::int64_t site = 0; site < block.sites; ++site, to += block.rows * block.columns)
      for (std::int64_t i = 0; i < block.rows; ++i) {
        T* const first = to + i * by_row;
        if (block.at == nowhere) {
          for (std::int64_t j = 0; j < block.columns; ++j) first[j * by_column] = T(0);
        } else {
          const T* const row = numbers(block.at + (site * block.rows + i) * block.row_stride) + l;
          count_to(block.columns, [&](std::int64_t j) { first[j * by_column] = row[j * lanes]; });
        }
      }
  }

  template <class X, class Values>
  void write_report(int which, const Values& values) const {
    const model::Points& array = walk_.report[which];
    if (!array.data) return;
    for (int l = 0; l < used_; ++l) *at<X>(array, begin_ + l) = static_cast<X>(values[l]);
  }

  template <class X>
  [[gnu::always_inline]] void fill_report(int which, X value) const {
    const model::Points& array = walk_.report[which];
    if (!array.data) return;
    const RowsOf<X> rows{at<X>(array, begin_), array.stride};
#pragma GCC unroll 16
    for (int l = 0; l < lanes; ++l) *rows[l] = value;
  }

  // Of a point in every lane, for which nothing was solved.
  void write_good_reports() const {
    fill_report<std::int32_t>(NEML2_REPORT_STATUS, newton::ok);
    fill_report<std::int32_t>(NEML2_REPORT_ITERATIONS, 0);
    fill_report<double>(NEML2_REPORT_RESIDUAL_NORM, 0.0);
    fill_report<double>(NEML2_REPORT_SUGGESTED_CUT, 1.0);
    if (walk_.report[NEML2_REPORT_RESIDUAL_HISTORY].data) {
      BlockReport<T> report;
      start_history(report);
    }
  }

  void write_report_arrays(const BlockReport<T>& report) const {
    write_report<std::int32_t>(NEML2_REPORT_STATUS, report.status);
    write_report<std::int32_t>(NEML2_REPORT_ITERATIONS, report.iterations);
    write_report<double>(NEML2_REPORT_RESIDUAL_NORM, report.residual_norm);
    write_report<double>(NEML2_REPORT_SUGGESTED_CUT, report.suggested_cut);
  }

  void count_good(model::Counts& counts) const {
    if (counts.count[newton::ok] == 0) counts.first[newton::ok] = begin_;
    counts.count[newton::ok] += used_;
  }

  void write_reports(const BlockReport<T>& report, model::Counts& counts) const {
    write_report_arrays(report);
    if (!any(report.status)) return count_good(counts);
    for (int l = 0; l < used_; ++l) {
      const std::int64_t status = report.status[l];
      if (counts.count[status]++ == 0) counts.first[status] = begin_ + l;
      if (status > newton::non_finite && counts.failed.point < 0)
        counts.failed = {begin_ + l, report.iterations[l], report.residual_norm[l]};
    }
  }

  const Walk& walk_;
  Scratch<T> scratch_;
  const bool is_explicit_;  // the steps give values alone
  bool is_reported_ = false;
  std::int64_t last_new_ = 0;  // inputs from here on are the same for all blocks
  std::int64_t begin_ = 0;
  int used_ = 0;
  Mask<T> given_{}, of_all_{};  // bits of what is given: of the lanes, and of values that all points have
};

template <class T>
void walk(const Walk& points, model::Counts& counts) {
  Block<T>(points).run(counts);
}

}  // namespace

extern const Functions double_functions = {width<double>, sizeof(double), walk<double>};
extern const Functions float_functions = {width<float>, sizeof(float), walk<float>};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
