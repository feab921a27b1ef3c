// Points that are spread over the devices of a scheduler: the same results, and errors of several sub-batches.
#include <cstring>

#include "face.hpp"

using face::refuses;
using neml2::cpu;
using neml2::cuda;
using neml2::Scheduler;
using neml2::Source;

constexpr std::size_t n = 10;

static bool says(const neml2::Error& error, const char* text) { return std::strstr(error.what(), text) != nullptr; }

// Whether it throws NEML2_ERROR_ARGUMENT.
template <class Request>
static bool is_refused(Request&& request) {
  try {
    request();
  } catch (const neml2::Error& error) {
    return error.status() == NEML2_ERROR_ARGUMENT && error.what()[0] != '\0';
  }
  return false;
}

static void what_was_added_is_listed() {
  Scheduler devices;
  CHECK(devices.entries().empty());
  devices.add(cpu, 512).add(cuda(0), 4096, 8192, 2.0, NEML2_RUNTIME_LIBTORCH);
  const auto entries = devices.entries();
  CHECK(entries.size() == 2);
  CHECK(entries[0].device.type == NEML2_DEVICE_CPU && entries[0].runtime == NEML2_RUNTIME_AUTO &&
        entries[0].batch_size == 512);
  CHECK(entries[0].capacity == 1024 && entries[0].priority == 1.0);
  CHECK(entries[1].device.type == NEML2_DEVICE_CUDA && entries[1].runtime == NEML2_RUNTIME_LIBTORCH &&
        entries[1].batch_size == 4096);
  CHECK(entries[1].capacity == 8192 && entries[1].priority == 2.0);
}

static void what_cannot_be_added_is_refused_and_changes_nothing() {
  Scheduler devices;
  devices.add(cpu, 4);
  CHECK(is_refused([&] { devices.add(cpu, 4); }));
  CHECK(is_refused([&] { devices.add(cuda(0), 8, 4); }));
  CHECK(is_refused([&] { devices.add(cuda(0), -1); }));
  CHECK(is_refused([&] { devices.add(cuda(0), 8, 16, std::nan("")); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "device", [&] { devices.add({3, 0}, 8); }));
  CHECK(is_refused([] { neml2::Model(Source(face::path("elasticity")).scheduler(Scheduler())); }));
  CHECK(devices.entries().size() == 1);
}

static void a_process_keeps_the_device_of_its_rank() {
  for (const int64_t rank : {0, 1, 2, 3}) {
    Scheduler devices;
    devices.add(cuda(0), 8).add(cuda(1), 8).keep_rank(rank, 4);
    CHECK(devices.entries().size() == 1 && devices.entries()[0].device.index == rank % 2);
  }
  Scheduler devices;
  devices.add(cuda(0), 8).add(cuda(1), 8);
  CHECK(is_refused([&] { devices.keep_rank(0, 1); }));
  CHECK(is_refused([&] { devices.keep_rank(2, 2); }));
  CHECK(devices.entries().size() == 2);
}

static void a_scheduler_moves_and_is_not_needed_after_the_load() {
  Scheduler devices;
  devices.add(cpu, 3);
  Scheduler moved(std::move(devices));
  CHECK(!devices && moved.entries().size() == 1);
  CHECK(is_refused([&] { devices.add(cpu, 3); }));
  CHECK(is_refused([&] { Source("elasticity").scheduler(devices); }));
  const neml2::Model model(Source(face::path("elasticity")).scheduler(moved));
  Scheduler taken(moved.release());
  taken.keep_rank(0, 1);
  taken = Scheduler();
  CHECK(face::is_elastic(model));
}

// The states of one step, bit by bit, of a model that was loaded one way or another.
static auto states(const neml2::Model& model) {
  face::Step step(model, n);
  CHECK(step.call.run(n) == NEML2_OK);
  return step.state;
}

static void results_do_not_depend_on_the_sub_batches() {
  const auto expected = states(neml2::Model(face::path("viscoplastic")));
  for (const int64_t batch_size : {0, 1, 3, 4, 10, 11}) {
    const neml2::Model model(Source(face::path("viscoplastic")).scheduler(Scheduler().add(cpu, batch_size)));
    CHECK(states(model) == expected);
    CHECK(points_evaluated(model, 0) == static_cast<int64_t>(n));
    face::Step step(model, n);
    const auto stress = model.forward(step.arguments()).or_throw().outputs.at("stress").values<double>();
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t i = 0; i < 6; ++i) CHECK(stress(p, i) == expected[p][i]);
    CHECK(points_evaluated(model, 0) == static_cast<int64_t>(2 * n));
  }
  const neml2::Model model(Source(face::path("viscoplastic")).scheduler(Scheduler().add(cpu, 3)));
  CHECK(is_refused([&] { points_evaluated(model, 1); }));
}

