// Packages, loaded and run on the built-in provider.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <thread>

#include "capi/packages/load.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::load_graph;
using graph::Graph;
using graph::SingularInfo;

namespace {

Vector<double> values_of(const Tensor& tensor) {
  Vector<double> values(static_cast<std::size_t>(tensor.numel()));
  tensor.copy_to(values.data());
  return values;
}

// Distinct strains: every component of every point has its own value.
Tensor strains(std::int64_t batch) {
  Tensor strain = Tensor::empty(DType::float64, {batch, 6});
  for (std::int64_t i = 0; i < strain.numel(); ++i)
    strain.data_as<double>()[i] = 1e-3 * std::sin(1.0 + static_cast<double>(i));
  return strain;
}

// The example's Young's modulus is an input: one value per point or for all, as the package wants it.
Tensor modulus(const Graph& graph, std::int64_t batch, double value) {
  const bool per_point = graph.inputs()[1].least.size() == 1;
  Tensor modulus = Tensor::empty(DType::float64, per_point ? Dims{batch} : Dims{});
  std::fill_n(modulus.data_as<double>(), modulus.numel(), value);
  return modulus;
}

// Hooke's law in Mandel notation: sigma = lambda tr(eps) I + 2 mu eps.
Vector<double> hooke(const Tensor& strain, double young, double poisson) {
  const double lambda = young * poisson / ((1 + poisson) * (1 - 2 * poisson));
  const double mu = young / (2 * (1 + poisson));
  Vector<double> stress = values_of(strain);
  for (std::size_t p = 0; p < stress.size(); p += 6) {
    const double trace = stress[p] + stress[p + 1] + stress[p + 2];
    for (std::size_t i = 0; i < 6; ++i) stress[p + i] = 2 * mu * stress[p + i] + (i < 3 ? lambda * trace : 0);
  }
  return stress;
}

void expect_close(const Vector<double>& found, const Vector<double>& wanted, double scale, const std::string& what) {
  expect(found.size() == wanted.size(), what + ": as many values");
  for (std::size_t i = 0; i < found.size(); ++i)
    expect(std::abs(found[i] - wanted[i]) <= 1e-12 * scale,
           join(what, ": value ", i, " is ", found[i], ", not ", wanted[i]));
}

void elasticity_is_hookes_law() {
  const auto graph = load_graph(example("elasticity"));
  expect(graph->inputs().size() == 2 && graph->outputs().size() == 1, "strain and modulus in, stress out");
  const auto& strain = graph->inputs()[0];
  expect(strain.dtype == DType::float64 && strain.least == Dims({2, 6}) && strain.greatest == Dims({1 << 20, 6}),
         "the source says what the strain must be");
  for (const std::int64_t batch : {1, 2, 7}) {
    const Vector<Tensor> inputs = {strains(batch), modulus(*graph, batch, 150e3)};
    graph->check(inputs);
    const auto outputs = graph->run(inputs);
    expect_close(values_of(outputs.at(0)), hooke(inputs[0], 150e3, 0.3), 1e3, join("batch ", batch));
  }
}

void inputs_that_do_not_fit_are_refused() {
  const auto graph = load_graph(example("elasticity"));
  const Tensor young = modulus(*graph, 3, 1), strain = strains(3);
  graph->check({strain, young});
  const auto refuse = [&](std::int32_t status, const std::string& text, const Vector<Tensor>& inputs) {
    expect_error(status, text, [&] { graph->check(inputs); });
  };
  refuse(NEML2_ERROR_ARGUMENT, "takes 2 inputs, and was given 1", {strain});
  refuse(NEML2_ERROR_SHAPE, "of elasticity.pt2 must have the sizes (2..1048576, 6), and has (3, 5)",
         {Tensor::zeros(DType::float64, {3, 5}), young});
  refuse(NEML2_ERROR_SHAPE, "(6,)", {Tensor::zeros(DType::float64, {6}), young});
  refuse(NEML2_ERROR_SHAPE, "(0, 6)", {Tensor::zeros(DType::float64, {0, 6}), modulus(*graph, 0, 1)});
  refuse(NEML2_ERROR_DTYPE, "of elasticity.pt2 must be float64, and is float32",
         {Tensor::zeros(DType::float32, {3, 6}), young});
  if (young.ndim() == 1) refuse(NEML2_ERROR_SHAPE, "must have the size of", {strain, modulus(*graph, 4, 1)});
  expect_error(NEML2_ERROR_ARGUMENT, "takes 2 inputs", [&] { graph->run({strain}); });
  expect_close(values_of(graph->run({strain, young})[0]), hooke(strain, 1, 0.3), 1, "the graph still works");
}

void threads_agree() {
  const auto graph = load_graph(example("viscoplastic_residual"));
  Vector<Tensor> inputs;
  for (const auto& spec : graph->inputs()) {
    Dims sizes = spec.least;
    for (std::int64_t axis = 0; axis < sizes.size(); ++axis)
      if (spec.least[axis] != spec.greatest[axis]) sizes[axis] = 5;
    inputs.push_back(Tensor::empty(spec.dtype, sizes));
    for (std::int64_t i = 0; i < inputs.back().numel(); ++i)
      inputs.back().data_as<double>()[i] = 0.1 + 0.01 * static_cast<double>(i % 17);
  }
  graph->check(inputs);
  std::vector<std::thread> threads;
  std::vector<Vector<double>> results(4);
  for (auto& result : results)
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) {
        const auto found = values_of(graph->run(inputs)[0]);
        expect(result.empty() || std::memcmp(found.data(), result.data(), 8 * found.size()) == 0,
               "a run repeats itself");
        result = found;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& result : results) expect(result == results[0], "threads get the same results");
  expect(std::isfinite(results[0][0]), "the residual is finite");
}

