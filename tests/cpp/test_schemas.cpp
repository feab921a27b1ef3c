// The metadata of older schemas, read into the form that all schemas share; and the paths that lead to it.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "capi/artifact/metadata.h"
#include "capi/base/error.h"

namespace {

namespace fs = std::filesystem;
using neml2_capi::Dims;
using neml2_capi::Error;
using nlohmann::json;
namespace artifact = neml2_capi::artifact;

void expect(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what.c_str());
  std::exit(1);
}

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

// ---- samples: a forward segment with a parameter, and an implicit one ----

// What schemas 2, 3 and 7 have in common.
json document(int schema, const char* forward, const char* implicit) {
  json document = json::parse(R"({
    "type": "composed", "device": "cpu", "dtype": "float64",
    "inputs": [{"name": "strain", "var_size": 6, "var_type": "SR2"},
               {"name": "slip~1", "var_size": 1, "var_type": "Scalar"}],
    "outputs": [{"name": "slip", "var_size": 1, "var_type": "Scalar"}],
    "parameters": [{"name": "E", "dtype": "float64", "shape": [], "device": "cpu", "values": [200000.0],
                    "origin": "parameter"}]})");
  document["schema_version"] = schema;
  document["segments"] = json::array({json::parse(forward), json::parse(implicit)});
  return document;
}

// Twelve slip systems on a sub-batch axis.
json sample2() {
  return document(2, R"({
    "kind": "forward", "package": "f.pt2", "param_inputs": ["E"], "jvp_package": "fj.pt2",
    "inputs": [{"name": "strain", "var_size": 6, "var_type": "SR2"}],
    "outputs": [{"name": "stress", "var_size": 6, "var_type": "SR2"}]})",
                  R"({
    "kind": "implicit", "rhs_package": "r.pt2", "step_package": "s.pt2", "ift_package": "i.pt2",
    "unknowns": [{"name": "slip", "var_size": 12, "var_type": "Scalar", "unflattened_shape": [12]}],
    "givens": [{"name": "stress", "var_size": 6, "var_type": "SR2", "unflattened_shape": [6]},
               {"name": "slip~1", "var_size": 12, "var_type": "Scalar", "unflattened_shape": [12]}],
    "u_size": 12, "g_size": 18, "atol": 1e-9, "rtol": 1e-7, "miters": 30, "param_inputs": [],
    "predictor_package": "p.pt2",
    "predictor_inputs": [{"name": "slip~1", "var_size": 1, "var_type": "Scalar"}],
    "predictor_outputs": [{"name": "slip", "var_size": 1, "var_type": "Scalar"}]})");
}

// What schemas 3 and 7 have in common.
json packed_document(int schema) {
  return document(schema, R"({
    "kind": "forward", "package": "f.pt2", "param_inputs": ["E"], "jvp_package": "fj.pt2",
    "inputs": [{"name": "strain"}], "outputs": [{"name": "stress"}],
    "jacobian_pairs": [{"out_var": "stress", "in_var": "strain", "out_base_shape": [6], "in_base_shape": [6],
                        "in_sub_batch_shape": []}]})",
                  R"({
    "kind": "implicit", "rhs_package": "r.pt2", "step_package": "s.pt2", "ift_package": "i.pt2",
    "unknowns": [{"name": "slip", "var_size": 1, "sub_batch_shape": [], "base_shape": []},
                 {"name": "back_stress", "var_size": 6, "sub_batch_shape": [], "base_shape": [6]}],
    "givens": [{"name": "stress", "var_size": 6, "sub_batch_shape": [], "base_shape": [6]},
               {"name": "slip~1", "var_size": 1, "sub_batch_shape": [], "base_shape": []}],
    "residuals": [{"name": "slip_residual", "var_size": 1, "sub_batch_shape": [], "base_shape": []},
                  {"name": "X_residual", "var_size": 6, "sub_batch_shape": [], "base_shape": [6]}],
    "unknown_group_infos": [{"structure": "dense", "sub_batch_shape": [], "var_names": ["back_stress", "slip"]}],
    "given_group_infos": [{"structure": "dense", "sub_batch_shape": [], "var_names": ["stress"]},
                          {"structure": "dense", "sub_batch_shape": [], "var_names": ["slip~1"]}],
    "residual_group_infos": [{"structure": "dense", "sub_batch_shape": [], "var_names": ["X_residual", "slip_residual"]}],
    "param_inputs": ["E"]})");
}

