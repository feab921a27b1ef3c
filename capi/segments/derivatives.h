// Derivatives of a model: which were compiled, and how they follow from its segments' by the chain rule.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "capi/segments/segment.h"
#include "capi/values/derivative.h"

namespace neml2_capi::model {

// Derivatives of a model with respect to its inputs, or to its parameters.
class Derivatives {
 public:
  Derivatives() = default;
  // `outputs` and `inputs` hold the position of each among the values, or of a parameter after them.
  Derivatives(std::vector<std::size_t> outputs, std::vector<std::size_t> inputs)
      : outputs_(std::move(outputs)), inputs_(std::move(inputs)) {}

  void add(Derivative derivative) { all_.push_back(std::move(derivative)); }
  // Must be called after the last add().
  void group();

  const std::vector<Derivative>& all() const { return all_; }
  // Tell whether any derivative of this output, or with respect to this input, was compiled.
  bool of_output(std::size_t output) const { return output_set_[output] >= 0; }
  bool by_input(std::size_t input) const { return input_set_[input] >= 0; }

  // Blocks that the segments found for the points of a chunk.
  struct Chain {
    const std::vector<std::unique_ptr<Segment>>& segments;
    const Vector<Vector<Block>>& blocks;  // by segment
    std::int64_t points;
    std::size_t num_values, num_parameters;
    DType dtype;
    Device device = {};

    Directions directions(std::int64_t count) const;
    void push_forward(Directions& directions) const;
    void pull_back(Directions& directions) const;
  };

  // Sets what a jvp sends through the segments, from one array per input, (points, size); empty: zero.
  void start_jvp(Directions& directions, const Vector<Tensor>& tangents) const;
  // Returns one array per output, from what came out; empty: no such derivative. An output sums over the inputs for
  // which a derivative of it was compiled.
  Vector<Tensor> end_jvp(const Directions& directions) const;
  // Does both, with the blocks of the segments between them.
  Vector<Tensor> jvp(const Chain& chain, const Vector<Tensor>& tangents) const;
  // Returns one array per input, from one per output.
  Vector<Tensor> vjp(const Chain& chain, const Vector<Tensor>& cotangents) const;
  // Returns one array per derivative, one row per point, or one row if it is not batched.
  Vector<Tensor> blocks(const Chain& chain) const;

 private:
  // Sets of some of the values, and of what each is for.
  using Sets = std::vector<std::vector<bool>>;
  static void start(Directions& directions, const std::vector<std::size_t>& from, const Vector<Tensor>& given,
                    const Sets& sets);
  static Vector<Tensor> end(const Directions& directions, const std::vector<std::size_t>& to,
                            const Vector<std::int64_t>& set_of);

  std::vector<std::size_t> outputs_, inputs_;
  std::vector<Derivative> all_;
  // Directions are pushed together if they reach the same outputs. By output: the number of its set of inputs; by
  // input: the number of its set of outputs; -1: none.
  Vector<std::int64_t> output_set_, input_set_;
  Sets input_sets_, output_sets_;
};

}  // namespace neml2_capi::model
