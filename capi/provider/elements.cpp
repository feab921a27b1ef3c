#include "capi/provider/elements.h"

#include <cstring>
#include <utility>

namespace neml2_capi::aoti::builtin {

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  const std::int64_t lead = longer.size() - shorter.size();
  Dims common = longer;
  for (std::int64_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& size = common[lead + i];
    if (size != shorter[i] && size != 1 && shorter[i] != 1)
      throw std::invalid_argument("sizes " + a.str() + " and " + b.str() + " do not broadcast");
    if (size == 1) size = shorter[i];
  }
  return common;
}

Dims broadcast_strides(const Dims& sizes, const Dims& strides, const Dims& common) {
  const std::int64_t lead = common.size() - sizes.size();
  if (lead < 0) throw std::invalid_argument("sizes " + sizes.str() + " do not broadcast to " + common.str());
  Dims result = common;
  for (std::int64_t i = 0; i < common.size(); ++i) {
    const bool repeated = i < lead || (sizes[i - lead] == 1 && common[i] != 1);
    if (!repeated && sizes[i - lead] != common[i])
      throw std::invalid_argument("sizes " + sizes.str() + " do not broadcast to " + common.str());
    result[i] = repeated ? 0 : strides[i - lead];
  }
  return result;
}

std::int64_t span_of(const Dims& sizes, const Dims& strides) {
  std::int64_t last = 0;
  for (std::int64_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0)
      throw std::invalid_argument("sizes " + sizes.str() + " or strides " + strides.str() + " are negative");
    last += (sizes[i] - 1) * strides[i];
  }
  return sizes.product() == 0 ? 0 : last + 1;
}

bool is_dense(const Dims& sizes, const Dims& strides) {
  if (sizes.product() == 0) return true;
  // Each axis, in the order of strides, must begin where the axes inside it end.
  Dims axes;
  for (std::int64_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] != 1) axes.push_back(i);
  std::sort(&axes[0], &axes[0] + axes.size(), [&](std::int64_t a, std::int64_t b) { return strides[a] < strides[b]; });
  std::int64_t expected = 1;
  for (std::int64_t axis : axes) {
    if (strides[axis] != expected) return false;
    expected *= sizes[axis];
  }
  return true;
}

namespace {

// Tells whether `a`, an axis now inside `b`, must go outside of it. Positive: yes; negative: no; 0: no operand tells.
int compare_axes(std::int64_t a, std::int64_t b, const Dims& sizes, std::span<const Dims> operands) {
  for (const Dims& strides : operands) {
    if (strides[a] == 0 || strides[b] == 0) continue;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    if (sizes[a] > sizes[b]) return 1;
  }
  return 0;
}

}  // namespace

Dims elementwise_strides(const Dims& sizes, std::span<const Dims> operands) {
  // Insertion sort of the axes, innermost first, as in torch. Pairs may be undecided, so the order of comparisons
  // counts.
  Dims axes;
  for (std::int64_t i = sizes.size(); i-- > 0;) axes.push_back(i);
  for (std::int64_t i = 1; i < axes.size(); ++i) {
    std::int64_t moving = i;
    for (std::int64_t j = i - 1; j >= 0; --j) {
      const int order = compare_axes(axes[j], axes[moving], sizes, operands);
      if (order < 0) break;
      if (order > 0) {
        std::swap(axes[j], axes[moving]);
        moving = j;
      }
    }
  }
  Dims strides = sizes;
  std::int64_t stride = 1;
  for (std::int64_t axis : axes) {
    strides[axis] = stride;
    stride *= std::max<std::int64_t>(sizes[axis], 1);
  }
  return strides;
}

Dims column_major(const Dims& sizes) {
  const std::int64_t n = sizes.size();
  if (n < 2) return sizes.row_major();
  Dims swapped = sizes;
  std::swap(swapped[n - 2], swapped[n - 1]);
  Dims strides = swapped.row_major();
  std::swap(strides[n - 2], strides[n - 1]);
  return strides;
}

Tensor empty_strided(DType dtype, const Dims& sizes, const Dims& strides) {
  return Tensor(Storage::allocate(span_of(sizes, strides) * itemsize(dtype)), dtype, sizes, strides);
}

namespace {

template <class T>
void copy_strided(const Tensor& destination, const Tensor& source, const Dims& source_strides) {
  T* to = destination.data_as<T>();
  const T* from = source.data_as<T>();
  walk<2>(destination.sizes(), {destination.strides(), source_strides},
          [&](const auto& at) { to[at[0]] = from[at[1]]; });
}

using Conversion = void (*)(void* to, const void* from);

Conversion conversion(DType to, DType from) {
  return visit(to, [&]<class To>(std::type_identity<To>) {
    return visit(from, []<class From>(std::type_identity<From>) -> Conversion {
      return [](void* out, const void* in) { *static_cast<To*>(out) = static_cast<To>(*static_cast<const From*>(in)); };
    });
  });
}

// Converts element by element, one function per pair of types: fast enough, since compiled code rarely needs it.
void convert(const Tensor& destination, const Tensor& source, const Dims& source_strides) {
  const Conversion one = conversion(destination.dtype(), source.dtype());
  char* to = destination.data_as<char>();
  const char* from = source.data_as<char>();
  walk<2>(destination.sizes(), {destination.strides(), source_strides},
          [&](const auto& at) { one(to + at[0] * destination.itemsize(), from + at[1] * source.itemsize()); });
}

}  // namespace

void copy_elements(const Tensor& destination, const Tensor& source) {
  const Dims strides = broadcast_strides(source.sizes(), source.strides(), destination.sizes());
  if (destination.numel() == 0) return;
  if (destination.dtype() != source.dtype()) return convert(destination, source, strides);
  if (strides == destination.strides() && is_dense(destination.sizes(), strides)) {
    std::memmove(destination.data(), source.data(), static_cast<std::size_t>(source.numel() * source.itemsize()));
    return;
  }
  switch (source.itemsize()) {
    case 8: return copy_strided<std::int64_t>(destination, source, strides);
    case 4: return copy_strided<std::int32_t>(destination, source, strides);
    case 2: return copy_strided<std::int16_t>(destination, source, strides);
    default: return copy_strided<std::int8_t>(destination, source, strides);
  }
}

}  // namespace neml2_capi::aoti::builtin
