// Nonlinear systems of an implicit segment as a caller sees them: one flat vector of float64 per point, and the true
// residual r.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capi/newton/system.h"
#include "capi/segments/implicit.h"

namespace neml2_capi::model {

// Vectors are row-major (points, size): the groups of unknowns side by side. Input and output may be one array.
class FlatSystem {
 public:
  // Place of an unknown: see neml2_unknown_info.
  struct Place {
    std::size_t unknown;
    std::int64_t offset, pieces, piece_stride, piece_size;
  };

  // `at` holds the initial guess; `first_unknown` is the position of the segment's first unknown among the model's.
  FlatSystem(const ImplicitSegment& segment, Operands at, std::size_t first_unknown, bool whole_batch);

  const ImplicitSegment& segment() const { return segment_; }
  std::int64_t points() const { return start_.points(); }
  std::int64_t size() const { return size_; }
  const std::vector<Place>& places() const { return places_; }

  void guess(double* u) const { flatten(start_.unknowns, u, 1.0); }
  void residual(double* r, const double* u);
  // `singular` may be null.
  void step(double* du, std::int32_t* singular, const double* u);
  // Throw NEML2_ERROR_UNSUPPORTED if the packages do not tell.
  void jacobian(double* a, const double* u) const;
  void matvec(double* y, const double* u, const double* v) const;

  // Returns what the packages are called with at `u`.
  Operands operands(const double* u) const;
  // Returns |r| of each point.
  Vector<double> norms(const Groups& u);
  const Groups& start() const { return start_.unknowns; }

 private:
  template <class F>
  void for_each_row(const Groups& groups, F&& f) const;
  Groups unflatten(const double* flat) const;
  void flatten(const Groups& groups, double* flat, double factor) const;

  const ImplicitSegment& segment_;
  Operands start_;
  std::unique_ptr<newton::System> system_;
  std::int64_t size_ = 0;
  std::vector<Place> places_;
};

}  // namespace neml2_capi::model
