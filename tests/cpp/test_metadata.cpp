// Reading metadata.json: what is understood, and what each kind of damage is answered with.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "capi/archive/crc32.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"

namespace {

namespace fs = std::filesystem;
using neml2_capi::Dims;
using neml2_capi::DType;
using neml2_capi::Error;
using nlohmann::json;
namespace artifact = neml2_capi::artifact;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::exit(1);
}

// One forward segment with a parameter, then an implicit one with sub-batch axes and an iterated predictor.
const char* const sample = R"({
  "schema_version": 14,
  "type": "composed",
  "inputs": [
    {"name": "strain", "var_size": 6, "var_type": "SR2", "base_shape": [6]},
    {"name": "slip~1", "var_size": 1, "var_type": "Scalar", "base_shape": [], "sub_batch_shape": [12]}
  ],
  "outputs": [{"name": "slip", "var_size": 1, "var_type": "Scalar", "base_shape": []}],
  "segments": [
    {"kind": "forward", "package": "elastic.pt2", "inputs": [{"name": "strain"}], "outputs": [{"name": "stress"}],
     "param_inputs": ["elasticity.E"]},
    {"kind": "implicit",
     "residual_package": "r.pt2", "jacobian_package": "j.pt2", "solve_package": "s.pt2", "param_inputs": [],
     "unknowns": [{"name": "slip", "var_size": 12, "sub_batch_shape": [12], "base_shape": []}],
     "givens": [{"name": "stress", "var_size": 6, "sub_batch_shape": [], "base_shape": [6], "role": "static"},
                {"name": "slip~1", "var_size": 12, "sub_batch_shape": [12], "base_shape": [], "role": "old_state",
                 "pair": "slip"}],
     "residuals": [{"name": "slip_residual", "var_size": 12, "sub_batch_shape": [12], "base_shape": []}],
     "unknown_group_infos": [{"structure": "block", "sub_batch_shape": [12], "var_names": ["slip"]}],
     "given_group_infos": [{"structure": "dense", "sub_batch_shape": [], "var_names": ["stress", "slip~1"]}],
     "residual_group_infos": [{"structure": "block", "sub_batch_shape": [12], "var_names": ["slip_residual"]}],
     "max_substepping_level": 3,
     "predictor_package": "p.pt2",
     "predictor_inputs": [{"name": "guess"}, {"name": "slip~1"}], "predictor_outputs": [{"name": "slip"}],
     "predictor_feedback": {"input": "guess", "output": "slip", "iterations": 4, "sub_batch_shape": [12],
                            "base_shape": []}}
  ],
  "parameters": [{"name": "elasticity.E", "shape": [2], "param_base_shape": [], "values": [200000.0, 1e5]}],
  "derivatives": [["slip", "strain"]], "parameter_derivatives": [["slip", "elasticity.E"]],
  "boundary_aliases": {"inputs": {"strain": "E"}},
  "solver_config": {"atol": 1e-9, "rtol": 1e-7, "miters": 30, "ls_type": "STRONG_WOLFE", "ls_max_iters": 8,
                    "ls_cutback": 3.0, "ls_c": 0.01, "substep_del_tol": 1e-5, "solver_kind": "direct"}
})";

// An artifact in a folder of its own, removed at the end.
class Artifact {
 public:
  Artifact() {
    std::string pattern = (fs::temp_directory_path() / "neml2_capi_XXXXXX").string();
    expect(mkdtemp(pattern.data()) != nullptr, "a temporary folder");
    root = pattern;
    fs::create_directories(leaf());
    for (const char* package : {"elastic.pt2", "r.pt2", "j.pt2", "s.pt2", "p.pt2"})
      std::ofstream(leaf() / package) << "x";
  }
  ~Artifact() { fs::remove_all(root); }

  fs::path leaf() const { return root / "cpu" / "float64"; }
  void write(const std::string& text) const { std::ofstream(root / "metadata.json") << text; }
  artifact::Metadata read(const std::string& device = "cpu", const std::string& dtype = "float64") const {
    return artifact::read_metadata(root, device, dtype);
  }

  fs::path root;
};

// `action` fails with `status`, and the message contains `text`.
void expect_error(const std::string& what, std::int32_t status, const std::string& text,
                  const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    expect(error.status() == status, what + ": status " + std::to_string(error.status()) + ": " + error.what());
    expect(std::string(error.what()).find(text) != std::string::npos, what + ": '" + text + "' in: " + error.what());
    return;
  }
  expect(false, what + ": no error");
}

