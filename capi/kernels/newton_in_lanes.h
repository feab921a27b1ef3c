// Newton's method with line search, a point in each lane, by the rules of capi/newton.
#pragma once

#include "capi/kernels/scratch_in_lanes.h"
#include "capi/newton/rules.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

// Numbers of the rules: a value for each lane.
template <class T>
struct InLanes {
  using Norm = Wide<T>;
  using Mask = WideMask<T>;
  using Status = WideMask<T>;

  static Norm number(double value) { return all_of<Norm>(value); }
  static Status status(std::int64_t value) { return Status{} + value; }
  template <class Value>
  static Value choose(const Mask& mask, const Value& if_true, const Value& if_false) {
    return mask ? if_true : if_false;
  }
  static Mask is_finite(const Norm& norm) { return (norm - norm) == 0.0; }
};

// Points of a block: what became of them over all segments.
template <class T>
struct BlockReport : newton::Report<InLanes<T>> {
  WideMask<T> lost{};         // lanes whose solve failed for what they were given: their results are NaN
  double* history = nullptr;  // of the first lane; null: not wanted
  std::int64_t history_stride = 0;
  std::int64_t begin = 0;            // the point of the first lane
  int used = width<T>;               // lanes with a point of their own
  WideMask<T> failed{};              // lanes in which the last system was not solved
  newton::Report<InLanes<T>> own{};  // of that system
  Wide<T> initial{};                 // its |r| at the guess

  BlockReport() : newton::Report<InLanes<T>>{{}, {}, {}, InLanes<T>::number(1.0)} {}
  // Begins with the points of another block. What a system writes before it is read stays.
  void restart(std::int64_t first, int count) {
    using Own = newton::Report<InLanes<T>>;
    static_cast<Own&>(*this) = Own{{}, {}, {}, InLanes<T>::number(1.0)};
    lost = failed = WideMask<T>{};
    history = nullptr;
    begin = first;
    used = count;
  }
  bool has_failed(int l) const { return this->status[l] > newton::non_finite; }
};

template <class T>
class Newton {
  using V = Lanes<T>;
  using W = Wide<T>;
  using WM = WideMask<T>;
  using Rules = newton::Rules<InLanes<T>>;

 public:
  // `trace` may be null.
  Newton(const Implicit& system, const Scratch<T>& scratch, const newton::Settings& settings, BlockReport<T>& block,
         Trace* trace)
      : s_(system), scratch_(scratch), settings_(settings), block_(block), trace_(trace), n_(system.unknowns) {}

  // A solve of a part of the increment in some lanes: the block's report is not added to.
  void of_part(const WM& lanes) {
    lanes_ = lanes;
    is_part_ = true;
  }

  // Prepares the kernels for what is given.
  void prepare() const {
    scratch_.prepare(s_.system);
    if (searches()) scratch_.prepare(s_.residual);
  }

  // Measures the relative criterion from here, too, if run() begins elsewhere. Returns |r|.
  W take_reference() {
    has_reference_ = true;
    return reference_ = norm_of_guess();
  }

  // Solves the system of each block, in turns.
  template <class... Newtons>
  static void run(Newtons&&... all) {
    constexpr bool is_alone = sizeof...(all) == 1;
    (all.start(), ...);
    for (std::int64_t i = 1; (... | (all.goes_on_ && i < all.settings_.miters)); ++i) {
      ((is_alone || all.goes_on_ ? all.take_step() : void()), ...);
      ((is_alone || all.goes_on_ ? all.move(i) : void()), ...);
      ((is_alone || all.goes_on_ ? all.judge(i) : void()), ...);
    }
    (all.tell(), ...);
  }

