// Derivatives in all forms agree: blocks, along directions, transposed, from tensors and from calls.
#include "face.hpp"

using face::refuses;
using neml2::Tensor;

constexpr std::size_t n = 3;

using Block = std::array<double, 36>;  // [stress][strain]

static std::vector<Block> tangent_of(face::Step& step, int32_t order = NEML2_OUTPUT_FIRST) {
  std::vector<Block> tangent(n);
  step.call.bind_derivative("stress", "strain", tangent).set_block_order(order);
  CHECK(step.call.run(n) == NEML2_OK);
  step.call.bind_derivative("stress", "strain", nullptr);
  return tangent;
}

static face::Tensor6 product(const Block& block, const face::Tensor6& x, bool transposed) {
  face::Tensor6 y{};
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t j = 0; j < 6; ++j) y[transposed ? j : i] += block[6 * i + j] * x[transposed ? i : j];
  return y;
}

static void blocks_come_in_both_orders(const neml2::Model& model) {
  face::Step step(model, n);
  const auto tangent = tangent_of(step), other = tangent_of(step, NEML2_INPUT_FIRST);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t i = 0; i < 6; ++i)
      for (std::size_t j = 0; j < 6; ++j) CHECK(tangent[p][6 * i + j] == other[p][6 * j + i]);
}

static void tensors_and_calls_agree(const neml2::Model& model) {
  face::Step step(model, n);
  const auto tangent = tangent_of(step);
  const neml2::Result result = model.jacobian(step.arguments());
  CHECK(result.status == NEML2_OK && result.derivatives.size() == 1);
  const auto blocks = result.derivatives.at("stress", "strain").values<double>();
  CHECK(blocks.shape().size() == 3 && blocks.shape()[0] == n && face::near(blocks, tangent));
  CHECK(blocks(1, 2, 3) == blocks[36 + 15]);
  CHECK(result.outputs.at("stress").values<double>()[0] == step.state[0][0]);
}

static void products_are_those_of_the_blocks(const neml2::Model& model) {
  face::Step step(model, n);
  const auto tangent = tangent_of(step);
  const auto direction = face::strains(n);
  std::vector<face::Tensor6> forward, transposed;
  for (std::size_t p = 0; p < n; ++p) {
    forward.push_back(product(tangent[p], direction[p], false));
    transposed.push_back(product(tangent[p], direction[p], true));
  }

  const Tensor along = Tensor::copy(direction, {n, 6});
  const neml2::Result jvp = model.jvp(step.arguments(), {{"strain", along}});
  CHECK(face::near(jvp.derivatives.at("stress").values<double>(), forward, 1e-9));
  CHECK(jvp.derivatives.size() == 1);  // no derivative of the others was compiled
  const neml2::Result vjp = model.vjp(step.arguments(), {{"stress", along}});
  CHECK(face::near(vjp.derivatives.at("strain").values<double>(), transposed, 1e-9));

  std::vector<face::Tensor6> in_place(n);
  step.call.bind_tangent("strain", direction).bind_jvp("stress", in_place);
  CHECK(step.call.run(n) == NEML2_OK && face::near(in_place, forward, 1e-9));
  step.call.bind_tangent("strain", nullptr).bind_jvp("stress", nullptr);
  face::Tensor6 sum{}, expected{};
  step.call.bind_cotangent("stress", direction).bind_adjoint("strain", in_place);
  CHECK(step.call.run(n) == NEML2_OK && face::near(in_place, transposed, 1e-9));
  step.call.bind_adjoint("strain", sum, 0);
  CHECK(step.call.run(n) == NEML2_OK);
  for (const auto& point : transposed)
    for (std::size_t i = 0; i < 6; ++i) expected[i] += point[i];
  CHECK(face::near(sum, expected, 1e-9));
}

