#include "capi/graph/solve_package.h"

#include <algorithm>
#include <random>
#include <stdexcept>
#include <type_traits>

#include "capi/base/error.h"
#include "capi/loader/image.h"
#include "capi/package/singular.h"

namespace neml2_capi::aoti {
namespace {

bool takes_tensors_only(const OperatorNode& node, std::size_t count) {
  return node.inputs.size() == count && std::all_of(node.inputs.begin(), node.inputs.end(), [](const Argument& input) {
           return input.kind == Argument::Kind::tensor;
         });
}

void expect_fit(const Tensor& a, const Tensor& b) {
  const bool fit = a.ndim() == 3 && a.sizes()[1] == a.sizes()[2] && (b.ndim() == 2 || b.ndim() == 3) &&
                   b.sizes()[0] == a.sizes()[0] && b.sizes()[1] == a.sizes()[1] && a.dtype() == b.dtype();
  if (!fit)
    throw std::invalid_argument(join("a linear solve of matrices ", a.sizes().str(), " ", name_of(a.dtype()),
                                     " and right-hand sides ", b.sizes().str(), " ", name_of(b.dtype())));
}

// Returns vectors as matrices of one column.
Tensor as_columns(const Tensor& b) {
  if (b.ndim() == 3) return b;
  return Tensor(b.storage(), b.dtype(), b.sizes().then({1}), b.strides().then({1}), b.offset());
}

}  // namespace

bool may_only_solve(const Signature& signature, const std::vector<OperatorNode>& nodes) {
  const std::vector<InputSpec>& inputs = signature.inputs;
  if (signature.has_kernels || inputs.size() != 2 || signature.outputs.size() != 1 || nodes.size() != 2) return false;
  const std::int64_t axes_of_a = inputs[0].greatest.size(), axes_of_b = inputs[1].greatest.size();
  const DType type = inputs[0].dtype;
  return nodes[0].target == "aten::_linalg_solve_ex" && takes_tensors_only(nodes[0], 2) &&
         nodes[1].target == "aten::_linalg_check_errors" && axes_of_a == 3 && (axes_of_b == 2 || axes_of_b == 3) &&
         (type == DType::float64 || type == DType::float32) && type == inputs[1].dtype;
}

Vector<Tensor> sample_systems(const std::vector<InputSpec>& inputs) {
  Vector<Tensor> samples;
  std::minstd_rand random;  // the same numbers everywhere
  for (const InputSpec& input : inputs) {
    Dims sizes = input.greatest;
    sizes[0] = std::clamp<std::int64_t>(3, input.least[0], input.greatest[0]);
    Tensor& sample = samples.emplace_back(Tensor::empty(input.dtype, sizes));
    const auto fill = [&](auto* values) {
      using Scalar = std::remove_pointer_t<decltype(values)>;
      constexpr double half = static_cast<double>(std::minstd_rand::max()) / 2;
      for (std::int64_t i = 0; i < sample.numel(); ++i)
        values[i] = static_cast<Scalar>(static_cast<double>(random()) / half - 1);
    };
    input.dtype == DType::float64 ? fill(sample.data_as<double>()) : fill(sample.data_as<float>());
  }
  return samples;
}

Tensor solve_linear(const Tensor& a, const Tensor& b, SingularInfo* singular) {
  expect_fit(a, b);
  // Solutions are column-major, as torch returns them.
  const std::int64_t systems = a.sizes()[0], n = a.sizes()[1], sides = b.ndim() == 3 ? b.sizes()[2] : 1;
  const Tensor x(Storage::allocate_in_run(systems * n * sides * a.itemsize()), a.dtype(), {systems, n, sides},
                 {n * sides, 1, n});
  Vector<std::int32_t> info(static_cast<std::size_t>(systems));
  Provider::get().solve_systems(a, as_columns(b), x, info.data());
  report_singular(singular, info.data(), systems);
  return b.ndim() == 3 ? x : Tensor(x.storage(), x.dtype(), {systems, n}, {n, 1});
}

}  // namespace neml2_capi::aoti