const artifact::ImplicitSegment& implicit_of(const artifact::Metadata& metadata) {
  return std::get<artifact::ImplicitSegment>(metadata.segments.at(1));
}

void reads_every_field() {
  const Artifact a;
  a.write(sample);
  const artifact::Metadata metadata = a.read();
  expect(metadata.leaf == a.leaf() && metadata.dtype == DType::float64, "the leaf");
  expect(metadata.inputs.size() == 2 && metadata.inputs[0].type == "SR2", "inputs");
  expect(metadata.inputs[1].point_shape() == Dims{12}, "a sub-batch shape");
  expect(metadata.parameters[0].shape == Dims{2} && metadata.parameters[0].base_shape.empty(), "a batched parameter");
  expect(metadata.parameters[0].values[1] == 1e5 && !metadata.parameters[0].dtype, "its values");
  expect(metadata.aliases.inputs.at("strain") == "E", "aliases");
  expect(metadata.solver.miters == 30 && metadata.solver.ls_type == "STRONG_WOLFE" && metadata.solver.ls_c == 0.01,
         "the solver's configuration");

  const auto& forward = std::get<artifact::ForwardSegment>(metadata.segments.at(0)).value;
  expect(forward.package == "elastic.pt2" && forward.parameters.at(0) == "elasticity.E", "the forward segment");
  const auto& implicit = implicit_of(metadata);
  expect(implicit.unknowns.at(0).block && implicit.unknowns[0].sub_batch_shape == Dims{12}, "a block group");
  expect(!implicit.givens.at(0).block && implicit.givens[0].variables.at(1).name == "slip~1", "a dense group");
  expect(implicit.max_substepping_level == 3 && implicit.substeps.at(1).partner == "slip", "substepping");
  expect(metadata.derivatives.at(0).input == "strain" && metadata.parameter_derivatives.at(0).output == "slip",
         "pairs");
  expect(implicit.predictor->inputs.at(0) == "guess" && implicit.feedback->iterations == 4, "the predictor");
}

// ---- the sample with an iterative linear solver, and with sensitivities ----

json krylov_sample() {
  json document = json::parse(sample);
  document["solver_config"]["solver_kind"] = "krylov";
  document["solver_config"]["krylov"] = {{"method", "gmres"}};
  document["segments"][1]["matvec_package"] = "r.pt2";
  return document;
}

json sensitivity_sample() {
  json document = json::parse(sample);
  document["segments"][1].update(json::parse(R"({
    "jacobian_given_package": "j.pt2", "input_sensitivity": {"kind": "krylov", "krylov": {"method": "bicgstab"}},
    "jacobian_pairs": [{"out_var": "slip", "in_var": "stress", "out_base_shape": [], "in_base_shape": [6],
                        "in_sub_batch_shape": [], "batch_independent": false}],
    "dr_dparam_package": "r.pt2", "param_sensitivity": {"kind": "direct"}, "solve_param_package": "s.pt2",
    "param_jacobian_pairs": []})"));
  return document;
}

void reads_iterative_solvers() {
  const Artifact a;
  const auto read = [&](const json& document) {
    a.write(document.dump());
    return a.read();
  };
  json document = krylov_sample();
  artifact::Metadata metadata = read(document);
  const artifact::Krylov defaults = implicit_of(metadata).krylov.value();
  expect(defaults.method == artifact::Krylov::Method::gmres && defaults.cache == artifact::Krylov::Cache::none,
         "GMRES");
  expect(defaults.restart == 40 && defaults.max_its == 1000 && defaults.rel_tol == 1e-4, "defaults");
  expect(implicit_of(metadata).matvec_package == "r.pt2" && implicit_of(metadata).solve_package.empty(), "its package");
  expect(implicit_of(metadata).preconditioner_setup_package.empty(), "no preconditioner");

  document["solver_config"]["krylov"] = json::parse(R"({"method": "bicgstab", "cache_strategy": "max_its",
    "restart": 7, "max_its": 8, "abs_tol": 1e-3, "rel_tol": 1e-2, "cache_max_its": 9})");
  document["segments"][1].update(
      json::parse(R"({"precond_setup_package": "j.pt2", "precond_apply_package": "s.pt2"})"));
  metadata = read(document);
  const artifact::Krylov all = implicit_of(metadata).krylov.value();
  expect(all.method == artifact::Krylov::Method::bicgstab && all.cache == artifact::Krylov::Cache::max_its, "BiCGStab");
  expect(all.restart == 7 && all.max_its == 8 && all.cache_max_its == 9, "its limits");
  expect(all.abs_tol == 1e-3 && all.rel_tol == 1e-2, "its tolerances");
  expect(implicit_of(metadata).preconditioner_apply_package == "s.pt2", "the preconditioner");
  document["segments"][1].erase("precond_apply_package");
  expect_error("half a preconditioner", NEML2_ERROR_ARTIFACT, "has no field 'precond_apply_package'",
               [&] { read(document); });
}

