// Arrays of calls: what is bound, and how its steps lie.
#include <algorithm>

#include "capi/abi/call.h"

namespace neml2_capi::abi {
namespace {

using model::Kind;
using model::Points;
using model::Variable;

// Returns the array to bind to a variable; data may be null. `may_repeat`: one value may serve all points.
Points checked(const CallObject& call, const Variable& variable, const void* data, std::int32_t dtype,
               std::int64_t stride, bool may_repeat) {
  if (!data) return {};
  if (!is_dtype(dtype) || static_cast<DType>(dtype) != variable.dtype)
    throw Error(NEML2_ERROR_DTYPE, variable.name,
                join("'", variable.name, "' must be ", name_of(variable.dtype), "; got ",
                     is_dtype(dtype) ? name_of(static_cast<DType>(dtype)) : "an unknown element type", "."));
  // One point on a device has no next one, in rows or in columns: a run looks whether points overlap.
  const std::int64_t size = call.on_device ? 1 : variable.point_shape.product();
  if (stride < size && !(may_repeat && stride == 0))
    throw Error(NEML2_ERROR_SHAPE, variable.name,
                join("'", variable.name, "' has ", size, " values per point, of shape ", variable.point_shape.str(),
                     ": the point stride must be ", size, " or more",
                     may_repeat ? ", or 0 for one value for all points" : "", "; got ", stride, "."));
  return {static_cast<char*>(const_cast<void*>(data)), stride};
}

// Returns the bindings of a call, for a change.
model::Bindings& bindings_of(CallObject& call) {
  call.plan.reset();
  return call.bindings;
}

[[noreturn]] void refuse_derivative(const std::string& subject, const std::string& what, const std::string& pair) {
  throw Error(NEML2_ERROR_UNSUPPORTED, subject,
              join("The artifact was compiled without ", what, ". Compile it with neml2-compile -d ", pair,
                   "; export a law in torch again with derivatives=[\"", pair, "\"]."));
}

// Arrays and variables that a role of neml2_call_bind() stands for.
struct Role {
  Kind kind;
  std::vector<Points>* arrays;
  bool may_repeat;  // one value may serve all points
};

Role role_of(CallObject& call, std::int32_t role) {
  auto& bindings = call.bindings;
  switch (role) {
    case NEML2_INPUT: return {Kind::input, &bindings.inputs, true};
    case NEML2_OUTPUT: return {Kind::output, &bindings.outputs, false};
    case NEML2_PARAMETER: return {Kind::parameter, &call.overrides, true};
    case NEML2_TANGENT: return {Kind::input, &bindings.tangents, true};
    case NEML2_JVP: return {Kind::output, &bindings.jvps, false};
    case NEML2_COTANGENT: return {Kind::output, &bindings.cotangents, true};
    case NEML2_ADJOINT: return {Kind::input, &bindings.adjoints, true};
    case NEML2_PARAMETER_ADJOINT: return {Kind::parameter, &bindings.parameter_adjoints, true};
    default:
      throw Error(NEML2_ERROR_ARGUMENT, "role",
                  join("There is no role ", role,
                       "; expected NEML2_INPUT, NEML2_OUTPUT, NEML2_PARAMETER, "
                       "NEML2_TANGENT, NEML2_JVP, NEML2_COTANGENT, NEML2_ADJOINT or NEML2_PARAMETER_ADJOINT."));
  }
}

// Tells whether an unknown and no input has this name. NEML2's runtime takes such an input as the guess of
// Newton's method, and its predictor replaces it: what a guess changes is an input of its own.
bool is_replaced_guess(const model::Model& model, const char* name) {
  const auto has = [&](Kind kind) {
    const auto& all = model.variables(kind);
    return name && std::any_of(all.begin(), all.end(), [&](const Variable& each) { return each.name == name; });
  };
  return !has(Kind::input) && has(Kind::unknown);
}

// Throws NEML2_ERROR_UNSUPPORTED if a role wants derivatives of a variable that were not compiled.
void require_compiled(const model::Model& model, std::int32_t role, Kind kind, std::size_t index, const char* name) {
  if (role == NEML2_JVP && !model.derivatives(Kind::input).of_output(index))
    refuse_derivative(name, join("derivatives of '", name, "'"), join(name, ":INPUT"));
  if ((role == NEML2_ADJOINT || role == NEML2_PARAMETER_ADJOINT) && !model.derivatives(kind).by_input(index))
    refuse_derivative(name, join("derivatives with respect to '", name, "'"), join("OUTPUT:", name));
}

// Sets the step stride of an array that is bound.
void set_step_stride(Points& array, const std::string& what, std::int64_t stride) {
  if (!array.data)
    throw Error(NEML2_ERROR_MISSING, what,
                join("There is no array of '", what, "' whose step stride could be set: bind it first."));
  if (stride < 0)
    throw Error(NEML2_ERROR_SHAPE, what, join("The step stride of '", what, "' must be 0 or more; got ", stride, "."));
  array.step = stride;
}

// Returns the array of a derivative that was compiled.
Points& block_of(CallObject& call, std::int32_t kind, const char* output, const char* variable, const Variable** of) {
  const model::Model& model = *call.model;
  const Kind by = differentiation_kind(kind);
  const std::size_t o = model.find(Kind::output, &required(output, "output"));
  const std::size_t v = model.find(by, &required(variable, "variable"));
  auto& bindings = bindings_of(call);
  auto& arrays = by == Kind::parameter ? bindings.parameter_blocks : bindings.blocks;
  const auto& all = model.derivatives(by).all();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].output == o && all[i].input == v) {
      *of = &all[i].block;
      return arrays[i];
    }
  const std::string pair = join(model.variables(Kind::output)[o].name, ":", model.variables(by)[v].name);
  refuse_derivative(pair, join("the derivative '", pair, "'"), pair);
}

