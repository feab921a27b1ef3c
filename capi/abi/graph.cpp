// Graph handles.
#include "capi/abi/handles.h"
#include "capi/abi/runtime.h"
#include "capi/graph/load.h"
#include "capi/libtorch/stream.h"
#include "capi/tensor/layout.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;

namespace {

// The entry of one input or output.
template <class Spec>
const Spec& at(const std::vector<Spec>& specs, std::int64_t index, const char* what) {
  if (index < 0 || index >= std::ssize(specs))
    throw Error(NEML2_ERROR_ARGUMENT, "index",
                join("The graph has ", specs.size(), " ", what, "; there is none at ", index, "."));
  return specs[static_cast<std::size_t>(index)];
}

// What a run is given, as many as it takes, and with room for what it returns.
Vector<Tensor> tensors_for(const aoti::Graph& graph, neml2_tensor** outputs, std::int64_t noutputs,
                           neml2_tensor* const* inputs, std::int64_t ninputs) {
  if (ninputs != std::ssize(graph.inputs()) || noutputs != std::ssize(graph.outputs()))
    throw Error(NEML2_ERROR_ARGUMENT, "inputs",
                join("The graph takes ", graph.inputs().size(), " tensors and returns ", graph.outputs().size(),
                     "; got room for ", ninputs, " and ", noutputs, "."));
  if (noutputs > 0) required(outputs, "outputs");
  if (ninputs > 0) required(inputs, "inputs");
  Vector<Tensor> tensors;
  for (std::int64_t i = 0; i < ninputs; ++i)
    tensors.push_back(required(inputs[i], join("inputs[", i, "]").c_str()).value);
  return tensors;
}

aoti::Wanted wanted_on(const char* runtime, const char* device) {
  aoti::Wanted wanted = runtime_named(runtime);
  if (device) wanted.device = aoti::device_named(device);
  return wanted;
}

}  // namespace

int32_t neml2_graph_check(const char* path) {
  return guarded([&] {
    aoti::check_package(&required(path, "path"));
    return NEML2_OK;
  });
}

int32_t neml2_graph_check_with(const char** taken, const char* path, const char* runtime) {
  return guarded([&] {
    const aoti::Runtime found = aoti::check_package(&required(path, "path"), runtime_named(runtime));
    if (taken) *taken = name_of(found);
    return NEML2_OK;
  });
}

int32_t neml2_graph_load(neml2_graph** out, const char* path) { return neml2_graph_load_with(out, path, nullptr); }

int32_t neml2_graph_load_with(neml2_graph** out, const char* path, const char* runtime) {
  return neml2_graph_load_on(out, path, runtime, nullptr);
}

int32_t neml2_graph_load_bytes(neml2_graph** out, const void* content, int64_t size, const char* runtime,
                               const char* device) {
  return guarded([&] {
    required(out, "out");
    if (size < 0) throw Error(NEML2_ERROR_ARGUMENT, "size", join("The size must be 0 or more; got ", size, "."));
    const char* bytes = &required(static_cast<const char*>(content), "content");
    const std::string_view view(bytes, static_cast<std::size_t>(size));
    *out = new neml2_graph{aoti::load_graph(view, wanted_on(runtime, device))};
    return NEML2_OK;
  });
}

int32_t neml2_graph_load_on(neml2_graph** out, const char* path, const char* runtime, const char* device) {
  return guarded([&] {
    required(out, "out");
    required(path, "path");
    *out = new neml2_graph{aoti::load_graph(std::filesystem::path(path), wanted_on(runtime, device))};
    return NEML2_OK;
  });
}

int32_t neml2_graph_device(int32_t* type, int32_t* index, const neml2_graph* graph) {
  return guarded([&] {
    const Device device = required(graph, "graph").value->device();
    if (type) *type = static_cast<std::int32_t>(device.type);
    if (index) *index = device.index;
    return NEML2_OK;
  });
}

int32_t neml2_graph_runtime(const char** out, const neml2_graph* graph) {
  return guarded([&] {
    required(out, "out") = name_of(required(graph, "graph").value->runtime());
    return NEML2_OK;
  });
}

int32_t neml2_graph_arity(int64_t* ninputs, int64_t* noutputs, const neml2_graph* graph) {
  return guarded([&] {
    const aoti::Graph& value = *required(graph, "graph").value;
    if (ninputs) *ninputs = std::ssize(value.inputs());
    if (noutputs) *noutputs = std::ssize(value.outputs());
    return NEML2_OK;
  });
}

