// Points of a range, their free strains, and the arrays of the law: shared by all parts of a solve under a hypothesis.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "capi/evaluation/bounded.h"
#include "capi/hypotheses/law_arrays.h"
#include "capi/tensor/numbers.h"

namespace neml2_capi::model {

struct FreeStrain {
  std::int64_t point = 0;
  std::array<double, 5> now{}, step{};
  double residual = INFINITY;  // of the last one that was no worse
  std::int32_t status = NEML2_OK, iterations = 0, rescues = 0;
  int cuts = 0;
  double norm = 0, cut = 1;
};

class FreeSolve {
 public:
  // All of these must outlive it. `bindings` are the caller's arrays, of the boundary.
  FreeSolve(const Plan& plan, const Routes& law, const Reduction& reduction, const Bindings& bindings,
            const Range& range, LawMemory& memory);

  bool has_adjoints() const { return plan.request().adjoints || plan.request().parameter_adjoints; }
  bool has_products() const { return plan.request().products(); }

  // Adds a point, with the free strains of the step before, or zero if there are none.
  void add(std::int64_t p);
  // Begins an evaluation of the law at some points, by position: gives it their strains.
  void take(const Vector<std::size_t>& some);
  // Evaluates the law, and keeps what an operator of the user said.
  void evaluate() { evaluate(options); }
  void evaluate(const Options& with);
  // Looks at the bounds of so many rows that were taken, from one on. Points that fail for them get a status.
  void look_at_bounds(std::size_t row, std::size_t count);
  // Makes all results of a point NaN.
  void fill_with_nan(const FreeStrain& each) const;
  // Writes the report, counts the points, and makes results of failed points NaN if the caller wants that.
  void conclude();

  const Plan& plan;
  const Model& law;
  const Reduction& reduction;
  const Components& free;
  const Bindings& bindings;
  const Range& range;
  const Options options;
  const BoundsCheck check;
  LawMemory& memory;
  LawArrays arrays;
  Vector<FreeStrain> points;
  Tally tally;

 private:
  void make_iterates() const;
  void look_within(std::size_t row, std::size_t count);
  void fail_for_bounds(FreeStrain& each, double cut) const;
  void keep(Vector<Exceeded>& exceeded, std::size_t row);
  void report(const FreeStrain& each) const;

  const Routes& routes_;
  Vector<std::size_t> taken_;  // by row
  Vector<std::int64_t> numbers_;
  Vector<double> at_free_;
};

}  // namespace neml2_capi::model