json sample3() {
  json sample = packed_document(3);
  sample["segments"][1].update(json::parse(R"({
    "atol": 1e-9, "rtol": 1e-7, "miters": 30,
    "linesearch": {"type": "STRONG_WOLFE", "max_iters": 8, "cutback": 3.0, "c": 0.1}})"));
  return sample;
}

json sample7() {
  json sample = packed_document(7);
  for (const char* key : {"inputs", "outputs"})
    for (json& variable : sample[key])
      variable["base_shape"] = json::parse(variable["var_type"] == "SR2" ? "[6]" : "[]");
  sample["parameters"][0]["param_base_shape"] = json::array();
  sample["segments"][0]["jacobian_pairs"][0]["batch_independent"] = true;
  sample["segments"][1].update(json::parse(R"({
    "jacobian_pairs": [{"out_var": "back_stress", "in_var": "stress", "out_base_shape": [6], "in_base_shape": [6],
                        "in_sub_batch_shape": [], "batch_independent": false}],
    "param_ift_package": "pi.pt2",
    "param_jacobian_pairs": [{"out_var": "slip", "param": "E", "out_base_shape": [], "param_base_shape": []}]})"));
  sample.update(json::parse(R"({"derivatives": [["slip", "strain"]], "parameter_derivatives": [["slip", "E"]]})"));
  return sample;
}

// Schema 12, where an increment has no value at the other end of the step.
json sample12() {
  json sample = sample7();
  sample["schema_version"] = 12;
  sample.erase("device");
  sample.erase("dtype");
  json& implicit = sample["segments"][1];
  for (const char* key : {"rhs_package", "step_package", "ift_package", "param_ift_package"}) implicit.erase(key);
  implicit.update(json::parse(R"({
    "residual_package": "r.pt2", "jacobian_package": "s.pt2", "solve_package": "i.pt2", "max_substepping_level": 3,
    "incremental_variables": ["stress"]})"));
  implicit["givens"][0]["role"] = "incremental";
  implicit["givens"][1].update(json::parse(R"({"role": "old_state", "pair": "slip"})"));
  sample["solver_config"] = json::parse(R"({
    "atol": 1e-9, "rtol": 1e-7, "miters": 30, "ls_type": "BACKTRACKING", "ls_max_iters": 1, "ls_cutback": 2.0,
    "ls_c": 1e-3, "solver_kind": "direct"})");
  return sample;
}

// ---- a folder of its own, removed at the end ----

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "neml2_capi_XXXXXX").string();
    expect(mkdtemp(pattern.data()) != nullptr, "a temporary folder");
    root = pattern;
  }
  ~Folder() { fs::remove_all(root); }

  // Metadata and the packages that the samples name.
  fs::path write(const fs::path& folder, const std::string& name, const json& metadata) const {
    fs::create_directories(root / folder);
    for (const char* package : {"f", "fj", "r", "s", "i", "p", "pi"})
      std::ofstream(root / folder / (std::string(package) + ".pt2")) << "x";
    std::ofstream(root / folder / name) << metadata.dump();
    return root / folder / name;
  }
  fs::path write_stub(const std::string& text) const {
    std::ofstream(root / "m_aoti.i") << text;
    return root / "m_aoti.i";
  }

  fs::path root;
};

artifact::Metadata read(const fs::path& path) { return artifact::read_metadata(path, "cpu", "float64"); }

