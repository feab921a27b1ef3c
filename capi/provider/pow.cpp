// Powers, element by element.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "capi/lanes/kernels.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"
#include "capi/provider/operators.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Returns the type of a power by torch's promotion: the wider type, but a tensor with axes prevails over one without.
DType promote(const Tensor& a, const Tensor& b) {
  if (!is_real(a.dtype()) || !is_real(b.dtype()))
    throw std::invalid_argument(std::string("a power of ") + name_of(a.dtype()) + " and " + name_of(b.dtype()));
  if ((a.ndim() == 0) != (b.ndim() == 0)) return a.ndim() == 0 ? b.dtype() : a.dtype();
  return a.dtype() == DType::float64 ? a.dtype() : b.dtype();
}

Tensor converted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  const Tensor out = Tensor::empty(dtype, tensor.sizes());
  copy_elements(out, tensor);
  return out;
}

// Axes of the result, the base and the exponent, each with its own strides.
struct Axes {
  Dims sizes;
  std::array<Dims, 3> strides;
};

// Sorts the axes in the order of the result's memory, and joins them if all three go on in even steps.
Axes joined(const Dims& sizes, const std::array<Dims, 3>& strides) {
  Dims order;
  for (std::int64_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) order.push_back(i);
  std::stable_sort(&order[0], &order[0] + order.size(),
                   [&](std::int64_t a, std::int64_t b) { return strides[0][a] > strides[0][b]; });
  Axes axes;
  for (const std::int64_t i : order) {
    const std::int64_t outer = axes.sizes.size() - 1;
    bool even = outer >= 0;
    for (std::size_t k = 0; k < 3 && even; ++k) even = axes.strides[k][outer] == strides[k][i] * sizes[i];
    if (even)
      axes.sizes[outer] *= sizes[i];
    else
      axes.sizes.push_back(sizes[i]);
    for (std::size_t k = 0; k < 3; ++k) {
      if (even)
        axes.strides[k][outer] = strides[k][i];
      else
        axes.strides[k].push_back(strides[k][i]);
    }
  }
  return axes;
}

// Tells whether this is the usual case: the elements of both lie side by side in the same order, or one exponent serves
// all.
bool are_side_by_side(const Tensor& base, const Tensor& exponent) {
  const bool fit = exponent.numel() == 1 ? exponent.ndim() <= base.ndim()
                                         : exponent.sizes() == base.sizes() && exponent.strides() == base.strides();
  return fit && base.dtype() == exponent.dtype() && is_real(base.dtype()) &&
         (base.is_row_major() || is_dense(base.sizes(), base.strides()));
}

Tensor power_side_by_side(const Tensor& base, const Tensor& exponent) {
  const std::int64_t n = base.numel();
  const Tensor out(Storage::allocate_in_run(n * base.itemsize()), base.dtype(), base.sizes(), base.strides());
  visit_real(base.dtype(), "a power", [&]<class T>(std::type_identity<T>) {
    lanes::kernels<T>().power(n, out.data_as<T>(), 1, base.data_as<T>(), 1, exponent.data_as<T>(),
                              exponent.numel() == 1 ? 0 : 1);
  });
  return out;
}

Tensor power(const Tensor& base, const Tensor& exponent) {
  if (are_side_by_side(base, exponent)) return power_side_by_side(base, exponent);
  const DType dtype = promote(base, exponent);
  const Tensor x = converted(base, dtype), y = converted(exponent, dtype);
  const Dims sizes = broadcast(x.sizes(), y.sizes());
  const std::array<Dims, 2> operands = {broadcast_strides(base.sizes(), base.strides(), sizes),
                                        broadcast_strides(exponent.sizes(), exponent.strides(), sizes)};
  const Tensor out = empty_strided(dtype, sizes, elementwise_strides(sizes, operands));
  visit_real(dtype, "a power", [&]<class T>(std::type_identity<T>) {
    const auto compute = lanes::kernels<T>().power;
    T* const to = out.data_as<T>();
    const T *const from = x.data_as<T>(), *const by = y.data_as<T>();
    const auto [axes, strides] = joined(sizes, {out.strides(), broadcast_strides(x.sizes(), x.strides(), sizes),
                                                broadcast_strides(y.sizes(), y.strides(), sizes)});
    const std::int64_t outer = std::max<std::int64_t>(axes.size() - 1, 0), n = axes.empty() ? 1 : axes.back();
    std::array<std::int64_t, 3> step{};
    for (std::size_t k = 0; k < 3 && !axes.empty(); ++k) step[k] = strides[k].back();
    walk<3>(axes.first(outer), {strides[0].first(outer), strides[1].first(outer), strides[2].first(outer)},
            [&](const auto& at) { compute(n, to + at[0], step[0], from + at[1], step[1], by + at[2], step[2]); });
  });
  return out;
}

}  // namespace

void opaque_pow(RunContext&, const OperatorNode&, Tensor* const* tensors, const std::int64_t*) {
  *tensors[2] = power(*tensors[0], *tensors[1]);
}

NML2_EXPORT Status nml2_torch_cpu_pow_Tensor_Tensor(Handle base, Handle exponent, Handle* ret) {
  return guarded([&] { *ret = new Tensor(power(*base, *exponent)); });
}

}  // namespace neml2_capi::aoti::builtin
