// Calls: evaluation in place.
#include "capi/abi/call.h"

#include <algorithm>
#include <numeric>

#include "capi/abi/solve.h"
#include "capi/checkpoint/checkpoint.h"
#include "capi/evaluation/transient.h"
#include "capi/graph/backend.h"
#include "capi/model/remark.h"

namespace neml2_capi::abi {
namespace {

using model::Kind;
using model::Points;
using model::Variable;

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

// Completes the bindings for a run in the queue of the caller.
void complete_on_device(CallObject& call, std::int64_t npoints) {
  call.model->take(call.snapshot);
  complete(call, npoints, call.snapshot, call.bindings);
  call.bindings.parameters = call.overrides;
}

// Puts a run into the queue.
std::int32_t run_on_device(CallObject& call, std::int64_t npoints) {
  complete_on_device(call, npoints);
  if (npoints > 0) graph::on_devices([&] { call.on_device->run(call.bindings, call.snapshot); });
  return NEML2_OK;
}

// Waits for the runs of the queue.
std::int32_t wait_on_device(CallObject& call) {
  const model::Tally tally = graph::on_devices([&] { return call.on_device->wait(); });
  if (tally.worst() == NEML2_OK) return NEML2_OK;
  const auto& count = tally.count;
  const std::string message = tally.message(std::accumulate(count, count + 4, std::int64_t{0}));
  const std::int64_t steps = call.on_device->steps(), made = call.on_device->made();
  return record_recoverable(tally.worst(), tally.cause,
                            made < steps ? join("In the step ", made, ": ", message) : message);
}

// Puts steps into the queue. To tell how many were made, it waits.
std::int32_t run_steps_on_device(CallObject& call, std::int64_t npoints, std::int64_t nsteps, std::int64_t* made) {
  complete_on_device(call, npoints);
  call.bindings.steps = nsteps;
  const bool runs = npoints > 0 && nsteps > 0;
  if (runs) graph::on_devices([&] { call.on_device->run_steps(call.bindings, call.snapshot); });
  if (!made) return NEML2_OK;
  const std::int32_t status = wait_on_device(call);
  *made = runs ? call.on_device->made() : nsteps;
  return status;
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

int32_t neml2_call_run_steps(int64_t* made, neml2_call* call, int64_t npoints, int64_t nsteps) {
  return alone(call, "call", [&](auto& bound) {
    if (nsteps < 0)
      throw Error(NEML2_ERROR_ARGUMENT, "nsteps", join("The number of steps must be 0 or more; got ", nsteps, "."));
    if (bound.on_device) return run_steps_on_device(bound, npoints, nsteps, made);
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
      if (its.model->is_around_another())
        throw Error(
            NEML2_ERROR_UNSUPPORTED, "memory",
            "The model has a hypothesis, a strain measure or material axes, which are the host's: give it arrays of "
            "the host. The law itself is evaluated on the device.");
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
  return alone(call, "call", [&](auto& its) { return its.on_device ? wait_on_device(its) : std::int32_t{NEML2_OK}; });
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