static void a_stub_names_its_model() {
  Scheduler devices;
  devices.add(cpu, 2);
  CHECK(face::is_elastic(neml2::Model(Source(face::path("elasticity_aoti.i")).name("elasticity").scheduler(devices))));
}

// Points 1 and 7 fail, in the sub-batches of points 0 to 3 and 4 to 7.
static void expect_two(const neml2::AggregateError& error) {
  CHECK(error.recoverable() && error.status() >= NEML2_NOT_CONVERGED && says(error, "2 of 10"));
  CHECK(error.errors().size() == 2);
  for (const neml2::Error& one : error.errors()) CHECK(one.recoverable() && one.status() >= NEML2_NOT_CONVERGED);
  CHECK(says(error.errors().at(0), "points 0 to 3") && says(error.errors().at(1), "points 4 to 7"));
}

static void several_failed_sub_batches_are_one_error_of_several() {
  const neml2::Model model(Source(face::path("viscoplastic")).scheduler(Scheduler().add(cpu, 4)));
  face::Step step(model, n);
  step.strain[1][0] = step.strain[7][0] = 1e200;
  try {
    step.call.run_or_throw(n);
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const neml2::AggregateError& error) {
    const neml2::AggregateError copied = error;
    expect_two(copied);
  }
  neml2::Result result = model.forward(step.arguments());
  CHECK(result.errors.size() == 2);
  CHECK(refuses(NEML2_ERROR_NAME, "nothing", [&] { model.variable(NEML2_INPUT, "nothing"); }));  // another in between
  try {
    result.or_throw();
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const neml2::AggregateError& error) {
    expect_two(error);
  }
  try {
    step.call.run_or_throw(n);
  } catch (const neml2::Error& error) {  // who knows of one kind only
    CHECK(error.recoverable());
  }
}

static void one_failed_sub_batch_is_an_error_like_any_other() {
  const neml2::Model model(Source(face::path("viscoplastic")).scheduler(Scheduler().add(cpu, 4)));
  face::Step step(model, n);
  step.strain[4][0] = step.strain[7][0] = 1e200;
  CHECK(model.forward(step.arguments()).errors.empty());
  try {
    step.call.run_or_throw(n);
    check_failed(__FILE__, __LINE__, "it was not thrown");
  } catch (const neml2::AggregateError&) {
    check_failed(__FILE__, __LINE__, "there was one");
  } catch (const neml2::Error& error) {
    CHECK(error.recoverable() && says(error, "2 of 10"));
  }
}

int main() {
  return face::run([] {
    what_was_added_is_listed();
    what_cannot_be_added_is_refused_and_changes_nothing();
    a_process_keeps_the_device_of_its_rank();
    a_scheduler_moves_and_is_not_needed_after_the_load();
    results_do_not_depend_on_the_sub_batches();
    a_stub_names_its_model();
    several_failed_sub_batches_are_one_error_of_several();
    one_failed_sub_batch_is_an_error_like_any_other();
  });
}
