// Metadata as JSON, in the same form for every schema: an object for each structure, whose keys are its members.

#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/base/json_writer.h"

namespace neml2_capi::artifact {

static void write_json(JsonWriter& out, Krylov::Method method) {
  out.value(method == Krylov::Method::gmres ? "gmres" : "bicgstab");
}

static void write_json(JsonWriter& out, Krylov::Cache cache) {
  constexpr const char* names[] = {"none", "chord", "max_its"};
  out.value(names[static_cast<int>(cache)]);
}

static void write_json(JsonWriter& out, Substep::Role role) {
  constexpr const char* names[] = {"fixed", "old_state", "old_force", "force", "increment"};
  out.value(names[static_cast<int>(role)]);
}

// Repeats a macro for each of up to 30 names: the preprocessor reads its result again so often.
#define NML2_AGAIN(...) NML2_NINE(NML2_NINE(NML2_NINE(__VA_ARGS__)))
#define NML2_NINE(...) NML2_THREE(NML2_THREE(NML2_THREE(__VA_ARGS__)))
#define NML2_THREE(...) NML2_ONE(NML2_ONE(NML2_ONE(__VA_ARGS__)))
#define NML2_ONE(...) __VA_ARGS__
#define NML2_NEXT() NML2_EACH
#define NML2_PARENTHESES ()
#define NML2_EACH(name, ...)     \
  out.member(#name, value.name); \
  __VA_OPT__(NML2_NEXT NML2_PARENTHESES(__VA_ARGS__))

// Defines the functions that write a structure, and its members alone.
#define NML2_MEMBERS(Type, ...)                                                                        \
  static void write_members(JsonWriter& out, const Type& value) { NML2_AGAIN(NML2_EACH(__VA_ARGS__)) } \
  [[maybe_unused]] static void write_json(JsonWriter& out, const Type& value) {                        \
    out.object([&] { write_members(out, value); });                                                    \
  }

NML2_MEMBERS(Variable, name, type, sub_batch_shape, base_shape)
NML2_MEMBERS(Pair, output, input, output_base_shape, input_base_shape, batch_independent, row, column, matrix)
NML2_MEMBERS(NamedGraph, package, inputs, parameters, outputs)
NML2_MEMBERS(Feedback, input, output, iterations, sub_batch_shape, base_shape)
NML2_MEMBERS(Krylov, method, cache, restart, max_its, abs_tol, rel_tol, cache_max_its)
NML2_MEMBERS(Substep, name, role, partner)
NML2_MEMBERS(Sensitivity, operator_package, solve_package, krylov, block_package, pairs)
NML2_MEMBERS(ForwardSegment, jacobian_package, pairs, parameter_jacobian_package, parameter_pairs)

static void write_json(JsonWriter& out, const Group& group) {
  out.object([&] {
    out.member("structure", group.block ? "block" : "dense");
    out.member("sub_batch_shape", group.sub_batch_shape);
    out.member("variables", group.variables);
  });
}

NML2_MEMBERS(ImplicitSegment, residual_package, jacobian_package, solve_package, step_package, step_is_taken,
             matvec_package, krylov, preconditioner_setup_package, preconditioner_apply_package, parameters, unknowns,
             givens, residuals, predictor, feedback, given_sensitivity, parameter_sensitivity, max_substepping_level,
             substeps)

static void write_json(JsonWriter& out, const Segment& segment) {
  const auto* forward = std::get_if<ForwardSegment>(&segment);
  out.object([&] {
    out.member("kind", forward ? "forward" : "implicit");
    if (forward) write_members(out, forward->value);
    std::visit([&](const auto& kind) { write_members(out, kind); }, segment);
  });
}

// Parameters without an element type of their own have the artifact's.
struct TypedParameter {
  const Parameter& of;
  DType dtype;
};

static void write_json(JsonWriter& out, const TypedParameter& parameter) {
  out.object([&] {
    out.member("name", parameter.of.name);
    out.member("shape", parameter.of.shape);
    out.member("base_shape", parameter.of.base_shape);
    out.member("values", parameter.of.values);
    out.member("dtype", name_of(parameter.dtype));
  });
}

NML2_MEMBERS(Bound, variable, physical, lower, upper)
NML2_MEMBERS(SolverConfig, atol, rtol, miters, ls_type, ls_max_iters, ls_cutback, ls_c, substep_del_tol)
NML2_MEMBERS(Aliases, inputs, outputs, parameters)

// Returns a path as JSON can tell it. Names in the metadata are UTF-8, since they came from JSON.
static std::string in_utf8(const std::filesystem::path& path) {
  if (!is_utf8(path.string()))
    throw Error(NEML2_ERROR_UNSUPPORTED, path.string(),
                join("The path ", path.string(),
                     " is not UTF-8, and the description, in JSON, cannot tell it. Rename the folder."));
  return path.string();
}

std::string describe(const Metadata& metadata) {
  JsonWriter out;
  out.object([&] {
    out.member("leaf", in_utf8(metadata.leaf));
    out.member("dtype", name_of(metadata.dtype));
    out.member("kernels_only", metadata.kernels_only);
    out.member("inputs", metadata.inputs);
    out.member("outputs", metadata.outputs);
    out.key("parameters");
    out.list([&] {
      for (const Parameter& parameter : metadata.parameters)
        out.value(TypedParameter{parameter, parameter.dtype.value_or(metadata.dtype)});
    });
    out.member("segments", metadata.segments);
    out.member("derivatives", metadata.derivatives);
    out.member("parameter_derivatives", metadata.parameter_derivatives);
    out.member("solver", metadata.solver);
    out.member("aliases", metadata.aliases);
    out.member("bounds", metadata.bounds);
  });
  return out.take();
}

}  // namespace neml2_capi::artifact
