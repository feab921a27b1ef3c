#include "capi/accelerator/device_call.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/bounded.h"
#include "capi/evaluation/step_arrays.h"

namespace neml2_capi::accelerator {
namespace {

using graph::DeviceArgument;
using graph::Kernel;
using model::Kind;
using model::Part;
using model::Points;

constexpr std::size_t length_of_summary = 7;  // see neml2_note
constexpr std::int32_t no_step = std::numeric_limits<std::int32_t>::max();

void refuse_what_is_not_given(const model::Request& request, const model::Bindings& bindings) {
  if (request.sums)
    throw Error(NEML2_ERROR_UNSUPPORTED, "adjoints",
                "Arrays on a device get no sums over the points. Bind an adjoint for each point.");
  if (bindings.report[NEML2_REPORT_RESCUE_SOLVES].data)
    throw Error(NEML2_ERROR_UNSUPPORTED, "rescue", "Nothing is rescued on a device. Leave that report out.");
  if (request.points > std::numeric_limits<std::int32_t>::max())
    throw Error(NEML2_ERROR_SHAPE, "npoints",
                join("A call over memory of a device has less than 2^31 points; got ", request.points, "."));
}

}  // namespace

void require_rows(const Points& array, const model::Variable& variable) {
  const std::int64_t size = variable.point_shape.product();
  if (!array.data || array.stride == 0 || array.stride >= size) return;
  throw Error(
      NEML2_ERROR_SHAPE, variable.name,
      join("'", variable.name, "' has ", size, " values per point, which lie one after another: the point stride ",
           "must be ", size, " or more; got ", array.stride,
           ". For arrays [value][point] give the component stride, neml2_call_memory_set()."));
}

DeviceCall::DeviceCall(std::shared_ptr<const ByText> text, const CallerMemory& memory)
    : text_(std::move(text)),
      model_(text_->model()),
      sizes_(model_),
      memory_(memory),
      inputs_at_(offsets_of(model_.variables(Kind::input))),
      outputs_at_(offsets_of(model_.variables(Kind::output))),
      parameters_at_(offsets_of(model_.variables(Kind::parameter))) {
  text_->require_same_process();
  const graph::DeviceProgram& program = *text_->compiled(false).program;
  if (memory.is_address && !program.takes_addresses())
    throw Error(
        NEML2_ERROR_UNSUPPORTED, "kind",
        join("The device ", text_->name(), " shares no memory with the host: give buffers, NEML2_MEMORY_BUFFERS."));
  queue_ = program.queue_over(memory.queue);
}

void DeviceCall::clear_summary() {
  reserve(summary_, length_of_summary * sizeof(std::int32_t));
  counts_.assign(length_of_summary, 0);
  counts_[0] = no_step;
  std::fill(counts_.begin() + 4, counts_.end(), std::numeric_limits<std::int32_t>::max());
  queue_->upload(*summary_.memory, counts_.data(), length_of_summary * sizeof(std::int32_t));
}

void DeviceCall::reserve(Array& array, std::int64_t bytes) {
  if (bytes <= array.bytes) return;
  array = {};
  array.memory = queue_->allocate(bytes);
  array.bytes = bytes;
}

Place DeviceCall::place_of(const Points& array, std::int64_t begin) const {
  return {.handle = reinterpret_cast<std::uintptr_t>(array.data),
          .is_address = memory_.is_address,
          .first = array.skip + begin * array.stride,
          .point = array.stride,
          .column = array.stride == 0 ? 1 : memory_.component_stride};
}

// A step behind one that failed writes nothing; what has room for one step is left as the last good one wrote it.
std::int64_t DeviceCall::until(const Points& array) const {
  if (step_ <= 0) return 0;
  return array.step == 0 ? step_ + 1 : step_;
}

void DeviceCall::copy(const Shape& shape, std::int64_t itemsize, const Place& from, const Place& to,
                      std::uint64_t statuses, std::int64_t until) {
  const std::int64_t words = itemsize / 4;
  const std::uint64_t summary = summary_.memory->handle();
  launch(Kernel::copy, shape.points,
         std::array{of(shape.points), of(shape.rows), of(shape.columns), of(words),
                    DeviceArgument{&from.handle, sizeof from.handle, from.is_address}, of(from.first), of(from.point),
                    of(from.row), of(from.column), DeviceArgument{&to.handle, sizeof to.handle, to.is_address},
                    of(to.first), of(to.point), of(to.row), of(to.column), of(statuses), of(summary), of(until)});
}

// Uploads the stored parameters that no array replaces, if they are not what is there. Tells whether any parameter varies
// from point to point.
bool DeviceCall::upload_parameters(const model::Bindings& bindings, const model::Snapshot& snapshot) {
  const auto& variables = model_.variables(Kind::parameter);
  std::vector<char> values;
  bool vary = false;
  values_at_.clear();
  for (std::size_t i = 0; i < variables.size(); ++i) {
    values_at_.push_back(std::ssize(values) / itemsize(sizes_.real));
    if (bindings.parameters[i].data) {
      vary |= bindings.parameters[i].stride != 0;
      continue;
    }
    const Points stored = model::stored_points(variables[i], snapshot.parameters[i], bindings.points);
    vary |= stored.stride != 0;
    values.insert(values.end(), stored.data, stored.data + snapshot.parameters[i].numel() * itemsize(sizes_.real));
  }
  if (values.empty() ||
      (values.size() == values_.size() && std::memcmp(values.data(), values_.data(), values.size()) == 0))
    return vary;
  queue_->wait();   // for the values that are on their way
  values_.clear();  // which are what is there, but not after a fault
  reserve(stored_, std::ssize(values));
  queue_->upload(*stored_.memory, values.data(), std::ssize(values));
  values_ = std::move(values);
  queue_->flush();  // a later wait() is for them, too
  return vary;
}

void DeviceCall::launch(Kernel kernel, std::int64_t items, std::span<const DeviceArgument> arguments) {
  queue_->launch(kernel, items, arguments);
  ++launched_;
}

void DeviceCall::tell(std::int64_t points) {
  const std::int64_t count = std::exchange(launched_, 0);
  if (log::on(log::Channel::model, log::Level::debug))
    log::write(log::Channel::model, log::Level::debug, text_->name(), ": ", points, " points put ", count,
               " kernels into the queue");
}

bool DeviceCall::has_norms(const model::Bindings& bindings) {
  return bindings.report[NEML2_REPORT_RESIDUAL_NORM].data || bindings.report[NEML2_REPORT_SUGGESTED_CUT].data;
}

bool DeviceCall::keeps_outputs(const model::Bindings& bindings) const {
  return std::ranges::any_of(bindings.outputs, [this](const Points& array) { return is_kept(array); });
}

ByText::Room DeviceCall::room_of(const model::Bindings& bindings) const {
  const model::Request request(bindings);
  const ByText::Compiled& compiled = text_->compiled(request.by_parameters());
  const Sizes& sizes = compiled.sizes;
  const std::int64_t item = itemsize(sizes.real), tangent = needs_tangent(request) ? sizes.outputs * sizes.columns : 0,
                     reports = has_norms(bindings) ? 24 : 8;
  const std::int64_t inputs = sizes.together ? sizes.inputs + sizes.parameters : 0,
                     outputs = sizes.together || keeps_outputs(bindings) ? sizes.outputs : 0;
  return {(inputs + outputs + tangent * (request.slopes ? 2 : 1)) * item + reports,
          std::max({inputs, outputs, tangent, std::int64_t{2}}) * item};
}

Place DeviceCall::place_of_parameter(const model::Bindings& bindings, std::size_t parameter, std::int64_t begin) const {
  if (bindings.parameters[parameter].data) return place_of(bindings.parameters[parameter], begin);
  const std::int64_t size = parameters_at_[parameter + 1] - parameters_at_[parameter],
                     end = parameter + 1 < values_at_.size() ? values_at_[parameter + 1]
                                                             : std::ssize(values_) / itemsize(sizes_.real);
  const std::int64_t stride = end - values_at_[parameter] == size ? 0 : size;
  return {.handle = stored_.memory->handle(),
          .first = values_at_[parameter] + begin * stride,
          .point = stride,
          .column = 1};
}

std::vector<Place> DeviceCall::arrays_of(const model::Bindings& bindings, std::int64_t begin, std::int64_t points,
                                         bool vary, bool writes) {
  std::vector<Place> arrays;
  if (together_) {
    const auto take = [&](const Place& from, const Vector<std::int64_t>& at, std::size_t i, std::int64_t count,
                          const Array& to) {
      copy({count, 1, at[i + 1] - at[i]}, itemsize(sizes_.real), from,
           {.handle = to.memory->handle(), .first = at[i] * count, .point = 1, .column = count}, 0, 0);
    };
    for (std::size_t i = 0; i < bindings.inputs.size(); ++i)
      take(place_of(bindings.inputs[i], begin), inputs_at_, i, points, inputs_);
    for (std::size_t i = 0; i < bindings.parameters.size(); ++i)
      take(place_of_parameter(bindings, i, begin), parameters_at_, i, vary ? points : 1, parameters_);
    const auto add = [&](Kind kind, const Array& array, bool varies) {
      add_arrays(model_.variables(kind), true, array.memory ? array.memory->handle() : 0, points, varies, arrays);
    };
    add(Kind::input, inputs_, true);
    add(Kind::parameter, parameters_, vary);
    add(Kind::output, outputs_, true);
    return arrays;
  }
  for (const Points& array : bindings.inputs) arrays.push_back(place_of(array, begin));
  for (std::size_t i = 0; i < bindings.parameters.size(); ++i) arrays.push_back(place_of_parameter(bindings, i, begin));
  for (std::size_t i = 0; i < bindings.outputs.size(); ++i) {
    const Points& array = bindings.outputs[i];
    if (!array.data || !writes)
      arrays.push_back({});
    else if (is_kept(array))
      arrays.push_back(
          {.handle = outputs_.memory->handle(), .first = outputs_at_[i] * points, .point = 1, .column = points});
    else
      arrays.push_back(place_of(array, begin));
  }
  return arrays;
}

void DeviceCall::write_reports(const model::Bindings& bindings, std::int64_t begin, std::int64_t points) {
  const auto report = [&](int kind, const Array& from, std::int64_t row) {
    if (const Points& array = bindings.report[kind]; array.data)
      copy({points, 1, 1}, itemsize(model::dtype_of_report(kind)),
           {.handle = from.memory->handle(), .first = row * points, .point = 1}, place_of(array, begin), 0,
           until(array));
  };
  report(NEML2_REPORT_STATUS, reports_, 0);
  report(NEML2_REPORT_ITERATIONS, reports_, 1);
  report(NEML2_REPORT_RESIDUAL_NORM, norms_, 0);
  report(NEML2_REPORT_SUGGESTED_CUT, norms_, 1);
}

void DeviceCall::write(const model::Bindings& bindings, std::int64_t begin, std::int64_t points) {
  const std::int64_t item = itemsize(sizes_.real);
  const std::uint64_t statuses = reports_.memory->handle();
  const std::vector<Block> blocks = blocks_of(bindings, points);
  for (const Block& block : blocks) add_up(bindings, block, begin, points);  // from what is written over next
  for (std::size_t i = 0; i < bindings.outputs.size(); ++i)
    if (const Points& array = bindings.outputs[i]; array.data && (together_ || is_kept(array)))
      copy({points, 1, outputs_at_[i + 1] - outputs_at_[i]}, item,
           {.handle = outputs_.memory->handle(), .first = outputs_at_[i] * points, .point = 1, .column = points},
           place_of(array, begin), statuses, until(array));
  for (const Block& block : blocks) write_block(bindings, block, begin, points);
  for (const Part part : {Part::jvp, Part::adjoint, Part::parameter_adjoint})
    write_products(bindings, part, begin, points);
  write_reports(bindings, begin, points);
}

DeviceCall::Run DeviceCall::prepare(const model::Bindings& bindings, const model::Snapshot& snapshot,
                                    std::int64_t size) {
  const model::Request request(bindings);
  const bool by_parameters = request.by_parameters(), with_tangent = needs_tangent(request);
  const std::int64_t item = itemsize(sizes_.real);
  const ByText::Compiled& compiled = text_->compiled(by_parameters);
  if (by_parameters && !by_parameters_) by_parameters_ = compiled.program->queue_over(memory_.queue);
  columns_ = compiled.sizes.columns;
  const bool vary = upload_parameters(bindings, snapshot);
  together_ = compiled.sizes.together;
  if (together_) {
    reserve(inputs_, std::max(sizes_.inputs * size, std::int64_t{1}) * item);
    reserve(parameters_, std::max(sizes_.parameters * (vary ? size : 1), std::int64_t{1}) * item);
  }
  if (together_ || keeps_outputs(bindings)) reserve(outputs_, sizes_.outputs * size * item);
  if (with_tangent) reserve(tangent_, std::max(sizes_.outputs * columns_ * size, std::int64_t{1}) * item);
  if (request.slopes) reserve(totals_, std::max(sizes_.outputs * columns_ * size, std::int64_t{1}) * item);
  reserve(reports_, 2 * size * static_cast<std::int64_t>(sizeof(std::int32_t)));
  if (has_norms(bindings)) reserve(norms_, 2 * size * static_cast<std::int64_t>(sizeof(double)));
  if (points_ == 0) clear_summary();
  const LawMemory law{.arrays = {},
                      .tangent = with_tangent ? tangent_.memory->handle() : 0,
                      .reports = reports_.memory->handle(),
                      .norms = has_norms(bindings) ? norms_.memory->handle() : 0,
                      .summary = summary_.memory->handle(),
                      .derivatives = derivatives_of(model_, request, bindings)};
  return {size, vary, law, by_parameters ? *by_parameters_ : *queue_, snapshot.options.newton()};
}

// The queue keeps the order, so that each batch may use the memory of the one before.
void DeviceCall::put(const model::Bindings& bindings, const Run& run, bool notes, bool writes) {
  LawMemory law = run.law;
  law.until = step_;
  const std::uint64_t statuses = reports_.memory->handle(), summary = summary_.memory->handle();
  for (std::int64_t begin = 0; begin < bindings.points; begin += run.size) {
    const std::int64_t points = std::min(run.size, bindings.points - begin);
    law.arrays = arrays_of(bindings, begin, points, run.vary, writes);
    run_law(run.queue, points, law, run.settings);
    ++launched_;
    if (notes) launch(Kernel::note, points, std::array{of(points), of(begin), of(step_), of(statuses), of(summary)});
    if (writes) write(bindings, begin, points);
  }
}

void DeviceCall::require_given(const model::Bindings& bindings, const model::Snapshot& snapshot) const {
  const model::Request request(bindings);
  text_->require_same_process();
  text_->gives(request, snapshot.options);
  refuse_what_is_not_given(request, bindings);
  if (memory_.component_stride == 1 && bindings.points > 1)
    for (const Part part : model::all_parts)
      for (std::size_t i = 0; i < bindings.of(part).size(); ++i)
        require_rows(bindings.of(part)[i], model_.variable(part, i));
  require_slopes(request, bindings);
  model::require_no_bounds(model_, snapshot.options);
  require_apart(bindings, snapshot.options.miters());
}

// Refuses to write over what is read, or written, elsewhere. A buffer is taken for a range of addresses of its own.
void DeviceCall::require_apart(const model::Bindings& bindings, std::int64_t miters) const {
  const auto require = [&](const model::Bindings& each) {
    model::inputs_to_copy(model_, each, miters, memory_.component_stride);
  };
  if (memory_.is_address) return require(bindings);
  constexpr int bits_of_buffer = 46;
  model::Bindings apart = bindings;
  std::vector<std::uintptr_t> buffers;
  const auto move = [&](Points& array) {
    if (!array.data) return;
    const auto [buffer, first] =
        text_->compiled(false).program->origin_of(reinterpret_cast<std::uintptr_t>(array.data));
    const auto number = std::ranges::find(buffers, buffer) - buffers.begin();
    if (number == std::ssize(buffers)) buffers.push_back(buffer);
    array.data = reinterpret_cast<char*>(((std::intptr_t{1} + number) << bits_of_buffer) + first);
  };
  for (const Part part : model::all_parts) std::ranges::for_each(apart.of(part), move);
  std::ranges::for_each(apart.report, move);
  for (model::Slope& slope : apart.slopes) move(slope.array);
  require(apart);
}

void DeviceCall::run(const model::Bindings& bindings, const model::Snapshot& snapshot) {
  require_given(bindings, snapshot);
  steps_ = 0;
  step_ = -1;
  const std::int64_t size = text_->points_in_place(snapshot.options.chunk(), room_of(bindings), bindings.points);
  put(bindings, prepare(bindings, snapshot, size), true, true);
  points_ += bindings.points;
  queue_->flush();
  tell(bindings.points);
}

void DeviceCall::run_steps(const model::Bindings& first, const model::Snapshot& snapshot) {
  require_given(first, snapshot);
  const model::StepArrays arrays(model_, first, model::StepArrays::Memory::device);
  // Arrays with room for one step are written after all points of a step are known to be good. So all go at once, or
  // if they cannot, a step is evaluated once to know, and once to write.
  const bool keeps_last = arrays.keep_last() && first.steps > 1;
  const std::int64_t chunk = snapshot.options.chunk(), wanted = chunk == 0 && keeps_last ? first.points : chunk;
  steps_ = first.steps;
  const std::int64_t size = text_->points_in_place(wanted, room_of(first), first.points);
  const bool twice = keeps_last && size < first.points;
  const Run run = prepare(first, snapshot, size);
  queue_->upload(*summary_.memory, &no_step, sizeof no_step);
  points_ += first.points;
  model::Bindings bindings = first;
  for (step_ = 0; step_ < steps_; ++step_) {
    interrupt::check();
    arrays.go_to(step_, bindings);
    if (twice) put(bindings, run, true, false);
    put(bindings, run, !twice, true);
    queue_->flush();
  }
  tell(first.points);
}

model::Tally DeviceCall::wait() {
  model::Tally tally;
  tally.has_no_rescue = tally.has_own_search = true;
  if (points_ == 0) return tally;
  queue_->download(counts_.data(), *summary_.memory, 0, length_of_summary * sizeof(std::int32_t));
  queue_->flush();
  const std::int64_t points = std::exchange(points_, 0);
  queue_->wait();
  made_ = std::min<std::int64_t>(steps_, counts_[0]);
  std::int64_t good = points;
  for (int status = NEML2_NON_FINITE; status <= NEML2_SINGULAR; ++status) {
    const std::int32_t count = counts_[static_cast<std::size_t>(status)];
    good -= count;
    if (count > 0) tally.add(status, counts_[static_cast<std::size_t>(3 + status)], count);
  }
  if (good > 0) tally.add(NEML2_OK, 0, good);
  return tally;
}

}  // namespace neml2_capi::accelerator
