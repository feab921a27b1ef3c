// The table of backends: one of this program's, which edits no file of the library.
#include "capi/graph/backend.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using graph::Backend;
using graph::Source;
using graph::Wanted;

namespace {

// Doubles the numbers of its input.
class Doubling final : public graph::Graph {
 public:
  graph::Runtime runtime() const override { return graph::Runtime::builtin; }
  const std::vector<graph::InputSpec>& inputs() const override { return inputs_; }
  const std::vector<graph::OutputSpec>& outputs() const override { return outputs_; }
  bool enforces_bounds() const override { return false; }
  void check(const Vector<Tensor>&) const override {}
  void run(Handles& inputs, Handles& outputs, graph::SingularInfo*) const override {
    Tensor doubled = inputs[0]->copy();
    for (std::int64_t i = 0; i < doubled.numel(); ++i) doubled.data_as<double>()[i] *= 2;
    outputs[0] = new Tensor(std::move(doubled));
  }
  std::vector<graph::Constant> constants() const override { return {}; }
  void set_constants(const std::vector<graph::Constant>&, bool) override {}
  const graph::CallSpec& call_spec() const override { return call_spec_; }

 private:
  std::vector<graph::InputSpec> inputs_{{"x", DType::float64, {1}, {1 << 20}, {0}}};
  std::vector<graph::OutputSpec> outputs_{{"y", DType::float64, std::nullopt}};
  graph::CallSpec call_spec_;
};

Backend backend{
    .name = "doubling",
    .opens = [](const Source& source) { return source.path.extension() == ".double"; },
    .open = [](const Source&, const Wanted&) -> std::shared_ptr<graph::Graph> { return std::make_shared<Doubling>(); }};
const graph::Registration registration(backend);

void a_source_is_opened_by_the_backend_that_knows_it() {
  const Vector<Tensor> made =
      graph::open(std::filesystem::path("any.double"))->run({Tensor::zeros(DType::float64, {3})});
  expect(made.size() == 1 && made[0].sizes() == Dims({3}), "the graph runs");
}

void what_no_backend_has_is_refused() {
  expect_error(NEML2_ERROR_UNSUPPORTED, "No backend of this library can check a graph without opening it",
               [] { graph::check(std::filesystem::path("any.double")); });
  const bool has_packages = graph::first_backend()->next != nullptr;
  if (has_packages) return;
  expect_error(NEML2_ERROR_UNSUPPORTED, "it was built with: doubling",
               [] { graph::open(std::filesystem::path("any.pt2")); });
  expect_error(NEML2_ERROR_UNSUPPORTED, "can compute on tensors of a device", [] {
    graph::algebra_of({Device::Type::cuda, false, 0});
  });
  expect_error(NEML2_ERROR_UNSUPPORTED, "can declare operators",
               [] { graph::offered(&Backend::declare_operator, "declare operators"); });
  expect(graph::library_of(graph::Runtime::builtin).empty(), "there is no provider");
}

}  // namespace

int main() {
  a_source_is_opened_by_the_backend_that_knows_it();
  what_no_backend_has_is_refused();
  return 0;
}
