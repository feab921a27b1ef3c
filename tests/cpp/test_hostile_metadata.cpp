// Metadata that was written to keep a reader busy, to fill memory, or to be read as something else than it says.
#include <nlohmann/json.hpp>

#include "capi/artifact/metadata.h"
#include "capi/model/model.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using nlohmann::json;

namespace {

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

json variable(const std::string& name, const json& sub_batch = json::array(), const json& base = json::array()) {
  std::int64_t size = 1;
  for (const auto* shape : {&sub_batch, &base})
    for (const json& axis : *shape)
      size = static_cast<std::int64_t>(static_cast<std::uint64_t>(size) * axis.get<std::uint64_t>());
  return {{"name", name}, {"var_size", size}, {"sub_batch_shape", sub_batch}, {"base_shape", base}, {"role", "static"}};
}

json group(const std::vector<std::string>& names) {
  return {{"structure", "dense"}, {"sub_batch_shape", json::array()}, {"var_names", names}};
}

json implicit(const json& unknown) {
  const std::string name = unknown["name"];
  json residual = unknown;
  residual["name"] = name + "_residual";
  return {{"kind", "implicit"},
          {"residual_package", "r.pt2"},
          {"jacobian_package", "j.pt2"},
          {"solve_package", "s.pt2"},
          {"param_inputs", json::array()},
          {"unknowns", {unknown}},
          {"givens", {variable("g")}},
          {"residuals", {residual}},
          {"unknown_group_infos", {group({name})}},
          {"given_group_infos", {group({"g"})}},
          {"residual_group_infos", {group({name + "_residual"})}},
          {"max_substepping_level", 0}};
}

json document(const json& segment) {
  return {{"schema_version", 14},         {"type", "composed"},
          {"inputs", json::array()},      {"outputs", json::array()},
          {"parameters", json::array()},  {"segments", {segment}},
          {"derivatives", json::array()}, {"parameter_derivatives", json::array()}};
}

class Artifact {
 public:
  Artifact() {
    std::filesystem::create_directories(leaf());
    for (const char* package : {"r.pt2", "j.pt2", "s.pt2"}) write_file(leaf() / package, "x");
  }
  std::filesystem::path leaf() const { return root_ / "cpu" / "float64"; }
  artifact::Metadata read(const std::string& text) const {
    write_file(root_ / "metadata.json", text);
    return artifact::read_metadata(root_ / "metadata.json", "cpu", "float64");
  }
  void refused(const json& metadata, const std::string& field, const std::string& reason) const {
    refused_text(metadata.dump(), field, reason);
  }
  void refused_text(const std::string& text, const std::string& field, const std::string& reason) const {
    for (const std::string& word : {std::string("metadata.json"), field, reason})
      expect_error(NEML2_ERROR_ARTIFACT, word, [&] { read(text); });
  }
  // The folder of schemas 2 and 3, which has all in one.
  void refused_old(const json& metadata, const std::string& reason) const {
    const auto path = root_ / "m_meta.json";
    write_file(path, metadata.dump());
    for (const char* package : {"r.pt2", "j.pt2", "s.pt2"}) write_file(root_ / package, "x");
    expect_error(NEML2_ERROR_ARTIFACT, reason, [&] { artifact::read_metadata(path, "cpu", "float64"); });
  }