int32_t neml2_graph_input(int32_t* dtype, int64_t* ndim, const int64_t** least, const int64_t** greatest,
                          const neml2_graph* graph, int64_t index) {
  return guarded([&] {
    const aoti::InputSpec& input = at(required(graph, "graph").value->inputs(), index, "inputs");
    if (dtype) *dtype = static_cast<std::int32_t>(input.dtype);
    if (ndim) *ndim = input.least.size();
    if (least) *least = input.least.data();
    if (greatest) *greatest = input.greatest.data();
    return NEML2_OK;
  });
}

int32_t neml2_graph_input_layout(const char** name, int64_t* ndim, const int64_t** order, const neml2_graph* graph,
                                 int64_t index) {
  return guarded([&] {
    const aoti::InputSpec& input = at(required(graph, "graph").value->inputs(), index, "inputs");
    if (name) *name = input.name.c_str();
    if (ndim) *ndim = input.order.size();
    if (order) *order = input.order.data();
    return NEML2_OK;
  });
}

int32_t neml2_graph_output(const char** name, int32_t* dtype, int64_t* ndim, const int64_t** sizes,
                           const neml2_graph* graph, int64_t index) {
  return guarded([&] {
    const aoti::OutputSpec& output = at(required(graph, "graph").value->outputs(), index, "outputs");
    if (name) *name = output.name.c_str();
    if (dtype) *dtype = output.dtype ? static_cast<std::int32_t>(*output.dtype) : 0;
    if (ndim) *ndim = output.sizes ? output.sizes->size() : -1;
    if (sizes) *sizes = output.sizes ? output.sizes->data() : nullptr;
    return NEML2_OK;
  });
}

int32_t neml2_graph_call_spec(const char** in_spec, const char** out_spec, const neml2_graph* graph) {
  return guarded([&] {
    const aoti::CallSpec& spec = required(graph, "graph").value->call_spec();
    if (in_spec) *in_spec = spec.in.c_str();
    if (out_spec) *out_spec = spec.out.c_str();
    return NEML2_OK;
  });
}

int32_t neml2_graph_run(neml2_tensor** outputs, int64_t noutputs, const neml2_graph* graph, neml2_tensor* const* inputs,
                        int64_t ninputs) {
  return guarded([&] {
    const aoti::Graph& value = *required(graph, "graph").value;
    const aoti::libtorch::OnStream here(value.device());  // copies, too, are put on the stream
    Vector<Tensor> tensors = tensors_for(value, outputs, noutputs, inputs, ninputs);
    value.check(tensors);
    for (std::size_t i = 0; i < tensors.size(); ++i) tensors[i] = laid_out(tensors[i], value.inputs()[i].order);
    hand_out(outputs, handles_of(value.run(tensors)));
    return NEML2_OK;
  });
}

int32_t neml2_graph_run_unguarded(neml2_tensor** outputs, int64_t noutputs, const neml2_graph* graph,
                                  neml2_tensor* const* inputs, int64_t ninputs) {
  return guarded([&] {
    const aoti::Graph& value = *required(graph, "graph").value;
    const aoti::libtorch::OnStream here(value.device());
    hand_out(outputs, handles_of(value.run(tensors_for(value, outputs, noutputs, inputs, ninputs))));
    return NEML2_OK;
  });
}

int32_t neml2_graph_constant_count(int64_t* out, const neml2_graph* graph) {
  return guarded([&] {
    required(out, "out");
    *out = std::ssize(required(graph, "graph").value->constants());
    return NEML2_OK;
  });
}

int32_t neml2_graph_constant_get(neml2_tensor** out, const char** name, const neml2_graph* graph, int64_t index) {
  return guarded([&] {
    const auto constants = required(graph, "graph").value->constants();
    const aoti::Constant& constant = at(constants, index, "constants");
    if (out) *out = new neml2_tensor{constant.value.copy()};
    if (name) *name = constant.name;
    return NEML2_OK;
  });
}

int32_t neml2_graph_constants_set(neml2_graph* graph, int64_t count, const char* const* names,
                                  neml2_tensor* const* values, int32_t share) {
  return guarded([&] {
    required(graph, "graph");
    if (count < 0)
      throw Error(NEML2_ERROR_ARGUMENT, "count", join("The number of constants must be 0 or more; got ", count, "."));
    if (count > 0) required(names, "names");
    if (count > 0) required(values, "values");
    std::vector<aoti::Constant> constants;
    for (std::int64_t i = 0; i < count; ++i)
      constants.push_back({&required(names[i], "names"), required(values[i], "values").value});
    graph->value->set_constants(constants, share == 0);
    return NEML2_OK;
  });
}

void neml2_graph_free(neml2_graph** graph) { release(graph); }
