// What an artifact's metadata says, in one form for every schema.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "capi/tensor/tensor.h"

namespace neml2_capi::artifact {

struct Variable {
  std::string name;  // as authored: the name inside, see Aliases
  std::string type;  // "SR2", "Scalar", ...; empty where the schema does not say
  Dims sub_batch_shape;
  Dims base_shape;

  Dims point_shape() const { return sub_batch_shape.then(base_shape); }
};

// Variables that a residual packs side by side along the last axis. Block: (*B, *sub_batch, sum of base sizes).
// Dense: (*B, sum of sub-batch and base sizes).
struct Group {
  bool block = false;
  Dims sub_batch_shape;
  std::vector<Variable> variables;
};

// A graph that is called with named tensors, then with promoted parameters.
struct NamedGraph {
  std::string package;
  std::vector<std::string> inputs;
  std::vector<std::string> parameters;
  std::vector<std::string> outputs;
};

// The predictor is one step of a loop: `output` becomes `input` of the next pass; zeros in the first.
struct Feedback {
  std::string input;
  std::string output;
  std::int64_t iterations = 0;
  Dims sub_batch_shape;
  Dims base_shape;
};

// A block of a Jacobian: of `output` with respect to `input`, a value or a promoted parameter.
struct Pair {
  std::string output;
  std::string input;
  Dims output_base_shape = {};
  Dims input_base_shape = {};
  bool batch_independent = false;    // the same for all points
  std::int64_t row = 0, column = 0;  // its place in an assembled sensitivity matrix
  // Where a package returns pairs side by side (schemas 2 and 3): the number of the matrix, in which the pair begins at
  // (row, column). Else every pair is an output of its own.
  std::optional<std::int64_t> matrix = std::nullopt;
};

struct ForwardSegment {
  NamedGraph value;
  // the inputs of `value` -> (its outputs, one block per pair)
  std::string jacobian_package;
  std::vector<Pair> pairs;
  // the inputs of `value`, every parameter one value per point -> one block per pair
  std::string parameter_jacobian_package;
  std::vector<Pair> parameter_pairs;
};

// An iterative linear solver. GMRES: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856.
// BiCGStab: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
struct Krylov {
  enum class Method { gmres, bicgstab };
  // When the preconditioner is set up again: at each Newton step, never after the first, or after a linear solve of
  // more than cache_max_its iterations.
  enum class Cache { none, chord, max_its };
  Method method = Method::gmres;
  Cache cache = Cache::none;
  std::int64_t restart = 40;
  std::int64_t max_its = 1000;
  double abs_tol = 0.0;
  double rel_tol = 1e-4;
  std::int64_t cache_max_its = 10;
};

// How the sensitivity of the unknowns is found at a solution, by the implicit function theorem.
struct Sensitivity {
  // Of the givens: (unknowns, givens, parameters) -> residual x given blocks of dr/dg.
  // Of the parameters, each with one value per point: the same -> (dr/du, dr/dp), both dense.
  std::string operator_package;
  // (dr/du blocks, what the operator gives) -> one block per pair; empty: by `krylov`, on dense operators
  std::string solve_package;
  std::optional<Krylov> krylov;
  // Instead of all three, before schema 12: (unknowns, givens, parameters) -> the blocks of the pairs.
  std::string block_package;
  std::vector<Pair> pairs;
};

// What becomes of a given when the increment is divided.
struct Substep {
  // An increment, which has no value at the other end, is divided with the step.
  enum class Role { fixed, old_state, old_force, force, increment };
  std::string name;
  Role role = Role::fixed;
  std::string partner;  // of an old state: the unknown that it will be; of a force: the same at the other end
};

struct ImplicitSegment {
  // (*unknown groups, *given groups, *parameters) -> residual groups, of -r
  std::string residual_package;
  // the same inputs -> (residual x unknown operator blocks, residual groups); empty where a Krylov solver needs none
  std::string jacobian_package;
  // (operator blocks, residual groups) -> unknown groups, the Newton step; empty with a Krylov solver
  std::string solve_package;
  // Instead of these two, before schema 12: the inputs of the residual -> (unknown groups, residual groups). The Newton
  // step, and -r where it begins; or, in schema 2, the unknowns after the step, and -r there.
  std::string step_package;
  bool step_is_taken = false;
  // (*unknown groups, *given groups, *parameters, *directions) -> residual groups, of dr/du times the direction
  std::string matvec_package;
  std::optional<Krylov> krylov;
  // the inputs of the residual -> a state; (*state, flat residual) -> flat unknowns. Both or none.
  std::string preconditioner_setup_package;
  std::string preconditioner_apply_package;
  std::vector<std::string> parameters;
  std::vector<Group> unknowns;
  std::vector<Group> givens;
  std::vector<Group> residuals;
  std::optional<NamedGraph> predictor;
  std::optional<Feedback> feedback;
  std::optional<Sensitivity> given_sensitivity;
  std::optional<Sensitivity> parameter_sensitivity;
  std::int64_t max_substepping_level = 0;
  std::vector<Substep> substeps;  // one per given; only where the level is not 0
};

using Segment = std::variant<ForwardSegment, ImplicitSegment>;

struct Parameter {
  std::string name;
  Dims shape;
  Dims base_shape;
  std::optional<DType> dtype;  // empty: that of the leaf
  std::vector<double> values;
};

struct SolverConfig {
  double atol = 1e-10;
  double rtol = 1e-8;
  std::int64_t miters = 25;
  std::string ls_type = "BACKTRACKING";
  std::int64_t ls_max_iters = 1;
  double ls_cutback = 2.0;
  double ls_c = 1e-3;
  double substep_del_tol = 1e-6;
};

// Names at the boundary, by the names inside. What is not listed keeps its name.
struct Aliases {
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
  std::map<std::string, std::string> parameters;
};

struct Metadata {
  std::filesystem::path file;  // the document that says all this
  std::filesystem::path leaf;  // the folder of the packages
  DType dtype = DType::float64;
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;
  std::vector<Parameter> parameters;
  std::vector<Segment> segments;
  // The pairs that derivatives were compiled for, by the names inside.
  std::vector<Pair> derivatives;
  std::vector<Pair> parameter_derivatives;
  SolverConfig solver;
  Aliases aliases;
};

// Read the metadata of the artifact at `path`: its folder, a device folder in it, its metadata.json or
// <model>_meta.json, or a HIT stub with one compiled model. `device` and `dtype` choose the packages; every one that a
// segment names must exist. Throws Error: NEML2_ERROR_FILE (no such folder, no metadata, a missing package),
// NEML2_ERROR_ARTIFACT (not JSON; a field that is missing or of the wrong kind, named with its path in the document),
// NEML2_ERROR_UNSUPPORTED (an unknown schema, with those supported; not for this device or type, with those present; a
// segment that this version cannot run), NEML2_ERROR_NAME (several models).
Metadata read_metadata(const std::filesystem::path& path, const std::string& device, const std::string& dtype);

// That of the model `name` of a HIT stub; where `name` is empty, of its only compiled model. Throws as read_stub() too.
Metadata read_stub_metadata(const std::filesystem::path& stub, const std::string& name, const std::string& device,
                            const std::string& dtype);

// The packages that the segments name, in that order; one that several name is there once.
std::vector<std::string> packages_of(const Metadata& metadata);

// The metadata as a JSON document whose keys are the members of Metadata.
std::string describe(const Metadata& metadata);

// What a HIT stub says of a compiled model.
struct Stub {
  std::filesystem::path artifact;      // a folder, or a metadata file
  std::optional<SolverConfig> solver;  // of the block of [Solvers] that the model names (schema 7)
};

// Throws NEML2_ERROR_FILE, NEML2_ERROR_ARTIFACT (not HIT), NEML2_ERROR_NAME (no such model, with those present; not of
// type AOTIModel; several, and no name), NEML2_ERROR_UNSUPPORTED (a solver of unknown type).
Stub read_stub(const std::filesystem::path& stub, const std::string& name);

}  // namespace neml2_capi::artifact
