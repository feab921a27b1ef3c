// Model handles: loading, variables, parameters and options.
#include "capi/abi/handles.h"
#include "capi/abi/runtime.h"

namespace neml2_capi::abi {
namespace {

model::Kind kind_of(std::int32_t kind) {
  if (kind < NEML2_INPUT || kind > NEML2_UNKNOWN)
    throw Error(
        NEML2_ERROR_ARGUMENT, "kind",
        join("There is no kind ", kind, "; expected NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER or NEML2_UNKNOWN."));
  return static_cast<model::Kind>(kind);
}

const model::Variable& variable_of(const neml2_model* model, std::int32_t kind, std::int64_t index) {
  const auto& variables = required(model, "model").value->variables(kind_of(kind));
  if (index < 0 || index >= static_cast<std::int64_t>(variables.size()))
    throw Error(NEML2_ERROR_ARGUMENT, "index",
                join("The model has ", variables.size(), " variables of this kind; there is none at ", index, "."));
  return variables[static_cast<std::size_t>(index)];
}

const char* device_of(const char* device) { return device ? device : "cpu"; }
// What to load for: a device of libtorch's, or the processor.
aoti::Wanted wanted_for(const char* device, const char* runtime) {
  return {runtime_named(runtime), aoti::device_named(device_of(device))};
}

const char* dtype_of(const char* dtype) { return dtype ? dtype : "float64"; }

}  // namespace

model::Kind differentiation_kind(std::int32_t kind) {
  if (kind != NEML2_INPUT && kind != NEML2_PARAMETER)
    throw Error(NEML2_ERROR_ARGUMENT, "kind",
                join("Derivatives are with respect to NEML2_INPUT or NEML2_PARAMETER; got the kind ", kind, "."));
  return static_cast<model::Kind>(kind);
}

}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_model_load(neml2_model** out, const char* path, const char* device, const char* dtype) {
  return guarded([&] {
    required(out, "out");
    required(path, "path");
    *out = new neml2_model(model::Model::load(artifact::read_metadata(path, device_of(device), dtype_of(dtype)),
                                              wanted_for(device, nullptr)));
    return NEML2_OK;
  });
}

int32_t neml2_model_load_stub(neml2_model** out, const char* stub, const char* name, const char* device,
                              const char* dtype) {
  return guarded([&] {
    required(out, "out");
    required(stub, "stub");
    required(name, "name");
    *out = new neml2_model(model::Model::load(
        artifact::read_stub_metadata(stub, name, device_of(device), dtype_of(dtype)), wanted_for(device, nullptr)));
    return NEML2_OK;
  });
}

int32_t neml2_model_load_with(neml2_model** out, const char* path, const char* name, const char* device,
                              const char* dtype, const char* runtime) {
  return guarded([&] {
    required(out, "out");
    required(path, "path");
    runtime_named(runtime);  // before any file is read
    const artifact::Metadata metadata =
        name ? artifact::read_stub_metadata(path, name, device_of(device), dtype_of(dtype))
             : artifact::read_metadata(path, device_of(device), dtype_of(dtype));
    *out = new neml2_model(model::Model::load(metadata, wanted_for(device, runtime)));
    return NEML2_OK;
  });
}

int32_t neml2_model_runtime(const char** out, const neml2_model* model) {
  return guarded([&] {
    required(out, "out") = name_of(required(model, "model").value->runtime());
    return NEML2_OK;
  });
}

int32_t neml2_model_device(int32_t* type, int32_t* index, const neml2_model* model) {
  return guarded([&] {
    const Device device = required(model, "model").value->device();
    if (type) *type = static_cast<std::int32_t>(device.type);
    if (index) *index = device.index;
    return NEML2_OK;
  });
}

int32_t neml2_model_dtype(int32_t* out, const neml2_model* model) {
  return guarded([&] {
    required(out, "out") = static_cast<std::int32_t>(required(model, "model").value->dtype());
    return NEML2_OK;
  });
}

int32_t neml2_model_variable_count(int64_t* out, const neml2_model* model, int32_t kind) {
  return guarded([&] {
    required(out, "out") = static_cast<std::int64_t>(required(model, "model").value->variables(kind_of(kind)).size());
    return NEML2_OK;
  });
}

int32_t neml2_model_variable_find(int64_t* index, const neml2_model* model, int32_t kind, const char* name) {
  return guarded([&] {
    required(index, "index") =
        static_cast<std::int64_t>(required(model, "model").value->find(kind_of(kind), &required(name, "name")));
    return NEML2_OK;
  });
}

int32_t neml2_model_variable_name(const char** name, const char** type, const neml2_model* model, int32_t kind,
                                  int64_t index) {
  return guarded([&] {
    const model::Variable& variable = variable_of(model, kind, index);
    if (name) *name = variable.name.c_str();
    if (type) *type = variable.type.c_str();
    return NEML2_OK;
  });
}

int32_t neml2_model_variable_shape(int64_t* ndim, const int64_t** shape, int64_t* sub_ndim, const neml2_model* model,
                                   int32_t kind, int64_t index) {
  return guarded([&] {
    const model::Variable& variable = variable_of(model, kind, index);
    if (ndim) *ndim = variable.point_shape.size();
    if (shape) *shape = variable.point_shape.data();
    if (sub_ndim) *sub_ndim = variable.sub_ndim;
    return NEML2_OK;
  });
}

