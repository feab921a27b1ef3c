#include "capi/segments/forward.h"

#include <algorithm>
#include <utility>

#include "capi/segments/coupled_sites.h"
#include "capi/segments/misfit.h"

namespace neml2_capi::model {
namespace {

artifact::NamedGraph with_package(artifact::NamedGraph graph, const std::string& package) {
  graph.package = package;
  return graph;
}

artifact::NamedGraph without_outputs(artifact::NamedGraph graph) {
  graph.outputs.clear();
  return graph;
}

GraphCall of_points_apart(const artifact::NamedGraph& graph, Scope& scope) {
  GraphCall call(graph, scope);
  call.package().require_points_apart();
  return call;
}

}  // namespace

ForwardSegment::ForwardSegment(const artifact::ForwardSegment& segment, Scope& scope)
    : value_(of_points_apart(segment.value, scope)),
      by_values_(derivative(with_package(segment.value, segment.jacobian_package), segment.value.outputs, segment.pairs,
                            false, scope)),
      by_parameters_(derivative(without_outputs(with_package(segment.value, segment.parameter_jacobian_package)),
                                segment.value.outputs, segment.parameter_pairs, true, scope)) {
  if (by_values_) find_coupled_sites(value_, by_values_->pairs);
}

std::optional<ForwardSegment::Derivative> ForwardSegment::derivative(const artifact::NamedGraph& graph,
                                                                     const std::vector<std::string>& made,
                                                                     const std::vector<artifact::Pair>& pairs,
                                                                     bool of_parameters, Scope& scope) {
  if (graph.package.empty()) return std::nullopt;
  Derivative derivative{GraphCall(graph, scope, num_tensors(pairs)), {}};
  for (const artifact::Pair& pair : pairs) {
    const auto& known = of_parameters ? graph.parameters : graph.inputs;
    if (std::find(made.begin(), made.end(), pair.output) == made.end() ||
        std::find(known.begin(), known.end(), pair.input) == known.end())
      throw misfit(pair.output, "The metadata lists the derivative ", pair.output, ":", pair.input, " of ",
                   graph.package, ", which is not of an output with respect to an input");
  }
  derivative.pairs = placed_pairs(pairs, &derivative.graph.package(), graph.outputs.size(), of_parameters, scope);
  return derivative;
}

void ForwardSegment::Derivative::run(Chunk& chunk, Vector<Block>& blocks) const {
  for (Block& block : blocks_of(graph.run(chunk), pairs, chunk)) blocks.push_back(std::move(block));
}

Vector<Block> ForwardSegment::run(Chunk& chunk) const {
  Vector<Block> blocks;
  if (chunk.by_values && by_values_)
    by_values_->run(chunk, blocks);
  else
    value_.run(chunk);
  if (chunk.by_parameters && by_parameters_) by_parameters_->run(chunk, blocks);
  return blocks;
}

const GraphCall* ForwardSegment::only_jacobian() const {
  if (!by_values_) return nullptr;
  const auto is_part = [](const PlacedPair& pair) { return pair.matrix.has_value(); };
  const bool parts = std::any_of(by_values_->pairs.begin(), by_values_->pairs.end(), is_part);
  return parts ? nullptr : &by_values_->graph;
}

std::vector<const PairInfo*> ForwardSegment::pairs() const {
  std::vector<const PairInfo*> all;
  for (const auto* derivative : {&by_values_, &by_parameters_})
    if (*derivative)
      for (const PlacedPair& pair : (*derivative)->pairs) all.push_back(&pair.info);
  return all;
}

std::vector<const Package*> ForwardSegment::packages() const {
  std::vector<const Package*> packages = {&value_.package()};
  for (const auto* derivative : {&by_values_, &by_parameters_})
    if (*derivative) packages.push_back(&(*derivative)->graph.package());
  return packages;
}

std::vector<std::size_t> ForwardSegment::uniform_parameters() const {
  std::vector<std::size_t> uniform = value_.uniform_parameters();
  for (const auto* derivative : {&by_values_, &by_parameters_})
    if (*derivative) {
      const auto& more = (*derivative)->graph.uniform_parameters();
      uniform.insert(uniform.end(), more.begin(), more.end());
    }
  return uniform;
}

}  // namespace neml2_capi::model