void reads_sensitivities() {
  const Artifact a;
  a.write(sensitivity_sample().dump());
  const artifact::Metadata metadata = a.read();
  const auto& given = implicit_of(metadata).given_sensitivity.value();
  expect(given.operator_package == "j.pt2" && given.solve_package.empty(), "an operator without a package to solve it");
  expect(given.krylov->method == artifact::Krylov::Method::bicgstab && given.pairs.at(0).input == "stress", "BiCGStab");
  const auto& parameter = implicit_of(metadata).parameter_sensitivity.value();
  expect(parameter.solve_package == "s.pt2" && !parameter.krylov && parameter.pairs.empty(), "one with a package");

  json document = sensitivity_sample();
  document["segments"][1].erase("param_sensitivity");
  document["boundary_aliases"]["parameters"] = {{"elasticity.E", "E"}};
  a.write(document.dump());
  expect(implicit_of(a.read()).parameter_sensitivity->solve_package == "s.pt2",
         "with a package, if nothing else is told");
  expect(a.read().aliases.parameters.at("elasticity.E") == "E", "a parameter by another name");
}

void what_a_schema_leaves_open_may_be_missing() {
  const Artifact a;
  json document = json::parse(sample);
  document.erase("solver_config");
  document.erase("boundary_aliases");
  document["segments"][1].erase("predictor_package");
  a.write(document.dump());
  const artifact::Metadata metadata = a.read();
  expect(metadata.solver.miters == 25 && metadata.solver.substep_del_tol == 1e-6, "the defaults of the solver");
  expect(metadata.aliases.inputs.empty(), "no aliases");
  expect(!implicit_of(metadata).predictor && !implicit_of(metadata).feedback, "no predictor, nothing to feed back");
}

void what_was_read_is_described() {
  const Artifact a;
  a.write(sample);
  const json told = json::parse(artifact::describe(a.read()));
  const json& substeps = told.at("segments").at(1).at("substeps");
  expect(substeps.at(0).at("role") == "fixed" && substeps.at(1).at("role") == "old_state", "the roles of givens");
  artifact::Metadata elsewhere = a.read();
  elsewhere.leaf = "/caf\xe9";
  expect_error("a path", NEML2_ERROR_UNSUPPORTED, "is not UTF-8", [&] { artifact::describe(elsewhere); });
}

void an_axis_may_be_empty() {
  const Artifact a;
  json document = json::parse(sample);
  document["inputs"][1]["sub_batch_shape"] = json::array({0});
  a.write(document.dump());
  expect(a.read().inputs[1].point_shape() == Dims{0}, "no sites");
}

// ---- kernels beside the packages ----

void kernels_tell_the_checksum_of_the_metadata() {
  const Artifact a;
  a.write(sample);
  const auto tell = [&](const std::string& kernels) {
    fs::create_directories(a.root / "kernels" / "float64");
    std::ofstream(a.root / "kernels" / "float64" / "kernels.json") << kernels;
  };
  const std::string checksum = std::to_string(neml2_capi::archive::crc32(sample));
  // The kernels' own reader refuses what is no document.
  for (const std::string& kernels : {R"({"metadata_checksum": )" + checksum + "}", std::string("{}"), std::string("[]"),
                                     std::string(R"({"metadata_checksum": null})"), std::string("not JSON")}) {
    tell(kernels);
    expect(!a.read().kernels_only, "packages are there: " + kernels);
  }
  for (const std::string& other : {std::string("7"), '"' + checksum + '"', "[" + checksum + "]"}) {
    tell(R"({"metadata_checksum": )" + other + "}");
    expect_error(other, NEML2_ERROR_ARTIFACT, "its CRC-32 is " + checksum + ", expected " + other, [&] { a.read(); });
  }
}

