// Derivatives of calls over memory of a device: blocks, totals of inputs that move, and products.
#include <algorithm>
#include <array>

#include "capi/accelerator/device_call.h"
#include "capi/base/error.h"
#include "capi/evaluation/arrays.h"

namespace neml2_capi::accelerator {

using graph::DeviceArgument;
using graph::Kernel;
using model::Kind;
using model::Part;
using model::Points;
using model::Slope;

namespace {

bool acts_on(const Slope& slope, Part part, const model::Derivative& derivative) {
  return slope.kind == model::kind_of(part) && slope.variable == derivative.input;
}

}  // namespace

void DeviceCall::multiply(const Shape& shape, bool adds, const Place& matrix, const Place& vector, const Place& to) {
  const std::int32_t further = adds;
  const std::uint64_t statuses = reports_.memory->handle();
  launch(Kernel::product, shape.points * shape.rows,
         std::array{of(shape.points), of(shape.rows), of(shape.columns), of(further), of(matrix.handle),
                    of(matrix.first), of(matrix.row), of(matrix.column),
                    DeviceArgument{&vector.handle, sizeof vector.handle, vector.is_address}, of(vector.first),
                    of(vector.point), of(vector.column), DeviceArgument{&to.handle, sizeof to.handle, to.is_address},
                    of(to.first), of(to.point), of(to.column), of(statuses)});
}

Place DeviceCall::in_tangent(std::size_t output, std::int64_t column, std::int64_t points) const {
  return {.handle = tangent_.memory->handle(),
          .first = (outputs_at_[output] * columns_ + column) * points,
          .point = 1,
          .row = columns_ * points,
          .column = points};
}

void DeviceCall::write_products(const model::Bindings& bindings, Part part, std::int64_t begin, std::int64_t points) {
  const bool transposed = model::is_adjoint(part);
  const Kind kind = transposed ? model::kind_of(part) : Kind::input;
  const Vector<std::int64_t> by = columns_of(model_, sizes_, kind);
  const std::vector<Points>& results = bindings.of(part);
  const std::vector<Points>& given = bindings.of(transposed ? Part::cotangent : Part::tangent);
  std::vector<bool> is_written(results.size());
  for (const model::Derivative& each : model_.derivatives(kind).all()) {
    const std::size_t to = transposed ? each.input : each.output, from = transposed ? each.output : each.input;
    if (!results[to].data) continue;
    std::int64_t rows = outputs_at_[each.output + 1] - outputs_at_[each.output],
                 columns = by[each.input + 1] - by[each.input];
    Place matrix = in_tangent(each.output, by[each.input], points);
    if (transposed) {
      std::swap(rows, columns);
      std::swap(matrix.row, matrix.column);
    }
    // Takes an array that is not given as zero: a product without columns.
    const bool is_given = given[from].data != nullptr;
    const Place nothing{.handle = reports_.memory->handle()};
    multiply({points, rows, is_given ? columns : 0}, is_written[to], matrix,
             is_given ? place_of(given[from], begin) : nothing, place_of(results[to], begin));
    is_written[to] = true;
  }
}

// Lists the blocks that are bound. Totals stand one after another, (components, points).
std::vector<DeviceCall::Block> DeviceCall::blocks_of(const model::Bindings& bindings, std::int64_t points) const {
  std::vector<Block> blocks;
  std::int64_t end = 0;
  for (const Part part : {Part::block, Part::parameter_block}) {
    const Vector<std::int64_t> by = columns_of(model_, sizes_, model::kind_of(part));
    const auto& derivatives = model_.derivatives(model::kind_of(part)).all();
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      const model::Derivative& each = derivatives[i];
      const Points& array = bindings.of(part)[i];
      if (!array.data) continue;
      const std::int64_t rows = outputs_at_[each.output + 1] - outputs_at_[each.output],
                         columns = by[each.input + 1] - by[each.input];
      const Place direct = in_tangent(each.output, by[each.input], points);
      Block block{part, each, array, rows, columns, direct, direct};
      if (std::ranges::any_of(bindings.slopes, [&](const Slope& slope) { return acts_on(slope, part, each); })) {
        block.from = {.handle = totals_.memory->handle(),
                      .first = end * points,
                      .point = 1,
                      .row = columns * points,
                      .column = points};
        end += rows * columns;
      }
      blocks.push_back(block);
    }
  }
  return blocks;
}

// Adds what comes by inputs that move to a derivative. An input that moves with itself does so in place of the unit matrix.
void DeviceCall::add_up(const model::Bindings& bindings, const Block& block, std::int64_t begin, std::int64_t points) {
  if (!block.moves()) return;
  const model::Derivative& derivative = block.derivative;
  const auto is_itself = [&](const Slope& slope) {
    return slope.kind == Kind::input && slope.input == derivative.input && acts_on(slope, block.part, derivative);
  };
  bool adds = std::ranges::none_of(bindings.slopes, is_itself);
  if (adds) copy({points, block.rows, block.columns}, itemsize(sizes_.real), block.direct, block.from, 0, 0);
  const Place nothing{.handle = reports_.memory->handle()};
  for (const Slope& slope : bindings.slopes) {
    if (!acts_on(slope, block.part, derivative)) continue;
    const std::int64_t size = inputs_at_[slope.input + 1] - inputs_at_[slope.input];
    const Place matrix = in_tangent(derivative.output, inputs_at_[slope.input], points);
    for (std::int64_t column = 0; column < block.columns; ++column) {
      const bool is_given = slope.array.data != nullptr;  // else it is zero: a product without columns
      Place vector = is_given ? place_of(slope.array, begin) : nothing;
      vector.first += column * vector.column;
      vector.column *= block.columns;
      Place to = block.from;
      to.first += column * to.column;
      to.column = to.row;
      multiply({points, block.rows, is_given ? size : 0}, adds, matrix, vector, to);
    }
    adds = true;
  }
}

void DeviceCall::write_block(const model::Bindings& bindings, const Block& block, std::int64_t begin,
                             std::int64_t points) {
  const std::int64_t across = memory_.component_stride;
  Place to = place_of(block.array, begin);
  to.row = bindings.input_first ? across : block.columns * across;
  to.column = bindings.input_first ? block.rows * across : across;
  copy({points, block.rows, block.columns}, itemsize(sizes_.real), block.from, to, reports_.memory->handle(),
       until(block.array));
}

void DeviceCall::require_slopes(const model::Request& request, const model::Bindings& bindings) const {
  if (!request.slopes) return;
  if (request.products())
    throw Error(NEML2_ERROR_UNSUPPORTED, "derivatives",
                "Derivatives of inputs are not taken beside products with tangents or cotangents. Unbind one of them.");
  model::require_derivatives(model_, bindings);
  if (memory_.component_stride == 1 && bindings.points > 1)
    for (const Slope& slope : bindings.slopes) require_rows(slope.array, model::variable_of(model_, slope));
}

}  // namespace neml2_capi::accelerator
