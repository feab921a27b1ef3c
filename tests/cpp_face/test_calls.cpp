// Calls: any array of numbers can be bound, and none is read or written beyond its end.
#include "face.hpp"

using face::refuses;
using neml2::Span;

constexpr std::size_t n = 4;

static std::vector<face::Tensor6> expected_stress(double young = 200e3) {
  std::vector<face::Tensor6> stress;
  for (const auto& strain : face::strains(n)) stress.push_back(face::hooke(strain, young));
  return stress;
}

// Run with these arrays, and compare.
template <class Strain, class Stress>
static bool gives_hookes_law(const neml2::Model& model, Strain&& strain, Stress&& stress) {
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  return call.run(n) == NEML2_OK && face::near(stress, expected_stress());
}

static void arrays_of_every_kind_are_bound(const neml2::Model& model) {
  const auto strain = face::strains(n);
  const Span<const double> flat(strain);
  std::vector<face::Tensor6> nested(n);
  CHECK(gives_hookes_law(model, strain, nested));
  std::vector<double> numbers(6 * n);
  CHECK(gives_hookes_law(model, std::vector<double>(flat.begin(), flat.end()), numbers));
  std::array<face::Tensor6, n> array{};
  CHECK(gives_hookes_law(model, flat, array));
  double c_array[n][6] = {};
  CHECK(gives_hookes_law(model, Span(flat.data(), 6 * n), c_array));
  auto pointer = std::make_unique<double[]>(6 * n);
  CHECK(gives_hookes_law(model, strain, Span(pointer.get(), 6 * n)));
}

static void a_wrong_array_is_refused_and_changes_nothing(const neml2::Model& model) {
  const auto strain = face::strains(n);
  std::vector<face::Tensor6> stress(n);
  const std::vector<float> single(6 * n);
  std::vector<double> five(5);
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  CHECK(refuses(NEML2_ERROR_DTYPE, "strain", [&] { call.bind_input("strain", single); }));
  CHECK(refuses(NEML2_ERROR_NAME, "strian", [&] { call.bind_input("strian", strain); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", stress, 5); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", stress, 0); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", five); }));
  std::vector<std::array<double, 3>> vectors(2 * n);
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", vectors); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { call.bind_input("strain", vectors); }));
  CHECK(refuses(NEML2_ERROR_NAME, "stress", [&] { call.bind_input("stress", strain); })); /* no unknown of this model */
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "first", [&] { Span(five).from(6); }));
  CHECK(call.run(n) == NEML2_OK && face::near(stress, expected_stress()));
}

static void a_run_beyond_an_array_touches_nothing(const neml2::Model& model) {
  const auto strain = face::strains(n);
  std::vector<face::Tensor6> stress(n);
  std::vector<int32_t> status(n - 1, -1);
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { call.run_or_throw(n + 1); }) ||
        refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.run_or_throw(n + 1); }));
  call.bind_report(NEML2_REPORT_STATUS, status);
  CHECK(refuses(NEML2_ERROR_SHAPE, "status", [&] { call.run_or_throw(n); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "status", [&] { neml2::Solve solve(call, n); }));
  CHECK(stress[0][0] == 0 && status[0] == -1);
  call.bind_report(NEML2_REPORT_STATUS, nullptr);
  CHECK(call.run(n) == NEML2_OK && stress[0][0] != 0);

  call.bind_input("strain", Span(strain).from(6));  // all points but the first
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { call.run_or_throw(n); }));
  CHECK(call.run(n - 1) == NEML2_OK);
  CHECK(face::near(stress[0], expected_stress()[1]));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "npoints", [&] { call.run_or_throw(-1); }));
}

static void the_last_point_needs_no_whole_stride(const neml2::Model& model) {
  const auto strain = face::strains(n);
  std::vector<double> states(19 * (n - 1) + 7 + 6, -1);  // stress begins at 7, and nothing follows the last
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", Span(states).from(7), 19);
  CHECK(call.run(n) == NEML2_OK);
  for (std::size_t p = 0; p < n; ++p)
    CHECK(face::near(Span(states.data() + 19 * p + 7, 6), face::hooke(strain[p])) && states[19 * p + 6] == -1);
  states.pop_back();
  call.bind_output("stress", Span(states).from(7), 19);
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.run_or_throw(n); }));
}

