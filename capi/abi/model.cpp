// Model handles: opening, variables, parameters and options.
#include "capi/abi/handles.h"
#include "capi/abi/opening.h"
#include "capi/abi/scheduler.h"
#include "capi/abi/source.h"
#include "capi/abi/views.h"

namespace neml2_capi::abi {
namespace {

model::Kind kind_of(std::int32_t kind) {
  if (kind < NEML2_INPUT || kind > NEML2_UNKNOWN)
    throw Error(
        NEML2_ERROR_ARGUMENT, "kind",
        join("There is no kind ", kind, "; expected NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER or NEML2_UNKNOWN."));
  return static_cast<model::Kind>(kind);
}

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

int32_t neml2_model_open(neml2_model** out, const neml2_source* source) {
  return guarded([&] {
    required(out, "out");
    const neml2_source given = read_sized(source, "source");
    const Device device = device_of(given.device, given.device_index);
    const graph::Runtime runtime = runtime_of(given.runtime);
    auto object = given.scheduler ? std::make_unique<ModelObject>(dispatch_of(given))
                                  : std::make_unique<ModelObject>(open_model(given, device, runtime));
    add_views(*object, given);
    *out = Owned<neml2_model>(std::move(object)).release();
  });
}

int32_t neml2_model_inspect(neml2_model_info* out, const neml2_model* model) {
  return shared(model, "model", [&](auto& its) {
    const model::Model& value = *its.value;
    write_sized(out, {.size = 0,
                      .dtype = static_cast<std::int32_t>(value.dtype()),
                      .device = static_cast<std::int32_t>(value.device().type),
                      .device_index = value.device().index,
                      .runtime = static_cast<std::int32_t>(value.runtime())});
  });
}

int32_t neml2_model_points(int64_t* out, const neml2_model* model, int64_t index) {
  return shared(model, "model", [&](auto& its) {
    const model::Dispatch* dispatch = its.dispatch.get();
    if (!dispatch)
      throw Error(NEML2_ERROR_ARGUMENT, "model",
                  "The model has no scheduler that counts: open it with one, neml2_source::scheduler.");
    required(out, "out") = dispatch->points_evaluated(index);
  });
}

int32_t neml2_model_variable_count(int64_t* out, const neml2_model* model, int32_t kind) {
  return shared(model, "model",
                [&](auto& its) { required(out, "out") = std::ssize(its.value->variables(kind_of(kind))); });
}

int32_t neml2_model_variable_find(int64_t* out, const neml2_model* model, int32_t kind, const char* name) {
  return shared(model, "model", [&](auto& its) {
    required(out, "out") = static_cast<std::int64_t>(its.value->find(kind_of(kind), &required(name, "name")));
  });
}

int32_t neml2_model_variable_inspect(neml2_variable_info* out, const neml2_model* model, int32_t kind, int64_t index) {
  return shared(model, "model", [&](auto& its) {
    const auto& variables = its.value->variables(kind_of(kind));
    const model::Variable& variable = entry_of(variables, index, "The model", "variables of this kind");
    write_sized(out, {.size = 0,
                      .name = variable.name.c_str(),
                      .type = variable.type.c_str(),
                      .ndim = variable.point_shape.size(),
                      .sub_ndim = variable.sub_ndim,
                      .shape = variable.point_shape.data(),
                      .dtype = static_cast<std::int32_t>(variable.dtype),
                      .kind = kind});
  });
}

int32_t neml2_model_derivative_count(int64_t* out, const neml2_model* model, int32_t kind) {
  return shared(model, "model", [&](auto& its) {
    required(out, "out") = std::ssize(its.value->derivatives(differentiation_kind(kind)).all());
  });
}

int32_t neml2_model_derivative_inspect(neml2_derivative_info* out, const neml2_model* model, int32_t kind,
                                       int64_t index) {
  return shared(model, "model", [&](auto& its) {
    const auto& all = its.value->derivatives(differentiation_kind(kind)).all();
    const model::Derivative& derivative = entry_of(all, index, "The model", "derivatives of this kind");
    write_sized(out, {.size = 0,
                      .output = static_cast<std::int64_t>(derivative.output),
                      .variable = static_cast<std::int64_t>(derivative.input),
                      .ndim = derivative.block.point_shape.size(),
                      .shape = derivative.block.point_shape.data(),
                      .batched = derivative.batched,
                      .kind = kind});
  });
}

int32_t neml2_model_history_count(int64_t* out, const neml2_model* model) {
  return shared(model, "model", [&](auto& its) { required(out, "out") = std::ssize(its.value->histories()); });
}

int32_t neml2_model_history_inspect(neml2_history_info* out, const neml2_model* model, int64_t index) {
  return shared(model, "model", [&](auto& its) {
    const auto all = its.value->histories();
    const model::Model::History& history = entry_of(all, index, "The model", "history inputs");
    write_sized(out, {0, history.input, history.age, history.output, history.current});
  });
}

int32_t neml2_model_bound_count(int64_t* out, const neml2_model* model) {
  return shared(model, "model", [&](auto& its) { required(out, "out") = std::ssize(its.value->bounds()); });
}

int32_t neml2_model_bound_inspect(neml2_bound_info* out, const neml2_model* model, int64_t index) {
  return shared(model, "model", [&](auto& its) {
    const model::Bound& bound = entry_of(its.value->bounds(), index, "The model", "bounds");
    write_sized(out, {.size = 0,
                      .variable = static_cast<std::int64_t>(bound.variable),
                      .ncomponents = std::ssize(bound.lower),
                      .lower = bound.lower.data(),
                      .upper = bound.upper.data(),
                      .kind = static_cast<std::int32_t>(bound.kind),
                      .physical = bound.physical});
  });
}

int32_t neml2_model_describe(char* buffer, int64_t capacity, int64_t* needed, const neml2_model* model) {
  return shared(model, "model", [&](auto& its) {
    return copy_text(artifact::describe(its.value->metadata()), buffer, capacity, needed);
  });
}

int32_t neml2_model_checksum(char* buffer, int64_t capacity, int64_t* needed, const neml2_model* model) {
  return shared(model, "model",
                [&](auto& its) { return copy_text(its.value->metadata().checksum, buffer, capacity, needed); });
}

int32_t neml2_model_parameter_get(neml2_tensor** out, const neml2_model* model, const char* name) {
  return shared(model, "model", [&](auto& its) {
    required(out, "out");
    const model::Model& value = *its.value;
    *out = opened<neml2_tensor>(value.parameter(value.find(model::Kind::parameter, &required(name, "name"))));
  });
}

int32_t neml2_model_parameter_set(neml2_model* model, const char* name, const neml2_tensor* value) {
  return shared(model, "model", [&](auto& its) {
    model::Model& target = *its.value;
    const std::size_t index = target.find(model::Kind::parameter, &required(name, "name"));
    const Shared given(value, "value");
    target.set_parameter(index, given->value);
  });
}

void neml2_model_free(neml2_model** model) { release(model); }

int32_t neml2_model_option_count(int64_t* out, const neml2_model* model) {
  return shared(model, "model", [&](auto&) { required(out, "out") = std::ssize(model::Options::all()); });
}

int32_t neml2_model_option_inspect(neml2_option_info* out, const neml2_model* model, int64_t index) {
  return shared(model, "model", [&](auto&) {
    const model::Options::Info& option = entry_of(model::Options::all(), index, "The model", "options");
    write_sized(out, {0, option.name, option.choices, option.least, option.greatest});
  });
}

int32_t neml2_model_option_set_number(neml2_model* model, const char* name, double value) {
  return shared(model, "model", [&](auto& its) { its.value->set_option(&required(name, "name"), value); });
}

int32_t neml2_model_option_get_number(double* out, const neml2_model* model, const char* name) {
  return shared(model, "model",
                [&](auto& its) { required(out, "out") = its.value->options().number(&required(name, "name")); });
}

int32_t neml2_model_option_set_text(neml2_model* model, const char* name, const char* value) {
  return shared(model, "model", [&](auto& its) {
    its.value->set_option(&required(name, "name"), std::string_view(&required(value, "value")));
  });
}

int32_t neml2_model_option_get_text(const char** out, const neml2_model* model, const char* name) {
  return shared(model, "model",
                [&](auto& its) { required(out, "out") = its.value->options().text(&required(name, "name")); });
}
