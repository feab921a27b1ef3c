// What a model says of itself, its parameters and its options; and one package alone.
#include <filesystem>
#include <fstream>

#include "face.hpp"

using face::refuses;

static void variables_are_listed() {
  const neml2::Model model(face::path("combined_hardening"));
  CHECK(model.dtype() == NEML2_FLOAT64);
  CHECK(model.inputs().size() == 8 && model.outputs().size() == 4 && model.parameters().size() == 2);
  const neml2::Variable strain = model.variable(NEML2_INPUT, "strain");
  CHECK(strain.name == "strain" && strain.type == "SR2" && strain.size() == 6 && strain.sub_ndim == 0);
  CHECK(model.variables(NEML2_UNKNOWN).size() == 4);
  CHECK(refuses(NEML2_ERROR_NAME, "strian", [&] { model.variable(NEML2_INPUT, "strian"); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "kind", [&] { model.variables(9); }));

  const auto derivatives = model.derivatives();
  CHECK(derivatives.size() == 1 && derivatives[0].output == "stress" && derivatives[0].variable == "strain");
  CHECK(derivatives[0].batched && derivatives[0].shape == neml2::Shape({6, 6}));
  CHECK(model.derivatives(NEML2_PARAMETER).empty());
}

static void histories_are_listed() {
  const neml2::Model model(face::path("viscoplastic"));
  const auto histories = model.histories();
  CHECK(histories.size() == 6);
  for (const neml2::History& history : histories) {
    CHECK(history.age == 1);
    if (history.input == "t~1") CHECK(history.output.empty() && history.current == "t");
    if (history.input == "X1~1") CHECK(history.output == "X1" && history.current.empty());
  }
}

static void a_document_describes_the_model() {
  const std::string path = face::path("elasticity"), text = neml2::Model(path).describe();
  CHECK(text.find("\"elasticity.E\"") != std::string::npos && text.back() == '}');
  CHECK(text == neml2::describe(path));
  CHECK(neml2::Model(path).checksum().size() == 64);
}

static void bounds_are_listed_and_hold() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / "neml2_capi_test_models_bounds";
  fs::remove_all(folder);
  fs::copy(face::path("elasticity"), folder, fs::copy_options::recursive);
  std::ofstream(folder / "bounds.json")
      << R"({"version": 1, "bounds": [{"variable": "strain", "kind": "validity", "lower": [-0.05], "upper": [null]}]})";
  neml2::Model model(folder.string());
  fs::remove_all(folder);
  const auto bounds = model.bounds();
  CHECK(bounds.size() == 1 && bounds[0].variable == "strain" && !bounds[0].physical);
  CHECK(bounds[0].lower == std::vector<double>(6, -0.05) && bounds[0].upper[5] == INFINITY);
  CHECK(neml2::Model(face::path("elasticity")).bounds().empty());

  model.set_option("bounds", "fail");
  auto strain = face::strains(3);
  strain[1][4] = -0.06;
  std::vector<face::Tensor6> stress(3);
  std::vector<int32_t> status(3);
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress).bind_report(NEML2_REPORT_STATUS, status);
  CHECK(call.run(3) == NEML2_OUT_OF_BOUNDS);
  CHECK(status == std::vector<int32_t>({NEML2_OK, NEML2_OUT_OF_BOUNDS, NEML2_OK}));
  CHECK(stress[1] == face::Tensor6{} && stress[2] != face::Tensor6{});
}

static void a_stub_names_its_model() {
  CHECK(face::is_elastic(neml2::Model(neml2::Source(face::path("elasticity_aoti.i")).name("elasticity"))));
  CHECK(refuses(NEML2_ERROR_NAME, "plasticity",
                [] { neml2::Model(neml2::Source(face::path("elasticity_aoti.i")).name("plasticity")); }));
}

static void parameters_are_read_and_set() {
  neml2::Model model(face::path("elasticity"));
  const neml2::Tensor young = model.parameter("elasticity.E");
  CHECK(young.values<double>()[0] == 200e3);
  model.set_parameter("elasticity.E", 1e5);
  CHECK(young.values<double>()[0] == 1e5 && face::is_elastic(model, 1e5));
  young.values<double>()[0] = 3e5;
  CHECK(face::is_elastic(model, 3e5));
  model.set_parameter("elasticity.E", neml2::Tensor::own(std::vector<double>{1e5, 2e5, 3e5}, {3}));
  CHECK(model.parameter("E").shape()[0] == 3);
  CHECK(refuses(NEML2_ERROR_NAME, "elasticity.nu", [&] { model.set_parameter("elasticity.nu", 0.3); }));
}

static void options_have_bounds() {
  neml2::Model model(face::path("viscoplastic"));
  bool seen = false;
  for (const neml2::Option& option : model.options()) {
    if (option.name == "ls_type") seen = option.choices.find("STRONG_WOLFE") != std::string::npos;
    if (option.name == "miters") CHECK(option.choices.empty() && option.least < option.greatest);
  }
  CHECK(seen);
  model.set_option("miters", 7);
  model.set_option("ls_type", "STRONG_WOLFE");
  CHECK(model.number_option("miters") == 7 && model.text_option("ls_type") == "STRONG_WOLFE");
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "chunk", [&] { model.set_option("chunk", -1); }));
  CHECK(refuses(NEML2_ERROR_NAME, "color", [&] { model.set_option("color", "red"); }));
}

static void the_version_is_that_of_the_header() {
  CHECK(neml2::abi_version() == NEML2_ABI_VERSION && neml2::version()[0] != '\0');
}

static void a_graph_runs_alone() {
  const neml2::Graph graph(face::path("elasticity/cpu/float64/elasticity.pt2"));
  CHECK(graph.input_count() == 2 && graph.output_count() == 1);
  CHECK(graph.constants().empty());
  const neml2::Graph::Input input = graph.input(0);
  CHECK(input.dtype == NEML2_FLOAT64 && input.least.size() == 2 && input.greatest[1] == 6);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "index", [&] { graph.input(2); }));

  const auto strain = face::strains(5);
  const neml2::Tensor strains = neml2::Tensor::copy(strain, {5, 6});
  neml2::Shape shape(graph.input(1).least.size(), 1);
  shape[0] = 5;
  const neml2::Tensor young = neml2::Tensor::own(std::vector<double>(5, 200e3), shape);
  const std::vector<neml2::Tensor> outputs = graph.run({strains, young});
  CHECK(outputs.size() == 1 && outputs[0].shape()[0] == 5);
  const double* stress = static_cast<const double*>(outputs[0].data());
  const auto strides = outputs[0].strides();
  for (int p = 0; p < 5; ++p)
    CHECK(std::fabs(stress[p * strides[0]] - face::hooke(strain[static_cast<std::size_t>(p)])[0]) < 1e-9);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "inputs", [&] { graph.run({strains}); }));
}

int main() {
  return face::run([] {
    variables_are_listed();
    histories_are_listed();
    a_document_describes_the_model();
    bounds_are_listed_and_hold();
    a_stub_names_its_model();
    parameters_are_read_and_set();
    options_have_bounds();
    the_version_is_that_of_the_header();
    a_graph_runs_alone();
  });
}
