// What an object guards moves with what guards it: to another object, to itself, by a swap, in a vector that grows.
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "face.hpp"

using face::refuses;

// A move to itself that no compiler sees.
template <class T>
static void move_to_itself(T& object) {
  T* volatile same = &object;
  object = std::move(*same);
}

struct Arrays {
  std::vector<face::Tensor6> strain = face::strains(4);
  std::vector<double> stress = std::vector<double>(24, 7.0);

  // A call whose outputs hold two points.
  neml2::Call call(const neml2::Model& model) {
    neml2::Call made(model);
    made.bind_input("strain", strain);
    made.bind_output("stress", neml2::Span(stress.data(), 12));
    return made;
  }
};

// It still evaluates two points, and refuses four.
static bool is_guarded(neml2::Call& call, Arrays& arrays) {
  arrays.stress.assign(24, 7.0);
  const bool is_refused = refuses(NEML2_ERROR_SHAPE, "stress", [&] { call.run_or_throw(4); });
  const bool is_good =
      call.run(2) == NEML2_OK && face::near(neml2::Span(arrays.stress.data(), 6), face::hooke(arrays.strain[0]));
  return is_refused && is_good && arrays.stress[12] == 7.0;
}

static void a_call_keeps_its_extents(const neml2::Model& model) {
  Arrays arrays, others;
  neml2::Call call = arrays.call(model), other = others.call(model);
  move_to_itself(call);
  CHECK(is_guarded(call, arrays));
  std::swap(call, other);
  CHECK(is_guarded(call, others) && is_guarded(other, arrays));
  std::swap(call, call);
  CHECK(is_guarded(call, others));
  call = std::move(other);
  CHECK(is_guarded(call, arrays));
  CHECK(!other && refuses(NEML2_ERROR_ARGUMENT, "call", [&] { other.run_or_throw(1); }));
  move_to_itself(other);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "call", [&] { other.run_or_throw(1); }));
  other = others.call(model);
  CHECK(is_guarded(other, others));
  std::vector<Arrays> many(9);
  std::vector<neml2::Call> calls;
  for (Arrays& each : many) calls.push_back(each.call(model));
  calls.erase(calls.begin());
  for (std::size_t i = 0; i < calls.size(); ++i) CHECK(is_guarded(calls[i], many[i + 1]));
}

static void a_solve_keeps_the_room_for_its_results(const neml2::Model& model) {
  const std::vector<face::Tensor6> strain = face::strains(2);
  const neml2::Tensor strains = neml2::Tensor::copy(strain, {2, 6});
  const auto begun = [&] { return neml2::Solve(model, {{"strain", strains}}); };
  const auto ends_well = [&](neml2::Solve& solve) {
    CHECK(!solve.next());
    const neml2::Result result = solve.end();
    return face::near(neml2::Span(result.outputs.at("stress").values<double>().data(), 6), face::hooke(strain[0]));
  };
  neml2::Solve solve = begun(), other = begun();
  move_to_itself(solve);
  CHECK(ends_well(solve));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "solve", [&] { static_cast<void>(solve.end()); }));
  solve = std::move(other);
  CHECK(ends_well(solve));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "solve", [&] { static_cast<void>(other.end()); }));

  // One of tensors and one of a call need not have as much room.
  Arrays arrays;
  neml2::Call call = arrays.call(model);
  neml2::Solve of_call(call, 2), of_tensors = begun();
  std::swap(of_call, of_tensors);
  CHECK(ends_well(of_call));
  CHECK(!of_tensors.next() && of_tensors.end().status == NEML2_OK);
  CHECK(face::near(neml2::Span(arrays.stress.data(), 6), face::hooke(arrays.strain[0])));
}

static void a_state_keeps_the_arrays_that_are_bound() {
  const neml2::Model model(face::path("viscoplastic"));
  neml2::State state(model, 2), other(model, 3);
  const double* const stress = state["stress"].data();
  move_to_itself(state);
  CHECK(state["stress"].data() == stress && state["stress"].size() == 12);
  std::swap(state, other);
  CHECK(other["stress"].data() == stress && state["stress"].size() == 18);
  state = std::move(other);
  CHECK(state["stress"].data() == stress);
  const auto is_refused = [&](auto use) { return refuses(NEML2_ERROR_ARGUMENT, "state", use); };
  CHECK(is_refused([&] { static_cast<void>(other["stress"]); }) && is_refused([&] { other.advance(); }));
  neml2::Call call(model);
  CHECK(is_refused([&] { other.bind(call); }) && is_refused([&] { static_cast<void>(other.old("stress")); }));
}

