// Increments that a point in a lane cannot solve in one step: halved, again and again, for this lane alone. As
// capi/segments/substep.h does it for packages; without recursion: behind the second of two halves the part that they are
// of is solved.
#pragma once

#include "capi/kernels/newton_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {

template <class T>
class InParts {
  using V = Lanes<T>;
  using W = Wide<T>;
  using WM = WideMask<T>;
  using Report = newton::Report<InLanes<T>>;

 public:
  // After the whole increment was tried. `before` is what earlier segments reported.
  InParts(const Step& step, const Scratch<T>& scratch, BlockReport<T>& block, const Report& before, Trace* trace)
      : parts_(*step.parts),
        system_(*step.implicit),
        chain_(step.chain && step.chain->system ? step.chain : nullptr),
        scratch_(scratch),
        block_(block),
        before_(before),
        trace_(trace),
        cut_(block.failed),
        open_(block.failed) {}

  // Solves the increments of lanes that failed, part by part. `solve` takes the lanes that are open, and reports of them;
  // `derive` finds the directions of the unknowns by these products.
  template <class Solve, class Derive>
  void run(Solve&& solve, Derive&& derive) {
    whole_ = block_.own;
    const W initial = block_.initial;
    double* const history = block_.history;
    block_.history = nullptr;
    begin();
    go_on(WM{}, cut_);
    while (any(open_)) {
      for (const Between& given : parts_.moving) interpolate(given, given.components);
      solve(open_);
      const WM good = open_ & (block_.own.status == newton::ok), last = open_ & ~good & (level_ == parts_.levels);
      whole_.iterations = open_ ? whole_.iterations + block_.own.iterations : whole_.iterations;
      set_where(open_, whole_.residual_norm, block_.own.residual_norm);
      set_where(good | last, whole_.status, block_.own.status);
      take(narrow(good | last), scratch_[parts_.solution], scratch_[system_.u], system_.unknowns);
      for (const Move& state : parts_.states) take(narrow(good), state);
      if (chain_ && any(good)) {
        derive_part(derive);
        take(narrow(good), scratch_[chain_->parts.solution], scratch_[chain_->right], entries());
        for (const Move& state : chain_->parts.states) take(narrow(good), state);
      }
      note(last);
      go_on(good, open_ & ~good & ~last);
      open_ &= ~last & ~(good & (level_ == 0));
    }
    scratch_.copy({parts_.solution, system_.u, system_.unknowns});
    if (chain_) {
      scratch_.copy({chain_->parts.solution, chain_->right, entries()});
      scratch_.copy(chain_->unpack);
    }
    block_.history = history;
    end(initial);
  }

 private:
  static Mask<T> narrow(const WM& mask) { return __builtin_convertvector(mask, Mask<T>); }
  std::int64_t entries() const { return system_.unknowns * chain_->count; }

  static void take(const Mask<T>& lanes, V* to, const V* from, std::int64_t components) {
    for (std::int64_t k = 0; k < components; ++k) set_where(lanes, to[k], from[k]);
  }
  void take(const Mask<T>& lanes, const Move& move) const {
    take(lanes, scratch_[move.to], scratch_[move.from], move.components);
  }

  // Results of the lanes that did not fail.
  void begin() const {
    scratch_.copy({system_.u, parts_.solution, system_.unknowns});
    if (!chain_) return;
    scratch_.copy({chain_->right, chain_->parts.solution, entries()});
    for (const Spread& state : chain_->parts.begins) spread(state);
  }

  // To the next part, behind those that are solved; or to the first half of those that are not.
  void go_on(const WM& good, const WM& bad) {
    part_ = good ? part_ + 1 : bad ? part_ + part_ : part_;
    level_ = bad ? level_ + 1 : level_;
    width_ = bad ? width_ * 0.5 : width_;
    for (WM up = ends_pair(good); any(up); up = ends_pair(good)) {
      part_ = up ? part_ >> 1 : part_;
      level_ = up ? level_ - 1 : level_;
      width_ = up ? width_ * 2.0 : width_;
    }
    if (trace_)
      for (int l = 0; l < block_.used; ++l)
        if (level_[l] > trace_->deepest) trace_->deepest = level_[l];
  }
  WM ends_pair(const WM& good) const { return good & (level_ > 0) & ((part_ & 1) == 0); }

  V narrow(const W& numbers) const { return __builtin_convertvector(numbers, V); }
  W begin_of(const WM& part) const { return __builtin_convertvector(part, W) * width_; }
  V place_of(Between::Place place) const {
    if (place == Between::Place::width) return narrow(width_);
    return narrow(place == Between::Place::begin ? begin_of(part_) : begin_of(part_ + 1));
  }
  void interpolate(const Between& of, std::int64_t numbers) const {
    const V at = place_of(of.at), *const to = scratch_[of.to];
    V* const made = scratch_[of.made];
    if (of.from == nowhere)
      for (std::int64_t i = 0; i < numbers; ++i) made[i] = to[i] * at;
    else
      for (std::int64_t i = 0; i < numbers; ++i) {
        const V from = scratch_[of.from][i];
        made[i] = from + (to[i] - from) * at;
      }
  }

  // Directions as a matrix.
  void spread(const Spread& of) const {
    const std::int64_t count = chain_->count;
    scratch_.copy({of.at, of.to, of.rows * count});
    for (std::int64_t k = 0; k < of.units; ++k) scratch_[of.to][(of.begin + k) * count + of.first + k] += V{} + T(1);
  }

  template <class Derive>
  void derive_part(Derive&& derive) const {
    const DirectionsInParts& parts = chain_->parts;
    for (const Spread& each : parts.spreads) spread(each);
    for (const Between& each : parts.moving) interpolate(each, each.components * chain_->count);
    derive(parts.products);
  }

  void note(const WM& last) const {
    if (!trace_) return;
    for (int l = 0; l < block_.used; ++l) trace_->given_up -= last[l];
  }

  void end(const W& initial) const {
    const WM failed = whole_.status != newton::ok;
    Report whole = whole_;
    whole.suggested_cut = failed ? newton::Rules<InLanes<T>>::suggested_cut(initial, whole.residual_norm) : W{} + 1.0;
    static_cast<Report&>(block_) = before_;
    block_.add(whole);
    block_.failed = failed;
    if (!trace_) return;
    for (int l = 0; l < block_.used; ++l) trace_->cut -= cut_[l];
  }

  const CutIncrement& parts_;
  const Implicit& system_;
  const Chain* const chain_;
  const Scratch<T>& scratch_;
  BlockReport<T>& block_;
  const Report before_;
  Trace* const trace_;
  const WM cut_;
  WM open_;
  Report whole_;
  WM part_{}, level_{};  // part number `part_` of 2^level_, each of the width 2^-level_
  W width_ = W{} + 1.0;
};

}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
