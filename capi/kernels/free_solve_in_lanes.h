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
      with_counts(walk.free, [&]<int n, int normal>() {
        ((all.goes_on() && (i > 0 || all.system_) ? all.template judge<n, normal>(i) : void()), ...);
        ((all.goes_on() ? all.template derive<n, normal>() : void()), ...);
        ((all.goes_on() ? all.template correct<n, normal>(i) : void()), ...);
      });
    }
    (all.finish(), ...);
    if (walk.blocks.count > 0)
      with_counts(walk.free, [&]<int n, int normal>() { (all.template derive_for_caller<n, normal>(), ...); });
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

  template <int n, int normal>
  FreeInLanes<T, n, normal> free() const {
    return {walk_.free, scratch_};
  }

  void start() const {
    const Free& free = walk_.free;
    if (walk_.begins_at_solution)
      scratch_.copy({nowhere, free.output + free.first, free.count});
    else
      scratch_.copy({free.begin, free.input + free.first, free.count});
  }

  void evaluate(const Step& step, std::int64_t i) {
    if (i == 0 || !step.implicit) scratch_.run_forward(step);
    if (!step.implicit) return;
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

  void iterate(const Implicit& system, std::int64_t i) {
    found_ = newton_.iterate(i, open_, initial_, left_);
    has_factors_ = newton_.has_factors();
    is_new_ = !has_factors_;
    scratch_.copy(system.unpack);
  }

  // Ends lanes in which all is found. In those that go on, the derivative of a residual by the free components is new if it
  // was not good enough: few residuals have one that changes.
  template <int n, int normal>
  void judge(std::int64_t i) {
    const auto free = this->free<n, normal>();
    const V residual = free.residual();
    const Mask<T> bad = non_finite_in<T>(bits_of<T>(scratch_[walk_.free.output], 6));
    left_ |= __builtin_convertvector(bad, WideMask<T>);
    open_ &= ~left_;
    retire(i, free.vanish(residual));
    if (i + 1 == 2 * walk_.rules.miters) left_ |= open_;
    open_ &= ~left_;
    is_stale_ = i == 0 ? ~Mask<T>{} : residual > T(0.1) * last_;
    last_ = residual;
  }

  // Derives by the normal components, and by the shears if a lane needs that.
  template <int n, int normal>
  void derive() {
    derive(0, normal);
    if (free<n, normal>().needs_shears(__builtin_convertvector(open_, Mask<T>))) derive(normal, n);
  }

  void derive(std::int64_t from, std::int64_t to) {
    for (const Step& step : walk_.steps)
      if (step.of_free) derive(step, from, to);
  }

  // By the free components [from, to). Those before stay, and those behind mean nothing.
  void derive(const Step& step, std::int64_t from, std::int64_t to) {
    const Chain& chain = *step.of_free;
    if (!step.implicit || !chain.system) return chains_.derive(chain);
    const std::int64_t entries = chain.system->unknowns * chain.count;
    V* const kept = scratch_[walk_.free.right];
    if (from == 0 && any(is_stale_)) {
      chains_.assemble(chain);
      for (std::int64_t k = 0; k < entries; ++k) set_where(is_stale_, kept[k], scratch_[chain.right][k]);
    }
    is_new_ = false;
    if (from > 0 && has_all_) return;
    has_all_ = chains_.solve(chain, kept, from, to);
    scratch_.copy(chain.unpack);
  }

  template <int n, int normal>
  void correct(std::int64_t i) {
    auto free = this->free<n, normal>();
    left_ |= open_ & ~__builtin_convertvector(free.correct(), WideMask<T>);
    open_ &= ~left_;
    retire(i, free.stand());
    const Mask<T> moves = __builtin_convertvector(open_, Mask<T>);
    free.move(moves);
    for (const Step& step : walk_.steps)
      if (step.implicit) free.move(moves, *step.implicit, *step.of_free);
  }

  // Ends lanes whose free components are found, if the unknowns are, too.
  void retire(std::int64_t i, const Mask<T>& lanes) {
    const WideMask<T> done = open_ & found_ & __builtin_convertvector(lanes, WideMask<T>);
    set_where(done, report_.iterations, WideMask<T>(WideMask<T>{} + i));
    open_ &= ~done;
  }

  // Derives by the free shears only if a lane needs that.
  template <int n, int normal>
  void derive_for_caller() const {
    const std::int64_t begin = walk_.free.shears, end = begin + n - normal;
    bool has_all = true;
    for (const Step& step : walk_.steps) {
      if (step.implicit && !is_new_) {
        scratch_.call(step.implicit->system);
        has_factors_ = false;
      }
      if (step.chain) has_all &= chains_.derive_but(*step.chain, begin, end);
    }
    if (has_all || !this->free<n, normal>().needs_shears(walk_.condensed)) return;
    for (const Step& step : walk_.steps)
      if (step.chain) chains_.derive_rest(*step.chain, begin, end);
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
  V last_{};              // what did not vanish an iteration before
  Wide<T> initial_{};     // |r| at the guess, or what it is measured by
};

// Condenses derivatives; returns the lanes in which that is possible.
template <class T>
Mask<T> condense(const Walk& walk, const Scratch<T>& scratch) {
  if (walk.free.count > 0 && walk.condensed.count > 0)
    return with_counts(walk.free, [&]<int n, int normal>() {
      return FreeInLanes<T, n, normal>(walk.free, scratch).condense(walk.condensed);
    });
  for (const Condensed& block : walk.condensed) {
    Lanes<T>* to = scratch[block.to];
    for (const std::int64_t r : block.rows)
      for (const std::int64_t c : block.columns)
        *to++ = block.direct.at == nowhere ? Lanes<T>{} : scratch[block.direct.at][r * block.direct.stride + c];
  }
  return ~Mask<T>{};
}

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