static void what_was_not_compiled_is_named(const neml2::Model& model) {
  face::Step step(model, n);
  std::vector<double> block(36 * n);
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, "X1:strain", [&] { step.call.bind_derivative("X1", "strain", block); }));
  CHECK(
      refuses(NEML2_ERROR_UNSUPPORTED, "stress:E", [&] { step.call.bind_parameter_derivative("stress", "E", block); }));
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, "E", [&] { step.call.bind_parameter_adjoint("E", block); }));
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, "parameter_derivatives",
                [&] { static_cast<void>(model.param_jacobian(step.arguments())); }));
  CHECK(refuses(NEML2_ERROR_UNSUPPORTED, "parameter_derivatives",
                [&] { static_cast<void>(model.param_vjp(step.arguments(), {})); }));
  block.resize(35);
  CHECK(refuses(NEML2_ERROR_SHAPE, "stress:strain", [&] { step.call.bind_derivative("stress", "strain", block); }));
}

// By itself an input is the unit matrix; half of that gives half of the tangent.
static void an_input_may_move_with_another(const neml2::Model& model) {
  face::Step step(model, n);
  const auto tangent = tangent_of(step);
  Block half{};
  for (std::size_t i = 0; i < 6; ++i) half[7 * i] = 0.5;
  neml2::bind_input_derivative(step.call, "strain", NEML2_INPUT, "strain", half, 0);
  const auto moved = tangent_of(step);
  for (std::size_t p = 0; p < n; ++p)
    for (std::size_t i = 0; i < 36; ++i) CHECK(std::abs(moved[p][i] - 0.5 * tangent[p][i]) <= 1e-9 * tangent[p][0]);
  neml2::bind_input_derivative(step.call, "strain", NEML2_INPUT, "strain", nullptr, 0);
  CHECK(tangent_of(step) == tangent);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain",
                [&] { neml2::bind_input_derivative(step.call, "strain", NEML2_INPUT, "strain", half, 6); }));
  CHECK(tangent_of(step) == tangent);
}

static void derivatives_of_inputs_hold_all_points(const neml2::Model& model) {
  face::Step step(model, n);
  const auto tangent = tangent_of(step);
  std::vector<Block> units(n);
  for (Block& unit : units)
    for (std::size_t i = 0; i < 6; ++i) unit[7 * i] = 1;
  const neml2::Span numbers(units);
  const auto bind = [&](std::size_t count, int64_t stride) {
    neml2::bind_input_derivative(step.call, "strain", NEML2_INPUT, "strain", neml2::Span(numbers.data(), count),
                                 stride);
  };
  bind(36 * (n - 1), 36);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { step.call.run_or_throw(n); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { static_cast<void>(step.call.run_steps(n, 1)); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { bind(35, 0); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { bind(35, 36); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { bind(36 * n, 35); }));
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain:strain", [&] { step.call.run_or_throw(n); }));
  bind(36 * n, neml2::dense);
  CHECK(tangent_of(step) == tangent);
  bind(36, 36);
  neml2::bind_input_derivative(step.call, "strain", NEML2_INPUT, "strain", nullptr, 0);
  CHECK(tangent_of(step) == tangent);
}

static void arguments_are_given_once_by_their_names(const neml2::Model& model) {
  face::Step step(model, n);
  neml2::Arguments inputs = step.arguments();
  const Tensor young = Tensor::own(std::vector<double>(n, 1e5), {n}), wrong = Tensor::zeros<double>({5});
  const neml2::Result softer = model.forward(inputs, {{"E", young}});
  CHECK(softer.status == NEML2_OK);
  CHECK(refuses(NEML2_ERROR_SHAPE, "strain", [&] { static_cast<void>(model.jvp(inputs, {{"strain", wrong}})); }));
  inputs.push_back(inputs.front());
  CHECK(refuses(NEML2_ERROR_ARGUMENT, inputs.front().name, [&] { static_cast<void>(model.forward(inputs)); }));
  inputs.resize(1, inputs.front());
  CHECK(refuses(NEML2_ERROR_MISSING, "strain", [&] { static_cast<void>(model.forward(inputs)); }));
  CHECK(refuses(NEML2_ERROR_NAME, "strian", [&] { static_cast<void>(model.forward({{"strian", young}})); }));
}

int main() {
  return face::run([] {
    const neml2::Model model(face::path("combined_hardening"));
    blocks_come_in_both_orders(model);
    tensors_and_calls_agree(model);
    products_are_those_of_the_blocks(model);
    an_input_may_move_with_another(model);
    derivatives_of_inputs_hold_all_points(model);
    what_was_not_compiled_is_named(model);
    arguments_are_given_once_by_their_names(model);
  });
}
