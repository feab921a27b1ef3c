#include "capi/values/points.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "capi/base/error.h"
#include "capi/tensor/rows.h"
#include "capi/tensor/transpose.h"
#include "capi/values/finite.h"

namespace neml2_capi::model {
namespace {

bool failed(std::int32_t status) { return status > NEML2_NON_FINITE; }

bool any_failed(const Vector<std::int32_t>& status) {
  std::int32_t worst = NEML2_OK;
  for (std::int32_t each : status) worst = std::max(worst, each);
  return failed(worst);
}

template <std::size_t size>
using Constant = std::integral_constant<std::size_t, size>;

// Copies rows that lie so many bytes apart. The length of a number, of a symmetric tensor and of a tangent is known to
// the compiler, which needs no call for it.
void copy_rows(const char* from, std::int64_t from_stride, char* to, std::int64_t to_stride, std::size_t bytes,
               std::int64_t count) {
  const auto copy = [&](auto size) {
    for (std::int64_t p = 0; p < count; ++p) std::memcpy(to + p * to_stride, from + p * from_stride, size);
  };
  switch (bytes) {
    case 8: return copy(Constant<8>());
    case 48: return copy(Constant<48>());
    case 288: return copy(Constant<288>());
    default: return copy(bytes);
  }
}

}  // namespace

bool dense(const Points& array, const Variable& variable, std::int64_t points) {
  return points == 1 || array.stride == variable.point_shape.product();
}

Tensor gather(const Points& array, const Variable& variable, std::int64_t begin, std::int64_t points, bool copy) {
  const std::int64_t item = itemsize(variable.dtype);
  const Dims sizes = Dims{points}.then(variable.point_shape);
  if (dense(array, variable, points) && !copy) return Tensor::borrow(point(array, begin, item), variable.dtype, sizes);
  Tensor out = Tensor::empty(variable.dtype, sizes);
  const std::int64_t bytes = variable.point_shape.product() * item;
  if (array.stride == 0 && bytes == 8) {  // one number for all points
    std::uint64_t value = 0;
    std::memcpy(&value, array.data, 8);
    std::fill_n(out.data_as<std::uint64_t>(), points, value);
    return out;
  }
  for (std::int64_t p = 0; p < points; ++p)
    std::memcpy(out.data_as<char>() + p * bytes, point(array, begin + p, item), static_cast<std::size_t>(bytes));
  return out;
}

Vector<Tensor> gather_bound(const std::vector<Points>& arrays, const std::vector<Variable>& variables,
                            std::int64_t begin, std::int64_t points) {
  Vector<Tensor> tensors(arrays.size());
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].data) continue;
    const Tensor rows = gather(arrays[i], variables[i], begin, points, false);
    const Dims sizes = {points, variables[i].point_shape.product()};
    tensors[i] = Tensor(rows.storage(), rows.dtype(), sizes, sizes.row_major(), rows.offset());
  }
  return tensors;
}

void fill_nan(char* out, DType dtype, std::int64_t count) {
  if (dtype == DType::float64)
    std::fill_n(reinterpret_cast<double*>(out), count, std::numeric_limits<double>::quiet_NaN());
  else if (dtype == DType::float32)
    std::fill_n(reinterpret_cast<float*>(out), count, std::numeric_limits<float>::quiet_NaN());
}

void write_rows(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
                std::int64_t points) {
  const std::int64_t item = itemsize(variable.dtype), n = variable.point_shape.product();
  const auto bytes = static_cast<std::size_t>(n * item);
  char* const out = point(array, begin, item);
  const bool one_row = value.data() && value.sizes()[0] == 1 && points > 1;
  if (!value.data())
    for (std::int64_t p = 0; p < points; ++p) std::memset(out + p * array.stride * item, 0, bytes);
  else if (!one_row && dense(array, variable, points))
    value.copy_to(out);
  else if (value.is_row_major())
    copy_rows(value.data_as<const char>(), one_row ? 0 : n * item, out, array.stride * item, bytes, points);
  else
    write_rows(value.copy(), variable, array, begin, points);
}

