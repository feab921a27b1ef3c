#include "capi/accelerator/batch.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/plan.h"
#include "capi/tensor/rows.h"
#include "capi/threads/pool.h"

namespace neml2_capi::accelerator {
namespace {

using model::Kind;
using model::Part;
using model::Points;
using model::Variable;

std::int64_t size_of(const std::vector<Variable>& variables) {
  std::int64_t size = 0;
  for (const Variable& variable : variables) size += variable.point_shape.product();
  return size;
}

constexpr std::int64_t tile = 64;  // points whose rows fit the first-level cache

// Tiles of points, which threads share.
template <class OfTile>
class Tiles final : public threads::Job {
 public:
  Tiles(std::int64_t points, const OfTile& of_tile) : points_(points), of_tile_(of_tile) {}
  void work() override {
    constexpr std::int64_t at_once = 16 * tile;
    for (;;) {
      const std::int64_t first = next_.fetch_add(at_once, std::memory_order_relaxed),
                         end = std::min(first + at_once, points_);
      if (first >= points_) return;
      for (std::int64_t begin = first; begin < end; begin += tile) of_tile_(begin, std::min(begin + tile, end));
    }
  }

 private:
  std::int64_t points_;
  const OfTile& of_tile_;
  std::atomic<std::int64_t> next_ = 0;
};

// Calls of_tile(begin, end), which must not throw, for all points, on as many threads as are worth waking.
template <class OfTile>
void for_each_tile(std::int64_t points, int threads, const OfTile& of_tile) {
  constexpr std::int64_t worthwhile = 4096;  // points of a thread
  Tiles tiles(points, of_tile);
  threads::run(tiles, static_cast<int>(std::min<std::int64_t>(threads - 1, points / worthwhile)));
}

// Derivatives of all outputs by all inputs, or all parameters, as the device has them.
template <class Real>
class Tangent {
 public:
  Tangent(const model::Model& model, const Sizes& sizes, Kind kind, const Real* all, std::int64_t points)
      : model_(model),
        all_(all),
        points_(points),
        width_(sizes.columns),
        outputs_(offsets_of(model.variables(Kind::output))),
        by_(columns_of(model, sizes, kind)),
        kind_(kind) {}

  // Writes a derivative of these points, as rows.
  void write_block(const model::Derivative& of, std::int64_t begin, std::int64_t end, Real* rows) const {
    const Size size = size_of(of);
    for (std::int64_t r = 0; r < size.rows; ++r)
      for (std::int64_t c = 0; c < size.columns; ++c) {
        const Real* from = entry(of, r, c);
        Real* to = rows + r * size.columns + c;
        for (std::int64_t p = begin; p < end; ++p) to[p * size.rows * size.columns] = from[p];
      }
  }

  // Products with tangents of the inputs, by output.
  Vector<Tensor> jvp(const Vector<Tensor>& tangents) const { return products(Kind::output, tangents); }
  // Products with cotangents of the outputs, by input or parameter.
  Vector<Tensor> vjp(const Vector<Tensor>& cotangents) const { return products(kind_, cotangents); }

 private:
  struct Size {
    std::int64_t rows, columns;
  };
  Size size_of(const model::Derivative& of) const {
    return {outputs_[of.output + 1] - outputs_[of.output], by_[of.input + 1] - by_[of.input]};
  }
  const Real* entry(const model::Derivative& of, std::int64_t row, std::int64_t column) const {
    return all_ + ((outputs_[of.output] + row) * width_ + by_[of.input] + column) * points_;
  }

  Vector<Tensor> products(Kind kind, const Vector<Tensor>& given) const {
    const bool transposed = kind == kind_;
    Vector<Tensor> made(model_.variables(kind).size());
    for (const model::Derivative& of : model_.derivatives(kind_).all()) {
      const std::size_t to = transposed ? of.input : of.output, from = transposed ? of.output : of.input;
      const Size size = size_of(of);
      const std::int64_t n = transposed ? size.columns : size.rows, m = transposed ? size.rows : size.columns;
      if (!made[to].data()) made[to] = Tensor::zeros(model_.variables(kind)[to].dtype, {points_, n});
      if (!given[from].data()) continue;
      const Tensor values = given[from].row_major();
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = 0; k < m; ++k) {
          const Real* factor = transposed ? entry(of, k, i) : entry(of, i, k);
          const Real* value = values.data_as<const Real>() + k;
          Real* sum = made[to].data_as<Real>() + i;
          for (std::int64_t p = 0; p < points_; ++p) sum[p * n] += factor[p] * value[p * m];
        }
    }
    return made;
  }

