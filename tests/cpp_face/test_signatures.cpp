// What packages say of their inputs and outputs, packages in memory, and runs without guards; the argument is the folder
// of the packages of tests/models/signatures.py.
#include <fstream>
#include <iterator>

#include "face.hpp"

using face::refuses;

static std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

static void inputs_and_outputs_are_described(const neml2::Graph& graph) {
  CHECK(graph.input(1).name == "old" && graph.input(3).name == "count");
  CHECK(graph.input(0).order == neml2::Shape({0, 1}));
  const neml2::Graph::Output stress = graph.output(0), solved = graph.output(3);
  CHECK(stress.name == "stress" && stress.dtype == NEML2_FLOAT64);
  CHECK(stress.has_sizes && stress.sizes == neml2::Shape({-1, 3}));
  CHECK(solved.name == "solved" && solved.dtype == 0);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "index", [&] { graph.output(4); }));
  CHECK(graph.call_spec().in.find("temperature") != std::string::npos);
  CHECK(graph.call_spec().out.find("solved") != std::string::npos);
}

static void guards_can_be_left_out(const std::string& folder) {
  const neml2::Graph graph(folder + "/transposed.pt2");
  const neml2::Tensor rows = neml2::Tensor::zeros<double>({3, 4}), one = neml2::Tensor::zeros<double>({1});
  for (int i = 0; i < 12; ++i) rows.values<double>()(i / 4, i % 4) = i;
  one.values<double>()(0) = 1;
  CHECK(graph.input(0).order == neml2::Shape({1, 0}));
  const auto made = graph.run({rows, one});
  CHECK(made.size() == 4 && made[2].shape()[1] == 3);
  // Nobody lays the rows out as columns: the package reads 1 instead of 4.
  const auto unguarded = graph.run({rows, one}, false);
  const auto second = [](const neml2::Tensor& tensor) { return static_cast<const double*>(tensor.data())[1]; };
  CHECK(std::abs(second(made[0]) - std::sin(4.0)) < 1e-14);
  CHECK(std::abs(second(unguarded[0]) - std::sin(1.0)) < 1e-14);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "inputs", [&] { graph.run({rows}, false); }));
}

static void a_package_may_be_in_memory(const std::string& folder) {
  std::string content = content_of(folder + "/named.pt2");
  const neml2::Graph graph(neml2::Source(content.data(), content.size()));
  CHECK(refuses(NEML2_ERROR_ARTIFACT, "the package in memory",
                [&] { neml2::Graph(neml2::Source(content.data(), content.size() / 2)); }));
  content.clear();
  inputs_and_outputs_are_described(graph);
}

int main(int argc, char** argv) {
  if (argc != 2) return 77;  // nothing to test: skipped
  return face::run([&] {
    const std::string folder = argv[1];
    a_package_may_be_in_memory(folder);
    guards_can_be_left_out(folder);
  });
}
