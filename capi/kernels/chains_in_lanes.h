// Derivatives of a block, by the chain rule and, for what is solved for, the implicit function theorem.
#pragma once

#include "capi/kernels/points_in_lanes.h"

namespace neml2_capi::kernels::NML2_INSTRUCTION_SET {
namespace {

template <class T>
class ChainsInLanes {
  using V = Lanes<T>;

 public:
  // `has_factors` tells whether the kernel of the Newton step has the factors of the last Jacobian.
  ChainsInLanes(const Walk& walk, const Scratch<T>& scratch, bool& has_factors)
      : walk_(walk), scratch_(scratch), has_factors_(has_factors) {}

  void derive(const Chain& chain) const { derive(chain, chain.products); }
  void derive(const Chain& chain, const List<Product>& products) const {
    assemble(chain, products);
    if (chain.system && chain.count > 0) {
      take_solution(chain);
      solve(chain, scratch_[chain.right], 0, chain.count);
    }
    scratch_.copy(chain.unpack);
  }

  // Derives by all directions but [begin, end). Returns whether these have been solved for, too.
  bool derive_but(const Chain& chain, std::int64_t begin, std::int64_t end) const {
    assemble(chain);
    bool all = true;
    if (chain.system && chain.count > 0) {
      take_solution(chain);
      const V* const from = scratch_[chain.right];
      all = solve(chain, from, 0, begin) || solve(chain, from, end, chain.count);
    }
    scratch_.copy(chain.unpack);
    return all;
  }
  // Derives by these directions behind all others.
  void derive_rest(const Chain& chain, std::int64_t begin, std::int64_t end) const {
    if (!chain.system) return derive(chain);
    solve(chain, scratch_[chain.right], begin, end);
    scratch_.copy(chain.unpack);
  }

  void assemble(const Chain& chain) const { assemble(chain, chain.products); }
  void assemble(const Chain& chain, const List<Product>& products) const {
    for (const Run& run : chain.operators) scratch_.call(run);
    scratch_.copy(chain.expand);
    scratch_.copy(chain.zeros);
    for (const Product& product : products) scratch_.push_forward(product, chain.count);
  }

  // Solves for directions `from`, if the kernel of the Newton step cannot, with row pivoting. A direction is a Newton step
  // more, from another residual and by the same factors. Directions that are not in [begin, end) need not be solved for:
  // pivoting, and one point, solve for all. Returns whether all have been solved for.
  bool solve(const Chain& chain, const V* from, std::int64_t begin, std::int64_t end) const {
    const Implicit& system = *chain.system;
    const bool by_pivoting = !system.newton_step.kernel || (chain.count > 1 && chain.solved == nowhere);
    if (by_pivoting) {
      solve_by_pivoting(chain, from);
      return true;
    }
    if (!has_factors_) scratch_.prepare(system.newton_step);
    if (!scratch_.is_one || chain.count == 1) return solve_steps(chain, from, begin, end);
    solve_steps_of_one(chain, from);
    return true;
  }

  // Calls a system again whose matrix a factorisation overwrites, whether or not it did.
  void renew(const Implicit& system) const {
    if (system.assemble.count == 0) scratch_.call(system.system);
  }

  void pull_back(const Adjoint& adjoint) const {
    V* const to = scratch_[adjoint.to];
    for (std::int64_t r = 0; r < adjoint.rows; ++r)
      for (std::int64_t c = 0; c < adjoint.columns; ++c)
        to[c] += scratch_[adjoint.matrix][r * adjoint.stride + c] * scratch_[adjoint.from][r];
  }

 private:
  // Calls the operator at the solution: a line search leaves another one.
  void take_solution(const Chain& chain) const {
    if (walk_.rules.ls_max_iters <= 1) return;
    scratch_.call(chain.system->system);
    has_factors_ = false;
  }

  void solve_by_pivoting(const Chain& chain, const V* from) const {
    V* const right = scratch_[chain.right];
    if (from != right) renew(*chain.system);
    const std::int64_t entries = chain.system->unknowns * chain.count;
    for (std::int64_t i = 0; i < entries; ++i) right[i] = -from[i];
    scratch_.solve_by_pivoting(*chain.system, right, chain.count);
  }

  // If the kernel does not trust the pivots of a lane, which are the same for all directions, it is solved with row
  // pivoting, and the others go on with all of theirs. Returns whether all have been solved for.
  bool solve_steps(const Chain& chain, const V* from, std::int64_t begin, std::int64_t end) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count;
    V *const step = scratch_[system.step], *const right = scratch_[chain.right];
    for (std::int64_t k = begin; k < end; ++k) {
      call_for(chain, from, k);
      const Mask<T> bad = *scratch_[system.trusted] != T(1);
      if (any(bad)) {
        solve_without(bad, chain, from);
        return true;
      }
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < n; ++i) right[i * count + k] = step[i];
    }
    return begin == 0 && end == count;
  }
  void solve_without(const Mask<T>& bad, const Chain& chain, const V* from) const {
    const std::int64_t n = chain.system->unknowns, count = chain.count;
    V *const step = scratch_[chain.system->step], *const solved = count == 1 ? step : scratch_[chain.solved];
    for (std::int64_t k = 0; k < count && count > 1; ++k) {
      call_for(chain, from, k);
      for (std::int64_t i = 0; i < n; ++i) solved[i * count + k] = step[i];
    }
    solve_by_pivoting(chain, from);
    for (std::int64_t i = 0; i < n * count; ++i) set_where(~bad, scratch_[chain.right][i], solved[i]);
  }
  // Calls the kernel of the Newton step for a direction.
  [[gnu::always_inline]] void call_for(const Chain& chain, const V* from, std::int64_t k) const {
    const Implicit& system = *chain.system;
    V* const r = scratch_[system.r];
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < system.unknowns; ++i) r[i] = -from[i * chain.count + k];
    scratch_.call(system.newton_step);
  }

  // Solves for one point, whose directions are in the lanes.
  void solve_steps_of_one(const Chain& chain, const V* from) const {
    constexpr int lanes = width<T>;
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count, packs = (count + lanes - 1) / lanes;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const solved = scratch_[chain.solved];
    Mask<T> bad{};
    for (std::int64_t p = 0; p < packs; ++p) {
      for (std::int64_t i = 0; i < n; ++i) {
        const V* const row = from + i * count;
        V directions{};
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) directions[l] = row[p * lanes + l < count ? p * lanes + l : 0][0];
        r[i] = -directions;
      }
      scratch_.call(system.newton_step, system.newton_step.kernel->run);
      bad |= *scratch_[system.trusted] != T(1);
      for (std::int64_t i = 0; i < n; ++i) solved[i * packs + p] = step[i];
    }
    if (any(bad)) return solve_by_pivoting(chain, from);
    const T* const row = reinterpret_cast<const T*>(solved);
    for (std::int64_t i = 0; i < n; ++i) repeat(row + i * packs * lanes, scratch_[chain.right] + i * count, count);
  }

  const Walk& walk_;
  const Scratch<T>& scratch_;
  bool& has_factors_;
};

}  // namespace
}  // namespace neml2_capi::kernels::NML2_INSTRUCTION_SET
