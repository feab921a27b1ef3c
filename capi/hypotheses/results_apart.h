// Results of a range in rows of their own, until it is known which points are good, and nothing reads the inputs any more:
// an output may lie over an input.
#pragma once

#include <cstdint>

#include "capi/evaluation/plan.h"
#include "capi/evaluation/sums.h"

namespace neml2_capi::model {

class ResultsApart {
 public:
  ResultsApart(const Model& model, const Bindings& bindings, const Range& range);

  // Puts the rows in the places of the results.
  void replace(Bindings& bindings) const;
  // Writes the results of a point to where they were bound.
  void write(std::int64_t p) const;

 private:
  struct Result {
    Part part;
    std::size_t index;
    Points all, row;
    std::int64_t bytes, itemsize;  // of a point, of an element
  };

  PointRows rows_;
  Vector<Result> results_;
};

}  // namespace neml2_capi::model