bool write_finite(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
                  std::int64_t points) {
  bool finite = true, written = !array.data;
  if (value.data() && is_real(value.dtype()))
    with_scalar(value.dtype(), [&]<class Scalar>(Scalar*) {
      const bool together = array.data && dense(array, variable, points);
      auto* to = together ? reinterpret_cast<Scalar*>(point(array, begin, sizeof(Scalar))) : nullptr;
      finite = FiniteScan<Scalar>::run(value.data_as<const Scalar>(), value.numel(), to);
      written = written || together;
    });
  if (!written) write_rows(value, variable, array, begin, points);
  return finite;
}

void scatter(const Tensor& value, const Variable& variable, const Points& array, std::int64_t begin,
             const Vector<std::int32_t>& status, bool mark_failed) {
  const std::int64_t item = itemsize(variable.dtype), n = variable.point_shape.product();
  const std::int64_t points = std::ssize(status);
  if (!any_failed(status)) return write_rows(value, variable, array, begin, points);
  const auto bytes = static_cast<std::size_t>(n * item);
  const bool one_row = value.data() && value.sizes()[0] == 1 && points > 1;
  for (std::int64_t p = 0; p < points; ++p) {
    char* out = point(array, begin + p, item);
    if (failed(status[static_cast<std::size_t>(p)])) {
      if (mark_failed) fill_nan(out, variable.dtype, n);
    } else if (value.data()) {
      std::memcpy(out, value.data_as<const char>() + (one_row ? 0 : p) * n * item, bytes);
    } else {
      std::memset(out, 0, bytes);
    }
  }
}

void accumulate(const Tensor& value, const Variable& variable, const Points& array, const Vector<std::int32_t>& status,
                bool mark_failed) {
  if (!value.data() && !any_failed(status)) return;
  with_scalar(variable.dtype, [&]<class Scalar>(Scalar*) {
    const std::int64_t n = variable.point_shape.product();
    auto* total = reinterpret_cast<Scalar*>(array.data);
    for (std::int64_t p = 0; p < std::ssize(status); ++p) {
      const bool lost = failed(status[static_cast<std::size_t>(p)]);
      if (lost ? !mark_failed : !value.data()) continue;
      for (std::int64_t i = 0; i < n; ++i)
        total[i] += lost ? std::numeric_limits<Scalar>::quiet_NaN() : value.data_as<const Scalar>()[p * n + i];
    }
  });
}

Tensor transposed(const Tensor& matrices, std::int64_t rows, std::int64_t columns) {
  const Tensor dense = matrices.row_major();
  Tensor out = Tensor::empty(matrices.dtype(), matrices.sizes());
  with_scalar(matrices.dtype(), [&]<class Scalar>(Scalar*) {
    const std::int64_t size = rows * columns;
    const auto* from = dense.data_as<const Scalar>();
    auto* to = out.data_as<Scalar>();
    for (std::int64_t k = 0; k < dense.numel(); k += size) transpose(from + k, columns, rows, columns, to + k);
  });
  return out;
}

void check_extent(const Points& array, const Variable& variable, Extent extent) {
  const std::int64_t points = extent.points, steps = extent.steps;
  const std::int64_t most = (std::int64_t{1} << 60) / itemsize(variable.dtype);
  // Count a broadcast value per point, to reject absurd sizes.
  const std::int64_t apart = array.stride > 0 ? array.stride : variable.point_shape.product();
  std::int64_t elements = 0, later = 0;
  if (__builtin_mul_overflow(steps, array.step, &later) || later > most)
    throw Error(NEML2_ERROR_ARGUMENT, variable.name,
                join("No memory holds ", steps, " steps of '", variable.name, "', which lie ", array.step,
                     " elements apart. Was the number of steps set?"));
  if (__builtin_mul_overflow(points, apart, &elements) || elements > most)
    throw Error(
        NEML2_ERROR_ARGUMENT, variable.name,
        join("No memory holds ", points, " points of '", variable.name, "', which ", array.stride > 0 ? "lie " : "has ",
             apart, array.stride > 0 ? " elements apart" : " values a point", ". Was the number of points set?"));
}