  const model::Model& model_;
  const Real* all_;
  std::int64_t points_, width_;
  Vector<std::int64_t> outputs_, by_;
  Kind kind_;
};

}  // namespace

Sizes::Sizes(const model::Model& model, bool by_parameters)
    : real(model.dtype()),
      inputs(size_of(model.variables(Kind::input))),
      parameters(size_of(model.variables(Kind::parameter))),
      outputs(size_of(model.variables(Kind::output))),
      columns(inputs + (by_parameters ? parameters : 0)) {}

std::int64_t Sizes::largest_per_point(bool with_tangent) const {
  return std::max({inputs, parameters, outputs, with_tangent ? outputs * columns : 1}) * itemsize(real);
}

std::int64_t Sizes::bytes_per_point(bool with_tangent) const {
  constexpr std::int64_t reports = 2 * sizeof(std::int32_t) + 2 * sizeof(double);
  return (inputs + parameters + outputs + (with_tangent ? outputs * columns : 0)) * itemsize(real) + reports;
}

Vector<std::int64_t> offsets_of(const std::vector<Variable>& variables) {
  Vector<std::int64_t> offsets = {0};
  for (const Variable& variable : variables) offsets.push_back(offsets.back() + variable.point_shape.product());
  return offsets;
}

void add_arrays(const std::vector<Variable>& variables, bool together, std::uint64_t handle, std::int64_t points,
                bool vary, std::vector<Place>& to) {
  std::int64_t at = 0;
  const std::int64_t count = vary ? points : 1;
  for (const Variable& variable : variables) {
    to.push_back({.handle = handle, .first = at * count, .point = vary, .column = count});
    if (together) return;
    at += variable.point_shape.product();
  }
}

void run_law(graph::DeviceQueue& queue, std::int64_t points, const LawMemory& memory,
             const newton::Settings& settings) {
  std::vector<graph::DeviceArgument> arguments = {of(points)};
  for (const Place& array : memory.arrays)
    for (const graph::DeviceArgument& each :
         {graph::DeviceArgument{&array.handle, sizeof array.handle, array.is_address}, of(array.first), of(array.point),
          of(array.column)})
      arguments.push_back(each);
  for (const graph::DeviceArgument& each : {
           of(memory.tangent),
           of(memory.reports),
           of(memory.norms),
           of(memory.summary),
           of(memory.until),
           of(memory.derivatives),
#define NEML2_CRITERION(type, name, initial, meaning) of(settings.name),
#include "neml2_capi/header/text/criteria.inc"
#undef NEML2_CRITERION
       })
    arguments.push_back(each);
  queue.launch(graph::Kernel::law, points, arguments);
}

std::int64_t derivatives_of(const model::Model& model, const model::Request& request, const model::Bindings& bindings) {
  if (request.products()) return -1;
  std::int64_t bits = 0;
  const auto add = [&bits](std::size_t given) { bits |= std::int64_t{1} << std::min<std::size_t>(given, 63); };
  for (const Part part : {Part::block, Part::parameter_block}) {
    const auto& derivatives = model.derivatives(model::kind_of(part)).all();
    const std::size_t first = part == Part::block ? 0 : bindings.inputs.size();
    for (std::size_t i = 0; i < derivatives.size(); ++i)
      if (bindings.of(part)[i].data) add(first + derivatives[i].input);
  }
  for (const model::Slope& slope : bindings.slopes) add(slope.input);
  return bits;
}

bool needs_tangent(const model::Request& request) {
  return request.blocks || request.jvps || request.adjoints || request.by_parameters();
}

Vector<std::int64_t> columns_of(const model::Model& model, const Sizes& sizes, Kind kind) {
  Vector<std::int64_t> columns = offsets_of(model.variables(kind));
  for (std::int64_t& column : columns) column += kind == Kind::parameter ? sizes.inputs : 0;
  return columns;
}

void Batch::reserve(Array& array, std::int64_t bytes) {
  if (bytes <= array.bytes) return;
  array.bytes = 0;
  array.memory.reset();
  array.host.reset();
  array.memory = queue_->allocate(bytes);
  array.host = queue_->allocate_on_host(bytes);
  array.bytes = bytes;
}

template <class Real>
void Batch::gather(const std::vector<Points>& arrays, const std::vector<Variable>& variables, std::int64_t points,
                   int threads, Real* to) const {
  for_each_tile(points, threads, [&](std::int64_t begin, std::int64_t end) {
    Real* of_variable = to;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::int64_t n = variables[i].point_shape.product(), stride = arrays[i].stride;
      const auto* rows = reinterpret_cast<const Real*>(point(arrays[i], begin_, sizeof(Real)));
      for (std::int64_t c = 0; c < n; ++c, of_variable += points)
        for (std::int64_t p = begin; p < end; ++p) of_variable[p] = rows[p * stride + c];
    }
  });
}