static void one_value_serves_all_points(const neml2::Model& model) {
  const auto strain = face::strains(1);
  std::vector<face::Tensor6> stress(n);
  double young = 1e5;
  neml2::Call call(model);
  call.bind_input("strain", strain, 0).bind_output("stress", stress);
  call.bind_parameter("elasticity.E", young);
  CHECK(refuses(NEML2_ERROR_SHAPE, "elasticity.E", [&] { call.run_or_throw(n); }));
  call.bind_parameter("E", young, 0);  // the same parameter: its name is unique without the prefix
  CHECK(call.run(n) == NEML2_OK && face::near(stress[n - 1], face::hooke(strain[0], young)));
  call.bind_parameter("elasticity.E", nullptr);
  CHECK(call.run(n) == NEML2_OK && face::near(stress[n - 1], face::hooke(strain[0])));
}

static void a_block_may_have_no_points(const neml2::Model& model) {
  std::vector<face::Tensor6> none;
  neml2::Call call(model);
  call.bind_input("strain", none).bind_output("stress", none);
  CHECK(call.run(0) == NEML2_OK);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { call.run_or_throw(1); }));
  call.bind_input("strain", nullptr).bind_output("stress", nullptr);
  CHECK(refuses(NEML2_ERROR_MISSING, "strain", [&] { call.run_or_throw(1); }));
}

// Steps side by side in one array, the two of a point or the points of a step; none is read or written beyond its end.
static void steps_are_no_more_than_the_arrays_hold(const neml2::Model& model) {
  constexpr std::size_t steps = 2;
  const auto strain = face::strains(n);
  std::vector<face::Tensor6> stress(n);
  neml2::Call call(model);
  int64_t made = -1;
  call.bind_input("strain", strain, 6, 6 * n / steps).bind_output("stress", stress, 6, 6 * n / steps);
  CHECK(call.run_steps(n / steps, steps, &made) == NEML2_OK && made == steps);
  CHECK(face::near(stress, expected_stress()));

  std::fill(stress.begin(), stress.end(), face::Tensor6{});
  call.bind_input("strain", strain, 6 * steps, 6).bind_output("stress", stress, 6 * steps, 6);
  CHECK(call.run_steps(n / steps, steps) == NEML2_OK && face::near(stress, expected_stress()));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { (void)call.run_steps(n / steps, steps + 1); }) ||
        refuses(NEML2_ERROR_SHAPE, "stress", [&] { (void)call.run_steps(n / steps, steps + 1); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "nsteps", [&] { (void)call.run_steps(n / steps, -1); }));
  CHECK(call.run_steps(n / steps, 0, &made) == NEML2_OK && made == 0);
  CHECK(face::near(stress, expected_stress()));
}

// One point in an array of n: what a binding that was refused must not reach.
struct Guarded {
  std::array<double, 6 * n> numbers{};
  Span<double> point() { return Span(numbers.data(), 6); }
  bool is_untouched() const { return numbers == std::array<double, 6 * n>{}; }
};

static void a_refused_step_stride_leaves_the_binding_before(const neml2::Model& model) {
  constexpr std::size_t steps = 2;
  const auto strain = face::strains(n);
  std::vector<face::Tensor6> stress(n);
  std::vector<double> block(36 * n);
  std::vector<int32_t> status(n, -1), one_status(1, -1);
  Guarded guarded;
  std::vector<double> one_block(36);
  neml2::Call call(model);
  call.bind_input("strain", strain, 6, 6 * n / steps).bind_output("stress", stress, 6, 6 * n / steps);
  call.bind_derivative("stress", "strain", block).bind_report(NEML2_REPORT_STATUS, status);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { call.bind_input("strain", guarded.point(), 6, -1); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", guarded.point(), 6, -1); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.bind_output("stress", nullptr, neml2::dense, -1); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress:strain",
                [&] { call.bind_derivative("stress", "strain", one_block, neml2::dense, -1); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "status", [&] { call.bind_report(NEML2_REPORT_STATUS, one_status, 1, -1); }));
  CHECK(call.run_steps(n / steps, steps) == NEML2_OK && face::near(stress, expected_stress()));
  CHECK(call.run(n) == NEML2_OK && face::near(stress, expected_stress()));
  CHECK(guarded.is_untouched() && one_block == std::vector<double>(36) && one_status[0] == -1);
  CHECK(block[36 * n - 1] != 0 && status == std::vector<int32_t>(n, NEML2_OK));
}

static void what_is_not_there_has_no_steps(const neml2::Model& model) {
  std::vector<face::Tensor6> none, strain = face::strains(n), stress(n);
  int64_t made = -1;
  neml2::Call call(model);
  call.bind_input("strain", none, 6, 6).bind_output("stress", none, 6, 6);
  CHECK(call.run_steps(0, 3, &made) == NEML2_OK && made == 3);
  call.bind_input("strain", strain).bind_output("stress", stress, 6, 6).bind_output("stress", nullptr, 6, 6);
  CHECK(refuses(NEML2_ERROR_MISSING, "outputs", [&] { call.run_or_throw(n); }));
}

