#include "capi/segments/package.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "capi/base/error.h"
#include "capi/graph/backend.h"
#include "capi/tensor/numbers.h"
#include "capi/tensor/probe.h"
#include "capi/tensor/views.h"

namespace neml2_capi::model {
namespace {

// Repeats a tensor as `rows` rows by a stride of 0.
Tensor repeat(const Tensor& tensor, std::int64_t rows) {
  Dims strides{0};
  strides.append(tensor.strides());
  return Tensor(tensor.storage(), tensor.dtype(), Dims{rows}.then(tensor.sizes()), strides, tensor.offset());
}

// Repeats the last row, up to `rows`.
Tensor padded(const Tensor& tensor, std::int64_t rows) {
  if (!tensor.device().is_host()) return algebra::joined({tensor, part(tensor, 0, tensor.sizes()[0] - 1, 1)}, 0);
  const std::int64_t have = tensor.sizes()[0];
  const Dims row = tensor.sizes().last(tensor.ndim() - 1);
  Tensor out = Tensor::empty(tensor.dtype(), Dims{rows}.then(row));
  const std::int64_t bytes = row.product() * tensor.itemsize();
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(out.data_as<char>() + r * bytes, tensor.data_as<const char>() + std::min(r, have - 1) * bytes,
                static_cast<std::size_t>(bytes));
  return out;
}

// Returns the first of the outputs `a` that is another in `b`, or their number if none is. Nothing if no number can tell.
std::optional<std::size_t> change(const Vector<Tensor>& a, const Vector<Tensor>& b) {
  constexpr double rounding = 1e-6;
  bool told = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!is_real(a[i].dtype())) continue;
    const Numbers x = numbers_of(a[i]), y = numbers_of(b[i]);
    double greatest = 0, difference = 0;
    for (std::int64_t k = 0; k < a[i].numel(); ++k) {
      if (!std::isfinite(x[k]) || !std::isfinite(y[k])) continue;
      told = true;
      greatest = std::max({greatest, std::abs(x[k]), std::abs(y[k])});
      difference = std::max(difference, std::abs(x[k] - y[k]));
    }
    if (difference > rounding * greatest) return i;
  }
  return told ? std::optional(a.size()) : std::nullopt;
}

}  // namespace

Tensor first_rows(const Tensor& tensor, std::int64_t rows) {
  Dims sizes = tensor.sizes();
  sizes[0] = rows;
  return Tensor(tensor.storage(), tensor.dtype(), sizes, tensor.strides(), tensor.offset());
}

Package::Package(const std::filesystem::path& path, const graph::Wanted& wanted)
    : Package(path.filename().string(), graph::open(path, wanted)) {}

Package::Package(std::string name, std::shared_ptr<graph::Graph> graph)
    : name_(std::move(name)), graph_(std::move(graph)) {
  learn_inputs();
  learn_outputs();
}

// The batch axis is the leading one if it is dynamic. If no input has a dynamic axis, the batch is baked, and its
// size is the leading one that all inputs share.
void Package::learn_inputs() {
  bool dynamic = false;
  for (const graph::InputSpec& input : graph_->inputs()) {
    if (!input.is_row_major())
      throw Error(NEML2_ERROR_UNSUPPORTED, name_,
                  join(name_, " takes input ", input.name,
                       " in an order other than row-major. Compile it with contiguous example inputs."));
    dynamic = dynamic || (!input.least.empty() && input.least[0] != input.greatest[0]);
  }
  for (const graph::InputSpec& input : graph_->inputs()) {
    const std::int64_t ndim = input.least.size();
    const bool batched = ndim > 0 && (!dynamic || input.least[0] != input.greatest[0]);
    inputs_.push_back({batched ? input.greatest.last(ndim - 1) : input.greatest, batched, input.dtype});
    if (!batched) continue;
    if (dynamic) {
      least_batch_ = std::max(least_batch_, input.least[0]);
      greatest_batch_ = std::min(greatest_batch_, input.greatest[0]);
    } else {
      if (baked_batch_ != 0 && baked_batch_ != input.least[0])
        throw Error(NEML2_ERROR_UNSUPPORTED, name_,
                    join(name_, " was compiled without a dynamic batch, for inputs of different batches (",
                         baked_batch_, " and ", input.least[0], "). Compile it again with a dynamic batch."));
      baked_batch_ = greatest_batch_ = input.least[0];
    }
  }
}

std::int64_t Package::bytes_per_point() const {
  std::int64_t bytes = 0;
  for (const auto* slots : {&inputs_, &outputs_})
    for (const Slot& slot : *slots)
      if (slot.batched) bytes += slot.point_shape.product() * itemsize(slot.dtype);
  return bytes;
}

