// An implicit segment: the unknowns that make the residual vanish, by Newton's method over compiled packages.
#pragma once

#include <optional>
#include <vector>

#include "capi/model/graph_call.h"
#include "capi/model/groups.h"
#include "capi/model/segment.h"

namespace neml2_capi::model {

class ImplicitSegment : public Segment {
 public:
  ImplicitSegment(const artifact::ImplicitSegment& segment, Scope& scope);

  void run(Chunk& chunk) const override;
  std::vector<const Package*> packages() const override;
  std::vector<std::size_t> uniform_parameters() const override;

 private:
  class PackageSystem;

  // The predictor is one step of a loop: `output` becomes `input` of the next pass.
  struct Loop {
    std::size_t input, output;
    std::int64_t passes;
    Dims point_shape;
  };

  void predict(Chunk& chunk) const;
  void merge(const newton::Outcome& outcome, newton::Groups& u, Chunk& chunk) const;

  Package residual_, jacobian_, solve_;
  std::size_t num_residuals_;
  DType dtype_;
  std::vector<ValueGroup> unknowns_, givens_;
  ParameterTail tail_;
  std::optional<GraphCall> predictor_;
  std::optional<Loop> loop_;
};

}  // namespace neml2_capi::model
