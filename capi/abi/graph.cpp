// Graph handles.
#include "capi/abi/handles.h"
#include "capi/abi/runtime.h"

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_graph_check(const char* path) {
  return guarded([&] {
    aoti::Graph::check_file(&required(path, "path"));
    return NEML2_OK;
  });
}

int32_t neml2_graph_check_with(const char** taken, const char* path, const char* runtime) {
  return guarded([&] {
    const aoti::Runtime found = aoti::Graph::check_file(&required(path, "path"), runtime_named(runtime));
    if (taken) *taken = name_of(found);
    return NEML2_OK;
  });
}

int32_t neml2_graph_load(neml2_graph** out, const char* path) { return neml2_graph_load_with(out, path, nullptr); }

int32_t neml2_graph_load_with(neml2_graph** out, const char* path, const char* runtime) {
  return guarded([&] {
    required(out, "out");
    required(path, "path");
    *out = new neml2_graph{aoti::Graph::load(path, runtime_named(runtime))};
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
    if (ninputs) *ninputs = static_cast<std::int64_t>(value.inputs().size());
    if (noutputs) *noutputs = value.num_outputs();
    return NEML2_OK;
  });
}

int32_t neml2_graph_input(int32_t* dtype, int64_t* ndim, const int64_t** least, const int64_t** greatest,
                          const neml2_graph* graph, int64_t index) {
  return guarded([&] {
    const auto& inputs = required(graph, "graph").value->inputs();
    if (index < 0 || index >= static_cast<std::int64_t>(inputs.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The graph has ", inputs.size(), " inputs; there is none at ", index, "."));
    const aoti::InputSpec& input = inputs[static_cast<std::size_t>(index)];
    if (dtype) *dtype = static_cast<std::int32_t>(input.dtype);
    if (ndim) *ndim = input.least.size();
    if (least) *least = input.least.data();
    if (greatest) *greatest = input.greatest.data();
    return NEML2_OK;
  });
}

int32_t neml2_graph_run(neml2_tensor** outputs, int64_t noutputs, const neml2_graph* graph, neml2_tensor* const* inputs,
                        int64_t ninputs) {
  return guarded([&] {
    const aoti::Graph& value = *required(graph, "graph").value;
    if (ninputs != static_cast<std::int64_t>(value.inputs().size()) || noutputs != value.num_outputs())
      throw Error(NEML2_ERROR_ARGUMENT, "inputs",
                  join("The graph takes ", value.inputs().size(), " tensors and returns ", value.num_outputs(),
                       "; got room for ", ninputs, " and ", noutputs, "."));
    if (noutputs > 0) required(outputs, "outputs");
    if (ninputs > 0) required(inputs, "inputs");
    Vector<Tensor> tensors;
    for (std::int64_t i = 0; i < ninputs; ++i)
      tensors.push_back(required(inputs[i], join("inputs[", i, "]").c_str()).value.row_major());
    value.check(tensors);
    hand_out(outputs, handles_of(value.run(tensors)));
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
    if (index < 0 || index >= std::ssize(constants))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The graph has ", constants.size(), " constants; there is none at ", index, "."));
    const aoti::Constant& constant = constants[static_cast<std::size_t>(index)];
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