Vector<Tensor> Package::filled(std::int64_t points, double value) const {
  Vector<Tensor> tensors;
  for (const Slot& input : inputs_) {
    Tensor tensor =
        Tensor::zeros(input.dtype, input.batched ? Dims{points}.then(input.point_shape) : input.point_shape);
    if (input.dtype == DType::float64) std::fill_n(tensor.data_as<double>(), tensor.numel(), value);
    if (input.dtype == DType::float32) std::fill_n(tensor.data_as<float>(), tensor.numel(), static_cast<float>(value));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// An output that has as many rows as there are points, in two runs of different length, has one row per point. One
// that does not change is the same for all points.
void Package::learn_outputs() {
  const std::int64_t few = some_points();
  const std::int64_t more = baked_batch_ ? baked_batch_ : few + 1;
  const Vector<Tensor> a = run_from_host(filled(few, 0));
  const Vector<Tensor> b = run_from_host(filled(more, 0));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Dims& sizes = a[i].sizes();
    const Dims& sizes_of_more = b[i].sizes();
    const bool rows = !sizes.empty() && sizes[0] == few && sizes_of_more[0] == more;
    if (!rows && !(sizes == sizes_of_more))
      throw Error(NEML2_ERROR_UNSUPPORTED, name_,
                  join("Output ", i, " of ", name_, " has the shape ", sizes.str(), " for ", few, " points and ",
                       sizes_of_more.str(), " for ", more, ": expected one row per point in front, or no change."));
    outputs_.push_back({rows ? sizes.last(sizes.size() - 1) : sizes, rows, a[i].dtype()});
  }
}

// Returns the outputs of some points: the first is given numbers below `size`, and the others `others` times as much.
Vector<Tensor> Package::outputs_beside(double size, double others) const {
  Vector<Tensor> inputs = filled(some_points(), 0);
  double number = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_real(inputs[i].dtype())) continue;
    const Numbers values = numbers_of(inputs[i]);
    const std::int64_t count = inputs_[i].point_shape.product();
    for (std::int64_t k = 0; k < inputs[i].numel(); ++k)
      values.set(k, k < count ? size * (0.5 + uneven(++number) / 2) : others * values[k % count]);
  }
  Vector<Tensor> outputs = run_from_host(std::move(inputs));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = outputs[i].row_major();
    if (outputs_[i].batched) outputs[i] = first_rows(outputs[i], 1);
  }
  return outputs;
}

// Vectorised functions may round otherwise beside other numbers. Whatever takes points together does so for numbers of any
// size, some of which may have no result.
void Package::require_points_apart() const {
  if (some_points() == 1) return;
  std::optional<std::size_t> changes;
  for (const double size : {1.0, 1e-3, 1e3}) {
    try {
      const auto found = change(outputs_beside(size, 0.3), outputs_beside(size, 2.7));
      if (found == num_outputs()) return;
      if (found) changes = found;
    } catch (const Error& error) {  // of an operator that refuses these values
      if (error.status() != NEML2_ERROR_RUNTIME) throw;
    }
  }
  if (changes)
    throw Error(
        NEML2_ERROR_UNSUPPORTED, name_,
        join(name_, " gives a point what depends on other points: output ", *changes,
             " changes if they do, as a mean or a sum over points does. A model is evaluated for parts of a batch, "
             "so that its results would depend on how that is divided. Write the law for one point; or call the "
             "package as a graph, which takes all points together."));
}

Vector<Tensor> Package::run_from_host(Vector<Tensor> inputs) const {
  const bool elsewhere = !device().is_host();
  for (std::size_t i = 0; elsewhere && i < inputs.size(); ++i) inputs[i] = algebra::moved(inputs[i], device());
  graph::SingularInfo ignored;
  Vector<Tensor> outputs = graph_->run(std::move(inputs), &ignored);
  for (std::size_t i = 0; elsewhere && i < outputs.size(); ++i) outputs[i] = algebra::moved(outputs[i], {});
  return outputs;
}

Vector<Tensor> Package::run(std::int64_t points, Vector<Tensor>&& inputs, graph::SingularInfo* singular) const {
  for (Tensor& input : inputs) input.make_row_major();
  Handles given(std::move(inputs)), returned(num_outputs());
  run(points, given, returned, singular);
  return returned.take();
}

void Package::run(std::int64_t points, Handles& inputs, Handles& outputs, graph::SingularInfo* singular) const {
  const bool pad = points < least_batch_ && graph_->enforces_bounds();
  const std::int64_t rows = pad ? least_batch_ : points;
  for (std::size_t i = 0; pad && i < inputs.size(); ++i)
    if (inputs_[i].batched) *inputs[i] = padded(*inputs[i], rows);
  graph_->run(inputs, outputs, singular);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Slot& slot = outputs_[i];
    Tensor& output = *outputs[i];
    if (!has_shape(output, slot, rows)) refuse_output(i, output, rows);
    if (!slot.batched)
      output = repeat(output, points);
    else if (rows != points)
      output = first_rows(output, points);
  }
}

bool Package::has_shape(const Tensor& output, const Slot& slot, std::int64_t rows) {
  const std::int64_t lead = slot.batched ? 1 : 0;
  const Dims& sizes = output.sizes();
  return sizes.size() == lead + slot.point_shape.size() && (!slot.batched || sizes[0] == rows) &&
         std::equal(slot.point_shape.begin(), slot.point_shape.end(), sizes.begin() + lead);
}

void Package::refuse_output(std::size_t i, const Tensor& output, std::int64_t rows) const {
  const Slot& slot = outputs_[i];
  const Dims expected = slot.batched ? Dims{rows}.then(slot.point_shape) : slot.point_shape;
  throw Error(NEML2_ERROR_RUNTIME, name_,
              join("Output ", i, " of ", name_, " came back with the shape ", output.sizes().str(), "; expected ",
                   expected.str(), ". Compile the model again."));
}

}  // namespace neml2_capi::model
