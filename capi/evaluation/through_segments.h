// The route that gives all there is: chunks of points through all segments of a model.
#pragma once

#include "capi/evaluation/package_route.h"
#include "capi/values/by_part.h"

namespace neml2_capi::model {

// The derivatives of the points of a chunk, before any of them is written; empty lists if none are wanted.
using Derived = ByPart<Vector<Tensor>>;

class ThroughSegments final : public PackageRoute {
 public:
  explicit ThroughSegments(const Model& model);

  bool solves() const override { return !model_.variables(Kind::unknown).empty(); }
  ChunkSize chunk_size(const Options& options, const Request& request) const override {
    return chunk_of(options, request, bytes_per_point_);
  }
  std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                            std::int64_t size) const override;
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;
  // The same after a user's operator failed recoverably, which then fails its points alone.
  void run_one_by_one(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                      Tally& tally) const;

  // The steps of run(), for a caller that solves implicit segments itself. First: fill `chunk` with these points.
  void fill(Chunk& chunk, const Plan& plan, const Bindings& bindings, std::int64_t begin, std::int64_t points) const;
  Derived derive(const Chunk& chunk, const Bindings& bindings, const Vector<Vector<Block>>& blocks) const;
  void write(Chunk& chunk, const Bindings& bindings, const Derived& derived, Turns* turns = nullptr) const;

 private:
  Derived evaluate(Chunk& chunk, const Plan& plan, const Bindings& bindings, std::int64_t begin,
                   std::int64_t points) const;
  Vector<Tensor> run_along(Chunk& chunk, const Bindings& bindings) const;
  Derived fail(Chunk& chunk, const Bindings& bindings, std::int32_t status) const;

  std::int64_t bytes_per_point_ = 1;  // of the segment that has most
};

}  // namespace neml2_capi::model
