// Solves: evaluations whose nonlinear systems the caller solves.
#include "capi/abi/solve.h"

#include "capi/abi/sized.h"
#include "capi/evaluation/arrays.h"

namespace neml2_capi::abi {
namespace {

using model::FlatSystem;
using model::Kind;

std::unique_ptr<neml2_solve> begin(const neml2_model* handle, neml2_tensor* const* inputs,
                                   neml2_tensor* const* parameters) {
  const std::shared_ptr<model::Model>& target = required(handle, "model").value;
  required(inputs, "inputs");
  require_host(*target, "A solve is");
  if (handle->dispatch) handle->dispatch->require_solvable();
  auto tensors = std::make_unique<neml2_solve::Tensors>();
  tensors->model = target;
  Dims& batch = tensors->batch;
  Arguments given = given_inputs(*target, inputs, batch);
  model::Snapshot snapshot;
  target->take(snapshot);
  const model::Options& options = snapshot.options;
  Arguments promoted = given_parameters(*target, parameters, snapshot.parameters, batch);

  model::Bindings bindings = model::bindings_for(*target);
  bindings.points = count_of(batch);
  bindings.mark_failed = true;
  given.bind(batch, bindings.inputs);
  promoted.bind(batch, bindings.parameters);
  const auto& outputs = target->variables(Kind::output);
  for (std::size_t i = 0; i < outputs.size(); ++i) tensors->outputs.add(batch, true, outputs[i], bindings.outputs[i]);
  tensors->report = bind_report(*target, batch, options, bindings);

  auto solve = std::make_unique<neml2_solve>(model::Solve(handle->routes, std::move(bindings), options));
  solve->tensors = std::move(tensors);
  return solve;
}

std::int32_t end(neml2_tensor** outputs, neml2_report** report, neml2_solve& solve) {
  const bool handles = solve.tensors != nullptr;
  if (handles) required(outputs, "outputs");
  if (!handles && (outputs || report))
    throw Error(NEML2_ERROR_ARGUMENT, outputs ? "outputs" : "report",
                "A solve of a call writes to the arrays of the call: pass NULL for outputs and report.");
  const model::Tally tally = solve.value.finish();
  if (handles) {
    auto& tensors = *solve.tensors;
    hand_out(outputs, handles_of(std::move(tensors.outputs.tensors)));
    if (report) *report = finished(std::move(tensors.report), *tensors.model, tensors.batch).release();
  }
  return conclude(tally, solve.value.points());
}

neml2_system* next(neml2_solve& solve) { return solve.value.next() ? &solve.system : nullptr; }

FlatSystem& system_of(const neml2_system* system) { return required(system, "system").solve.current(); }

// Let the caller's solver have all systems.
void solve_with(std::int32_t (*solver)(void*, neml2_system*), void* context, neml2_solve& solve) {
  while (neml2_system* system = next(solve)) {
    const std::int32_t status = solver(context, system);
    if (status >= 0) continue;
    // The solver may just pass on what a function of this library returned.
    const bool is_told = status == neml2_error_status();
    throw Error(status, "solver",
                join("The solver returned ", status, "; the evaluation was given up.",
                     is_told ? join(" The last error of this thread: ", last_message()) : ""),
                is_told ? neml2_error_cause() : NEML2_CAUSE_NONE);
  }
}

}  // namespace
}  // namespace neml2_capi::abi

using namespace neml2_capi;
using namespace neml2_capi::abi;

int32_t neml2_solve_begin(neml2_solve** out, const neml2_model* model, neml2_tensor* const* inputs,
                          neml2_tensor* const* parameters) {
  return guarded([&] {
    required(out, "out");
    *out = begin(model, inputs, parameters).release();
  });
}

int32_t neml2_solve_next(neml2_system** system, neml2_solve* solve) {
  return guarded([&] {
    required(system, "system");
    *system = next(required(solve, "solve"));
  });
}

int32_t neml2_solve_end(neml2_tensor** outputs, neml2_report** report, neml2_solve** solve) {
  return guarded([&] {
    const std::int32_t status = end(outputs, report, required(required(solve, "solve"), "solve"));
    neml2_solve_free(solve);
    return status;
  });
}

void neml2_solve_free(neml2_solve** solve) { release(solve); }

int32_t neml2_solve_run(neml2_tensor** outputs, neml2_report** report, const neml2_model* model,
                        neml2_tensor* const* inputs, neml2_tensor* const* parameters,
                        int32_t (*solver)(void* context, neml2_system* system), void* context) {
  return guarded([&] {
    required(outputs, "outputs");
    required(solver, "solver");
    const auto solve = begin(model, inputs, parameters);
    solve_with(solver, context, *solve);
    return end(outputs, report, *solve);
  });
}

int32_t neml2_system_inspect(neml2_system_info* out, const neml2_system* system) {
  return guarded([&] {
    const FlatSystem& flat = system_of(system);
    write_sized(out, {0, flat.points(), flat.size(), std::ssize(flat.places())});
  });
}

int32_t neml2_system_unknown_inspect(neml2_unknown_info* out, const neml2_system* system, int64_t index) {
  return guarded([&] {
    const FlatSystem::Place& place = entry_of(system_of(system).places(), index, "The system", "unknowns");
    write_sized(out, {0, static_cast<std::int64_t>(place.unknown), place.offset, place.pieces, place.piece_stride,
                      place.piece_size});
  });
}

int32_t neml2_system_guess(double* u, const neml2_system* system) {
  return guarded([&] { system_of(system).guess(&required(u, "u")); });
}

int32_t neml2_system_residual(double* r, neml2_system* system, const double* u) {
  return guarded([&] { system_of(system).residual(&required(r, "r"), &required(u, "u")); });
}

int32_t neml2_system_step(double* du, int32_t* singular, neml2_system* system, const double* u) {
  return guarded([&] { system_of(system).step(&required(du, "du"), singular, &required(u, "u")); });
}

int32_t neml2_system_jacobian(double* a, neml2_system* system, const double* u) {
  return guarded([&] { system_of(system).jacobian(&required(a, "a"), &required(u, "u")); });
}

int32_t neml2_system_matvec(double* y, neml2_system* system, const double* u, const double* v) {
  return guarded([&] { system_of(system).matvec(&required(y, "y"), &required(u, "u"), &required(v, "v")); });
}

int32_t neml2_system_accept(neml2_system* system, const double* u, const int32_t* status, const int32_t* iterations) {
  return guarded([&] { required(system, "system").solve.accept(&required(u, "u"), status, iterations); });
}
