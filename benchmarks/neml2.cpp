// NEML2's own runtime from C++: tensors over the same arrays.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <map>

#include "arrays.h"
#include "neml2/csrc/aoti/Model.h"
#include "serve.h"

namespace benchmark {
namespace {

using Tensors = std::map<std::string, at::Tensor>;

at::Tensor tensor_over(const double* values, std::int64_t points, const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> sizes{points};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return at::from_blob(const_cast<double*>(values), sizes, at::kDouble);
}

Tensors tensors_over(const std::vector<Array>& arrays, std::int64_t points) {
  Tensors tensors;
  for (const Array& array : arrays) tensors.emplace(array.name, tensor_over(array.values.data(), points, array.shape));
  return tensors;
}

class Reference {
 public:
  explicit Reference(const Task& task) : task_(task), model_(task.artifact) {
    at::set_num_threads(task.threads);
    if (task.operation == "transient") {
      path_ = read_arrays(task.inputs / "path", 0);
      return;
    }
    arrays_ = read_arrays(task.inputs / "inputs", task.points);
    inputs_ = tensors_over(arrays_, task.points);
    if (task.operation != "jvp") return;
    directions_ = read_arrays(task.inputs / "tangents", task.points);
    tangents_ = tensors_over(directions_, task.points);
  }

  void run() {
    if (task_.operation == "forward") outputs_ = model_.forward(inputs_);
    if (task_.operation == "jvp") std::tie(outputs_, jvps_) = model_.jvp(inputs_, tangents_);
    if (task_.operation == "jacobian") std::tie(outputs_, blocks_) = model_.jacobian(inputs_);
    if (task_.operation == "transient") transient();
  }

  std::vector<Result> results() {
    kept_.clear();
    for (const auto& [name, tensor] : outputs_) keep(name, tensor);
    for (const auto& [name, tensor] : jvps_) keep(name + ",jvp", tensor);
    for (const auto& [name, row] : blocks_)
      for (const auto& [by, tensor] : row) keep(name + "," + by, tensor);
    std::vector<Result> results;
    for (const auto& [name, tensor] : kept_)
      results.push_back({name, tensor.const_data_ptr<double>(), tensor.numel() / task_.points});
    return results;
  }

 private:
  // A block that is the same for all points may come without them.
  void keep(const std::string& name, const at::Tensor& tensor) {
    const bool single = tensor.dim() == 0 || tensor.size(0) != task_.points;
    at::Tensor whole = single ? tensor.unsqueeze(0).expand([&] {
      std::vector<std::int64_t> sizes = tensor.sizes().vec();
      sizes.insert(sizes.begin(), task_.points);
      return sizes;
    }())
                              : tensor;
    kept_.insert_or_assign(name, whole.contiguous());
  }

  void transient() {
    Tensors inputs;
    const auto& outputs = model_.output_names();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      std::vector<std::int64_t> sizes = model_.output_base_shapes()[i];
      sizes.insert(sizes.begin(), task_.points);
      inputs[outputs[i] + "~1"] = at::zeros(sizes, at::kDouble);
    }
    const auto steps = static_cast<std::int64_t>(path_.front().values.size()) / path_.front().size();
    for (std::int64_t k = 0; k < steps; ++k) {
      for (const Array& force : path_) {
        if (k > 0) inputs[force.name + "~1"] = inputs[force.name];
        const std::vector<std::int64_t> shape(force.shape.begin() + 1, force.shape.end());
        inputs[force.name] = tensor_over(force.values.data() + k * force.size(), task_.points, shape);
      }
      if (k == 0) continue;
      outputs_ = model_.forward(inputs);
      for (const auto& [name, value] : outputs_) inputs[name + "~1"] = value;
    }
  }

  Task task_;
  neml2::aoti::Model model_;
  std::vector<Array> arrays_, directions_, path_;
  Tensors inputs_, tangents_, outputs_, jvps_, kept_;
  neml2::aoti::VariablePairJacobian blocks_;
};

Contestant prepare(const Task& task) {
  auto reference = std::make_shared<Reference>(task);
  const auto run = [=](std::int64_t calls) {
    while (calls-- > 0) reference->run();
  };
  return {run, [=] { return reference->results(); }};
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
