// Solves: evaluations whose nonlinear systems the caller solves.
#include "capi/abi/solve.h"

#include "capi/abi/sized.h"
#include "capi/evaluation/arrays.h"

namespace neml2_capi::abi {
namespace {

using model::FlatSystem;
using model::Kind;

std::unique_ptr<SolveObject> begin(const neml2_model* handle, neml2_tensor* const* inputs,
                                   neml2_tensor* const* parameters) {
  const Shared use(handle, "model");
  const std::shared_ptr<model::Model>& target = use->value;
  required(inputs, "inputs");
  require_host(*target, "A solve is");
  if (use->dispatch) use->dispatch->require_solvable();
  auto tensors = std::make_unique<SolveObject::Tensors>();
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
  for (std::size_t i = 0; i < outputs.size(); ++i)
    add_result(tensors->outputs, batch, true, outputs[i], bindings.outputs[i]);
  tensors->report = bind_report(*target, batch, options, bindings);

  auto solve = std::make_unique<SolveObject>(use->routes, std::move(bindings), options);
  solve->tensors = std::move(tensors);
  return solve;
}

std::int32_t end(neml2_tensor** outputs, neml2_report** report, SolveObject& solve) {
  const bool handles = solve.tensors != nullptr;
  if (handles) required(outputs, "outputs");
  if (!handles && (outputs || report))
    throw Error(NEML2_ERROR_ARGUMENT, outputs ? "outputs" : "report",
                "A solve of a call writes to the arrays of the call: pass NULL for outputs and report.");
  const model::Tally tally = solve.value.finish();
  if (handles) {
    auto& tensors = *solve.tensors;
    hand_out(outputs, handles_of(std::move(tensors.outputs)));
    if (report)
      *report = Owned<neml2_report>(finished(std::move(tensors.report), *tensors.model, tensors.batch)).release();
  }
  model::log_exceeded(solve.value.model(), tally.exceeded, solve.value.points(), 1);
  return conclude(tally, solve.value.model(), solve.value.bindings());
}

// Goes on to the next system. The handle of the last one ends, so that using a copy of it is an error.
neml2_system* next(neml2_solve* handle, SolveObject& solve) {
  Owned<neml2_system> fresh(std::make_unique<SystemObject>(SystemObject{handle}));
  if (!solve.value.next()) fresh = {};
  solve.system = std::move(fresh);
  return solve.system.get();
}

Argument solve_of_system() {
  Argument named("system");
  named.kind = "solve of";
  return named;
}

// Use of a system, and of the solve that it belongs to.
class System {
 public:
  explicit System(const neml2_system* handle) : system_(handle, "system"), solve_(system_->solve, solve_of_system()) {}

  model::Solve& solve() const { return solve_->value; }
  FlatSystem* operator->() const& { return &solve_->value.current(); }
  FlatSystem* operator->() const&& = delete;

 private:
  Shared<const neml2_system> system_;
  Alone<neml2_solve> solve_;
};

// Let the caller's solver have all systems.
void solve_with(std::int32_t (*solver)(void*, neml2_system*), void* context, neml2_solve* solve) {
  const auto next_system = [&] {
    const Alone own(solve, "solve");
    return next(solve, *own);
  };
  while (neml2_system* system = next_system()) {
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
    *out = Owned<neml2_solve>(begin(model, inputs, parameters)).release();
  });
}

int32_t neml2_solve_next(neml2_system** system, neml2_solve* solve) {
  return alone(solve, "solve", [&](auto& its) {
    required(system, "system");
    *system = next(solve, its);
  });
}

int32_t neml2_solve_end(neml2_tensor** outputs, neml2_report** report, neml2_solve** solve) {
  return guarded([&] {
    const Alone own(required(solve, "solve"), "solve");
    const std::int32_t status = end(outputs, report, *own);
    close(std::exchange(*solve, nullptr));
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
    const Owned<neml2_solve> solve(begin(model, inputs, parameters));
    solve_with(solver, context, solve.get());
    const Alone own(solve.get(), "solve");
    return end(outputs, report, *own);
  });
}

int32_t neml2_system_inspect(neml2_system_info* out, const neml2_system* system) {
  return guarded([&] {
    const System own(system);
    write_sized(out, {0, own->points(), own->size(), std::ssize(own->places())});
  });
}

int32_t neml2_system_unknown_inspect(neml2_unknown_info* out, const neml2_system* system, int64_t index) {
  return guarded([&] {
    const System own(system);
    const FlatSystem::Place& place = entry_of(own->places(), index, "The system", "unknowns");
    write_sized(out, {0, static_cast<std::int64_t>(place.unknown), place.offset, place.pieces, place.piece_stride,
                      place.piece_size});
  });
}

int32_t neml2_system_guess(double* u, const neml2_system* system) {
  return guarded([&] {
    const System own(system);
    own->guess(&required(u, "u"));
  });
}

int32_t neml2_system_residual(double* r, neml2_system* system, const double* u) {
  return guarded([&] {
    const System own(system);
    own->residual(&required(r, "r"), &required(u, "u"));
  });
}

int32_t neml2_system_step(double* du, int32_t* singular, neml2_system* system, const double* u) {
  return guarded([&] {
    const System own(system);
    own->step(&required(du, "du"), singular, &required(u, "u"));
  });
}

int32_t neml2_system_jacobian(double* a, neml2_system* system, const double* u) {
  return guarded([&] {
    const System own(system);
    own->jacobian(&required(a, "a"), &required(u, "u"));
  });
}

int32_t neml2_system_matvec(double* y, neml2_system* system, const double* u, const double* v) {
  return guarded([&] {
    const System own(system);
    own->matvec(&required(y, "y"), &required(u, "u"), &required(v, "v"));
  });
}

int32_t neml2_system_accept(neml2_system* system, const double* u, const int32_t* status, const int32_t* iterations) {
  return guarded([&] {
    const System own(system);
    own.solve().accept(&required(u, "u"), status, iterations);
  });
}