void kernels_may_be_all_there_is() {
  const Artifact a;
  a.write(sample);
  fs::create_directories(a.root / "kernels" / "float64");
  std::ofstream(a.root / "kernels" / "float64" / "kernels.json") << "{}";
  fs::remove(a.leaf() / "elastic.pt2");
  expect_error("a package", NEML2_ERROR_FILE, "elastic.pt2", [&] { a.read(); });
  fs::remove_all(a.leaf());
  expect(a.read().kernels_only, "no package is asked for");
}

void a_package_is_told_once() {
  const Artifact a;
  json document = json::parse(sample);
  document["segments"][1]["jacobian_package"] = "r.pt2";
  a.write(document.dump());
  expect(artifact::packages_of(a.read()) == std::vector<std::string>({"elastic.pt2", "r.pt2", "s.pt2", "p.pt2"}),
         "in the order of their segments");
}

// Each value of the document, one after another, is removed and is replaced by something of another kind.
void names_the_path_of_every_damaged_field() {
  const Artifact a;
  const json document = json::parse(sample);
  const json flat = document.flatten();
  int refused = 0;
  for (const auto& [pointer, value] : flat.items()) {
    json damaged = document;
    damaged[json::json_pointer(pointer)] = json{{"not", "expected"}};
    a.write(damaged.dump());
    std::string path = json::json_pointer(pointer).back();
    if (path.find_first_not_of("0123456789") == std::string::npos) path = "[" + path + "]";
    expect_error(pointer, NEML2_ERROR_ARTIFACT, path + " is object, expected ", [&] { a.read(); });
    ++refused;
  }
  expect(refused > 60, "many fields were damaged");

  for (const char* pointer : {"/schema_version",
                              "/type",
                              "/inputs",
                              "/outputs",
                              "/segments",
                              "/parameters",
                              "/inputs/0/name",
                              "/inputs/1/base_shape",
                              "/outputs/0/var_type",
                              "/inputs/0/var_size",
                              "/segments/0/kind",
                              "/segments/0/package",
                              "/segments/0/inputs",
                              "/segments/0/outputs/0/name",
                              "/segments/1/residual_package",
                              "/segments/1/jacobian_package",
                              "/segments/1/solve_package",
                              "/segments/1/unknowns",
                              "/segments/1/givens/1/name",
                              "/segments/1/residuals/0/sub_batch_shape",
                              "/segments/1/unknown_group_infos",
                              "/segments/1/given_group_infos/0/structure",
                              "/segments/1/residual_group_infos/0/var_names",
                              "/segments/1/max_substepping_level",
                              "/segments/1/predictor_inputs",
                              "/segments/1/predictor_feedback/iterations",
                              "/parameters/0/values",
                              "/parameters/0/shape",
                              "/parameters/0/param_base_shape",
                              "/derivatives",
                              "/solver_config/substep_del_tol",
                              "/solver_config/atol",
                              "/solver_config/solver_kind"}) {
    json damaged = document;
    const json::json_pointer field(pointer);
    damaged[field.parent_pointer()].erase(field.back());
    a.write(damaged.dump());
    expect_error(pointer, NEML2_ERROR_ARTIFACT, "has no field '" + field.back() + "'", [&] { a.read(); });
  }
}

struct Damage {
  const char* pointer;
  const char* value;
  std::int32_t status;
  const char* message;
};

void refuses(const Artifact& a, json damaged, const Damage& damage) {
  damaged[json::json_pointer(damage.pointer)] = json::parse(damage.value);
  a.write(damaged.dump());
  expect_error(damage.pointer, damage.status, damage.message, [&] { a.read(); });
}