artifact::Metadata read(const json& metadata) {
  const Folder folder;
  return read(folder.write(".", "m_meta.json", metadata));
}

const artifact::ForwardSegment& forward_of(const artifact::Metadata& metadata) {
  return std::get<artifact::ForwardSegment>(metadata.segments.at(0));
}
const artifact::ImplicitSegment& implicit_of(const artifact::Metadata& metadata) {
  return std::get<artifact::ImplicitSegment>(metadata.segments.at(1));
}

// ---- the schemas ----

void reads_schema_2() {
  const artifact::Metadata metadata = read(sample2());
  expect(metadata.inputs.at(0).base_shape == Dims{6} && metadata.inputs[1].base_shape.empty(), "shapes of types");
  expect(metadata.parameters.at(0).name == "E" && metadata.parameters[0].base_shape.empty(), "a parameter");
  expect(metadata.solver.atol == 1e-9 && metadata.solver.miters == 30 && metadata.solver.ls_max_iters == 1, "solver");
  expect(metadata.derivatives.size() == 2 && metadata.parameter_derivatives.empty(), "derivatives");

  const auto& forward = forward_of(metadata);
  expect(forward.jacobian_package == "fj.pt2" && forward.pairs.at(0).matrix == 0, "one matrix of all pairs");
  const auto& implicit = implicit_of(metadata);
  expect(implicit.residual_package == "r.pt2" && implicit.step_package == "s.pt2" && implicit.step_is_taken,
         "the step");
  expect(implicit.jacobian_package.empty() && implicit.solve_package.empty(), "no operator");
  expect(implicit.unknowns.size() == 1 && !implicit.unknowns[0].block, "one flat group");
  expect(implicit.unknowns[0].variables.at(0).sub_batch_shape == Dims{12}, "its sub-batch axis");
  expect(implicit.givens.at(0).variables.at(1).point_shape() == Dims{12}, "a flat given");
  expect(implicit.residuals.at(0).variables.size() == 1, "residuals as unknowns");
  expect(implicit.predictor->inputs.at(0) == "slip~1", "the predictor");
  expect(implicit.given_sensitivity->block_package == "i.pt2", "the sensitivity");
  const artifact::Pair& pair = implicit.given_sensitivity->pairs.at(1);
  expect(pair.input == "slip~1" && pair.row == 0 && pair.column == 6 && pair.matrix == 0, "its place");
  expect(pair.output_base_shape == Dims{12} && pair.input_base_shape == Dims{12}, "all of a point");
}

void reads_schema_3() {
  const artifact::Metadata metadata = read(sample3());
  expect(metadata.solver.ls_type == "STRONG_WOLFE" && metadata.solver.ls_max_iters == 8, "the line search");
  expect(metadata.solver.ls_cutback == 3.0 && metadata.solver.ls_c == 0.1 && metadata.solver.rtol == 1e-7, "solver");
  expect(metadata.derivatives.size() == 2, "derivatives");
  expect(!forward_of(metadata).pairs.at(0).matrix && !forward_of(metadata).pairs[0].batch_independent, "own blocks");
  const auto& implicit = implicit_of(metadata);
  expect(!implicit.step_is_taken && implicit.unknowns.at(0).variables.at(0).name == "back_stress", "packing");
  const auto& pairs = implicit.given_sensitivity->pairs;
  expect(pairs.size() == 4, "all pairs");
  expect(pairs.at(1).output == "slip" && pairs[1].input == "stress" && pairs[1].row == 6 && pairs[1].matrix == 0,
         "slip");
  expect(pairs.at(2).input == "slip~1" && pairs[2].column == 0 && pairs[2].matrix == 1, "a matrix for each group");

  json blocks = sample3();
  for (const char* variable : {"unknowns", "residuals"}) {
    blocks["segments"][1][variable][0]["sub_batch_shape"] = json::array({12});
    blocks["segments"][1][variable][0]["var_size"] = 12;
  }
  for (const char* key : {"unknown_group_infos", "residual_group_infos"}) {
    json& groups = blocks["segments"][1][key];
    groups.push_back({{"structure", "block"}, {"sub_batch_shape", json::array({12})}});
    groups[1]["var_names"] = json::array({groups[0]["var_names"][1]});
    groups[0]["var_names"].erase(1);
  }
  const artifact::Metadata without = read(blocks);
  expect(!implicit_of(without).given_sensitivity && without.derivatives.empty(), "no derivatives by sub-batch sites");
  json given = sample3();
  given["segments"][1]["given_group_infos"][1]["structure"] = "block";
  expect(!implicit_of(read(given)).given_sensitivity, "nor of those that are given");
}