static void a_state_has_as_many_points_as_memory_holds() {
  const neml2::Model model(face::path("viscoplastic"));
  constexpr int64_t greatest = std::numeric_limits<int64_t>::max();
  for (const int64_t points : {greatest, greatest / 3, greatest / 6 + 1})
    CHECK(refuses(NEML2_ERROR_ARGUMENT, "strain", [&] { neml2::State state(model, points); }));
  for (const int64_t points : {int64_t{-1}, -greatest})
    CHECK(refuses(NEML2_ERROR_ARGUMENT, "npoints", [&] { neml2::State state(model, points); }));
  CHECK(neml2::State(model, 0)["stress"].empty());
}

static void an_operator_ends_by_its_name() {
  const char* const schema = "moves::twice(Tensor x) -> Tensor";
  const auto twice = [](neml2::OperatorCall& call) { call.output(0, call.tensor(0)); };
  std::optional<neml2::Operator> registered(std::in_place, schema, twice);
  move_to_itself(*registered);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "moves::twice", [&] { neml2::Operator again(schema, twice); }));
  registered.reset();
  neml2::Operator first(schema, twice), second("moves::other(Tensor x) -> Tensor", twice);
  std::swap(first, second);
  second = std::move(first);
  neml2::Operator again(schema, twice);  // its name is free: the other one's function took its place
}

static void a_view_is_empty_where_it_keeps_nothing() {
  auto tensor = std::make_unique<neml2::Tensor>(neml2::Tensor::zeros<double>({2, 3}));
  neml2::View<double> view = tensor->values<double>();
  tensor.reset();
  move_to_itself(view);
  CHECK(view.size() == 6 && view(1, 2) == 0);
  std::optional<neml2::View<double>> taken(std::move(view));
  CHECK(taken->size() == 6 && (*taken)(1, 2) == 0);
  CHECK(view.empty() && view.shape().empty());
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "indices", [&] { static_cast<void>(view(1, 2)); }));
  view = *taken;
  taken.reset();
  CHECK(view.size() == 6 && view(1, 2) == 0);
}

static void an_error_has_its_words_after_a_move() {
  neml2::Error error(NEML2_ERROR_NAME, "strain", "There is none.");
  const neml2::Error moved = std::move(error);
  CHECK(error.subject() == "strain" && moved.subject() == "strain");
  neml2::AggregateError several(moved, {moved, moved});
  const neml2::AggregateError taken = std::move(several);
  CHECK(several.errors().size() == 2 && taken.errors().size() == 2 && several.subject() == "strain");
}

static void handles_stay_where_they_are(neml2::Model& model) {
  move_to_itself(model);
  CHECK(model && model.inputs().size() == 1);
  neml2::Tensor tensor = neml2::Tensor::zeros<double>({6});
  move_to_itself(tensor);
  CHECK(tensor && tensor.size() == 6);
  neml2::Scheduler devices;
  devices.add(neml2::cpu, 8);
  move_to_itself(devices);
  CHECK(devices.entries().size() == 1);
  neml2::Result result = model.forward({{"strain", neml2::Tensor::zeros<double>({2, 6})}});
  move_to_itself(result.report);
  CHECK(result.report.status().size() == 2);
  neml2::Source source(face::path("elasticity"));
  neml2::Source copied = source, moved = std::move(copied);
  CHECK(neml2::Model(moved).inputs().size() == 1);
}

static void what_was_moved_from_refuses_every_use() {
  neml2::Report report, given = std::move(report);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "report", [&] { static_cast<void>(report.status()); }));
  neml2::Scheduler devices, taken = std::move(devices);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "scheduler", [&] { devices.add(neml2::cpu); }));
  neml2::Tensor tensor = neml2::Tensor::zeros<double>({6}), owner = std::move(tensor);
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "tensor", [&] { static_cast<void>(tensor.values<double>()); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "tensor", [&] { static_cast<void>(tensor.share()); }));
  const char* const nowhere = nullptr;
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "path", [&] { neml2::Model model(neml2::Source{nowhere}); }));
  neml2::System system;
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "system", [&] { system.guess({}); }));
}

int main() {
  try {
    neml2::Model model(face::path("elasticity"));
    a_call_keeps_its_extents(model);
    a_solve_keeps_the_room_for_its_results(model);
    a_state_keeps_the_arrays_that_are_bound();
    a_state_has_as_many_points_as_memory_holds();
    an_operator_ends_by_its_name();
    a_view_is_empty_where_it_keeps_nothing();
    an_error_has_its_words_after_a_move();
    handles_stay_where_they_are(model);
    what_was_moved_from_refuses_every_use();
  } catch (const neml2::Error& error) {
    std::fprintf(stderr, "thrown: %s\n", error.what());
    return 1;
  }
  return CHECK_RESULT();
}
