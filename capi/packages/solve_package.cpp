#include "capi/packages/solve_package.h"

#include <algorithm>
#include <random>

namespace neml2_capi::aoti {
namespace {

bool takes_tensors_only(const OperatorNode& node, std::size_t count) {
  return node.inputs.size() == count && std::all_of(node.inputs.begin(), node.inputs.end(), [](const Argument& input) {
           return input.kind == Argument::Kind::tensor;
         });
}

}  // namespace

bool may_only_solve(const Signature& signature, const std::vector<OperatorNode>& nodes) {
  const std::vector<InputSpec>& inputs = signature.inputs;
  if (signature.has_kernels || inputs.size() != 2 || signature.outputs.size() != 1 || nodes.size() != 2) return false;
  const std::int64_t axes_of_a = inputs[0].greatest.size(), axes_of_b = inputs[1].greatest.size();
  const DType type = inputs[0].dtype;
  return nodes[0].target == "aten::_linalg_solve_ex" && takes_tensors_only(nodes[0], 2) &&
         nodes[1].target == "aten::_linalg_check_errors" && axes_of_a == 3 && (axes_of_b == 2 || axes_of_b == 3) &&
         is_real(type) && type == inputs[1].dtype;
}

Vector<Tensor> sample_systems(const std::vector<InputSpec>& inputs) {
  Vector<Tensor> samples;
  std::minstd_rand random;  // the same numbers everywhere
  for (const InputSpec& input : inputs) {
    Dims sizes = input.greatest;
    sizes[0] = std::clamp<std::int64_t>(3, input.least[0], input.greatest[0]);
    Tensor& sample = samples.emplace_back(Tensor::empty(input.dtype, sizes));
    const auto fill = [&]<class Scalar>(Scalar* values) {
      constexpr double half = static_cast<double>(std::minstd_rand::max()) / 2;
      for (std::int64_t i = 0; i < sample.numel(); ++i)
        values[i] = static_cast<Scalar>(static_cast<double>(random()) / half - 1);
    };
    input.dtype == DType::float64 ? fill(sample.data_as<double>()) : fill(sample.data_as<float>());
  }
  return samples;
}

}  // namespace neml2_capi::aoti
