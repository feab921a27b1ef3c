// Functions of the AOTI ABI for products of matrices.
#include <type_traits>

#include "capi/lanes/kernels.h"
#include "capi/provider/elements.h"
#include "capi/provider/exports.h"
#include "capi/tensor/scratch.h"

namespace neml2_capi::aoti::builtin {
namespace {

// Returns the matrix of the last two axes.
template <class T>
lanes::Matrix<T> matrix(const Tensor& tensor, const Dims& strides, std::int64_t offset) {
  const std::int64_t n = strides.size();
  return {tensor.data_as<T>() + offset, strides[n - 2], strides[n - 1]};
}

// Computes out = beta * added + alpha * a b for every batch entry. Matrices are a batch of one.
void multiply(const Tensor& out, double beta, const Tensor& added, double alpha, const Tensor& a, const Tensor& b,
              std::int64_t ndim) {
  if (a.ndim() != ndim || b.ndim() != ndim || out.ndim() != ndim || a.dtype() != b.dtype() ||
      a.dtype() != out.dtype() || a.dtype() != added.dtype())
    throw std::invalid_argument("a matrix product of mismatched axes or element types");
  const std::int64_t r = ndim - 2, c = ndim - 1;
  Dims expected = a.sizes();
  expected[c] = b.sizes()[c];
  if (a.sizes()[c] != b.sizes()[r] || a.sizes().first(r) != b.sizes().first(r) || out.sizes() != expected)
    throw std::invalid_argument("a matrix product of sizes " + a.sizes().str() + " and " + b.sizes().str() + " into " +
                                out.sizes().str());
  const Dims added_strides = broadcast_strides(added.sizes(), added.strides(), out.sizes());
  const lanes::Extent extent{out.sizes()[r], out.sizes()[c], a.sizes()[c]};
  if (out.numel() == 0) return;

  visit_real(a.dtype(), "a matrix product", [&]<class T>(std::type_identity<T>) {
    const lanes::Kernels<T>& kernel = lanes::kernels<T>();
    Scratch scratch(kernel.multiply_work(extent) * static_cast<std::int64_t>(sizeof(T)));
    walk<4>(out.sizes().first(r),
            {out.strides().first(r), added_strides.first(r), a.strides().first(r), b.strides().first(r)},
            [&](const auto& at) {
              kernel.multiply(extent, matrix<T>(out, out.strides(), at[0]), static_cast<T>(beta),
                              matrix<const T>(added, added_strides, at[1]), static_cast<T>(alpha),
                              matrix<const T>(a, a.strides(), at[2]), matrix<const T>(b, b.strides(), at[3]),
                              scratch.as<T>());
            });
  });
}

}  // namespace

NML2_EXPORT Status nml2_torch_cpu_mm_out(Handle out, Handle a, Handle b) {
  return guarded([&] { multiply(*out, 0, *out, 1, *a, *b, 2); });
}

NML2_EXPORT Status nml2_torch_cpu_addmm_out(Handle out, Handle added, Handle a, Handle b, double beta, double alpha) {
  return guarded([&] { multiply(*out, beta, *added, alpha, *a, *b, 2); });
}

NML2_EXPORT Status nml2_torch_cpu_bmm_out(Handle out, Handle a, Handle b) {
  return guarded([&] { multiply(*out, 0, *out, 1, *a, *b, 3); });
}

NML2_EXPORT Status nml2_torch_cpu_baddbmm_out(Handle out, Handle added, Handle a, Handle b, double beta, double alpha) {
  return guarded([&] { multiply(*out, beta, *added, alpha, *a, *b, 3); });
}

// Functions under the names and types of earlier versions.
NML2_EXPORT Status nml2_torch_mm_out(Handle out, Handle a, Handle b) { return nml2_torch_cpu_mm_out(out, a, b); }

NML2_EXPORT Status nml2_torch_bmm_out(Handle out, Handle a, Handle b) { return nml2_torch_cpu_bmm_out(out, a, b); }

NML2_EXPORT Status nml2_torch_addmm_out(Handle out, Handle added, Handle a, Handle b, float beta, float alpha) {
  return nml2_torch_cpu_addmm_out(out, added, a, b, static_cast<double>(beta), static_cast<double>(alpha));
}

}  // namespace neml2_capi::aoti::builtin
