// Graph handles.
#include "capi/abi/handles.h"
#include "capi/abi/source.h"
#include "capi/graph/algebra.h"
#include "capi/graph/backend.h"
#include "capi/graph/no_rows.h"
#include "capi/tensor/layout.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;

namespace {

// Returns the tensors that a run is given. Throws unless they are as many as it takes, with room for its outputs.
Vector<Tensor> tensors_for(const graph::Graph& graph, neml2_tensor** outputs, std::int64_t noutputs,
                           neml2_tensor* const* inputs, std::int64_t ninputs) {
  if (ninputs != std::ssize(graph.inputs()) || noutputs != std::ssize(graph.outputs()))
    throw Error(NEML2_ERROR_ARGUMENT, "inputs",
                join("The graph takes ", graph.inputs().size(), " tensors and returns ", graph.outputs().size(),
                     "; got room for ", ninputs, " and ", noutputs, "."));
  if (noutputs > 0) required(outputs, "outputs");
  if (ninputs > 0) required(inputs, "inputs");
  Vector<Tensor> tensors;
  for (std::int64_t i = 0; i < ninputs; ++i) tensors.push_back(value_of(inputs[i], {"inputs", i}));
  return tensors;
}

graph::Wanted wanted_for(const neml2_source& source) {
  const auto refuse = [](const char* field) {
    throw Error(NEML2_ERROR_ARGUMENT, field,
                join("The field '", field,
                     "' is of artifacts; leave it 0 for a package, which is what it was "
                     "compiled for."));
  };
  if (source.name) refuse("name");
  if (source.scheduler) refuse("scheduler");
  if (source.dtype != 0) refuse("dtype");
  if (source.strain_measure != 0) refuse("strain_measure");
  if (source.stress_measure != 0) refuse("stress_measure");
  if (source.material_axes != 0) refuse("material_axes");
  if (source.hypothesis != 0) refuse("hypothesis");
  if (source.strain) refuse("strain");
  if (source.stress) refuse("stress");
  if (source.kernels) refuse("kernels");
  graph::Wanted wanted = runtime_of(source.runtime);
  const Device device = device_of(source.device, source.device_index);
  if (device.type == Device::Type::opencl)
    throw Error(NEML2_ERROR_UNSUPPORTED, "device",
                join("A package does not run on ", device.str(), ", which has the kernels of models only."));
  if (source.device != 0) wanted.device = device;
  return wanted;
}

}  // namespace

int32_t neml2_graph_check(int32_t* runtime, const neml2_source* source) {
  return guarded([&] {
    const neml2_source given = read_sized(source, "source");
    const graph::Wanted wanted = wanted_for(given);
    if (given.content)
      throw Error(NEML2_ERROR_UNSUPPORTED, "content", "Only files are checked: give the 'path' of the package.");
    const graph::Runtime taken = graph::check(std::filesystem::path(&required(given.path, "path")), wanted);
    if (runtime) *runtime = static_cast<std::int32_t>(taken);
  });
}

int32_t neml2_graph_open(neml2_graph** out, const neml2_source* source) {
  return guarded([&] {
    required(out, "out");
    const neml2_source given = read_sized(source, "source");
    const graph::Wanted wanted = wanted_for(given);
    const auto content = content_of(given);
    const graph::Source from =
        content ? graph::Source::in_memory(*content) : graph::Source(&required(given.path, "path"));
    *out = opened<neml2_graph>(graph::open(from, wanted));
  });
}

int32_t neml2_graph_inspect(neml2_graph_info* out, const neml2_graph* graph) {
  return shared(graph, "graph", [&](auto& its) {
    const graph::Graph& value = *its.value;
    write_sized(out, {.size = 0,
                      .in_spec = value.call_spec().in.c_str(),
                      .out_spec = value.call_spec().out.c_str(),
                      .device = static_cast<std::int32_t>(value.device().type),
                      .device_index = value.device().index,
                      .runtime = static_cast<std::int32_t>(value.runtime()),
                      .reserved = 0});
  });
}