void reads_schema_7() {
  const artifact::Metadata metadata = read(sample7());
  expect(metadata.solver.atol == 1e-10 && metadata.solver.miters == 25, "the defaults of the solver");
  expect(metadata.derivatives.at(0).input == "strain" && metadata.parameter_derivatives.at(0).input == "E",
         "derivatives");
  expect(forward_of(metadata).pairs.at(0).batch_independent, "a constant block");
  const auto& implicit = implicit_of(metadata);
  expect(implicit.step_package == "s.pt2" && !implicit.step_is_taken && implicit.parameters.at(0) == "E", "the step");
  expect(implicit.given_sensitivity->block_package == "i.pt2", "the sensitivity");
  expect(
      implicit.given_sensitivity->pairs.at(0).output == "back_stress" && !implicit.given_sensitivity->pairs[0].matrix,
      "its pairs");
  expect(implicit.parameter_sensitivity->block_package == "pi.pt2", "the sensitivity to parameters");
  expect(implicit.parameter_sensitivity->pairs.at(0).input == "E", "its pairs");

  json plain = sample7();
  plain["segments"][1].erase("ift_package");
  plain["segments"][1].erase("param_ift_package");
  expect(!implicit_of(read(plain)).given_sensitivity && !implicit_of(read(plain)).parameter_sensitivity,
         "no derivatives");
}

// Schema 14 is tests/cpp/test_metadata.cpp's.
void reads_schema_12() {
  json sample = sample12();
  const Folder folder;
  folder.write("cpu/float64", "unused", json());
  const artifact::Metadata metadata = read(folder.write(".", "metadata.json", sample).parent_path());
  expect(metadata.solver.miters == 30 && metadata.solver.substep_del_tol == 1e-6, "the solver");
  expect(implicit_of(metadata).substeps.at(0).role == artifact::Substep::Role::increment, "an increment");
  expect(implicit_of(metadata).substeps.at(1).partner == "slip", "an old state");
  // Of schema 14, the tolerance of the step is a part.
  sample["schema_version"] = 14;
  folder.write(".", "metadata.json", sample);
  expect_error("14", NEML2_ERROR_ARTIFACT, "solver_config has no field 'substep_del_tol'", [&] { read(folder.root); });
}

// Each value is replaced by something of another kind.
void names_the_path_of_every_damaged_field() {
  for (const json& sample : {sample2(), sample3(), sample7()}) {
    const json flat = sample.flatten();
    for (const auto& [pointer, value] : flat.items()) {
      // Nobody reads these.
      if (pointer.find("/origin") != std::string::npos || pointer.find("u_size") != std::string::npos ||
          pointer.find("g_size") != std::string::npos || pointer.find("sub_batch_shape") != std::string::npos ||
          pointer.find("/parameters/0/device") != std::string::npos ||
          pointer.find("/predictor_inputs/0/var") != std::string::npos ||
          pointer.find("/predictor_outputs/0/var") != std::string::npos)
        continue;
      json damaged = sample;
      damaged[json::json_pointer(pointer)] = json{{"not", "expected"}};
      expect_error(pointer, NEML2_ERROR_ARTIFACT, " is object, expected ", [&] { read(damaged); });
    }
  }
}