static void reports_have_their_types(const neml2::Model& model) {
  face::Step step(model, n);
  std::vector<int32_t> status(n, -1), iterations(n);
  std::vector<double> norm(n), cut(n), history(n * 50);
  step.call.bind_report(NEML2_REPORT_STATUS, status).bind_report(NEML2_REPORT_ITERATIONS, iterations);
  step.call.bind_report(NEML2_REPORT_RESIDUAL_NORM, norm).bind_report(NEML2_REPORT_SUGGESTED_CUT, cut);
  step.call.bind_report(NEML2_REPORT_RESIDUAL_HISTORY, history);
  CHECK(refuses(NEML2_ERROR_DTYPE, "status", [&] { step.call.bind_report(NEML2_REPORT_STATUS, norm); }));
  CHECK(
      refuses(NEML2_ERROR_DTYPE, "residual norm", [&] { step.call.bind_report(NEML2_REPORT_RESIDUAL_NORM, status); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "kind", [&] { step.call.bind_report(99, status); }));
  CHECK(model.number_option("miters") == 50);
  CHECK(step.call.run(n) == NEML2_OK);
  for (std::size_t p = 0; p < n; ++p) {
    CHECK(status[p] == NEML2_OK && cut[p] == 1 && iterations[p] > 0);
    CHECK(history[50 * p + static_cast<std::size_t>(iterations[p])] == norm[p]);
  }
  history.pop_back();
  step.call.bind_report(NEML2_REPORT_RESIDUAL_HISTORY, history);
  CHECK(refuses(NEML2_ERROR_SHAPE, "residual history", [&] { step.call.run_or_throw(n); }));
}

static void a_report_counts_the_solves_of_a_rescue(neml2::Model model) {
  face::Step step(model, n);
  std::vector<int32_t> status(n, -1), solves(n, -1);
  for (auto& strain : step.strain)
    for (double& component : strain) component *= 50;
  step.time = 1;
  step.call.bind_report(NEML2_REPORT_STATUS, status).bind_report(NEML2_REPORT_RESCUE_SOLVES, solves);
  CHECK(step.call.run(n) == NEML2_NOT_CONVERGED && solves == std::vector<int32_t>(n, 0));
  model.set_option("rescue", 100);
  CHECK(step.call.run(n) == NEML2_OK && status == std::vector<int32_t>(n, NEML2_OK));
  CHECK(*std::max_element(solves.begin(), solves.end()) > 0);
  const auto result = model.forward(step.arguments());
  const auto told = result.report.rescue_solves().values<int32_t>();
  for (std::size_t p = 0; p < n; ++p) CHECK(told[p] == solves[p]);
  std::vector<double> wrong(n);
  CHECK(refuses(NEML2_ERROR_DTYPE, "rescue solves", [&] { step.call.bind_report(NEML2_REPORT_RESCUE_SOLVES, wrong); }));
}

static void arrays_are_the_hosts_unless_the_model_is_on_a_device(const neml2::Model& model) {
  neml2::Call call(model);
  std::vector<face::Tensor6> strain = face::strains(n), stress(n);
  call.bind_input("strain", strain, 6).bind_output("stress", stress, 6);
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, "memory", [&] { neml2::use_device_memory(call, nullptr); }));
  CHECK(call.run(n) == NEML2_OK && neml2::wait(call) == NEML2_OK);
  CHECK(face::near(stress, expected_stress()));
  std::vector<double> block(36);
  call.bind_derivative("stress", "strain", block);
  neml2::use_host_memory(call);  // all bindings are taken back, with how many points they hold
  CHECK(refuses(NEML2_ERROR_MISSING, "strain", [&] { call.run_or_throw(n); }));
  call.bind_input("strain", strain).bind_output("stress", stress);
  CHECK(call.run(n) == NEML2_OK && face::near(stress, expected_stress()));
}

int main() {
  return face::run([] {
    const neml2::Model model(face::path("elasticity"));
    arrays_of_every_kind_are_bound(model);
    a_wrong_array_is_refused_and_changes_nothing(model);
    a_run_beyond_an_array_touches_nothing(model);
    the_last_point_needs_no_whole_stride(model);
    one_value_serves_all_points(model);
    a_block_may_have_no_points(model);
    steps_are_no_more_than_the_arrays_hold(model);
    a_refused_step_stride_leaves_the_binding_before(model);
    what_is_not_there_has_no_steps(model);
    arrays_are_the_hosts_unless_the_model_is_on_a_device(model);
    reports_have_their_types(neml2::Model(face::path("viscoplastic")));
    a_report_counts_the_solves_of_a_rescue(neml2::Model(face::path("viscoplastic")));
  });
}