int32_t neml2_graph_variable_count(int64_t* out, const neml2_graph* graph, int32_t kind) {
  return shared(graph, "graph", [&](auto& its) {
    const graph::Graph& value = *its.value;
    required(out, "out") = is_input(kind, "A graph") ? std::ssize(value.inputs()) : std::ssize(value.outputs());
  });
}

int32_t neml2_graph_variable_inspect(neml2_graph_variable_info* out, const neml2_graph* graph, int32_t kind,
                                     int64_t index) {
  return shared(graph, "graph", [&](auto& its) {
    const graph::Graph& value = *its.value;
    neml2_graph_variable_info info{};
    info.kind = kind;
    if (is_input(kind, "A graph")) {
      const graph::InputSpec& input = entry_of(value.inputs(), index, "The graph", "inputs");
      info.name = input.name.c_str();
      info.ndim = input.least.size();
      info.least = input.least.data();
      info.greatest = input.greatest.data();
      info.order = input.order.data();
      info.dtype = static_cast<std::int32_t>(input.dtype);
    } else {
      const graph::OutputSpec& output = entry_of(value.outputs(), index, "The graph", "outputs");
      info.name = output.name.c_str();
      info.ndim = output.sizes ? output.sizes->size() : -1;
      info.least = info.greatest = output.sizes ? output.sizes->data() : nullptr;
      info.dtype = output.dtype ? static_cast<std::int32_t>(*output.dtype) : 0;
    }
    write_sized(out, info);
  });
}

int32_t neml2_graph_run(neml2_tensor** outputs, int64_t noutputs, const neml2_graph* graph, neml2_tensor* const* inputs,
                        int64_t ninputs) {
  return shared(graph, "graph", [&](auto& its) {
    const graph::Graph& value = *its.value;
    const graph::OnStream here(value.device());  // copies, too, are put on the stream
    Vector<Tensor> tensors = tensors_for(value, outputs, noutputs, inputs, ninputs);
    if (auto made = graph::run_without_rows(value, tensors)) return hand_out(outputs, handles_of(std::move(*made)));
    value.check(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = laid_out(tensors[i], value.inputs()[i].order);
    hand_out(outputs, handles_of(value.run(tensors)));
  });
}

int32_t neml2_graph_run_unguarded(neml2_tensor** outputs, int64_t noutputs, const neml2_graph* graph,
                                  neml2_tensor* const* inputs, int64_t ninputs) {
  return shared(graph, "graph", [&](auto& its) {
    const graph::Graph& value = *its.value;
    const graph::OnStream here(value.device());
    hand_out(outputs, handles_of(value.run(tensors_for(value, outputs, noutputs, inputs, ninputs))));
  });
}

int32_t neml2_graph_constant_count(int64_t* out, const neml2_graph* graph) {
  return shared(graph, "graph", [&](auto& its) { required(out, "out") = std::ssize(its.value->constants()); });
}

int32_t neml2_graph_constant_get(neml2_tensor** out, const char** name, const neml2_graph* graph, int64_t index) {
  return shared(graph, "graph", [&](auto& its) {
    const auto constants = its.value->constants();
    const graph::Constant& constant = entry_of(constants, index, "The graph", "constants");
    if (out) *out = opened<neml2_tensor>(constant.value.copy());
    if (name) *name = constant.name;
  });
}

int32_t neml2_graph_constant_set(neml2_graph* graph, int64_t count, const char* const* names,
                                 neml2_tensor* const* values, int32_t share) {
  return shared(graph, "graph", [&](auto& its) {
    if (count < 0)
      throw Error(NEML2_ERROR_ARGUMENT, "count", join("The number of constants must be 0 or more; got ", count, "."));
    if (count > 0) required(names, "names");
    if (count > 0) required(values, "values");
    std::vector<graph::Constant> constants;
    for (std::int64_t i = 0; i < count; ++i)
      constants.push_back({&required(names[i], "names"), value_of(values[i], {"values", i})});
    its.value->set_constants(constants, share == 0);
  });
}

void neml2_graph_free(neml2_graph** graph) { release(graph); }