void Batch::begin(const model::Bindings& bindings, const model::Plan& plan, std::int64_t begin, std::int64_t points) {
  const newton::Settings settings = plan.options().newton();
  const int threads = plan.threads();
  const std::int64_t item = itemsize(sizes_.real);
  const bool vary = std::ranges::any_of(bindings.parameters, [](const Points& array) { return array.stride != 0; });
  const std::int64_t values = vary ? points : 1, least = item;  // an array of nothing has a byte or more
  queue_->require_device();
  begin_ = begin;
  settings_ = settings;
  with_tangent_ = needs_tangent(plan.request());
  reserve(inputs_, std::max(sizes_.inputs * points * item, least));
  reserve(parameters_, std::max(sizes_.parameters * values * item, least));
  reserve(outputs_, sizes_.outputs * points * item);
  if (with_tangent_) reserve(tangent_, std::max(sizes_.outputs * sizes_.columns * points * item, least));
  reserve(reports_, 2 * points * static_cast<std::int64_t>(sizeof(std::int32_t)));
  reserve(norms_, 2 * points * static_cast<std::int64_t>(sizeof(double)));
  with_scalar(sizes_.real, [&]<class Real>(Real*) {
    gather(bindings.inputs, model_.variables(Kind::input), points, threads, inputs_.as<Real>());
    gather(bindings.parameters, model_.variables(Kind::parameter), values, threads, parameters_.as<Real>());
  });

  points_ = points;  // from here on, something may be under way
  queue_->upload(*inputs_.memory, inputs_.host.get(), sizes_.inputs * points * item);
  queue_->upload(*parameters_.memory, parameters_.host.get(), sizes_.parameters * values * item);
  LawMemory law{.arrays = {},
                .tangent = with_tangent_ ? tangent_.memory->handle() : 0,
                .reports = reports_.memory->handle(),
                .norms = norms_.memory->handle(),
                .derivatives = derivatives_of(model_, plan.request(), bindings)};
  const auto add = [&](Kind kind, const Array& array, bool varies) {
    add_arrays(model_.variables(kind), sizes_.together, array.memory->handle(), points, varies, law.arrays);
  };
  add(Kind::input, inputs_, true);
  add(Kind::parameter, parameters_, vary);
  add(Kind::output, outputs_, true);
  run_law(*queue_, points, law, settings);
  const auto download = [this](const Array& array, std::int64_t bytes) {
    queue_->download(array.host.get(), *array.memory, 0, bytes);
  };
  download(outputs_, sizes_.outputs * points * item);
  if (with_tangent_) download_tangent(plan.request(), bindings);
  download(reports_, 2 * points * static_cast<std::int64_t>(sizeof(std::int32_t)));
  download(norms_, 2 * points * static_cast<std::int64_t>(sizeof(double)));
  queue_->flush();
}

void Batch::download_tangent(const model::Request& request, const model::Bindings& bindings) {
  const Vector<std::int64_t> outputs = offsets_of(model_.variables(Kind::output));
  std::vector<std::pair<std::int64_t, std::int64_t>> entries;  // begin and end of some side by side
  if (request.products())
    entries.push_back({0, sizes_.outputs * sizes_.columns});
  else
    for (const Part part : {Part::block, Part::parameter_block}) {
      const auto& derivatives = model_.derivatives(kind_of(part)).all();
      const Vector<std::int64_t> by = columns_of(model_, sizes_, kind_of(part));
      for (std::size_t i = 0; i < derivatives.size(); ++i) {
        const auto [output, input] = std::pair(derivatives[i].output, derivatives[i].input);
        for (std::int64_t row = outputs[output]; row < outputs[output + 1] && bindings.of(part)[i].data; ++row)
          entries.push_back({row * sizes_.columns + by[input], row * sizes_.columns + by[input + 1]});
      }
    }
  std::ranges::sort(entries);
  const std::int64_t bytes = points_ * itemsize(sizes_.real);  // of an entry
  for (std::size_t i = 0; i < entries.size();) {
    auto [begin, end] = entries[i];
    for (++i; i < entries.size() && entries[i].first == end; ++i) end = entries[i].second;
    queue_->download(tangent_.as<char>() + begin * bytes, *tangent_.memory, begin * bytes, (end - begin) * bytes);
  }
}