void concurrent_loads_are_safe() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (const char* name : {"elasticity", "elasticity_jvp", "viscoplastic_predictor"})
        expect(!load_graph(example(name))->inputs().empty(), "it loads");
    });
  for (std::thread& thread : threads) thread.join();
}

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
}

// The mappings of packages in the process.
std::size_t count_mappings() {
  const std::string maps = read_file("/proc/self/maps");
  std::size_t count = 0;
  for (std::size_t at = maps.find("neml2-"); at != std::string::npos; at = maps.find("neml2-", at + 1)) ++count;
  return count;
}

// A file descriptor is used again for the next package; the dynamic loader must not take it for the one before.
void a_package_is_not_taken_for_another() {
  const auto arity = [](const char* name) {
    const auto graph = load_graph(example(name));
    return std::pair(graph->inputs().size(), graph->outputs().size());
  };
  for (int n = 0; n < 3; ++n) {
    expect(arity("viscoplastic_predictor") == std::pair<std::size_t, std::size_t>(4, 4), "a history in, unknowns out");
    expect(arity("viscoplastic_residual") == std::pair<std::size_t, std::size_t>(2, 1), "one residual out");
    expect(arity("viscoplastic_jacobian") == std::pair<std::size_t, std::size_t>(2, 2), "an operator, too");
  }
}

void loading_again_leaves_nothing_behind() {
  std::size_t mappings = 0;
  std::ptrdiff_t descriptors = 0;
  for (int n = 0; n < 2000; ++n) {
    load_graph(example("elasticity"));
    if (n == 20) mappings = count_mappings(), descriptors = entries_of("/proc/self/fd");
  }
  expect(mappings > 0 && count_mappings() == mappings, join(count_mappings(), " mappings instead of ", mappings));
  expect(entries_of("/proc/self/fd") == descriptors, "no file stays open");
}

