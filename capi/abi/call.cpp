// Calls: evaluation in place, over arrays of the host.
#include <algorithm>
#include <numeric>
#include <optional>

#include "capi/abi/solve.h"
#include "capi/accelerator/device_call.h"
#include "capi/checkpoint/checkpoint.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/transient.h"
#include "capi/graph/backend.h"
#include "capi/model/remark.h"

namespace neml2_capi::abi {

// Bindings of a call; arrays that are not bound are null.
struct CallObject {
  explicit CallObject(const ModelObject& of)
      : model(of.value),
        dispatch(of.dispatch),
        routes(of.routes),
        bindings(model::bindings_for(*model)),
        overrides(bindings.parameters.size()),
        text(of.text) {}

  std::shared_ptr<const model::Model> model;
  std::shared_ptr<const model::Dispatch> dispatch;  // null without a scheduler
  std::shared_ptr<const model::Routes> routes;
  model::Bindings bindings;
  std::vector<model::Points> overrides;  // of parameters
  model::Snapshot snapshot;              // options and the other parameters, when the last run began
  std::optional<model::Plan> plan;       // of these bindings, which are complete; none after a change
  model::Workspace workspace;
  std::shared_ptr<const accelerator::ByText> text;     // null but on a device by text
  std::unique_ptr<accelerator::DeviceCall> on_device;  // whose memory the arrays are; else the host's
};

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
  const bool dense = !call.on_device || call.on_device->component_stride() == 1;
  const std::int64_t size = dense ? variable.point_shape.product() : 1;
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

[[noreturn]] void refuse_missing(const Variable& input) {
  throw Error(NEML2_ERROR_MISSING, input.name,
              join("The input '", input.name, "' is not bound; every input must be. It has ",
                   input.point_shape.product(), " values per point: call neml2_call_bind()."));
}

bool writes_something(const model::Bindings& bindings) {
  const auto is_written = [&](model::Part part) { return !is_given(part) && any_bound(bindings.of(part)); };
  return std::ranges::any_of(model::all_parts, is_written) ||
         std::ranges::any_of(bindings.report, [](const Points& report) { return report.data != nullptr; });
}

// Completes and checks bindings of `npoints` points with what is bound in the call. The arrays of parameters that are
// not bound come from the snapshot. A part of a mesh may be empty, and its arrays then NULL.
void complete(const CallObject& call, std::int64_t npoints, const model::Snapshot& snapshot,
              model::Bindings& bindings) {
  const model::Model& model = *call.model;
  if (npoints < 0)
    throw Error(NEML2_ERROR_ARGUMENT, "npoints", join("The number of points must be 0 or more; got ", npoints, "."));
  bindings.points = npoints;
  bindings.steps = 1;
  if (npoints == 0) return;
  for (std::size_t i = 0; i < bindings.inputs.size(); ++i)
    if (!bindings.inputs[i].data) refuse_missing(model.variables(Kind::input)[i]);
  if (!writes_something(bindings))
    throw Error(NEML2_ERROR_MISSING, "outputs",
                "Nothing is bound that the call could write: bind an output, a derivative or a report.");
  const Points& history = bindings.report[NEML2_REPORT_RESIDUAL_HISTORY];
  if (const std::int64_t miters = snapshot.options.miters(); history.data && history.stride < miters)
    throw Error(NEML2_ERROR_SHAPE, "point_stride",
                join("The residual history has miters = ", miters,
                     " values per point; its array was bound with the point stride ", history.stride, "."));
  for (std::size_t i = 0; i < snapshot.parameters.size() && !call.on_device; ++i)
    bindings.parameters[i] = call.overrides[i].data ? call.overrides[i]
                                                    : model::stored_points(model.variables(Kind::parameter)[i],
                                                                           snapshot.parameters[i], npoints);
}

// Plans runs of `npoints` points through `nsteps` steps, until something but values changes.
void make_plan(CallObject& call, std::int64_t npoints, std::int64_t nsteps) {
  const model::Options& options = call.snapshot.options;
  call.plan.reset();
  call.workspace.forget();
  complete(call, npoints, call.snapshot, call.bindings);
  call.bindings.steps = nsteps;
  if (npoints > 0) {
    call.bindings.copies = model::inputs_to_copy(*call.model, call.bindings, options.miters());
    model::require_derivatives(*call.model, call.bindings);
  }
  call.plan.emplace(*call.routes, options, model::Request(call.bindings));
}

void require_plan(CallObject& call, std::int64_t npoints, std::int64_t nsteps) {
  const bool changed = call.model->take(call.snapshot);
  if (changed || !call.plan || call.plan->request().points != npoints || call.bindings.steps != nsteps)
    make_plan(call, npoints, nsteps);
}

// Puts a run into the queue of the caller.
std::int32_t run_on_device(CallObject& call, std::int64_t npoints) {
  call.model->take(call.snapshot);
  complete(call, npoints, call.snapshot, call.bindings);
  call.bindings.parameters = call.overrides;
  if (npoints > 0) graph::on_devices([&] { call.on_device->run(call.bindings, call.snapshot); });
  return NEML2_OK;
}

void require_arrays_of_host(const CallObject& call, const char* what) {
  if (call.on_device)
    throw Error(NEML2_ERROR_UNSUPPORTED, "memory",
                join(what,
                     " over arrays of the host only: take the memory of the device back with "
                     "neml2_call_memory_set(call, NULL), and bind arrays."));
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

int32_t neml2_call_create(neml2_call** out, const neml2_model* model) {
  return shared(model, "model", [&](auto& its) {
    required(out, "out");
    require_host(*its.value, "A call is");
    *out = opened<neml2_call>(its);
  });
}

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
    require_arrays_of_host(its, "Derivatives of inputs are");
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

int32_t neml2_call_run(neml2_call* call, int64_t npoints) {
  return alone(call, "call", [&](auto& bound) {
    if (bound.on_device) return run_on_device(bound, npoints);
    require_plan(bound, npoints, 1);
    if (npoints == 0) return std::int32_t{NEML2_OK};
    const model::Tally tally = bound.plan->run(bound.bindings, bound.workspace);
    model::log_exceeded(*bound.model, tally.exceeded, npoints, 1);
    return conclude(tally, *bound.model, bound.bindings);
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

int32_t neml2_call_run_steps(int64_t* made, neml2_call* call, int64_t npoints, int64_t nsteps) {
  return alone(call, "call", [&](auto& bound) {
    if (nsteps < 0)
      throw Error(NEML2_ERROR_ARGUMENT, "nsteps", join("The number of steps must be 0 or more; got ", nsteps, "."));
    require_arrays_of_host(bound, "Steps are run");
    require_plan(bound, npoints, std::max<std::int64_t>(nsteps, 1));
    std::int32_t status = NEML2_OK;
    std::int64_t count = nsteps;
    if (npoints > 0 && nsteps > 0) {
      model::Transient transient(*bound.plan, bound.bindings);
      const model::Tally tally = transient.run(bound.workspace);
      count = transient.made();
      model::log_exceeded(*bound.model, transient.exceeded(), npoints, nsteps);
      if (count < nsteps) status = conclude(tally, *bound.model, transient.at(count));
    }
    bound.workspace.forget();
    if (made) *made = count;
    return status;
  });
}

int32_t neml2_solve_begin_call(neml2_solve** out, const neml2_call* call, int64_t npoints) {
  return alone(call, "call", [&](auto& its) {
    required(out, "out");
    require_arrays_of_host(its, "A solve is");
    model::Bindings bindings = its.bindings;
    if (its.dispatch) its.dispatch->require_solvable();
    if (!bindings.slopes.empty())
      throw Error(NEML2_ERROR_UNSUPPORTED, "derivatives",
                  "A solve takes no derivatives of inputs: unbind them, neml2_call_bind_input_derivative() with NULL.");
    model::Snapshot snapshot;
    its.model->take(snapshot);
    complete(its, npoints, snapshot, bindings);
    *out = opened<neml2_solve>(its.routes, std::move(bindings), snapshot.options);
  });
}

int32_t neml2_call_memory_set(neml2_call* call, const neml2_call_memory* memory) {
  return alone(call, "call", [&](auto& its) {
    std::unique_ptr<accelerator::DeviceCall> on_device;
    if (memory) {
      const neml2_call_memory given = read_sized(memory, "memory");
      if (given.kind != NEML2_MEMORY_ADDRESSES && given.kind != NEML2_MEMORY_BUFFERS)
        throw Error(NEML2_ERROR_ARGUMENT, "kind",
                    join("There is no kind of memory ", given.kind,
                         "; expected NEML2_MEMORY_ADDRESSES or NEML2_MEMORY_BUFFERS."));
      if (given.component_stride < 0)
        throw Error(NEML2_ERROR_SHAPE, "component_stride",
                    join("The component stride must be 1 or more, or 0 for 1; got ", given.component_stride, "."));
      if (!its.text)
        throw Error(
            NEML2_ERROR_UNSUPPORTED, "memory",
            "The model does not compute on a device by the text of its kernels: its arrays are the host's. Write the "
            "text with neml2-capi build-kernels --target opencl or cuda, and open the model for that device.");
      const accelerator::CallerMemory where{given.queue, given.kind == NEML2_MEMORY_ADDRESSES,
                                            std::max<std::int64_t>(given.component_stride, 1)};
      on_device = graph::on_devices([&] { return std::make_unique<accelerator::DeviceCall>(its.text, where); });
    }
    its.plan.reset();
    its.workspace.forget();
    its.bindings = model::bindings_for(*its.model);
    its.overrides.assign(its.overrides.size(), {});
    its.on_device = std::move(on_device);
  });
}

int32_t neml2_call_wait(neml2_call* call) {
  return alone(call, "call", [&](auto& its) {
    if (!its.on_device) return std::int32_t{NEML2_OK};
    const model::Tally tally = graph::on_devices([&] { return its.on_device->wait(); });
    if (tally.worst() == NEML2_OK) return std::int32_t{NEML2_OK};
    const auto& count = tally.count;
    return record_recoverable(tally.worst(), tally.cause,
                              tally.message(std::accumulate(count, count + 4, std::int64_t{0})));
  });
}

// The state of a call whose arrays the processor can read.
static const std::vector<model::Points>& state_of(const CallObject& call) {
  if (call.on_device)
    throw Error(
        NEML2_ERROR_UNSUPPORTED, "call",
        "The arrays of the call are in the memory of a device: copy them, and bind the copies in a call without "
        "neml2_call_memory_set().");
  return call.bindings.inputs;
}

int32_t neml2_call_state_save(neml2_call* call, const char* path, int64_t npoints, int64_t step, double time) {
  return alone(call, "call", [&](auto& its) {
    model::save(*its.model, state_of(its), npoints, &required(path, "path"), {step, time});
  });
}

int32_t neml2_call_state_load(int64_t* step, double* time, neml2_call* call, const char* path, int64_t npoints) {
  return alone(call, "call", [&](auto& its) {
    const model::Position at = model::load(*its.model, state_of(its), npoints, &required(path, "path"));
    if (step) *step = at.step;
    if (time) *time = at.time;
  });
}

void neml2_call_free(neml2_call** call) { release(call); }