// Returns the array of a report.
Points& report_of(CallObject& call, std::int32_t kind) {
  if (kind < NEML2_REPORT_STATUS || kind >= model::num_reports)
    throw Error(NEML2_ERROR_ARGUMENT, "kind",
                join("There is no report ", kind, "; see NEML2_REPORT_STATUS and the others."));
  return bindings_of(call).report[kind];
}

}  // namespace
}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_call_bind(neml2_call* call, int32_t role, const char* name, void* data, int32_t dtype,
                        int64_t point_stride) {
  return alone(call, "call", [&](auto& its) {
    const model::Model& model = *its.model;
    const Role found = role_of(its, role);
    if (role == NEML2_INPUT && is_replaced_guess(model, name)) return;
    const std::size_t index = model.find(found.kind, &required(name, "name"));
    require_compiled(model, role, found.kind, index, name);
    (*found.arrays)[index] =
        checked(its, model.variables(found.kind)[index], data, dtype, point_stride, found.may_repeat);
    its.plan.reset();
  });
}

int32_t neml2_call_bind_derivative(neml2_call* call, int32_t kind, const char* output, const char* variable, void* data,
                                   int32_t dtype, int64_t point_stride) {
  return alone(call, "call", [&](auto& its) {
    const Variable* block = nullptr;
    Points& array = block_of(its, kind, output, variable, &block);
    array = checked(its, *block, data, dtype, point_stride, false);
  });
}

int32_t neml2_call_bind_input_derivative(neml2_call* call, const char* input, int32_t kind, const char* variable,
                                         void* data, int32_t dtype, int64_t point_stride) {
  return alone(call, "call", [&](auto& its) {
    const model::Model& model = *its.model;
    const Kind by = differentiation_kind(kind);
    const std::size_t i = model.find(Kind::input, &required(input, "input"));
    const std::size_t v = model.find(by, &required(variable, "variable"));
    model::Slope slope{i, by, v, {}};
    const Variable of = model::variable_of(model, slope);
    if (model.variables(Kind::input)[i].sub_ndim + model.variables(by)[v].sub_ndim > 0)
      throw Error(NEML2_ERROR_UNSUPPORTED, of.name, join("'", of.name, "' is of variables with sites."));
    slope.array = checked(its, of, data, dtype, point_stride, true);
    auto& slopes = bindings_of(its).slopes;
    std::erase_if(slopes,
                  [&](const model::Slope& old) { return old.input == i && old.kind == by && old.variable == v; });
    if (data) slopes.push_back(slope);
  });
}

int32_t neml2_call_block_order_set(neml2_call* call, int32_t order) {
  return alone(call, "call", [&](auto& its) {
    if (order != NEML2_OUTPUT_FIRST && order != NEML2_INPUT_FIRST)
      throw Error(NEML2_ERROR_ARGUMENT, "order",
                  join("There is no order ", order, "; expected NEML2_OUTPUT_FIRST or NEML2_INPUT_FIRST."));
    its.bindings.input_first = order == NEML2_INPUT_FIRST;
  });
}

int32_t neml2_call_bind_report(neml2_call* call, int32_t kind, void* data, int64_t point_stride) {
  return alone(call, "call", [&](auto& its) {
    Points& array = report_of(its, kind);
    if (data && point_stride < 1)
      throw Error(NEML2_ERROR_SHAPE, "point_stride",
                  join("The point stride of a report must be 1 or more; got ", point_stride, "."));
    array = {static_cast<char*>(data), point_stride};
  });
}

int32_t neml2_call_step_stride_set(neml2_call* call, int32_t role, const char* name, int64_t step_stride) {
  return alone(call, "call", [&](auto& its) {
    if (role != NEML2_INPUT && role != NEML2_OUTPUT)
      throw Error(NEML2_ERROR_ARGUMENT, "role",
                  join("An array of the role ", role, " has no steps; expected NEML2_INPUT or NEML2_OUTPUT."));
    const Role found = role_of(its, role);
    if (role == NEML2_INPUT && is_replaced_guess(*its.model, name)) return;
    const std::size_t index = its.model->find(found.kind, &required(name, "name"));
    set_step_stride((*found.arrays)[index], name, step_stride);
    its.plan.reset();
  });
}

int32_t neml2_call_derivative_step_stride_set(neml2_call* call, int32_t kind, const char* output, const char* variable,
                                              int64_t step_stride) {
  return alone(call, "call", [&](auto& its) {
    const Variable* block = nullptr;
    Points& array = block_of(its, kind, output, variable, &block);
    set_step_stride(array, block->name, step_stride);
  });
}

int32_t neml2_call_report_step_stride_set(neml2_call* call, int32_t kind, int64_t step_stride) {
  return alone(call, "call", [&](auto& its) { set_step_stride(report_of(its, kind), "report", step_stride); });
}
