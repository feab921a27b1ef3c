// Solve of a block for free components and unknowns at once: each iteration of Newton's method is followed by a correction of
// the free components, with which the unknowns go to first order.
#pragma once

#include "capi/kernels/chains_in_lanes.h"
#include "capi/kernels/free_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

// Functions that have the constants are for `n` free components; the normal ones stand first.
template <class T>
class FreeSolve {
  using V = Lanes<T>;
  using Right = typename ChainsInLanes<T>::Right;

 public:
  FreeSolve(const PointsInLanes<T>& points, BlockReport<T>& report, bool& has_factors)
      : walk_(points.walk),
        points_(points),
        scratch_(points.scratch),
        report_(report),
        has_factors_(has_factors),
        chains_(walk_, scratch_, has_factors),
        system_(system_of(walk_)),
        newton_(system_ ? *system_ : none, scratch_, walk_.rules, report_,
                system_ ? points_.trace(*system_) : nullptr) {}

  // Solves for the free components of each block, in turns.
  template <class... Solves>
  static void run(const Walk& walk, Solves&&... all) {
    (all.start(), ...);
    for (std::int64_t i = 0; (... || all.goes_on()); ++i) {
      for (const Step& step : walk.steps) {
        ((all.goes_on() ? all.evaluate(step, i) : void()), ...);
        if (step.implicit) ((all.goes_on() ? all.iterate(*step.implicit, i) : void()), ...);
      }
      with_counts(walk.free,
                  [&]<int n, int normal>() { ((all.goes_on() ? all.template correct<n, normal>(i) : void()), ...); });
    }
    if (walk.condensed.count > 0)
      with_counts(walk.free, [&]<int n, int normal>() { (all.template derive_for_caller<n, normal>(), ...); });
    (all.finish(), ...);
  }

 private:
  bool goes_on() const { return any(open_); }

  static constexpr Implicit none = {};
  // Returns the only system, or null.
  static const Implicit* system_of(const Walk& walk) {
    for (const Step& step : walk.steps)
      if (step.implicit) return step.implicit;
    return nullptr;
  }

  static Mask<T> narrow(const WideMask<T>& lanes) { return __builtin_convertvector(lanes, Mask<T>); }

  void start() const {
    const Free& free = walk_.free;
    if (walk_.begins_at_solution)
      scratch_.copy({nowhere, free.output + free.first, free.count});
    else
      scratch_.copy({free.begin, free.input + free.first, free.count});
  }

  void evaluate(const Step& step, std::int64_t i) {
    if (!step.implicit) return evaluate_forward(step, i);
    if (i == 0) scratch_.run_forward(step);
    scratch_.copy(i == 0 ? step.pack : walk_.free.pack);
    if (i == 0) scratch_.copy(step.guess);
    newton_.prepare();
    if (i == 0 && walk_.begins_at_solution) {
      initial_ = newton_.take_reference();
      points_.begin_at_solution(*step.implicit);
    }
    scratch_.call(step.implicit->system);
    is_new_ = true;
  }

  // Evaluates the law without the derivatives that it has given, if these stay.
  void evaluate_forward(const Step& step, std::int64_t i) const {
    if (i == 0 || !step.values.kernel) return scratch_.run_forward(step);
    scratch_.prepare(step.values);
    scratch_.call(step.values);
  }

  void iterate(const Implicit& system, std::int64_t i) {
    found_ = newton_.iterate(i, open_, initial_, left_);
    has_factors_ = newton_.has_factors();
    is_new_ = !has_factors_;
    scratch_.copy(system.unpack);
  }

  // Ends lanes in which all is found, and corrects the free components of all others: by the normal ones alone, unless a lane
  // needs the shears, too.
  template <int n, int normal>
  void correct(std::int64_t i) {
    const FreeInLanes<T, n, normal> free{walk_.free, scratch_};
    if (i > 0 || system_) judge(i, free.residual(), free);
    if (!goes_on()) return;
    derive(0, normal);
    auto matrix = free.matrix(walk_.free.derivative);
    const Mask<T> with_shears = matrix.coupled(free.left(), 1) & narrow(open_);
    if (n > normal && any(with_shears)) derive(normal, n);
    V correction[n];
    const Mask<T> regular = matrix.solve(with_shears, free.left(), 1, correction);
    left_ |= open_ & ~__builtin_convertvector(regular, WideMask<T>);
    open_ &= ~left_;
    retire(i, free.stand(correction));
    const Mask<T> moves = narrow(open_);
    free.move(moves, correction);
    for (const Step& step : walk_.steps)
      if (step.implicit && step.of_free->system)
        free.move(moves, correction, with_shears, scratch_[step.implicit->u], scratch_[step.of_free->right],
                  step.implicit->unknowns);
  }

  // Ends lanes in which all is found. In those that go on, the derivative of a residual by the free components is new if it
  // was not good enough: few residuals have one that changes.
  template <class Free>
  [[gnu::always_inline]] void judge(std::int64_t i, const V& residual, const Free& free) {
    const Mask<T> bad = non_finite_in<T>(bits_of<T>(scratch_[walk_.free.output], 6));
    left_ |= __builtin_convertvector(bad, WideMask<T>);
    open_ &= ~left_;
    retire(i, free.vanish(residual));
    if (i + 1 == 2 * walk_.rules.miters) left_ |= open_;
    open_ &= ~left_;
    is_stale_ = i == 0 ? ~Mask<T>{} : residual > T(0.1) * last_;
    last_ = residual;
  }