// A package reads AOTI_RUNTIME_CHECK_INPUTS when it first runs, for good. It then refuses a batch of one.
void a_package_may_check_its_inputs() {
  setenv("AOTI_RUNTIME_CHECK_INPUTS", "1", 1);
  const auto graph = load_graph(example("elasticity_jvp"));
  const Vector<Tensor> one = {strains(1), modulus(*graph, 1, 150e3)}, two = {strains(2), modulus(*graph, 2, 150e3)};
  graph->run(two);
  unsetenv("AOTI_RUNTIME_CHECK_INPUTS");
  expect(graph->enforces_bounds(), "the package has read the variable");
  expect_error(NEML2_ERROR_SHAPE, "(2..1048576, 6), and has (1, 6)", [&] { graph->check(one); });
  expect_error(NEML2_ERROR_RUNTIME, "dim value is too small", [&] { graph->run(one); });
  expect_close(values_of(graph->run(two)[0]), hooke(two[0], 150e3, 0.3), 1e3, "after a failure");
  expect(!load_graph(example("elasticity"))->enforces_bounds(), "other packages do not check");
}

// (n, m, m) operators: identities that are scaled by point, one of them of lower rank.
void a_singular_matrix_spoils_only_its_point() {
  const auto graph = load_graph(example("viscoplastic_solve"));
  const std::int64_t n = 5, m = graph->inputs()[1].least[1], bad = 3;
  Tensor operators = Tensor::zeros(DType::float64, {n, m, m}), residual = Tensor::empty(DType::float64, {n, m});
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t i = 0; i < m; ++i) {
      operators.data_as<double>()[(p * m + i) * m + i] = p == bad && i == 4 ? 0 : static_cast<double>(p + 2);
      residual.data_as<double>()[p * m + i] = static_cast<double>(i + 1);
    }
  SingularInfo singular;
  graph->check({operators, residual});
  const auto step = values_of(graph->run({operators, residual}, &singular).at(0));
  expect(singular == SingularInfo({0, 0, 0, 5, 0}), "LAPACK's info names the fifth pivot of the fourth matrix");
  for (std::int64_t p = 0; p < n; ++p)
    for (std::int64_t i = 0; p != bad && i < m; ++i)
      expect(std::abs(std::abs(step[static_cast<std::size_t>(p * m + i)]) -
                      static_cast<double>(i + 1) / static_cast<double>(p + 2)) < 1e-14,
             join("point ", p, " is solved"));
  operators.data_as<double>()[(bad * m + 4) * m + 4] = 1;
  graph->run({operators, residual}, &singular);
  expect(singular.empty(), "regular matrices report nothing");
}

// Nobody has checked the inputs: a solve must not read past them.
void a_solve_refuses_what_does_not_fit() {
  const auto graph = load_graph(example("viscoplastic_solve"));
  const std::int64_t m = graph->inputs()[1].least[1];
  const Tensor a = Tensor::zeros(DType::float64, {5, m, m}), b = Tensor::zeros(DType::float64, {5, m});
  const auto refused = [&](const Tensor& operators, const Tensor& right) {
    expect_error(NEML2_ERROR_RUNTIME, "a linear solve of matrices", [&] { graph->run({operators, right}); });
  };
  refused(a, Tensor::zeros(DType::float64, {4, m}));
  refused(a, Tensor::zeros(DType::float64, {5, m - 1}));
  refused(a, Tensor::zeros(DType::float32, {5, m}));
  refused(Tensor::zeros(DType::float64, {5, m, m - 1}), b);
  expect_error(NEML2_ERROR_RUNTIME, "matrix 1 of 5 is singular", [&] { graph->run({a, b}); });
}

// ---- Packages that cannot run are refused, by name, before any of their code runs
// ------------------------------------

class Broken {
 public:
  Broken(const Scratch& scratch, const std::string& package)
      : path_(scratch / "broken.pt2"), parts_(parts_of(example(package))) {}
  Broken& replace(const std::string& suffix, std::string_view from, std::string_view to) {
    const std::string before = part(parts_, suffix);
    replace_all(part(parts_, suffix), from, to);
    expect(part(parts_, suffix) != before, join(suffix, " contains ", from));
    return *this;
  }
  void refused(std::int32_t status, const std::string& text) {
    write_file(path_, zip(parts_));
    expect_error(status, text, [&] { load_graph(path_); });
    expect_error(status, "broken.pt2", [&] { load_graph(path_); });
  }

