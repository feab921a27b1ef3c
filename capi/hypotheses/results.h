// Results for the caller, from what the law gives and from the free strains.
#pragma once

#include <cstdint>
#include <optional>

#include "capi/hypotheses/free_solve.h"
#include "capi/hypotheses/inverse.h"

namespace neml2_capi::model {

// `row` is the row of a point in the arrays of the law.
template <class Scalar>
class ResultsUnder {
 public:
  // The solve must outlive it.
  explicit ResultsUnder(const FreeSolve& solve) : s_(solve) {}

  const Scalar* of_law(Part part, std::size_t index, std::size_t row) const {
    return reinterpret_cast<const Scalar*>(s_.arrays.row(part, index, row));
  }
  // Returns the caller's array of a point; null if it is not bound.
  Scalar* outside(Part part, std::size_t index, std::int64_t p) const {
    const Points& array = s_.bindings.of(part)[index];
    return array.data ? reinterpret_cast<Scalar*>(point(array, p, sizeof(Scalar))) : nullptr;
  }

  // Writes outputs, or their products with tangents, and the free strains, or theirs.
  void write_outputs(Part part, const double* of_free, std::int64_t p, std::size_t row) const;
  // Writes condensed derivatives. The inverse is of the tangent of the free strains; null if there are none.
  void write_blocks(std::int64_t p, std::size_t row, const Inverse* inverse) const;
  void write_adjoints(std::int64_t p, std::size_t row) const;

  // Returns the variable of the law that has the adjoint of one at the boundary; nothing if it is zero.
  std::optional<std::size_t> of_adjoint(Part part, std::size_t index) const;

 private:
  void write_block(Part part, std::size_t index, std::size_t row, const Inverse* inverse, Scalar* to) const;

  const FreeSolve& s_;
};

extern template class ResultsUnder<double>;
extern template class ResultsUnder<float>;

}  // namespace neml2_capi::model
