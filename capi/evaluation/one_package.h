// The route of a model that is one package: it takes little more time than the package does.
#pragma once

#include <utility>
#include <vector>

#include "capi/evaluation/through_segments.h"
#include "capi/segments/graph_call.h"

namespace neml2_capi::model {

class OnePackage final : public PackageRoute {
 public:
  // Whether one run of a package gives all outputs of the model.
  static bool evaluates(const Model& model);
  // `segments` evaluate points one by one after an operator failed; they must outlive the route.
  OnePackage(const Model& model, const ThroughSegments& segments);

  // Outputs; and if a package returns all derivatives beside them, these or products with them.
  bool gives(const Request& request, const Options& options) const override;
  ChunkSize chunk_size(const Options& options, const Request& request) const override {
    return chunk_of(options, request, graph_for(request).package().bytes_per_point());
  }
  void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
           Tally& tally) const override;

 private:
  void find_blocks();
  const GraphCall& graph_for(const Request& request) const {
    return request.blocks || request.jvps ? *jacobian_ : values_;
  }
  void give(const GraphCall& graph, const Bindings& bindings, const Range& range, Workspace& workspace,
            Handles& given) const;
  void collect(const GraphCall& graph, const Bindings& bindings, const Range& range, Workspace& workspace) const;
  Vector<Tensor> jvps_of(Handles& returned, const Bindings& bindings, const Range& range) const;
  // Tell whether all is finite that they read or write.
  bool is_given_finite(const Bindings& bindings, const Range& range) const;
  bool write(Handles& returned, const Bindings& bindings, const Range& range) const;
  bool write_blocks(Handles& returned, const Bindings& bindings, const Range& range) const;
  // If something is not, finds what and at which points.
  void mark(const GraphCall& graph, Handles& returned, const Bindings& bindings, const Range& range,
            const Workspace& workspace, Tally& tally) const;

  const ThroughSegments& segments_;
  const GraphCall& values_;
  const GraphCall* jacobian_;                                    // null if it does not give all derivatives
  std::vector<std::size_t> inputs_, outputs_;                    // which input it takes, and which result an output is
  std::vector<std::pair<std::size_t, const PairInfo*>> blocks_;  // which result a derivative is
};

}  // namespace neml2_capi::model