 private:
  std::filesystem::path path_;
  Parts parts_;
};

void what_is_missing_is_named(const Scratch& scratch) {
  using namespace std::literals;
  // Names of one length, with the zero that ends them.
  Broken(scratch, "elasticity")
      .replace(".wrapper.so", "aoti_torch_get_numel\0"sv, "aoti_torch_no_suchfn\0"sv)
      .refused(NEML2_ERROR_UNSUPPORTED, "aoti_torch_no_suchfn");
  Broken(scratch, "viscoplastic_residual")
      .replace(".wrapper.json", "neml2::opaque_pow", "neml2::no_such_op")
      .refused(NEML2_ERROR_UNSUPPORTED, "neml2::no_such_op");
  Broken(scratch, "elasticity")
      .replace(".wrapper.so", "\0libgcc_s.so.1\0"sv, "\0libnone_.so.1\0"sv)
      .refused(NEML2_ERROR_UNSUPPORTED, "libnone_.so.1");
}

void code_that_is_no_package_is_refused(const Scratch& scratch) {
  Broken(scratch, "elasticity")
      .replace(".wrapper.so", "AOTInductorModelContainerRunSingleThreaded",
               "AOTInductorModelContainerRunSingleThreadex")
      .refused(NEML2_ERROR_ARTIFACT, "does not export");
}

void another_machine_is_refused(const Scratch& scratch) {
  const char* const metadata = ".wrapper_metadata.json";
  Broken(scratch, "elasticity").replace(metadata, "\"cpu\"", "\"cuda\"").refused(NEML2_ERROR_UNSUPPORTED, "\"cuda\"");
#if defined(__x86_64__)
  Broken(scratch, "elasticity").replace(metadata, "x86_64", "aarch64").refused(NEML2_ERROR_UNSUPPORTED, "\"aarch64\"");
  Broken(scratch, "elasticity").replace(metadata, "AVX2", "AVX9").refused(NEML2_ERROR_UNSUPPORTED, "\"AVX9\"");
#endif
  Broken(scratch, "elasticity")
      .replace(metadata, "AOTI_CPU_ISA", "AOTI_XXX_ISA")
      .refused(NEML2_ERROR_ARTIFACT, "AOTI_CPU_ISA");
}

void a_source_that_says_too_little_is_refused(const Scratch& scratch) {
  const char* const source = ".wrapper.cpp";
  Broken(scratch, "elasticity")
      .replace(source, "check_input_1(", "check_nothing(")
      .refused(NEML2_ERROR_ARTIFACT, "input 1");
  Broken(scratch, "elasticity").replace(source, "_expected_dtype", "_dtype").refused(NEML2_ERROR_ARTIFACT, "input 0");
  Broken(scratch, "elasticity").replace(source, "AOTInductorModelBase", "Base").refused(NEML2_ERROR_ARTIFACT, "inputs");
  Broken(scratch, "elasticity")
      .replace(source, "if (6 != arg1_1_stride[0])", "if (1 != arg1_1_stride[0])")
      .refused(NEML2_ERROR_UNSUPPORTED, "input 0 with gaps between its elements");
  Broken(scratch, "elasticity")
      .replace(source, ": AOTInductorModelBase(2,", ": AOTInductorModelBase(1,")
      .refused(NEML2_ERROR_ARTIFACT, "has 2 inputs");
}

}  // namespace

int main() {
  unsetenv("AOTI_RUNTIME_CHECK_INPUTS");
  const Scratch scratch;
  elasticity_is_hookes_law();
  inputs_that_do_not_fit_are_refused();
  threads_agree();
  concurrent_loads_are_safe();
  a_package_is_not_taken_for_another();
  a_package_may_check_its_inputs();
  a_singular_matrix_spoils_only_its_point();
  a_solve_refuses_what_does_not_fit();
  what_is_missing_is_named(scratch);
  code_that_is_no_package_is_refused(scratch);
  another_machine_is_refused(scratch);
  a_source_that_says_too_little_is_refused(scratch);
  loading_again_leaves_nothing_behind();
  return 0;
}