void refuses_what_is_inconsistent() {
  const Artifact a;
  const Damage damages[] = {
      {"/schema_version", "13", NEML2_ERROR_UNSUPPORTED, "schema_version is 13. This version reads the schemas 2, 3"},
      {"/type", "\"monolithic\"", NEML2_ERROR_UNSUPPORTED, "expected 'composed'"},
      {"/segments", "[]", NEML2_ERROR_ARTIFACT, "nothing to run"},
      {"/segments/0/kind", "\"explicit\"", NEML2_ERROR_UNSUPPORTED, "segments[0].kind is 'explicit'"},
      {"/segments/0/package", "\"../elastic.pt2\"", NEML2_ERROR_ARTIFACT, "segments[0].package is '../elastic.pt2'"},
      {"/segments/0/package", "\"gone.pt2\"", NEML2_ERROR_FILE, "segments[0] of the metadata names, is missing"},
      {"/solver_config/solver_kind", "\"krylov\"", NEML2_ERROR_ARTIFACT, "has no field 'krylov'"},
      {"/inputs/1/name", "\"strain\"", NEML2_ERROR_ARTIFACT, "inputs[1].name repeats the name 'strain'"},
      {"/inputs/1/name", "\"strain\\u0000\"", NEML2_ERROR_ARTIFACT, "inputs[1].name has a zero byte"},
      {"/segments/0/package", "\"a\\u0000.pt2\"", NEML2_ERROR_ARTIFACT, "package has a zero byte. Compile the model"},
      {"/inputs/0/var_size", "7", NEML2_ERROR_ARTIFACT, "inputs[0].var_size is 7"},
      {"/inputs/0/base_shape", "[-1]", NEML2_ERROR_ARTIFACT, "inputs[0].base_shape[0] is -1"},
      {"/inputs/0/base_shape", "[9007199254740993, 9007199254740993]", NEML2_ERROR_ARTIFACT, "too large"},
      {"/inputs/0/base_shape", "[18446744073709551615]", NEML2_ERROR_ARTIFACT, "too large"},
      {"/inputs/0/base_shape", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", NEML2_ERROR_ARTIFACT, "17 axes"},
      {"/segments/1/unknown_group_infos/0/structure", "\"sparse\"", NEML2_ERROR_ARTIFACT, "'block' or 'dense'"},
      {"/segments/1/unknown_group_infos/0/var_names", "[\"slap\"]", NEML2_ERROR_ARTIFACT,
       "segments[1].unknowns does not list"},
      {"/segments/1/unknown_group_infos/0/sub_batch_shape", "[3]", NEML2_ERROR_ARTIFACT, "in a block of (3,)"},
      {"/segments/1/unknown_group_infos", "[]", NEML2_ERROR_ARTIFACT, "nothing to solve for"},
      {"/segments/1/residual_group_infos", "[]", NEML2_ERROR_ARTIFACT, "0 equations for 12 unknowns"},
      {"/segments/1/predictor_feedback/iterations", "0", NEML2_ERROR_ARTIFACT, "iterations is 0"},
      {"/segments/1/predictor_feedback/output", "\"slap\"", NEML2_ERROR_ARTIFACT, "not among the predictor's outputs"},
      {"/segments/1/max_substepping_level", "-1", NEML2_ERROR_ARTIFACT, "max_substepping_level is -1"},
      {"/parameters/0/values", "[1.0]", NEML2_ERROR_ARTIFACT, "parameters[0].values has 1 numbers"},
      {"/parameters/0/param_base_shape", "[3]", NEML2_ERROR_ARTIFACT, "does not end in it"},
      {"/parameters/0/dtype", "\"complex128\"", NEML2_ERROR_UNSUPPORTED, "parameters[0].dtype is 'complex128'"},
      {"/boundary_aliases/inputs", "{\"strain\": \"slip~1\"}", NEML2_ERROR_ARTIFACT, "repeats the name 'slip~1'"},
      {"/boundary_aliases/inputs", "[]", NEML2_ERROR_ARTIFACT, "boundary_aliases.inputs is array, expected an object"},
      {"/boundary_aliases/parameters", "{\"E\": \"y\"}", NEML2_ERROR_ARTIFACT, "not among the parameters"},
      {"/segments/0/package", "\"..\"", NEML2_ERROR_ARTIFACT, "expected the plain name of a file"},
      {"/segments/0/package", "\".\"", NEML2_ERROR_ARTIFACT, "expected the plain name of a file"},
      {"/segments/1/givens/0/role", "\"new_state\"", NEML2_ERROR_UNSUPPORTED, "expected one of 'cur_force', 'increm"},
      {"/derivatives/0", "[\"slip\"]", NEML2_ERROR_ARTIFACT, "derivatives[0] is not a pair of names"},
      {"/segments/1/predictor_feedback/input", "\"slap\"", NEML2_ERROR_ARTIFACT, "not among the predictor's inputs"},
      {"/segments/1/max_substepping_level", "31", NEML2_ERROR_ARTIFACT, "is 31, expected at most 30"},
      {"/boundary_aliases/outputs", "{\"x\": \"y\"}", NEML2_ERROR_ARTIFACT, "boundary_aliases.outputs.x renames"},
  };
  for (const Damage& damage : damages) refuses(a, json::parse(sample), damage);
}

void refuses_iterative_solvers_that_do_not_end() {
  const Artifact a;
  const Damage damages[] = {
      {"/solver_config/krylov/method", "\"cg\"", NEML2_ERROR_UNSUPPORTED, "expected one of 'bicgstab', 'gmres'"},
      {"/solver_config/krylov/cache_strategy", "\"all\"", NEML2_ERROR_UNSUPPORTED, "'chord', 'max_its', 'none'"},
      {"/solver_config/krylov/restart", "0", NEML2_ERROR_ARTIFACT, "restart is 0, expected 1 or more"},
      {"/solver_config/krylov/max_its", "1000000001", NEML2_ERROR_ARTIFACT, "expected at most 1000000000"},
      {"/solver_config/krylov/abs_tol", "\"few\"", NEML2_ERROR_ARTIFACT, "krylov.abs_tol is string"},
  };
  for (const Damage& damage : damages) refuses(a, krylov_sample(), damage);
}

void refuses_what_is_not_json() {
  const Artifact a;
  for (const std::string& text :
       {std::string(), std::string("not json"), std::string(sample).substr(0, 700),
        std::string("{\"schema_version\": 1e999}"), std::string("\xff\xfe{}"), std::string(200000, '[')}) {
    a.write(text);
    expect_error("not JSON", NEML2_ERROR_ARTIFACT, "metadata.json is not JSON", [&] { a.read(); });
  }
  // Valid JSON, but nested deeper than a recursive reader could go.
  a.write("{\"schema_version\": 14, \"type\": " + std::string(200000, '[') + std::string(200000, ']') + "}");
  expect_error("deep", NEML2_ERROR_ARTIFACT, "nested more than 200 deep", [&] { a.read(); });
  a.write("[]");
  expect_error("a list", NEML2_ERROR_ARTIFACT, "the document is array, expected an object", [&] { a.read(); });
}

void names_the_leaves_that_are_present() {
  const Artifact a;
  expect_error("no metadata", NEML2_ERROR_FILE, "metadata.json", [&] { a.read(); });
  expect_error("no folder", NEML2_ERROR_FILE, "There is no folder",
               [&] { artifact::read_metadata(a.root / "nowhere", "cpu", "float64"); });
  a.write(sample);
  expect_error("dtype", NEML2_ERROR_UNSUPPORTED, "Present: cpu/float64", [&] { a.read("cpu", "float32"); });
  expect_error("device", NEML2_ERROR_UNSUPPORTED, "not compiled for cuda/float64", [&] { a.read("cuda:0"); });
  fs::create_directories(a.root / "cuda" / "float64");
  expect_error("a package", NEML2_ERROR_FILE, "elastic.pt2", [&] { a.read("cuda:1"); });
  for (const fs::directory_entry& package : fs::directory_iterator(a.leaf()))
    fs::copy(package, a.root / "cuda" / "float64");
  expect(a.read("cuda:1").leaf == a.root / "cuda" / "float64", "a device's packages");
  fs::create_directories(a.root / "xpu" / "float64");
  expect_error("xpu leaf", NEML2_ERROR_UNSUPPORTED, "are for the device 'xpu'", [&] { a.read("xpu"); });
  expect_error("family", NEML2_ERROR_UNSUPPORTED, "no device '../cpu'", [&] { a.read("../cpu"); });
  expect_error("type", NEML2_ERROR_UNSUPPORTED, "not 'int8'", [&] { a.read("cpu", "int8"); });
}

}  // namespace

int main() {
  reads_every_field();
  reads_iterative_solvers();
  reads_sensitivities();
  what_a_schema_leaves_open_may_be_missing();
  what_was_read_is_described();
  an_axis_may_be_empty();
  kernels_tell_the_checksum_of_the_metadata();
  kernels_may_be_all_there_is();
  a_package_is_told_once();
  names_the_path_of_every_damaged_field();
  refuses_what_is_inconsistent();
  refuses_iterative_solvers_that_do_not_end();
  refuses_what_is_not_json();
  names_the_leaves_that_are_present();
  return 0;
}
