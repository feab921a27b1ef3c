// Metadata of an artifact, in one form for every schema.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capi/archive/files.h"
#include "capi/tensor/tensor.h"

struct neml2_kernel_set;

namespace neml2_capi::artifact {

struct Variable {
  std::string name;  // the name inside the model, see Aliases
  std::string type;  // "SR2", "Scalar", ...; empty if the schema does not say
  Dims sub_batch_shape;
  Dims base_shape;
  bool sites_told = false;  // of an input or output: the metadata lists its sub-batch axes

  Dims point_shape() const { return sub_batch_shape.then(base_shape); }
};

// Variables that a residual packs side by side along the last axis. Block: (*B, *sub_batch, sum of base sizes).
// Dense: (*B, sum of sub-batch and base sizes).
struct Group {
  bool block = false;
  Dims sub_batch_shape;
  std::vector<Variable> variables;
};

// Graph that takes named tensors, then promoted parameters.
struct NamedGraph {
  std::string package;
  std::vector<std::string> inputs;
  std::vector<std::string> parameters;
  std::vector<std::string> outputs;
};

// Loop around the predictor: each pass takes the last one's `output` as `input`, the first takes zeros.
struct Feedback {
  std::string input;
  std::string output;
  std::int64_t iterations = 0;
  Dims sub_batch_shape;
  Dims base_shape;
};

// Block of a Jacobian: `output` with respect to `input`, a variable or a promoted parameter.
struct Pair {
  std::string output;
  std::string input;
  Dims output_base_shape = {};
  Dims input_base_shape = {};
  bool batch_independent = false;    // the same for all points
  std::int64_t row = 0, column = 0;  // first element in an assembled sensitivity matrix
  // Number of the matrix that has the pair at (row, column), if a package returns pairs side by side (schemas 2 and
  // 3). Else every pair is an output of its own.
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

// Iterative linear solver. GMRES: Saad and Schultz, SIAM J. Sci. Stat. Comput. 7 (1986) 856.
// BiCGStab: van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631.
struct Krylov {
  enum class Method { gmres, bicgstab };
  // Tells when the preconditioner is set up again: at each Newton step, never after the first, or after a linear solve
  // of more than cache_max_its iterations.
  enum class Cache { none, chord, max_its };
  Method method = Method::gmres;
  Cache cache = Cache::none;
  std::int64_t restart = 40;
  std::int64_t max_its = 1000;
  double abs_tol = 0.0;
  double rel_tol = 1e-4;
  std::int64_t cache_max_its = 10;
};

// Packages for the sensitivity of the unknowns at a solution, by the implicit function theorem.
struct Sensitivity {
  // Givens: (unknowns, givens, parameters) -> residual x given blocks of dr/dg.
  // Parameters, each with one value per point: the same inputs -> (dr/du, dr/dp), both dense.
  std::string operator_package;
  // (dr/du blocks, outputs of the operator) -> one block per pair; empty: by `krylov`, on dense operators
  std::string solve_package;
  std::optional<Krylov> krylov;
  // Before schema 12, in place of the three above: (unknowns, givens, parameters) -> the blocks of the pairs.
  std::string block_package;
  std::vector<Pair> pairs;
};

// Role of a given when the increment is divided.
struct Substep {
  // `increment` is divided with the step, since it has no value at the other end.
  enum class Role { fixed, old_state, old_force, force, increment };
  std::string name;
  Role role = Role::fixed;
  std::string partner;  // old state: the unknown that becomes it; force: the same force at the other end
};

struct ImplicitSegment {
  // (*unknown groups, *given groups, *parameters) -> residual groups: -r
  std::string residual_package;
  // the same inputs -> (residual x unknown operator blocks, residual groups); empty if a Krylov solver needs none
  std::string jacobian_package;
  // (operator blocks, residual groups) -> unknown groups, the Newton step; empty with a Krylov solver
  std::string solve_package;
  // Before schema 12, in place of the two above: the inputs of the residual -> (unknown groups, residual groups): the
  // Newton step, and -r where it begins; or, in schema 2, the unknowns after the step, and -r there.
  std::string step_package;
  bool step_is_taken = false;
  // (*unknown groups, *given groups, *parameters, *directions) -> residual groups: dr/du times the direction
  std::string matvec_package;
  std::optional<Krylov> krylov;
  // the inputs of the residual -> a state; (*state, flat residual) -> flat unknowns. An artifact has both or none.
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
  std::vector<Substep> substeps;  // one per given; empty if the level is 0
};

using Segment = std::variant<ForwardSegment, ImplicitSegment>;

struct Parameter {
  std::string name;
  Dims shape;
  Dims base_shape;
  std::optional<DType> dtype;  // empty: the leaf's
  std::vector<double> values;
};

// Bounds of an input or a parameter, by its name at the boundary: of validity, or physical ones, beyond which a value has
// no meaning.
struct Bound {
  std::string variable;
  bool physical = false;
  // One for each component, or one for all; infinite if there is none.
  std::vector<double> lower, upper;
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

// Names at the boundary, by the names inside. A variable that is not listed keeps its name.
struct Aliases {
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
  std::map<std::string, std::string> parameters;
};

struct Metadata {
  std::filesystem::path file;  // the JSON document
  std::filesystem::path leaf;  // the folder of the packages
  DType dtype = DType::float64;
  bool kernels_only = false;                 // point kernels instead of packages
  const neml2_kernel_set* linked = nullptr;  // kernels in the program, instead of objects
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;
  std::vector<Parameter> parameters;
  std::vector<Segment> segments;
  // Pairs that have compiled derivatives, by the names inside.
  std::vector<Pair> derivatives;
  std::vector<Pair> parameter_derivatives;
  SolverConfig solver;
  Aliases aliases;
  std::vector<Bound> bounds;
  std::string checksum;                           // of the files when the model was opened: they may be others since
  std::shared_ptr<const archive::Mount> content;  // of an artifact in memory: what `file` and `leaf` are in
};

// Reads the metadata of the artifact at `path`: its folder, a device folder in it, its metadata.json or
// <model>_meta.json, or a HIT stub with one compiled model. `device` and `dtype` choose the packages; every one that a
// segment names must exist. Throws Error: NEML2_ERROR_FILE (no such folder, no metadata, a missing package),
// NEML2_ERROR_ARTIFACT (not JSON; a field that is missing or of the wrong type, with its path in the document),
// NEML2_ERROR_UNSUPPORTED (an unknown schema, with those supported; not for this device or type, with those present; a
// segment that this version cannot run), NEML2_ERROR_NAME (several models).
Metadata read_metadata(const std::filesystem::path& path, const std::string& device, const std::string& dtype);

// Reads the metadata of an artifact in memory: an archive of stored entries, which has metadata.json at its root. Throws
// the errors of read_metadata().
Metadata read_metadata_in_memory(std::string_view content, const std::string& device, const std::string& dtype);

// Reads the metadata of the model `name` of a HIT stub, or of its only compiled model if `name` is empty. Throws the
// errors of read_metadata() and read_stub().
Metadata read_stub_metadata(const std::filesystem::path& stub, const std::string& name, const std::string& device,
                            const std::string& dtype);

// Returns the packages of the segments in their order, each once.
std::vector<std::string> packages_of(const Metadata& metadata);

// Returns the SHA-256 of what an artifact computes: of its metadata, and of each package or, without packages, of `graphs`,
// the checksums of the graphs of its kernels. It is the same for kernels that are built for other processors. Throws
// NEML2_ERROR_FILE or NEML2_ERROR_ARTIFACT if one of these files is missing or damaged.
std::string checksum(const Metadata& metadata, const std::string& graphs);

// Reads bounds.json of the folder, which `neml2-capi` writes beside the metadata; no file: no bounds. Throws
// NEML2_ERROR_FILE if it cannot be read, NEML2_ERROR_ARTIFACT if it is not what it should be.
std::vector<Bound> read_bounds(const std::filesystem::path& folder);

// Returns the metadata as a JSON document whose keys are the members of Metadata.
std::string describe(const Metadata& metadata);

// Fields of a HIT stub for a compiled model.
struct Stub {
  std::filesystem::path artifact;      // a folder, or a metadata file
  std::optional<SolverConfig> solver;  // from the block of [Solvers] that the model names (schema 7)
};

// Throws NEML2_ERROR_FILE, NEML2_ERROR_ARTIFACT (not HIT), NEML2_ERROR_NAME (no such model, with those present; not of
// type AOTIModel; several models and no name), NEML2_ERROR_UNSUPPORTED (a solver of unknown type).
Stub read_stub(const std::filesystem::path& stub, const std::string& name);

}  // namespace neml2_capi::artifact
