// Newton's method with line search, a point in each lane: the rules are those of capi/newton.
#pragma once

#include "capi/kernels/block.h"
#include "capi/kernels/lu.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

// As neml2_status has them.
inline constexpr std::int64_t ok = 0, non_finite = 1, not_converged = 2, is_singular = 3;

// What became of the points of a block, over all segments.
template <class T>
struct Fate {
  WideMask<T> status{};
  WideMask<T> lost{};  // lanes whose solve failed for what they were given: their results are NaN
  WideMask<T> iterations{};
  Wide<T> residual_norm{};
  Wide<T> suggested_cut = all_of<Wide<T>>(1.0);
  double* history = nullptr;  // of the first lane; null: not wanted
  std::int64_t history_stride = 0;
  std::int64_t begin = 0;  // the point of the first lane
  int used = width<T>;     // lanes with a point of their own
};

[[gnu::always_inline]] inline void call(const Run& run) { run.kernel->run(run.inputs, run.outputs, run.kept); }

template <class T>
[[gnu::always_inline]] inline void copy(const Move<T>& move) {
  const auto* from = reinterpret_cast<const Lanes<T>*>(move.from);
  auto* to = reinterpret_cast<Lanes<T>*>(move.to);
  if (from)
    for (std::int64_t i = 0; i < move.components; ++i) to[i] = from[i];
  else
    for (std::int64_t i = 0; i < move.components; ++i) to[i] = Lanes<T>{};
}

template <class T>
[[gnu::always_inline]] inline void copy_all(const List<Move<T>>& moves) {
  for (std::int64_t i = 0; i < moves.count; ++i) copy(moves.items[i]);
}

template <class T>
class Newton {
  using V = Lanes<T>;
  using W = Wide<T>;
  using WM = WideMask<T>;

 public:
  // `trace` may be null.
  Newton(const Implicit<T>& system, const Rules& rules, Fate<T>& fate, Trace* trace)
      : s_(system), rules_(rules), fate_(fate), trace_(trace), n_(system.unknowns) {}

