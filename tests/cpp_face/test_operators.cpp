// A package calls a function of the host. NEML2_TEST_OPERATORS is the folder that tests/models/operators.py fills; if
// it is not set, only what needs no package is tested.
#include <stdexcept>

#include "face.hpp"

using face::refuses;

namespace {

constexpr const char* schema =
    "neml2_capi_operators::saturate(Tensor x, float scale=1.0, bool twice=False, int order=1) -> Tensor";

void saturate(neml2::OperatorCall& call) {
  const neml2::Tensor x = call.tensor(0);
  const auto shape = x.shape();
  neml2::Tensor y = neml2::Tensor::zeros<double>({shape.begin(), shape.end()});
  const double scale = call.real(1) * (call.boolean(2) ? 2 : 1);
  const auto order = static_cast<double>(call.integer(call.find("order")));
  const auto from = x.values<const double>();
  const auto to = y.values<double>();
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double power = std::pow(from[i], order);
    to[i] = scale * power / (1 + power);
  }
  call.output(0, std::move(y));
}

void a_package_calls_a_function(const std::string& folder) {
  const std::string package = folder + "/saturate.pt2";
  const char* name = "neml2_capi_operators::saturate";
  std::vector<double> x = {0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4}, expected;
  for (const double each : x) expected.push_back(each * each / (1 + each * each) + 1);
  const neml2::Tensor input = neml2::Tensor::copy(x, {2, 4});

  std::function<void(neml2::OperatorCall&)> function = saturate;
  std::optional<neml2::Operator> registered;
  registered.emplace(schema, [&](neml2::OperatorCall& call) { function(call); });
  const neml2::Graph graph(package);
  const auto run = [&] { return graph.run({input}); };
  CHECK(face::near(run().at(0).values<const double>(), expected, 1e-15));

  function = [](neml2::OperatorCall& call) {
    CHECK(call.arguments() == 4 && call.outputs() == 1);
    CHECK(call.name(3) == "order" && call.kind(3) == NEML2_ARGUMENT_INTEGER && call.given(3));
    CHECK(refuses(NEML2_ERROR_DTYPE, "scale", [&] { call.integer(1); }));
    CHECK(refuses(NEML2_ERROR_NAME, "thrice", [&] { call.find("thrice"); }));
    throw std::domain_error("on purpose");
  };
  CHECK(refuses(NEML2_ERROR_RUNTIME, name, run));
  CHECK(neml2::detail::text(neml2_error_message) ==
        std::string("saturate.pt2: The operator ") + name + " failed: on purpose");
  function = [](neml2::OperatorCall&) { throw neml2::Error(NEML2_NOT_CONVERGED, "", "cut the step"); };
  try {
    run();
    CHECK(false);
  } catch (const neml2::Error& error) {
    CHECK(error.recoverable());
  }
  function = [](neml2::OperatorCall& call) { call.output(0, neml2::Tensor::zeros<float>({2, 4})); };
  CHECK(refuses(NEML2_ERROR_DTYPE, name, run));
  function = [](neml2::OperatorCall&) {};
  CHECK(refuses(NEML2_ERROR_RUNTIME, name, run));
  function = saturate;
  CHECK(run().size() == 1);

  neml2::Operator moved = std::move(*registered);
  registered.reset();
  CHECK(run().size() == 1);
  moved = neml2::Operator("mylib::other(Tensor x) -> Tensor", saturate);
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, name, run));
}

void it_lives_as_long_as_its_object() {
  const char* identity = "mylib::identity(Tensor x) -> Tensor";
  const auto function = [](neml2::OperatorCall& call) { call.output(0, call.tensor(0)); };
  {
    const neml2::Operator first(identity, function);
    CHECK(refuses(NEML2_ERROR_ARGUMENT, "mylib::identity", [&] { neml2::Operator(identity, function); }));
  }
  const neml2::Operator second(identity, function);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "schema", [&] { neml2::Operator("identity", function); }));
}

}  // namespace

int main() {
  return face::run([] {
    it_lives_as_long_as_its_object();
    if (const char* folder = std::getenv("NEML2_TEST_OPERATORS")) a_package_calls_a_function(folder);
  });
}