 private:
  Scratch root_;
};

void pairs_of_variables_are_bounded(const Artifact& a) {
  json inputs = json::array();
  for (int i = 0; i < 3000; ++i) inputs.push_back({{"name", join("v", i)}, {"var_type", "Scalar"}, {"var_size", 1}});
  json old = document({{"kind", "forward"},
                       {"package", "r.pt2"},
                       {"jvp_package", "j.pt2"},
                       {"inputs", inputs},
                       {"outputs", inputs},
                       {"param_inputs", json::array()}});
  old["schema_version"] = 2;
  old["device"] = "cpu";
  old["dtype"] = "float64";
  a.refused_old(old, "pairs");
  old["inputs"] = old["outputs"] = inputs;
  old["segments"][0]["inputs"] = old["segments"][0]["outputs"] = json::array();
  a.refused_old(old, "pairs");
}

void groups_are_bounded(const Artifact& a) {
  json segment = implicit(variable("u"));
  for (int i = 0; i < 100000; ++i) segment["given_group_infos"].push_back(group({}));
  a.refused(document(segment), "given_group_infos", "expected at most");
  // Many variables in one group are found by their names.
  segment = implicit(variable("u"));
  std::vector<std::string> names = {"g"};
  for (int i = 0; i < 20000; ++i) segment["givens"].push_back(variable(names.emplace_back(join("g", i))));
  segment["given_group_infos"] = json::array({group(names)});
  expect(std::get<artifact::ImplicitSegment>(a.read(document(segment).dump()).segments[0]).givens[0].variables.size() ==
             20001,
         "all are read");
}

void the_document_is_bounded(const Artifact& a) {
  a.refused_text(R"({"inputs": [)" + repeated("{},", 2000000) + "{}]}", "", "values");
  a.refused_text(repeated("[", 100000) + repeated("]", 100000), "", "nested");
  a.refused_text("{\"" + std::string(std::size_t{65} << 20, 'n') + "\":1}", "", "bytes");
  json named = document(implicit(variable(std::string(100000, 'n'))));
  a.refused(named, "unknowns[0].name", "characters");
  try {
    a.read("{\"a\": \"" + std::string(1 << 20, 'x') + "\n\"}");
  } catch (const Error& error) {
    expect(std::string(error.what()).size() < 1000, "the message does not repeat the document");
  }
}

void sizes_do_not_overflow(const Artifact& a) {
  const std::int64_t large = std::int64_t{1} << 39;
  a.refused(document(implicit(variable("u", {large}, {large}))), "unknowns[0]", "elements");
  a.refused(document(implicit(variable("u", {1 << 21, 1 << 21}, {1 << 21, 2}))), "unknowns[0]", "elements");
}

void axes_of_one_point_are_bounded(const Artifact& a) {
  const json ten(std::vector<int>(10, 1));
  a.refused(document(implicit(variable("u", ten, ten))), "unknowns[0]", "axes");
  json metadata = document(implicit(variable("u")));
  metadata["inputs"] = json::array({variable("x", ten, ten)});
  metadata["inputs"][0]["var_type"] = "Scalar";
  metadata["inputs"][0]["var_size"] = 1;
  a.refused(metadata, "inputs[0]", "axes");
}

void a_bad_option_names_the_file(const Artifact& a) {
  const json good = {{"atol", 1e-9},           {"rtol", 1e-7},      {"miters", 30}, {"ls_type", "BACKTRACKING"},
                     {"ls_max_iters", 8},      {"ls_cutback", 3.0}, {"ls_c", 0.01}, {"substep_del_tol", 1e-5},
                     {"solver_kind", "direct"}};
  const std::vector<std::pair<std::string, json>> bad = {
      {"atol", -1.0},       {"rtol", -1.0},      {"miters", -1}, {"miters", 4000000000}, {"ls_type", "GOLDEN"},
      {"ls_max_iters", -1}, {"ls_cutback", 0.5}, {"ls_c", 2.0},  {"substep_del_tol", -1}};
  for (const auto& [name, value] : bad) {
    json metadata = document(implicit(variable("u")));
    metadata["solver_config"] = good;
    metadata["solver_config"][name] = value;
    const artifact::Metadata read = a.read(metadata.dump());
    for (const std::string& word : {std::string("metadata.json"), name})
      expect_error(NEML2_ERROR_ARTIFACT, word, [&] { model::Model::load(read, {}); });
  }
}

}  // namespace

int main() {
  const Artifact a;
  pairs_of_variables_are_bounded(a);
  groups_are_bounded(a);
  the_document_is_bounded(a);
  sizes_do_not_overflow(a);
  axes_of_one_point_are_bounded(a);
  a_bad_option_names_the_file(a);
  return 0;
}
