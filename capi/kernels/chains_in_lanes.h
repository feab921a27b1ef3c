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
    if (chain.system && chain.count > 0) solve_sensitivity(chain);
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
  // pivoting, and one point, solve for all from the first one on.
  void solve(const Chain& chain, const V* from, std::int64_t begin, std::int64_t end) const {
    const Implicit& system = *chain.system;
    const bool by_pivoting = !system.newton_step.kernel || (chain.count > 1 && chain.solved == nowhere);
    const bool of_one = scratch_.is_one && chain.count > 1;
    if ((by_pivoting || of_one) && begin > 0) return;
    if (by_pivoting) return solve_by_pivoting(chain, from);
    if (!has_factors_) scratch_.prepare(system.newton_step);
    if (of_one)
      solve_steps_of_one(chain, from);
    else
      solve_steps(chain, from, begin, end);
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
  void solve_sensitivity(const Chain& chain) const {
    // With the operator at the solution: a line search leaves another one.
    if (walk_.rules.ls_max_iters > 1) {
      scratch_.call(chain.system->system);
      has_factors_ = false;
    }
    solve(chain, scratch_[chain.right], 0, chain.count);
  }

  void solve_by_pivoting(const Chain& chain, const V* from) const {
    V* const right = scratch_[chain.right];
    if (from != right) renew(*chain.system);
    const std::int64_t entries = chain.system->unknowns * chain.count;
    for (std::int64_t i = 0; i < entries; ++i) right[i] = -from[i];
    scratch_.solve_by_pivoting(*chain.system, right, chain.count);
  }

  // Lanes whose pivots the kernel does not trust are solved with row pivoting; they are the same for all directions.
  void solve_steps(const Chain& chain, const V* from, std::int64_t begin, std::int64_t end) const {
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const right = scratch_[chain.right];
    V* const solved = count == 1 ? step : scratch_[chain.solved];
    Mask<T> bad{};
    for (std::int64_t k = begin; k < end; ++k) {
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < n; ++i) r[i] = -from[i * count + k];
      scratch_.call(system.newton_step);
      bad |= *scratch_[system.trusted] != T(1);
      V* const to = any(bad) ? solved : right;
      if (count == 1 && to == solved) continue;
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < n; ++i) to[i * count + k] = step[i];
    }
    if (!any(bad)) return;
    solve_by_pivoting(chain, from);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t k = 0; k < end; ++k) set_where(~bad, right[i * count + k], solved[i * count + k]);
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
