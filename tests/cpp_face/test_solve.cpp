// Solving yourself: by reverse communication, or with a callable, whose exceptions come back.
#include "face.hpp"

using face::refuses;

constexpr std::size_t n = 3;

// Newton's method at all points at once.
static void solve(neml2::System& system) {
  const std::size_t length = static_cast<std::size_t>(system.points() * system.size());
  std::vector<double> u(length), du(length);
  std::vector<int32_t> singular(static_cast<std::size_t>(system.points()), -1);
  const std::vector<int32_t> status(singular.size(), NEML2_OK), iterations(singular.size(), 30);
  system.guess(u);
  for (int k = 0; k < 30; ++k) {
    system.step(du, u, singular);
    for (std::size_t i = 0; i < length; ++i) u[i] += du[i];
  }
  CHECK(singular == std::vector<int32_t>(n, 0));
  system.accept(u, status, iterations);
}

static bool same_outputs(const neml2::Result& result, const neml2::Result& expected) {
  for (const auto& output : expected.outputs)
    if (!face::near(result.outputs.at(output.name).values<double>(), output.tensor.values<double>(), 1e-10))
      return false;
  return expected.outputs.size() == 4;
}

static void a_loop_of_yours_gives_what_the_library_gives(const neml2::Model& model) {
  face::Step step(model, n);
  const neml2::Result expected = model.forward(step.arguments());
  neml2::Solve solving(model, step.arguments());
  int systems = 0;
  while (neml2::System system = solving.next()) {
    solve(system);
    ++systems;
  }
  const neml2::Result result = solving.end();
  CHECK(systems == 1 && result.status == NEML2_OK && same_outputs(result, expected));
  CHECK(result.report.iterations().values<int32_t>()[n - 1] == 30);
  CHECK(!solving);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "solve", [&] { solving.next(); }));
}

static void a_call_can_be_solved(const neml2::Model& model) {
  face::Step step(model, n);
  CHECK(step.call.run(n) == NEML2_OK);
  const auto expected = step.state;
  for (auto& state : step.state) state.fill(-1);
  neml2::Solve solving(step.call, n);
  while (neml2::System system = solving.next()) solve(system);
  CHECK(step.state[0][0] == -1);  // not before the end
  const neml2::Result result = solving.end();
  CHECK(result.status == NEML2_OK && result.outputs.size() == 0 && !result.report);
  CHECK(face::near(step.state, expected, 1e-10));
}

static void a_system_is_consistent(const neml2::Model& model) {
  face::Step step(model, n);
  neml2::Solve solving(model, step.arguments());
  neml2::System system = solving.next();
  CHECK(system.points() == n && system.size() == 19 && system.layout().size() == 4);
  int64_t numbers = 0;
  for (const auto& at : system.layout()) numbers += at.pieces * at.piece_size;
  CHECK(numbers == 19);

  std::vector<double> u(19 * n), du(u), r(u), y(u), a(19 * 19 * n);
  system.guess(u);
  system.residual(r, u);
  system.step(du, u);
  system.matvec(y, u, du);  // = -r
  for (double& value : y) value = -value;
  CHECK(face::near(y, r, 1e-10));
  system.jacobian(a, u);
  for (std::size_t i = 0; i < 19; ++i) {
    double product = 0;
    for (std::size_t j = 0; j < 19; ++j) product -= a[19 * i + j] * du[j];
    CHECK(std::fabs(product - y[i]) < 1e-9);
  }

  std::vector<double> longer(19 * n + 1);
  const std::vector<int32_t> short_status(n - 1);
  CHECK(refuses(NEML2_ERROR_SHAPE, "u", [&] { system.guess(longer); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "r", [&] { system.residual(a, u); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "a", [&] { system.jacobian(u, u); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "status", [&] { system.accept(u, short_status); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "system", [&] { static_cast<void>(solving.end()); }));
}  // and an abandoned solve is freed

static void a_callable_may_solve(const neml2::Model& model) {
  face::Step step(model, n);
  int systems = 0;
  const neml2::Result result = model.forward_with(step.arguments(), [&](neml2::System& system) {
    solve(system);
    ++systems;
  });
  CHECK(systems == 1 && same_outputs(result, model.forward(step.arguments())));
  CHECK(same_outputs(model.forward_with(step.arguments(), solve), result));  // a function, too
}

struct Stop {
  int reason;
};

static void what_a_callable_throws_comes_back(const neml2::Model& model) {
  face::Step step(model, n);
  try {
    static_cast<void>(model.forward_with(step.arguments(), [](neml2::System&) { throw Stop{42}; }));
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const Stop& stop) {
    CHECK(stop.reason == 42);
  }
  CHECK(refuses(NEML2_ERROR_SHAPE, "u", [&] {
    static_cast<void>(model.forward_with(step.arguments(), [](neml2::System& system) { system.guess({}); }));
  }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "system", [&] {  // it did not accept
    static_cast<void>(model.forward_with(step.arguments(), [](neml2::System&) {}));
  }));
  CHECK(step.call.run(n) == NEML2_OK);
}

int main() {
  return face::run([] {
    const neml2::Model model(face::path("viscoplastic"));
    a_loop_of_yours_gives_what_the_library_gives(model);
    a_call_can_be_solved(model);
    a_system_is_consistent(model);
    a_callable_may_solve(model);
    what_a_callable_throws_comes_back(model);
  });
}
