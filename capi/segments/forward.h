// Forward segment: one graph, and the graphs of its derivatives.
#pragma once

#include <optional>
#include <vector>

#include "capi/segments/graph_call.h"
#include "capi/segments/placed_pair.h"

namespace neml2_capi::model {

class ForwardSegment : public Segment {
 public:
  ForwardSegment(const artifact::ForwardSegment& segment, Scope& scope);

  Vector<Block> run(Chunk& chunk) const override;
  const GraphCall* only_graph() const override { return &value_; }
  const GraphCall* only_jacobian() const override;
  bool depends_on(std::size_t) const override { return true; }
  const std::vector<std::size_t>& outputs() const override { return value_.outputs(); }
  std::vector<const PairInfo*> pairs() const override;
  std::vector<const Package*> packages() const override;
  std::int64_t bytes_per_point() const override { return value_.package().bytes_per_point(); }
  std::vector<std::size_t> uniform_parameters() const override;

 private:
  // Graph that returns blocks.
  struct Derivative {
    GraphCall graph;
    std::vector<PlacedPair> pairs;

    void run(Chunk& chunk, Vector<Block>& blocks) const;
  };

  // Loads one; `made` holds the outputs of the segment.
  static std::optional<Derivative> derivative(const artifact::NamedGraph& graph, const std::vector<std::string>& made,
                                              const std::vector<artifact::Pair>& pairs, bool of_parameters,
                                              Scope& scope);

  GraphCall value_;
  std::optional<Derivative> by_values_, by_parameters_;
};

}  // namespace neml2_capi::model
