// Values and derivatives that are not finite: what they tell of their points is one rule for all routes of the host.
#pragma once

#include <cstdint>

#include "capi/values/non_finite.h"
#include "capi/values/points.h"

namespace neml2_capi::model {

// Values of points, `stride` elements apart; 0: one value for all.
struct Rows {
  const char* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t size = 0;  // elements of a point
  DType dtype = DType::float64;

  // Row-major, with a row for each point, or one for all.
  explicit Rows(const Tensor& value);
  Rows(const Points& array, const Variable& variable, std::int64_t begin);
};

// Tell whether all of these points are finite, which only floating-point values may not be.
bool all_finite(const Rows& rows, std::int64_t points);

// A point is NEML2_NON_FINITE if a result of it is NaN or infinite, if something given is NaN, and if its solve failed
// with something given that is infinite. What is given is looked at first, then results in the order of their parts: the
// first one found is the reason.
class Marks {
 public:
  // Adds to the status of the points from `begin` on.
  Marks(Vector<std::int32_t>& status, std::int64_t begin) : status_(status), begin_(begin) {}

  void give(const Rows& rows, Named named);
  void give(const std::vector<Points>& arrays, const std::vector<Variable>& variables, Part part);
  void look(const Rows& rows, Named named);
  // Points whose solve failed for something given need no smaller step: calls `excuse` with the position of each.
  template <class Excuse>
  void judge_failed(Excuse&& excuse) {
    for (std::size_t p = 0; !given_.empty() && p < status_.size(); ++p)
      if (status_[p] > NEML2_NON_FINITE && mark_if_given(p)) excuse(p);
  }

  const NonFinite& first() const { return first_; }

 private:
  struct Given {
    Rows rows;
    Named named;
  };
  // Returns the array given that is not finite at a point, or null.
  const Given* given_at(std::size_t p) const;
  bool mark_if_given(std::size_t p);
  void mark(std::size_t p, Named named);

  Vector<std::int32_t>& status_;
  const std::int64_t begin_;
  Vector<Given> given_;  // that are not finite at some point
  NonFinite first_;
};

}  // namespace neml2_capi::model