void refuses_what_is_inconsistent() {
  json sample = sample2();
  sample["segments"][1]["unknowns"][0]["unflattened_shape"] = json::array({11});
  expect_error("a size", NEML2_ERROR_ARTIFACT, "segments[1].unknowns[0].var_size", [&] { read(sample); });
  sample = sample2();
  sample["segments"][1]["givens"][0]["unflattened_shape"] = json::array({2, 3});
  expect_error("a shape", NEML2_ERROR_ARTIFACT, "does not end in", [&] { read(sample); });
  sample = sample2();
  sample["segments"][1]["unknowns"] = json::array();
  expect_error("no unknowns", NEML2_ERROR_ARTIFACT, "nothing to solve for", [&] { read(sample); });
  sample = sample2();
  sample["inputs"][0]["var_type"] = "Tensor";
  expect_error("a type", NEML2_ERROR_UNSUPPORTED, "inputs[0].var_type is 'Tensor'", [&] { read(sample); });
  for (const int schema : {0, 1, 4, 13, 15}) {
    sample["schema_version"] = schema;
    expect_error("a schema", NEML2_ERROR_UNSUPPORTED, "reads the schemas 2, 3, 7, 12 and 14", [&] { read(sample); });
  }
  const Folder folder;
  const fs::path file = folder.write(".", "m_meta.json", sample3());
  fs::remove(folder.root / "s.pt2");
  expect_error("a missing package", NEML2_ERROR_FILE, "s.pt2", [&] { read(file); });
}

// ---- the paths ----

void finds_the_metadata_from_every_path() {
  const Folder folder;
  const fs::path flat = folder.write("flat", "m_meta.json", sample3());
  expect(read(flat).leaf == flat.parent_path(), "the file");
  expect(read(flat.parent_path()).leaf == flat.parent_path(), "its folder");
  expect(read(flat.parent_path() / "").leaf == flat.parent_path(), "its folder, with a slash");

  const fs::path deep = folder.write("deep/cpu", "m_meta.json", sample7());
  for (const fs::path& path : {folder.root / "deep", deep.parent_path(), deep})
    expect(read(path).leaf == deep.parent_path(), "schema 7 at " + path.string());
  expect_error("cuda", NEML2_ERROR_UNSUPPORTED, "Present: cpu",
               [&] { artifact::read_metadata(folder.root / "deep", "cuda:0", "float64"); });
  expect_error("cuda by file", NEML2_ERROR_UNSUPPORTED, "compiled for cpu/float64, not for cuda/float64",
               [&] { artifact::read_metadata(deep, "cuda", "float64"); });
  expect_error("float32", NEML2_ERROR_UNSUPPORTED, "compiled for cpu/float64, not for cpu/float32",
               [&] { artifact::read_metadata(deep, "cpu", "float32"); });

  fs::create_directories(folder.root / "flat" / "folder_meta.json");
  expect(read(flat.parent_path()).leaf == flat.parent_path(), "a folder is no metadata");
  fs::create_directories(folder.root / "empty" / "cpu");
  expect_error("a device of nothing", NEML2_ERROR_FILE, "There is no file",
               [&] { read(folder.root / "empty" / "cpu"); });
  folder.write("flat", "k_meta.json", sample3());
  expect_error("two models", NEML2_ERROR_NAME, "k_meta.json, m_meta.json", [&] { read(folder.root / "flat"); });
  expect(read(flat).solver.miters == 30, "one of two models");
  expect_error("nothing", NEML2_ERROR_FILE, "metadata.json", [&] { read(folder.root); });

  json sample = sample7();
  sample["schema_version"] = 14;
  sample["segments"].erase(1);
  const fs::path shared = folder.write("shared", "metadata.json", sample);
  folder.write("shared/cpu/float64", "unused", json());
  for (const fs::path& path : {shared, shared.parent_path(), shared.parent_path() / "cpu"})
    expect(read(path).leaf == shared.parent_path() / "cpu" / "float64", "schema 14 at " + path.string());
  fs::create_directories(shared.parent_path() / "cuda");
  expect_error("its other device", NEML2_ERROR_UNSUPPORTED, "Present: cuda",
               [&] { read(shared.parent_path() / "cuda"); });
}

