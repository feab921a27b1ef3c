// Package that is called with named values, then with promoted parameters: a graph of a forward segment, or a
// predictor.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capi/segments/segment.h"

namespace neml2_capi::model {

// Promoted parameters at the end of a package's inputs.
class ParameterTail {
 public:
  ParameterTail() = default;
  // `first`: the position of the first parameter among the inputs of `package`.
  ParameterTail(const std::vector<std::string>& names, const Package& package, std::size_t first, const Scope& scope);

  // Returns the `i`th as the package takes it, of the parameters of the model, which have one row per point.
  Tensor taken(std::size_t i, const Vector<Tensor>& parameters) const;
  void append_to(Vector<Tensor>& inputs, const Vector<Tensor>& parameters) const;
  std::size_t size() const { return parameters_.size(); }
  // Return their positions among the parameters of the model, and those that are one value for all points.
  const std::vector<std::size_t>& positions() const { return parameters_; }
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

  // Makes the named outputs, and returns the others.
  Vector<Tensor> run(Chunk& chunk) const;
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  const std::vector<std::size_t>& outputs() const { return outputs_; }
  const ParameterTail& parameters() const { return tail_; }
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

// Throws NEML2_ERROR_ARTIFACT unless input `i` has this shape at each point, however it is divided into axes. `who`
// makes it.
void expect_taken(const Package& package, std::size_t i, const Dims& shape, const std::string& who);

// Does the same for `count` inputs that are outputs of `maker`, from `input` and `output` on.
void expect_returned(const Package& package, std::size_t input, const Package& maker, std::size_t output,
                     std::size_t count);

}  // namespace neml2_capi::model
