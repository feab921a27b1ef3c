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

struct ForwardSegment {
  NamedGraph value;
};

struct ImplicitSegment {
  // (*unknown groups, *given groups, *parameters) -> residual groups, of -r
  std::string residual_package;
  // the same inputs -> (residual x unknown operator blocks, residual groups)
  std::string jacobian_package;
  // (operator blocks, residual groups) -> unknown groups, the Newton step
  std::string solve_package;
  std::vector<std::string> parameters;
  std::vector<Group> unknowns;
  std::vector<Group> givens;
  std::vector<Group> residuals;
  std::optional<NamedGraph> predictor;
  std::optional<Feedback> feedback;
  std::int64_t max_substepping_level = 0;
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
  std::string kind = "direct";  // or "krylov"
};

// Names at the boundary, by the names inside. What is not listed keeps its name.
struct Aliases {
  std::map<std::string, std::string> inputs;
  std::map<std::string, std::string> outputs;
  std::map<std::string, std::string> parameters;
};

struct Metadata {
  std::filesystem::path leaf;  // the folder of the packages
  DType dtype = DType::float64;
  std::vector<Variable> inputs;
  std::vector<Variable> outputs;
  std::vector<Parameter> parameters;
  std::vector<Segment> segments;
  SolverConfig solver;
  Aliases aliases;
};

// Read the metadata of the artifact at `root` and choose its <device>/<dtype> leaf. Every package that a segment names
// must exist. Throws Error: NEML2_ERROR_FILE (no such folder, no metadata.json, a missing package),
// NEML2_ERROR_ARTIFACT (not JSON; a field that is missing or of the wrong kind, named with its path in the document),
// NEML2_ERROR_UNSUPPORTED (an unknown schema, with those supported; no such leaf, with those present; a segment that
// this version cannot run).
Metadata read_metadata(const std::filesystem::path& root, const std::string& device, const std::string& dtype);

// The artifact folder that the model `name` of a HIT stub refers to. Throws NEML2_ERROR_FILE, NEML2_ERROR_ARTIFACT
// (not HIT), NEML2_ERROR_NAME (no such model, with those present; not of type AOTIModel).
std::filesystem::path artifact_of_stub(const std::filesystem::path& stub, const std::string& name);

}  // namespace neml2_capi::artifact