  // One iteration of a solve in which givens move, too, in lanes that go on, after the system was called: a step, unless the
  // residual has converged. `initial` is |r| at the guess, and before the first one, a reference for it. Returns the lanes that converged, and adds to those that are lost.
  // No increment may be cut.
  WM iterate(std::int64_t i, const WM& open, W& initial, WM& lost) {
    active_ = open;
    settled_ = ~WM{};
    norm_ = searches() ? norm_of_guess() : norm();
    if (i == 0) {
      initial = Rules::initial(norm_, initial);
      start_history();
    }
    set_where(open, block_.residual_norm, norm_);
    const WM found = Rules::verdict(norm_, initial, WM{}, settled_, settings_);
    lost |= open & (found > newton::ok);
    if (i < settings_.miters) tell_of_iteration(i);
    active_ &= found == newton::undecided;
    if (!any(active_)) return found == newton::ok;
    find_step();
    lost |= active_ & singular_;
    if (searches())
      search(i < settings_.miters ? i : settings_.miters - 1);
    else
      add_step();
    return found == newton::ok;
  }
  // Tells whether the last iteration has left the factors of its Jacobian.
  bool has_factors() const { return any(active_); }
  // Adds the points of a block to what the log tells.
  static void note_end(Trace& trace, const newton::Report<InLanes<T>>& report, const BlockReport<T>& block) {
    for (int l = 0; l < block.used; ++l) {
      if (report.iterations[l] > trace.iterations) trace.iterations = report.iterations[l];
      if (report.status[l] == newton::ok) {
        ++trace.converged;
      } else if (trace.failed < 0) {
        trace.failed = block.begin + l;
        trace.status = report.status[l];
        trace.norm = report.residual_norm[l];
      }
    }
  }

 private:
  void call(const Run& run) const { scratch_.call(run); }
  V* u() const { return scratch_[s_.u]; }
  V* trial() const { return scratch_[s_.trial]; }
  V* step() const { return scratch_[s_.step]; }
  bool searches() const { return settings_.ls_max_iters > 1; }
  // What tells how good a point is: the residual of the last trial, or of the system.
  const V* r() const { return scratch_[searches() ? s_.trial_residual : s_.r]; }

  static Mask<T> narrow(const WM& mask) { return __builtin_convertvector(mask, Mask<T>); }
  static W widened(const V& x) { return __builtin_convertvector(x, W); }

