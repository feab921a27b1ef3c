// Rows of some points, and the sums that are made of them.
#pragma once

#include <cstdint>

#include "capi/model/model.h"
#include "capi/values/bindings.h"

namespace neml2_capi::model {

// Rows of the points from `begin` on, as arrays that are indexed by the number of a point in the whole batch.
class PointRows {
 public:
  PointRows(std::int64_t begin, std::int64_t points) : begin_(begin), points_(points) {}

  // Returns an array of zeros, or of NaN.
  Points add(const Variable& variable, bool nan);
  const Tensor& operator[](std::size_t i) const { return rows_[i]; }
  std::int64_t points() const { return points_; }

 private:
  std::int64_t begin_, points_;
  Vector<Tensor> rows_;
};

// Adjoints that are sums over points, with a row for each point until the end, when they are added in the order of the points.
class Sums {
 public:
  // The model must outlive it.
  Sums(const Model& model, const Bindings& bindings, std::int64_t begin, std::int64_t points);

  // Puts the rows in the places of the sums.
  void replace(Bindings& bindings) const;
  // Adds the rows to the sums. A point that failed is there as zero, or NaN.
  void write() const;

 private:
  struct Sum {
    Part part;
    std::size_t index;
    Points all, rows;
  };

  const Model& model_;
  PointRows rows_;
  Vector<Sum> sums_;
};

}  // namespace neml2_capi::model