  // Derives by the free components [from, to). Those before stay, and those behind mean nothing.
  void derive(std::int64_t from, std::int64_t to) {
    for (const Step& step : walk_.steps)
      if (step.of_free) derive(step, from, to);
  }
  void derive(const Step& step, std::int64_t from, std::int64_t to) {
    const Chain& chain = *step.of_free;
    if (!step.implicit || !chain.system) return chains_.derive(chain);
    if (from == 0 && any(is_stale_) && !has_columns(chain)) renew(chain);
    is_new_ = false;
    if (from > 0 && has_all_) return;
    has_all_ = chains_.solve(chain, right_, from, to);
    scratch_.copy(chain.unpack);
  }

  // Tells whether operators have returned what they would return again for any unknowns and free components.
  bool has_columns(const Chain& chain) const {
    return right_.count > 0 && chain.is_of_scalars && !walk_.free.moves_scalars;
  }

  // Computes the derivative of a residual by the free components again, in lanes in which it is not good enough. It stays in
  // the blocks of operators until it is good in some lanes alone.
  void renew(const Chain& chain) {
    const Right kept{scratch_[walk_.free.right], chain.count};
    const bool is_first = right_.count == 0;
    if (!is_first && right_.columns) keep(~Mask<T>{}, chain, right_, kept);
    right_ = chains_.assemble(chain);
    if (is_first && right_.columns) return;
    keep(is_stale_, chain, right_, kept);
    right_ = kept;
  }
  void keep(const Mask<T>& lanes, const Chain& chain, const Right& from, const Right& kept) const {
    for (std::int64_t k = 0; k < chain.count; ++k)
      for (std::int64_t i = 0; i < chain.system->unknowns; ++i)
        set_where(lanes, kept.at(k)[i * kept.stride(k)], from.at(k)[i * from.stride(k)]);
  }

  // Ends lanes whose free components are found, if the unknowns are, too.
  void retire(std::int64_t i, const Mask<T>& lanes) {
    const WideMask<T> done = open_ & found_ & __builtin_convertvector(lanes, WideMask<T>);
    set_where(done, report_.iterations, WideMask<T>(WideMask<T>{} + i));
    open_ &= ~done;
  }

  // Derives by the free shears only if a lane needs that, and condenses.
  template <int n, int normal>
  void derive_for_caller() {
    const FreeInLanes<T, n, normal> free{walk_.free, scratch_};
    const std::int64_t begin = walk_.free.shears, end = begin + n - normal;
    bool has_all = true;
    for (const Step& step : walk_.steps) {
      if (step.implicit && !is_new_) {
        scratch_.call(step.implicit->system);
        has_factors_ = false;
      }
      if (step.chain) has_all &= chains_.derive_but(*step.chain, begin, end, has_columns(*step.chain));
    }
    const bool with_shears = free.needs_shears(walk_.condensed);
    if (with_shears && !has_all)
      for (const Step& step : walk_.steps)
        if (step.chain) chains_.derive_rest(*step.chain, begin, end);
    left_ |= ~__builtin_convertvector(free.condense(walk_.condensed, with_shears), WideMask<T>);
  }

  void finish() {
    report_.status = left_ ? InLanes<T>::status(NEML2_NOT_CONVERGED) : report_.status;
    for (const Step& step : walk_.steps)
      if (step.implicit && walk_.traces) Newton<T>::note_end(*points_.trace(*step.implicit), report_, report_);
  }

  const Walk& walk_;
  const PointsInLanes<T>& points_;
  const Scratch<T> scratch_;
  BlockReport<T>& report_;
  bool& has_factors_;
  const ChainsInLanes<T> chains_;
  const Implicit* const system_;
  Newton<T> newton_;
  // Lanes that go on, that are left to others, and whose unknowns have converged, if there are any.
  WideMask<T> open_ = ~WideMask<T>{}, left_{}, found_ = ~WideMask<T>{};
  bool is_new_ = false;   // the system was called for the unknowns as they are, and nothing has overwritten its matrix
  bool has_all_ = false;  // directions of the unknowns by the shears are solved for, too
  Mask<T> is_stale_{};    // the derivative of the residual by the free components is computed again
  Right right_{};         // that derivative
  V last_{};              // what did not vanish an iteration before
  Wide<T> initial_{};     // |r| at the guess, or what it is measured by
};

// Picks the derivatives that the caller has components of, if nothing is solved for.
template <class T>
void pick(const Walk& walk, const Scratch<T>& scratch) {
  for (const Condensed& block : walk.condensed) {
    Lanes<T>* to = scratch[block.to];
    for (const std::int64_t r : block.rows)
      for (const std::int64_t c : block.columns)
        *to++ = block.direct.at == nowhere ? Lanes<T>{} : scratch[block.direct.at][r * block.direct.stride + c];
  }
}

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
