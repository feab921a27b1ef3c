// A package that is called with named values, then with promoted parameters: a graph of a forward segment, or a
// predictor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capi/model/segment.h"

namespace neml2_capi::model {

// The promoted parameters at the end of a package's inputs.
class ParameterTail {
 public:
  ParameterTail() = default;
  // `first`: the position of the first parameter among the inputs of `package`.
  ParameterTail(const std::vector<std::string>& names, const Package& package, std::size_t first, const Scope& scope);

  void append_to(Vector<Tensor>& inputs, const Vector<Tensor>& parameters) const;
  std::size_t size() const { return parameters_.size(); }
  const std::vector<std::size_t>& uniform() const { return uniform_; }

 private:
  std::vector<std::size_t> parameters_;
  std::vector<bool> batched_;
  std::vector<std::size_t> uniform_;
};

class GraphCall {
 public:
  // `unnamed`: how many tensors the package returns after its named outputs.
  GraphCall(const artifact::NamedGraph& graph, Scope& scope, std::size_t unnamed = 0);

  // Make the named outputs, and return the others.
  Vector<Tensor> run(Chunk& chunk) const;
  // The outputs of the package for these inputs and parameters, one row per point.
  Vector<Tensor> run(std::int64_t points, Vector<Tensor>&& inputs, const Vector<Tensor>& parameters) const {
    tail_.append_to(inputs, parameters);
    return package_.run(points, std::move(inputs));
  }
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  const std::vector<std::size_t>& outputs() const { return outputs_; }
  const Package& package() const { return package_; }
  const std::vector<std::size_t>& uniform_parameters() const { return tail_.uniform(); }

 private:
  Package package_;
  std::vector<std::size_t> inputs_;
  std::vector<std::size_t> outputs_;
  ParameterTail tail_;
};

// Throws NEML2_ERROR_ARTIFACT unless the package has this many inputs and outputs.
void expect_arity(const Package& package, std::size_t inputs, std::size_t outputs);

}  // namespace neml2_capi::model
