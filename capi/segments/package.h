// Graph as a model uses it: one row per material point in, one row per point out.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "capi/graph/graph.h"

namespace neml2_capi::model {

// Returns a view of the first rows.
Tensor first_rows(const Tensor& tensor, std::int64_t rows);

class Package {
 public:
  // Loads the package and runs it twice on zeros, which tells the shape of each output: metadata does not know it.
  Package(const std::filesystem::path& path, const graph::Wanted& wanted);
  // Takes a graph instead of the package of this name.
  Package(std::string name, std::shared_ptr<graph::Graph> graph);

  const std::string& name() const { return name_; }
  graph::Runtime runtime() const { return graph_->runtime(); }

  // Return the shape of one point of input or output `i`.
  const Dims& input_shape(std::size_t i) const { return inputs_.at(i).point_shape; }
  const Dims& output_shape(std::size_t i) const { return outputs_.at(i).point_shape; }
  DType input_dtype(std::size_t i) const { return inputs_.at(i).dtype; }
  DType output_dtype(std::size_t i) const { return outputs_.at(i).dtype; }
  std::size_t num_inputs() const { return inputs_.size(); }
  std::size_t num_outputs() const { return outputs_.size(); }

  // Tells whether input `i` takes one value per point, or one for all.
  bool batched_input(std::size_t i) const { return inputs_.at(i).batched; }

  // Tells whether output `i` has one row per point, or one for all.
  bool batched_output(std::size_t i) const { return outputs_.at(i).batched; }

  // Returns the bytes that a run reads and writes for each point, without what happens inside.
  std::int64_t bytes_per_point() const;

  // Returns the number of points that is compiled in, or 0 if any number will do.
  std::int64_t baked_batch() const { return baked_batch_; }
  // Returns the greatest number of points of one run.
  std::int64_t greatest_batch() const { return greatest_batch_; }

  // Returns the device of its inputs and outputs.
  Device device() const { return graph_->device(); }

  // Returns inputs for `points` points, all of whose elements are `value`; on the host.
  Vector<Tensor> filled(std::int64_t points, double value) const;

  // Throws NEML2_ERROR_UNSUPPORTED if what it gives a point depends on other points, as a mean over them does. Points are
  // evaluated in parts of a batch.
  void require_points_apart() const;

  // Runs once on inputs of the host, as filled() gives them; outputs come to the host.
  Vector<Tensor> run_from_host(Vector<Tensor> inputs) const;

  // Runs on `points` points. Each input has one row per point, or is of one value if batched_input() is false; it is
  // made row-major. Every output comes with one row per point; it may share storage with inputs and other outputs, and
  // need not be row-major. Throws NEML2_ERROR_RUNTIME when the package does not return what it did at load.
  Vector<Tensor> run(std::int64_t points, Vector<Tensor>&& inputs, graph::SingularInfo* singular = nullptr) const;
  // Does the same by handles, as graph::Graph takes them; the inputs are row-major.
  void run(std::int64_t points, Handles& inputs, Handles& outputs, graph::SingularInfo* singular = nullptr) const;

 private:
  struct Slot {
    Dims point_shape;
    bool batched = true;
    DType dtype = DType::float64;
  };

  std::int64_t some_points() const { return baked_batch_ ? baked_batch_ : std::max<std::int64_t>(least_batch_, 2); }
  Vector<Tensor> outputs_beside(double size, double others) const;
  void learn_inputs();
  void learn_outputs();
  static bool has_shape(const Tensor& output, const Slot& slot, std::int64_t rows);
  [[noreturn]] void refuse_output(std::size_t i, const Tensor& output, std::int64_t rows) const;

  std::string name_;
  std::shared_ptr<const graph::Graph> graph_;
  std::vector<Slot> inputs_;
  std::vector<Slot> outputs_;
  std::int64_t baked_batch_ = 0;
  std::int64_t greatest_batch_ = INT64_MAX;
  std::int64_t least_batch_ = 1;
};

}  // namespace neml2_capi::model