// The last iterates of failed points stay on the device: they are NaN here.
void Batch::note_unknowns(const model::Bindings& bindings, model::Chunk& chunk) const {
  chunk.keep_unknowns = bindings.unknowns != nullptr;
  if (!chunk.keep_unknowns) return;
  chunk.unknowns.assign(model_.num_values(), Tensor());
  const auto& unknowns = model_.variables(Kind::unknown);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    Tensor& value = chunk.unknowns[model_.values_of(Kind::unknown)[i]];
    value = Tensor::empty(unknowns[i].dtype, Dims{chunk.points}.then(unknowns[i].point_shape));
    model::fill_nan(value.data_as<char>(), value.dtype(), value.numel());
  }
}

model::Derived Batch::end(const model::Bindings& bindings, int threads, model::Chunk& chunk) {
  const std::int64_t points = std::exchange(points_, 0);
  queue_->wait();
  chunk.begin = begin_;
  chunk.points = points;
  chunk.newton = settings_;
  chunk.values.resize(model_.num_values());
  note_unknowns(bindings, chunk);
  chunk.reports.begin(points, NEML2_OK, settings_);
  const auto* statuses = reports_.as<const std::int32_t>();
  for (std::int64_t p = 0; p < points; ++p) {
    const auto at = static_cast<std::size_t>(p);
    // The caller finds results that are not finite, by the rule of all routes.
    chunk.reports.status[at] = statuses[p] == NEML2_NON_FINITE ? NEML2_OK : statuses[p];
    chunk.reports.iterations[at] = statuses[points + p];
    chunk.reports.residual_norm[at] = norms_.as<const double>()[p];
    if (statuses[p] > NEML2_NON_FINITE) chunk.reports.suggested_cut[at] = norms_.as<const double>()[points + p];
  }
  const auto& outputs = model_.variables(Kind::output);
  const Vector<std::int64_t> offsets = offsets_of(outputs);
  return with_scalar(sizes_.real, [&]<class Real>(Real*) {
    Vector<Real*> rows, blocks, parameter_blocks;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      Tensor& value = chunk.values[model_.values_of(Kind::output)[i]];
      value = Tensor::empty(outputs[i].dtype, Dims{points}.then(outputs[i].point_shape));
      rows.push_back(value.data_as<Real>());
    }
    model::Derived derived;
    const auto& derivatives = model_.derivatives(Kind::input).all();
    const auto& by_parameters = model_.derivatives(Kind::parameter).all();
    const auto make = [&](Part part, const auto& pairs, Vector<Real*>& made) {
      for (std::size_t i = 0; i < pairs.size() && any_bound(bindings.of(part)); ++i) {
        const Variable& block = pairs[i].block;
        const bool is_bound = bindings.of(part)[i].data != nullptr;
        derived[part].push_back(is_bound ? Tensor::empty(block.dtype, {points, block.point_shape.product()})
                                         : Tensor());
        made.push_back(is_bound ? derived[part].back().template data_as<Real>() : nullptr);
      }
    };
    make(Part::block, derivatives, blocks);
    make(Part::parameter_block, by_parameters, parameter_blocks);
    const Tangent<Real> tangent(model_, sizes_, Kind::input, tangent_.as<const Real>(), points),
        of_parameters(model_, sizes_, Kind::parameter, tangent_.as<const Real>(), points);
    for_each_tile(points, threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t n = offsets[i + 1] - offsets[i];
        const Real* from = outputs_.as<const Real>() + offsets[i] * points;
        for (std::int64_t c = 0; c < n; ++c)
          for (std::int64_t p = begin; p < end; ++p) rows[i][p * n + c] = from[c * points + p];
      }
      for (std::size_t i = 0; i < blocks.size(); ++i)
        if (blocks[i]) tangent.write_block(derivatives[i], begin, end, blocks[i]);
      for (std::size_t i = 0; i < parameter_blocks.size(); ++i)
        if (parameter_blocks[i]) of_parameters.write_block(by_parameters[i], begin, end, parameter_blocks[i]);
    });
    if (!with_tangent_) return derived;
    const auto given = [&](Part part) {
      return gather_bound(bindings.of(part), model_.variables(kind_of(part)), begin_, points);
    };
    if (any_bound(bindings.jvps)) derived[Part::jvp] = tangent.jvp(given(Part::tangent));
    if (any_bound(bindings.adjoints)) derived[Part::adjoint] = tangent.vjp(given(Part::cotangent));
    if (any_bound(bindings.parameter_adjoints))
      derived[Part::parameter_adjoint] = of_parameters.vjp(given(Part::cotangent));
    return derived;
  });
}

}  // namespace neml2_capi::accelerator