void finds_the_metadata_from_a_stub() {
  const Folder folder;
  const fs::path file = folder.write("m/cpu", "m_meta.json", sample7());
  const auto stub = [&](const std::string& model, const std::string& solvers = "") {
    return folder.write_stub("[Models]\n [m]\n type = AOTIModel\n " + model + "\n []\n[]\n" + solvers);
  };
  expect(read(stub("artifact_path = /nowhere/m")).leaf == file.parent_path(), "an absolute path that is gone");
  expect(fs::equivalent(read(stub("meta = ./m/cpu/m_meta.json")).leaf, file.parent_path()), "the path of the metadata");
  fs::copy_file(file, folder.root / "m_meta.json");
  expect(artifact::read_stub(stub("meta = elsewhere/m_meta.json"), "m").artifact == folder.root / "m_meta.json",
         "a relative path that is gone");
  expect_error("itself", NEML2_ERROR_ARTIFACT, "m_aoti.i is not JSON", [&] { read(stub("artifact_path = m_aoti.i")); });

  const std::string newton = "[Solvers]\n [newton]\n type = Newton\n abs_tol = 1e-6\n max_its = 7\n []\n[]\n";
  const std::string model = "artifact_path = m\n solver = newton";
  const artifact::SolverConfig solver = read(stub(model, newton)).solver;
  expect(solver.atol == 1e-6 && solver.rtol == 1e-8 && solver.miters == 7 && solver.ls_max_iters == 1, "Newton");
  const artifact::SolverConfig unused = read(stub("artifact_path = m", newton)).solver;
  expect(unused.miters == 25, "a solver that the model does not name");
  const artifact::SolverConfig search =
      read(stub(model,
                "[Solvers]\n [newton]\n type = NewtonWithLineSearch\n linesearch_type = STRONG_WOLFE\n"
                " linesearch_cutback = 3\n []\n[]\n"))
          .solver;
  expect(search.ls_type == "STRONG_WOLFE" && search.ls_max_iters == 10 && search.ls_cutback == 3.0, "line search");

  expect_error("no solver", NEML2_ERROR_ARTIFACT, "no solver 'newton'", [&] { read(stub(model)); });
  expect_error("another", NEML2_ERROR_UNSUPPORTED, "of type 'Picard'",
               [&] { read(stub(model, "[Solvers]\n [newton]\n type = Picard\n []\n[]\n")); });
  expect_error("a text", NEML2_ERROR_ARTIFACT, "m_aoti.i",
               [&] { read(stub(model, "[Solvers]\n [newton]\n type = Newton\n max_its = few\n []\n[]\n")); });

  const fs::path two = folder.write_stub(
      "[Models]\n [m]\n type = AOTIModel\n artifact_path = m\n []\n [k]\n type = AOTIModel\n artifact_path = k\n "
      "[]\n[]\n");
  expect_error("two models", NEML2_ERROR_NAME, "Compiled models in it: m, k", [&] { read(two); });
  expect(artifact::read_stub_metadata(two, "m", "cpu", "float64").leaf == file.parent_path(), "by name");
  const std::string picard = " [picard]\n type = Picard\n []\n";
  expect(read(stub(model, newton.substr(0, 10) + picard + newton.substr(10))).solver.miters == 7, "one of two solvers");
}

}  // namespace

int main() {
  reads_schema_2();
  reads_schema_3();
  reads_schema_7();
  reads_schema_12();
  names_the_path_of_every_damaged_field();
  refuses_what_is_inconsistent();
  finds_the_metadata_from_every_path();
  finds_the_metadata_from_a_stub();
  return 0;
}
