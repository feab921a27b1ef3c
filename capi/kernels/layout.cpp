#include "capi/kernels/layout.h"

#include <cstddef>

namespace neml2_capi::kernels {

char* Layout::make_scratch() {
  const std::int64_t count = blocks_in_turn(), size = size_ * bytes();
  char* const scratch = static_cast<char*>(memory.take(static_cast<std::size_t>(count * size)));
  for (char* own = scratch; own < scratch + count * size; own += size)
    for (const Arrays& arrays : arrays_) {
      void** list = reinterpret_cast<void**>(own + arrays.at * bytes());
      for (const At at : arrays.places) *list++ = own + at * bytes();
    }
  return scratch;
}

RowsCall Layout::on_rows(const std::vector<Bound>& inputs, const std::vector<Bound>& outputs) const {
  if (steps.size() != 1 || !systems.empty() || steps[0].passes != 1 || !steps[0].run.kernel) return {};
  return {steps[0].run, arrays_.front().places, inputs, outputs};
}

const Place& Layout::found(const std::map<std::string, Place>& places, const std::string& name, const char* otherwise) {
  const auto it = places.find(name);
  if (it == places.end()) refuse(name, otherwise);
  return it->second;
}

bool Layout::is_of_scalars(At at, std::int64_t stride, std::int64_t rows, std::int64_t columns) const {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) {
      const auto place = static_cast<std::size_t>(at + r * stride + c);
      if (place >= of_scalars_.size() || !of_scalars_[place]) return false;
    }
  return true;
}

void Layout::note_of_scalars(const std::string& package, const Places& outputs) {
  const neml2_kernel& kernel = folder_.find(package);
  const auto& of_scalars = folder_.of_scalars(package);
  of_scalars_.resize(static_cast<std::size_t>(size_));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].sparse) continue;
    const auto first = of_scalars_.begin() + outputs[i].at;
    if (const signed char* const structure = kernel.outputs[i].structure)
      for (std::int64_t c = 0; c < outputs[i].components; ++c) first[c] = structure[c] != 0;
    if (i >= of_scalars.size()) continue;
    for (const std::int64_t c : of_scalars[i])
      if (c >= 0 && c < outputs[i].components) first[c] = true;
  }
}

Run Layout::run_of(const std::string& package, const Places& inputs, Places& outputs) {
  const neml2_kernel& kernel = folder_.find(package);
  if (kernel.lanes != functions_.lanes || kernel.real_size != functions_.real_size)
    refuse(package, "its kernel has other lanes");
  for (auto i = static_cast<std::int32_t>(outputs.size()); i < kernel.output_count; ++i)
    outputs.push_back({place(kernel.outputs[i].components).at, kernel.outputs[i].components, sparse_of(kernel, i)});
  const auto check = [&](const neml2_kernel_array* arrays, std::int32_t count, const Places& places) {
    bool fits = count == static_cast<std::int32_t>(places.size());
    for (std::int32_t i = 0; fits && i < count; ++i)
      fits = arrays[i].components == places[static_cast<std::size_t>(i)].components;
    if (!fits) refuse(package, "its kernel takes or returns other arrays");
  };
  check(kernel.inputs, kernel.input_count, inputs);
  check(kernel.outputs, kernel.output_count, outputs);
  note_of_scalars(package, outputs);
  Places all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  all.push_back(place(kernel.kept));
  arrays_.push_back({place((std::ssize(all) * pointer + bytes() - 1) / bytes()).at, {}});
  for (const Place& place : all) arrays_.back().places.push_back(place.at);
  const auto run_one = newer(kernel, &neml2_kernel::run_one);
  return {&kernel, arrays_.back().at, run_one ? run_one : kernel.run};
}

Places Layout::arguments(const artifact::NamedGraph& graph) const {
  Places places;
  for (const std::string& name : graph.inputs) places.push_back(value(name));
  for (const std::string& name : graph.parameters) places.push_back(parameter(name));
  return places;
}

void Layout::add(const artifact::ForwardSegment& segment) {
  const bool by_values = asked_.by_values && !segment.jacobian_package.empty();
  const artifact::NamedGraph& graph = segment.value;
  const Places given = arguments(graph);
  Places made;
  Step step;
  step.run = run_of(by_values ? segment.jacobian_package : graph.package, given, made);
  const std::size_t count = graph.outputs.size();
  if (made.size() != count + (by_values ? segment.pairs.size() : 0))
    refuse(graph.package, "its kernel returns other arrays");
  for (std::size_t i = 0; i < count; ++i) values[graph.outputs[i]] = made[i];
  links.back().outputs.assign(graph.outputs.begin(), graph.outputs.end());
  if (by_values) {
    add_pairs(segment.pairs, made, count, false);
    const bool are_same = std::ranges::all_of(
        made.begin() + static_cast<std::ptrdiff_t>(count), made.end(),
        [&](const Place& block) { return !block.sparse && is_of_scalars(block.at, 0, 1, block.components); });
    made.resize(count);
    // Scalars that a later segment is given may follow from tensors.
    if (are_same && steps.empty() && folder_.has(graph.package)) step.values = run_of(graph.package, given, made);
  }
  if (asked_.by_parameters && !segment.parameter_jacobian_package.empty()) {
    Places blocks;
    links.back().operators.push_back(run_of(segment.parameter_jacobian_package, given, blocks));
    if (blocks.size() != segment.parameter_pairs.size()) refuse(graph.package, "its kernel returns other arrays");
    add_pairs(segment.parameter_pairs, blocks, 0, true);
  }
  operations_ += step.run.kernel->operations;
  steps.push_back(step);
}

void Layout::add_pairs(const std::vector<artifact::Pair>& pairs, const Places& made, std::size_t first,
                       bool of_parameter) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::int64_t rows = value(pairs[i].output).components;
    const std::int64_t columns = (of_parameter ? parameter(pairs[i].input) : value(pairs[i].input)).components;
    links.back().locals.push_back(
        {pairs[i].output, pairs[i].input, of_parameter, 0, made[first + i].at, columns, rows, columns});
    // A block for each site alone, which only the caller takes.
    if (made[first + i].components != rows * columns) links.back().locals.back().rows = 0;
  }
}

}  // namespace neml2_capi::kernels