namespace {

struct Axis {
  std::int64_t stride, size;
};

// Components, points and steps of an array; one value for all points is dense.
std::array<Axis, 3> axes_of(const Points& array, const Variable& variable, const Extent& extent) {
  const bool is_one = array.stride == 0;
  return {{{is_one ? 1 : extent.component_stride, variable.point_shape.product()},
           {array.stride, is_one ? 1 : extent.points},
           {array.step, array.step == 0 ? 1 : extent.steps}}};
}

}  // namespace

bool overlap(const Points& a, const Variable& va, const Points& b, const Variable& vb, Extent extent) {
  struct Span {
    const char *begin, *end;
    std::int64_t period, width;  // bytes: from one part to the next, and of what lies together
  };
  const auto span_of = [extent](const Points& array, const Variable& v) {
    const std::int64_t item = itemsize(v.dtype);
    const auto [components, points, steps] = axes_of(array, v, extent);
    const bool in_rows = array.stride == 0 || components.stride <= array.stride;
    const Axis &inner = in_rows ? components : points, &outer = in_rows ? points : components;
    const auto reach = [](const Axis& axis) { return axis.stride * (axis.size - 1); };
    return Span{.begin = array.data,
                .end = array.data + (1 + reach(components) + reach(points) + reach(steps)) * item,
                .period = std::gcd(outer.stride, extent.steps > 1 ? array.step : 0) * item,
                .width = (1 + reach(inner)) * item};
  };
  const Span one = span_of(a, va), other = span_of(b, vb);
  if (one.end <= other.begin || other.end <= one.begin) return false;
  // Interleaved arrays of equal strides may lie beside each other in every point, and one value within the first.
  const std::int64_t period = std::max(one.period, other.period);
  if (period == 0 || (one.period != other.period && one.period != 0 && other.period != 0)) return true;
  const std::int64_t shift = ((other.begin - one.begin) % period + period) % period;
  return shift < one.width || shift + other.width > period;
}

bool steps_overlap(const Points& array, const Variable& variable, Extent extent) {
  if (extent.steps == 1 || array.step == 0) return false;
  std::array<Axis, 3> axes = axes_of(array, variable, extent);
  std::ranges::sort(axes, {}, &Axis::stride);
  std::int64_t reach = 1;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    if (axis.stride < reach) return true;
    reach += axis.stride * (axis.size - 1);
  }
  return false;
}

std::int64_t length_of_equal(const Points& array, const Variable& variable, std::int64_t begin, std::int64_t limit) {
  if (array.stride == 0) return limit;
  const std::int64_t item = itemsize(variable.dtype);
  const auto bytes = static_cast<std::size_t>(variable.point_shape.product() * item);
  const char* first = point(array, begin, item);
  std::int64_t length = 1;
  while (length < limit && std::memcmp(first, point(array, begin + length, item), bytes) == 0) ++length;
  return length;
}

Points stored_points(const Variable& parameter, const Tensor& value, std::int64_t points) {
  const std::int64_t size = parameter.point_shape.product();
  const std::int64_t batch = value.sizes().first(value.ndim() - parameter.point_shape.size()).product();
  if (batch != 1 && batch != points)
    throw Error(NEML2_ERROR_SHAPE, parameter.name,
                join("The parameter '", parameter.name, "' holds values for ", batch, " points; the call has ", points,
                     ". Set it again, or bind it in the call."));
  return {value.data_as<char>(), batch == 1 ? 0 : size};
}

}  // namespace neml2_capi::model
