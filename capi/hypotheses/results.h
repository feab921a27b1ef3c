// Results for the caller, from what the law gives and from the free strains.
#pragma once

#include <cstdint>
#include <optional>

#include "capi/hypotheses/free_solve.h"
#include "capi/hypotheses/inverse.h"
#include "capi/model/tensor_pair.h"

namespace neml2_capi::model {

// `row` is the row of a point in the arrays of the law.
class ResultsUnder {
 public:
  // The solve must outlive it.
  explicit ResultsUnder(const FreeSolve& solve) : s_(solve) {}

  Numbers of_law(Part part, std::size_t index, std::size_t row) const {
    return {s_.arrays.row(part, index, row), s_.law.dtype()};
  }
  // Returns the caller's array of a point; none if it is not bound.
  Numbers outside(Part part, std::size_t index, std::int64_t p) const {
    const Points& array = s_.bindings.of(part)[index];
    return array.data ? of_point(array, p) : Numbers();
  }

  // Calls f(position of its slope among those kept, derivative of the same output by the input that moves) for each that moves with the variable of a
  // derivative. Positions are of the boundary.
  template <class Take>
  void for_each_slope(Part part, std::size_t index, Take&& take) const {
    const Derivative& own = s_.plan.model().derivatives(kind_of(part)).all()[index];
    std::size_t kept = 0;
    for (const Slope& slope : s_.bindings.slopes) {
      if (!slope.array.data) continue;
      if (slope.kind == kind_of(part) && slope.variable == own.input)
        take(kept, static_cast<std::size_t>(derivative_of(s_.plan.model(), Kind::input, own.output, slope.input)));
      kept += static_cast<std::size_t>(entries(slope));
    }
  }

  // Writes outputs, or their products with tangents, and the free strains, or theirs.
  void write_outputs(Part part, const double* of_free, std::int64_t p, std::size_t row) const;
  // Writes condensed derivatives, and adds what moves with their variables. The inverse is of the tangent of the free
  // strains; null if there are none.
  void write_blocks(std::int64_t p, std::size_t row, const Inverse* inverse) const;
  void write_adjoints(std::int64_t p, std::size_t row) const;

  // Returns the variable of the law that has the adjoint of one at the boundary; nothing if it is zero.
  std::optional<std::size_t> of_adjoint(Part part, std::size_t index) const;

 private:
  std::int64_t entries(const Slope& slope) const {
    return s_.plan.model().variables(Kind::input)[slope.input].point_shape.product() *
           s_.plan.model().variables(slope.kind)[slope.variable].point_shape.product();
  }
  Numbers of_point(const Points& array, std::int64_t p) const {
    return {point(array, p, itemsize(s_.law.dtype())), s_.law.dtype()};
  }
  void keep_slopes(std::int64_t p) const;
  // Hands a condensed derivative over, entry by entry.
  template <class Take>
  void condense(Part part, std::size_t index, std::size_t row, const Inverse* inverse, Take&& take) const;
  void write_block(Part part, std::size_t index, std::int64_t p, std::size_t row, const Inverse* inverse) const;

  const FreeSolve& s_;
};

}  // namespace neml2_capi::model