  // Returns the lanes that failed.
  WM run() {
    for (int l = 0; l < width<T>; ++l) active_[l] = l < fate_.used ? -1 : 0;
    if (!s_.is_cut) settled_ = ~WM{};
    start_history();
    if (searches()) {
      for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k];
      call(s_.residual);
    } else {
      call(s_.system);
    }
    norm_ = initial_ = norm();
    judge(0);
    for (std::int64_t i = 1; i < rules_.miters && any(active_); ++i) {
      if (searches()) call(s_.system);
      take_step();
      if (searches())
        search(i);
      else
        advance();
      judge(i);
    }
    tell();
    return status_ != ok;
  }

 private:
  static V* vectors(T* scratch) { return reinterpret_cast<V*>(scratch); }
  V* u() const { return vectors(s_.u); }
  V* trial() const { return vectors(s_.trial); }
  V* step() const { return vectors(s_.step); }
  bool searches() const { return rules_.ls_max_iters > 1; }
  // What tells how good a point is: the residual of the last trial, or of the system.
  const V* r() const { return vectors(searches() ? s_.trial_residual : s_.r); }

  static Mask<T> narrow(const WM& mask) { return __builtin_convertvector(mask, Mask<T>); }
  static W widened(const V& x) { return __builtin_convertvector(x, W); }

  W product(const V* a, const V* b) const {
    W sum{};
    for (std::int64_t i = 0; i < n_; ++i) sum += widened(a[i]) * widened(b[i]);
    return sum;
  }
  W norm() const { return square_root<T>(product(r(), r())); }

  void take_step() {
    if (!s_.newton_step.kernel) {
      singular_ = __builtin_convertvector(solve_by_pivoting(step()), WM);
      return;
    }
    call(s_.newton_step);
    const Mask<T> bad = (*vectors(s_.trusted) != T(1)) & narrow(active_);
    singular_ = WM{};
    if (!any(bad)) return;
    V* const pivoted = vectors(s_.pivoted);
    singular_ = __builtin_convertvector(solve_by_pivoting(pivoted) & bad, WM);
    for (std::int64_t k = 0; k < n_; ++k) step()[k] = bad ? pivoted[k] : step()[k];
  }

  Mask<T> solve_by_pivoting(V* to) {
    copy_all(s_.assemble);
    for (std::int64_t k = 0; k < n_; ++k) to[k] = vectors(s_.r)[k];
    return solve<T>(vectors(s_.jacobian), to, n_, 1);
  }

  // The full step; the residual comes with the operator for the next one.
  void advance() {
    for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k] + step()[k];
    move();
    call(s_.system);
    norm_ = norm();
  }

  // Cut the step of each lane until its residual has decreased enough. The last trial is taken in any case.
  void search(std::int64_t iteration) {
    const W squared0 = norm_ * norm_, slope = product(r(), step());
    W alpha = all_of<W>(1.0);
    for (std::int64_t i = 1; i < rules_.ls_max_iters; ++i) {
      const V size = __builtin_convertvector(alpha, V);
      for (std::int64_t k = 0; k < n_; ++k) trial()[k] = u()[k] + size * step()[k];
      call(s_.residual);
      norm_ = norm();
      const W decrease = rules_.strong_wolfe ? alpha * squared0 : 2.0 * alpha * slope;
      const WM enough = (norm_ * norm_ <= squared0 - rules_.ls_c * decrease) | (norm_ <= rules_.atol);
      const WM open = active_ & ~enough;
      if (!any(open)) break;
      alpha = open ? alpha / rules_.ls_cutback : alpha;
    }
    move();
    if (trace_) note_least(trace_->least_step[iteration], alpha);
  }

  // Take the trial. Where increments may be cut, see whether the step was small enough for the relative criterion.
  void move() {
    if (s_.is_cut) {
      W made{};
      for (std::int64_t k = 0; k < n_; ++k) {
        const W difference = widened(trial()[k] - u()[k]);
        made += difference * difference;
      }
      const W size = square_root<T>(product(trial(), trial()));
      settled_ = square_root<T>(made) < rules_.step_tol * (size + rules_.atol);
    }
    const Mask<T> moves = narrow(active_);
    for (std::int64_t k = 0; k < n_; ++k) u()[k] = moves ? trial()[k] : u()[k];
  }

  // Note where each lane stands after iteration i, and retire those that are done.
  void judge(std::int64_t i) {
    const WM finite = (norm_ - norm_) == 0.0;
    const WM converged = (norm_ < rules_.atol) | (norm_ == 0.0) | ((norm_ / initial_ < rules_.rtol) & settled_);
    last_norm_ = active_ ? norm_ : last_norm_;
    iterations_ = active_ ? WM{} + i : iterations_;
    if (fate_.history) note_history(i);
    if (trace_) note_greatest(trace_->greatest_norm[i]);
    const WM singular = singular_ & active_, good = converged & finite & ~singular & active_;
    status_ = good ? WM{} + ok : status_;
    status_ = singular ? WM{} + is_singular : status_;
    active_ &= ~(good | singular | ~finite);
    if (trace_)
      for (int l = 0; l < fate_.used; ++l) trace_->left[i] -= active_[l];
  }

  void note_greatest(double& greatest) const {
    for (int l = 0; l < fate_.used; ++l)
      if (active_[l] && !(norm_[l] <= greatest) && greatest == greatest) greatest = norm_[l];
  }
  void note_least(double& least, const W& alpha) const {
    for (int l = 0; l < fate_.used; ++l)
      if (active_[l] && alpha[l] < least) least = alpha[l];
  }

  void start_history() {
    if (!fate_.history) return;
    for (int l = 0; l < fate_.used; ++l)
      for (std::int64_t i = 0; i < rules_.miters; ++i) fate_.history[l * fate_.history_stride + i] = no_number<double>;
  }
  void note_history(std::int64_t i) {
    for (int l = 0; l < fate_.used; ++l)
      if (active_[l]) fate_.history[l * fate_.history_stride + i] = norm_[l];
  }

  // Add to what earlier segments reported.
  void tell() {
    fate_.iterations += iterations_;
    fate_.residual_norm = (last_norm_ <= fate_.residual_norm) ? fate_.residual_norm : last_norm_;
    const WM failed = status_ != ok;
    fate_.status = (failed & (fate_.status == ok)) ? status_ : fate_.status;
    const W cut = last_norm_ < initial_ ? all_of<W>(0.5) : all_of<W>(0.25);
    fate_.suggested_cut = (failed & (cut < fate_.suggested_cut)) ? cut : fate_.suggested_cut;
    if (trace_) note_end(*trace_);
  }

  void note_end(Trace& trace) const {
    for (int l = 0; l < fate_.used; ++l) {
      if (iterations_[l] > trace.iterations) trace.iterations = iterations_[l];
      if (status_[l] == ok) {
        ++trace.converged;
      } else if (trace.failed < 0) {
        trace.failed = fate_.begin + l;
        trace.status = status_[l];
        trace.norm = last_norm_[l];
      }
    }
  }

  const Implicit<T>& s_;
  const Rules& rules_;
  Fate<T>& fate_;
  Trace* const trace_;
  const std::int64_t n_;
  W norm_{}, initial_{}, last_norm_{};
  WM active_{}, singular_{}, iterations_{}, settled_{};
  WM status_ = WM{} + not_converged;
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
