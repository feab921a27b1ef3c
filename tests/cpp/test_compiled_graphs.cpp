// Traps that need graphs of their own: integer kernels, OpenMP regions, static batches, several dynamic sizes.
//
// NEML2_TEST_GRAPHS names the folder that tests/models/graphs.py filled; without it there is nothing to test.
#include <dlfcn.h>

#include <atomic>
#include <thread>
#include <vector>

#include "capi/packages/load.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using aoti::load_graph;
using graph::Graph;

namespace {

std::filesystem::path compiled(const std::string& name) {
  return std::filesystem::path(std::getenv("NEML2_TEST_GRAPHS")) / (name + ".pt2");
}

Tensor integers(std::int64_t count, std::int64_t value) {
  Tensor tensor = Tensor::empty(DType::int64, {count});
  for (std::int64_t i = 0; i < count; ++i) tensor.data_as<std::int64_t>()[i] = value;
  return tensor;
}

Tensor ones(const Dims& sizes) {
  Tensor tensor = Tensor::empty(DType::float64, sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<double>()[i] = 1;
  return tensor;
}

// Half of the threads divide by zero, which must fail, the others do not, which must succeed.
void divide_on_threads(const std::vector<std::shared_ptr<const Graph>>& graphs) {
  std::atomic<int> lost = 0, wrong = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const bool by_zero = t % 2 == 1;
      const Vector<Tensor> inputs = {integers(200000, 7), integers(200000, by_zero ? 0 : 2)};
      for (int n = 0; n < 200; ++n) {
        try {
          const auto out = graphs[t % graphs.size()]->run(inputs);
          if (by_zero) ++lost;
          if (out[0].data_as<std::int64_t>()[9] != 3) ++wrong;
        } catch (const Error& error) {
          if (!by_zero || std::string(error.what()).find("ZeroDivisionError") == std::string::npos) ++wrong;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  expect(lost == 0, join(lost.load(), " divisions by zero were not noticed"));
  expect(wrong == 0, join(wrong.load(), " runs failed for the fault of another thread"));
}

// What only solves A x = b is not run as a package: this one must not be taken for such.
void a_solve_with_the_transpose_is_one() {
  const auto graph = load_graph(compiled("transposed_solve"));
  const std::int64_t points = 5;
  Tensor a = Tensor::empty(DType::float64, {points, 3, 3}), b = ones({points, 3});
  for (std::int64_t i = 0; i < a.numel(); ++i) a.data_as<double>()[i] = static_cast<double>((i * i) % 7 + 1);
  const Tensor x = graph->run({a, b})[0].row_major();
  for (std::int64_t p = 0; p < points; ++p)
    for (std::int64_t i = 0; i < 3; ++i) {
      double product = 0;
      for (std::int64_t j = 0; j < 3; ++j)
        product += a.data_as<double>()[(p * 3 + j) * 3 + i] * x.data_as<double>()[p * 3 + j];
      expect(std::abs(product - 1) < 1e-12, join("equation ", i, " of point ", p, " gives ", product));
    }
}

void integer_graphs_do_not_disturb_each_other(const Scratch& scratch) {
  const auto graph = load_graph(compiled("integer_division"));
  divide_on_threads({graph});
  // The same code once more in the process: another content is another image.
  Parts parts = parts_of(compiled("integer_division"));
  part(parts, ".wrapper.so") += '\0';
  write_file(scratch / "again.pt2", zip(parts));
  divide_on_threads({graph, load_graph(scratch / "again.pt2")});
}

// OpenMP belongs to the host: a package neither loads it nor starts a thread.
void parallel_regions_stay_on_the_calling_thread() {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  const auto graph = load_graph(compiled("large_batch"));
  expect(!dlopen("libgomp.so.1", RTLD_NOW | RTLD_NOLOAD), "OpenMP is not in the process");
  const auto before = threads();
  const auto out = graph->run({ones({100000, 6})});
  expect(out[0].data_as<double>()[599999] == 2, "1 * 1 + 1");
  expect(threads() == before, "no thread was started");
}

void a_static_batch_is_a_fixed_size() {
  const auto graph = load_graph(compiled("static_batch"));
  expect(graph->inputs()[0].least == Dims({2, 3}) && graph->inputs()[0].greatest == Dims({2, 3}), "two points");
  graph->check({ones({2, 3})});
  expect(graph->run({ones({2, 3})})[0].data_as<double>()[5] == 2, "doubled");
  expect_error(NEML2_ERROR_SHAPE, "(2, 3), and has (1, 3)", [&] { graph->check({ones({1, 3})}); });
}

void sizes_that_must_agree_are_compared() {
  const auto graph = load_graph(compiled("two_batches"));
  const Vector<Tensor> inputs = {ones({4, 3}), ones({5, 3}), ones({4, 3})};
  graph->check(inputs);
  const auto out = graph->run(inputs);
  expect(out[0].sizes() == Dims({4, 5, 3}) && out[0].data_as<double>()[59] == 2, "1 * 1 + 1");
  expect_error(NEML2_ERROR_SHAPE, "Axis 0 of input 2", [&] { graph->check({inputs[0], inputs[1], ones({5, 3})}); });
}

void a_graph_may_have_no_inputs() {
  const auto graph = load_graph(compiled("no_inputs"));
  graph->check({});
  expect(graph->run({})[0].data_as<double>()[2] == 7, "the constant");
}

// Outputs may be the input itself, or views: they come as they are, and live as long as somebody looks at them.
void outputs_may_be_inputs_and_views() {
  const auto graph = load_graph(compiled("aliases"));
  Vector<Tensor> inputs = {ones({4, 3})};
  for (std::int64_t i = 0; i < 12; ++i) inputs[0].data_as<double>()[i] = static_cast<double>(i);
  const Vector<Tensor> first = graph->run(inputs);
  const void* given = inputs[0].data();
  expect(first[0].data() == given, "the first output is the input");
  expect(first[2].storage().data() == first[3].storage().data(), "the last two share their storage");
  inputs.clear();
  for (int n = 0; n < 3; ++n) graph->run({ones({4, 3})});
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t k = 0; k < 3; ++k) {
      const auto value = static_cast<double>(3 * i + k);
      expect(first[0].copy().data_as<double>()[3 * i + k] == value, "the input is kept by the output");
      expect(k == 0 || first[1].copy().data_as<double>()[2 * i + k - 1] == value, "a view has its own strides");
      expect(first[3].copy().data_as<double>()[4 * k + i] == 2 * value, "the transpose");
    }
}

}  // namespace

int main() {
  constexpr int nothing_to_test = 77;
  if (!std::getenv("NEML2_TEST_GRAPHS")) return nothing_to_test;
  unsetenv("AOTI_RUNTIME_CHECK_INPUTS");
  const Scratch scratch;
  parallel_regions_stay_on_the_calling_thread();  // first: a thread that was joined may still be counted
  integer_graphs_do_not_disturb_each_other(scratch);
  a_static_batch_is_a_fixed_size();
  sizes_that_must_agree_are_compared();
  a_graph_may_have_no_inputs();
  outputs_may_be_inputs_and_views();
  a_solve_with_the_transpose_is_one();
  return 0;
}
