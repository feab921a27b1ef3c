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

  // Right-hand sides of directions, as columns: they stand side by side, or where operators have returned them.
  struct Right {
    V* first = nullptr;
    std::int64_t count = 0;
    const Column* columns = nullptr;
    V* at(std::int64_t k) const { return columns ? first + columns[k].at : first + k; }
    std::int64_t stride(std::int64_t k) const { return columns ? columns[k].stride : count; }
  };

  void derive(const Chain& chain) const { derive(chain, assemble(chain)); }
  void derive(const Chain& chain, const List<Product>& products) const { derive(chain, assemble(chain, products)); }

  // Derives by all directions but [begin, end). Returns whether these have been solved for, too. Operators need not be called if
  // what they return is there.
  bool derive_but(const Chain& chain, std::int64_t begin, std::int64_t end, bool has_columns) const {
    const Right right = has_columns ? right_of(chain) : assemble(chain);
    bool all = true;
    if (chain.system && chain.count > 0) {
      take_solution(chain);
      all = solve(chain, right, 0, begin) || solve(chain, right, end, chain.count);
    }
    scratch_.copy(chain.unpack);
    return all;
  }
  // Derives by these directions behind all others.
  void derive_rest(const Chain& chain, std::int64_t begin, std::int64_t end) const {
    if (!chain.system) return derive(chain);
    solve(chain, right_of(chain), begin, end);
    scratch_.copy(chain.unpack);
  }

  // Calls the operators of a segment, and puts together what follows for its outputs, or the right-hand sides of its system.
  Right assemble(const Chain& chain) const {
    if (chain.columns.count == 0) return assemble(chain, chain.products);
    call_operators(chain);
    return right_of(chain);
  }
  Right assemble(const Chain& chain, const List<Product>& products) const {
    call_operators(chain);
    scratch_.copy(chain.zeros);
    for (const Product& product : products) scratch_.push_forward(product, chain.count);
    return {scratch_[chain.right], chain.count};
  }

  // Solves for directions: with row pivoting, or by the kernel of the Newton step if it keeps its factors. A direction is
  // then a Newton step more, from another residual. Directions that are not in [begin, end) need not be solved for:
  // pivoting, and one point, solve for all. Returns whether all have been solved for.
  bool solve(const Chain& chain, const Right& right, std::int64_t begin, std::int64_t end) const {
    const Implicit& system = *chain.system;
    if (chain.solved == nowhere) {
      solve_by_pivoting(chain, right);
      return true;
    }
    if (!has_factors_) scratch_.prepare(system.newton_step);
    if (!scratch_.is_one || chain.count == 1) return solve_steps(chain, right, begin, end);
    solve_steps_of_one(chain, right);
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

  void derive(const Chain& chain, const Right& right) const {
    if (chain.system && chain.count > 0) {
      take_solution(chain);
      solve(chain, right, 0, chain.count);
    }
    scratch_.copy(chain.unpack);
  }
  Right right_of(const Chain& chain) const {
    if (chain.columns.count == 0) return {scratch_[chain.right], chain.count};
    return {scratch_.first, chain.count, chain.columns.items};
  }
  void call_operators(const Chain& chain) const {
    for (const Run& run : chain.operators) scratch_.call(run);
    scratch_.copy(chain.expand);
  }

  // The negative of a sum 0 + x, which has no zero below 0: on devices and in headers, right-hand sides are such sums.
  [[gnu::always_inline]] static V negative(const V& x) { return -(V{} + x); }

  void solve_by_pivoting(const Chain& chain, const Right& from) const {
    V* const right = scratch_[chain.right];
    if (!from.columns && from.first != right) renew(*chain.system);
    const std::int64_t n = chain.system->unknowns, count = chain.count;
    for (std::int64_t k = 0; k < count; ++k)
      for (std::int64_t i = 0; i < n; ++i) right[i * count + k] = negative(from.at(k)[i * from.stride(k)]);
    scratch_.solve_by_pivoting(*chain.system, right, count);
  }

  // If the kernel does not trust the pivots of a lane, which are the same for all directions, it is solved with row
  // pivoting, and the others go on with all of theirs. Returns whether all have been solved for.
  bool solve_steps(const Chain& chain, const Right& from, std::int64_t begin, std::int64_t end) const {
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
      V* to = right + k;
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < n; ++i, to += count) *to = step[i];
    }
    return begin == 0 && end == count;
  }
  void solve_without(const Mask<T>& bad, const Chain& chain, const Right& from) const {
    const std::int64_t n = chain.system->unknowns, count = chain.count;
    V *const step = scratch_[chain.system->step], *const solved = scratch_[chain.solved];
    for (std::int64_t k = 0; k < count; ++k) {
      call_for(chain, from, k);
      for (std::int64_t i = 0; i < n; ++i) solved[i * count + k] = step[i];
    }
    solve_by_pivoting(chain, from);
    for (std::int64_t i = 0; i < n * count; ++i) set_where(~bad, scratch_[chain.right][i], solved[i]);
  }
  // Calls the kernel of the Newton step for a direction.
  [[gnu::always_inline]] void call_for(const Chain& chain, const Right& right, std::int64_t k) const {
    const Implicit& system = *chain.system;
    V* const r = scratch_[system.r];
    const V* from = right.at(k);
    const std::int64_t n = system.unknowns, stride = right.stride(k);
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < n; ++i, from += stride) r[i] = negative(*from);
    scratch_.call(system.newton_step);
  }

  // Solves for one point, whose directions are in the lanes.
  void solve_steps_of_one(const Chain& chain, const Right& from) const {
    constexpr int lanes = width<T>;
    const Implicit& system = *chain.system;
    const std::int64_t n = system.unknowns, count = chain.count, packs = (count + lanes - 1) / lanes;
    V *const r = scratch_[system.r], *const step = scratch_[system.step], *const solved = scratch_[chain.solved];
    Mask<T> bad{};
    for (std::int64_t p = 0; p < packs; ++p) {
      const V* at[lanes];
      std::int64_t strides[lanes];
      for (int l = 0; l < lanes; ++l) {
        const std::int64_t k = p * lanes + l < count ? p * lanes + l : 0;
        at[l] = from.at(k);
        strides[l] = from.stride(k);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        V directions{};
#pragma GCC unroll 16
        for (int l = 0; l < lanes; ++l) directions[l] = at[l][i * strides[l]][0];
        r[i] = negative(directions);
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