int32_t neml2_model_variable_dtype(int32_t* out, const neml2_model* model, int32_t kind, int64_t index) {
  return guarded([&] {
    required(out, "out") = static_cast<std::int32_t>(variable_of(model, kind, index).dtype);
    return NEML2_OK;
  });
}

int32_t neml2_model_derivative_count(int64_t* out, const neml2_model* model, int32_t kind) {
  return guarded([&] {
    const auto& all = required(model, "model").value->derivatives(differentiation_kind(kind)).all();
    required(out, "out") = static_cast<std::int64_t>(all.size());
    return NEML2_OK;
  });
}

int32_t neml2_model_derivative_info(int64_t* output, int64_t* variable, int32_t* batched, int64_t* ndim,
                                    const int64_t** shape, const neml2_model* model, int32_t kind, int64_t index) {
  return guarded([&] {
    const auto& all = required(model, "model").value->derivatives(differentiation_kind(kind)).all();
    if (index < 0 || index >= static_cast<std::int64_t>(all.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The model has ", all.size(), " derivatives of this kind; there is none at ", index, "."));
    const model::Derivative& derivative = all[static_cast<std::size_t>(index)];
    if (output) *output = static_cast<std::int64_t>(derivative.output);
    if (variable) *variable = static_cast<std::int64_t>(derivative.input);
    if (batched) *batched = derivative.batched;
    if (ndim) *ndim = derivative.block.point_shape.size();
    if (shape) *shape = derivative.block.point_shape.data();
    return NEML2_OK;
  });
}

int32_t neml2_model_history_count(int64_t* out, const neml2_model* model) {
  return guarded([&] {
    required(out, "out") = static_cast<std::int64_t>(required(model, "model").value->histories().size());
    return NEML2_OK;
  });
}

int32_t neml2_model_history_info(int64_t* input, int64_t* age, int64_t* output, int64_t* current,
                                 const neml2_model* model, int64_t index) {
  return guarded([&] {
    const auto all = required(model, "model").value->histories();
    if (index < 0 || index >= static_cast<std::int64_t>(all.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("The model has ", all.size(), " history inputs; there is none at ", index, "."));
    const model::Model::History& history = all[static_cast<std::size_t>(index)];
    if (input) *input = history.input;
    if (age) *age = history.age;
    if (output) *output = history.output;
    if (current) *current = history.current;
    return NEML2_OK;
  });
}

int32_t neml2_model_describe(char* buffer, int64_t capacity, int64_t* needed, const neml2_model* model) {
  return guarded([&] {
    return copy_text(artifact::describe(required(model, "model").value->metadata()), buffer, capacity, needed);
  });
}

int32_t neml2_model_parameter_get(neml2_tensor** out, const neml2_model* model, const char* name) {
  return guarded([&] {
    required(out, "out");
    const model::Model& value = *required(model, "model").value;
    *out = new neml2_tensor{value.parameter(value.find(model::Kind::parameter, &required(name, "name")))};
    return NEML2_OK;
  });
}

int32_t neml2_model_parameter_set(neml2_model* model, const char* name, const neml2_tensor* value) {
  return guarded([&] {
    model::Model& target = *required(model, "model").value;
    const std::size_t index = target.find(model::Kind::parameter, &required(name, "name"));
    target.set_parameter(index, required(value, "value").value);
    return NEML2_OK;
  });
}

void neml2_model_free(neml2_model** model) { release(model); }

int32_t neml2_model_option_count(int64_t* out, const neml2_model* model) {
  return guarded([&] {
    required(model, "model");
    required(out, "out") = static_cast<std::int64_t>(model::Options::all().size());
    return NEML2_OK;
  });
}

int32_t neml2_model_option_info(const char** name, double* least, double* greatest, const char** choices,
                                const neml2_model* model, int64_t index) {
  return guarded([&] {
    required(model, "model");
    const auto& all = model::Options::all();
    if (index < 0 || index >= static_cast<std::int64_t>(all.size()))
      throw Error(NEML2_ERROR_ARGUMENT, "index",
                  join("There are ", all.size(), " options; there is none at ", index, "."));
    const model::Options::Info& info = all[static_cast<std::size_t>(index)];
    if (name) *name = info.name;
    if (least) *least = info.least;
    if (greatest) *greatest = info.greatest;
    if (choices) *choices = info.choices;
    return NEML2_OK;
  });
}

int32_t neml2_model_option_set_number(neml2_model* model, const char* name, double value) {
  return guarded([&] {
    required(model, "model").value->set_option(&required(name, "name"), value);
    return NEML2_OK;
  });
}

int32_t neml2_model_option_get_number(double* out, const neml2_model* model, const char* name) {
  return guarded([&] {
    required(out, "out") = required(model, "model").value->options().number(&required(name, "name"));
    return NEML2_OK;
  });
}

int32_t neml2_model_option_set_text(neml2_model* model, const char* name, const char* value) {
  return guarded([&] {
    required(model, "model").value->set_option(&required(name, "name"), std::string_view(&required(value, "value")));
    return NEML2_OK;
  });
}

int32_t neml2_model_option_get_text(const char** out, const neml2_model* model, const char* name) {
  return guarded([&] {
    required(out, "out") = required(model, "model").value->options().text(&required(name, "name"));
    return NEML2_OK;
  });
}