  W product(const V* a, const V* b) const {
    W sum{};
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < n_; ++i) sum += widened(a[i]) * widened(b[i]);
    return sum;
  }
  W norm() const { return square_root<T>(product(r(), r())); }
  W norm_of_guess() {
    if (searches()) {
      for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k];
      call(s_.residual);
    } else {
      call(s_.system);
    }
    return norm();
  }

  void start() {
    active_ = lanes_;
    if (!s_.is_cut) settled_ = ~WM{};
    start_history();
    norm_ = initial_ = norm_of_guess();
    if (has_reference_) initial_ = Rules::initial(norm_, reference_);
    judge(0);
  }

  void take_step() {
    if (searches()) call(s_.system);
    find_step();
  }

  void find_step() {
    if (!s_.newton_step.kernel || settings_.in_rescue) {
      singular_ = __builtin_convertvector(solve_by_pivoting(step()), WM);
      return;
    }
    scratch_.prepare(s_.newton_step);
    call(s_.newton_step);
    const Mask<T> bad = (*scratch_[s_.trusted] != T(1)) & narrow(active_);
    singular_ = WM{};
    if (!any(bad)) return;
    V* const pivoted = scratch_[s_.pivoted];
    singular_ = __builtin_convertvector(solve_by_pivoting(pivoted) & bad, WM);
    for (std::int64_t k = 0; k < n_; ++k) set_where(bad, step()[k], pivoted[k]);
  }

  Mask<T> solve_by_pivoting(V* to) {
    for (std::int64_t k = 0; k < n_; ++k) to[k] = scratch_[s_.r][k];
    return scratch_.solve_by_pivoting(s_, to, 1);
  }

  void move(std::int64_t iteration) {
    if (searches())
      search(iteration);
    else
      advance();
  }

  // The full step; the residual comes with the operator for the next one.
  void advance() {
    if (s_.is_cut) {
      for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k] + step()[k];
      take_trial();
    } else {
      add_step();
    }
    call(s_.system);
    norm_ = norm();
  }

  [[gnu::always_inline]] void add_step() {
    V* __restrict const to = u();
    const V* __restrict const by = step();
    const std::int64_t count = n_;
    if (const Mask<T> moves = narrow(active_); any(~moves)) {
      for (std::int64_t k = 0; k < count; ++k) set_where(moves, to[k], V(to[k] + by[k]));
    } else {  // the branch is foreseen, so that no unknown waits for a norm
      for (std::int64_t k = 0; k < count; ++k) to[k] += by[k];
    }
  }

  // Cut the step of each lane until its residual has decreased enough. The last trial is taken in any case.
  void search(std::int64_t iteration) {
    const W before = norm_, slope = product(r(), step());
    W alpha = all_of<W>(1.0);
    for (std::int64_t i = 1; i < settings_.ls_max_iters; ++i) {
      const V size = __builtin_convertvector(alpha, V);
      for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k] + size * step()[k];
      call(s_.residual);
      norm_ = norm();
      const WM open = active_ & ~Rules::has_decreased(norm_, before, alpha, slope, settings_);
      if (!any(open)) break;
      alpha = open ? alpha / settings_.ls_cutback : alpha;
    }
    take_trial();
    if (trace_) note_least(trace_->least_step[iteration], alpha);
  }

  // Take the trial. If increments may be cut, see whether the step was small enough for the relative criterion.
  void take_trial() {
    if (s_.is_cut) {
      W made{};
      for (std::int64_t k = 0; k < n_; ++k) {
        const W difference = widened(trial()[k] - u()[k]);
        made += difference * difference;
      }
      const W size = square_root<T>(product(trial(), trial()));
      settled_ = Rules::has_settled(square_root<T>(made), size, settings_);
    }
    const Mask<T> moves = narrow(active_);
    for (std::int64_t k = 0; k < n_; ++k) set_where(moves, u()[k], trial()[k]);
  }

  // Retire the lanes that are done after iteration i, and note where they stand.
  void judge(std::int64_t i) {
    if (block_.history) note_history(i);
    if (trace_) note_greatest(trace_->greatest_norm[i]);
    const WM found = Rules::verdict(norm_, initial_, singular_, settled_, settings_);
    const WM done = active_ & (found != newton::undecided);
    if (!scratch_.is_one || any(done)) {  // the branch of a block is not foreseen
      note(done, i);
      set_where(done, report_.status, found);
      active_ &= ~done;
      goes_on_ = any(active_);
    }
    if (trace_)
      for (int l = 0; l < block_.used; ++l) trace_->left[i] -= active_[l];
  }

  void note(const WM& lanes, std::int64_t i) {
    set_where(lanes, report_.residual_norm, norm_);
    set_where(lanes, report_.iterations, WM{} + i);
  }

  void tell_of_iteration(std::int64_t i) {
    if (block_.history) note_history(i);
    if (!trace_) return;
    note_greatest(trace_->greatest_norm[i]);
    for (int l = 0; l < block_.used; ++l) trace_->left[i] -= active_[l];
  }

  void note_greatest(double& greatest) const {
    for (int l = 0; l < block_.used; ++l)
      if (active_[l] && !(norm_[l] <= greatest) && greatest == greatest) greatest = norm_[l];
  }
  void note_least(double& least, const W& alpha) const {
    for (int l = 0; l < block_.used; ++l)
      if (active_[l] && alpha[l] < least) least = alpha[l];
  }

  void start_history() {
    if (!block_.history) return;
    for (int l = 0; l < block_.used; ++l)
      for (std::int64_t i = 0; i < settings_.miters; ++i)
        block_.history[l * block_.history_stride + i] = no_number<double>;
  }
  void note_history(std::int64_t i) {
    for (int l = 0; l < block_.used; ++l)
      if (active_[l]) block_.history[l * block_.history_stride + i] = norm_[l];
  }

  // Adds to what earlier segments reported.
  void tell() {
    if (goes_on_) note(active_, settings_.miters - 1);
    block_.failed = report_.status != newton::ok;
    block_.own = report_;
    block_.initial = initial_;
    if (is_part_) return;
    const W cut = Rules::suggested_cut(initial_, report_.residual_norm);
    set_where(block_.failed, report_.suggested_cut, cut);
    block_.add(report_);
    if (trace_) note_end(*trace_, report_, block_);
  }

  const Implicit& s_;
  const Scratch<T>& scratch_;
  const newton::Settings& settings_;
  BlockReport<T>& block_;
  Trace* const trace_;
  const std::int64_t n_;
  bool has_reference_ = false, goes_on_ = true, is_part_ = false;
  WM lanes_ = ~WM{};  // those without a point of their own do what the last one does
  W norm_{}, initial_{}, reference_{};
  WM active_{}, singular_{}, settled_{};
  newton::Report<InLanes<T>> report_{InLanes<T>::status(NEML2_NOT_CONVERGED), {}, {}, InLanes<T>::number(1.0)};
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
