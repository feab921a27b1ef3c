// A model whose points two devices share gives what one gives, bit for bit, and is as good after failures as before.
//   test_dispatch PROVIDER [DISPATCHES]
#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>

#include "capi/devices/dispatch.h"
#include "capi/evaluation/arrays.h"
#include "capi/evaluation/plan.h"
#include "tests/cpp/packages.h"

namespace {

// What watches memory and threads takes its time; so fewer then, unless it is told how many.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool watched = true;
#else
constexpr bool watched = false;
#endif

using namespace neml2_capi;
using namespace neml2_capi::testing;
using model::Dispatch;
using model::Kind;
using model::Model;
using model::Points;
using model::Routes;
using model::Tally;

std::shared_ptr<Model> load(const char* name) {
  const char* folder = std::getenv("NEML2_TEST_ARTIFACTS");
  expect(folder != nullptr, "NEML2_TEST_ARTIFACTS is set");
  return Model::load(artifact::read_metadata(join(folder, "/", name), "cpu", "float64"), {graph::Runtime::builtin});
}

using Pair = std::array<std::shared_ptr<Model>, 2>;

Pair load_two(const char* name) { return {load(name), load(name)}; }

std::shared_ptr<const Dispatch> spread(const Pair& models, std::int64_t first_size, std::int64_t second_size) {
  return std::make_shared<const Dispatch>(std::vector<Dispatch::Device>{
      {"one", models[0], {first_size, 2 * first_size, 1.0}}, {"two", models[1], {second_size, 2 * second_size, 1.0}}});
}
std::shared_ptr<const Dispatch> spread(const char* name, std::int64_t first_size, std::int64_t second_size) {
  return spread(load_two(name), first_size, second_size);
}

// All that can be asked of a model for some points; adjoints are sums over all of them.
struct Asked {
  Asked(const Model& model, std::int64_t points) : bindings(model::bindings_for(model)) {
    model.take(snapshot);
    bindings.points = points;
    bindings.mark_failed = true;
    const auto& inputs = model.variables(Kind::input);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::string& name = inputs[i].name;
      const bool old = name.find("~1") != std::string::npos;
      bindings.inputs[i] = filled(inputs[i], [&](std::int64_t k) {
        if (name == "t") return 1.0;
        return old ? 0.0 : 3e-3 * std::sin(1 + 0.7 * static_cast<double>(k));
      });
      bindings.tangents[i] = filled(inputs[i], [](std::int64_t k) { return std::cos(static_cast<double>(k)); });
      if (model.derivatives(Kind::input).by_input(i)) bindings.adjoints[i] = {room(inputs[i], 1), 0};
    }
    const auto& outputs = model.variables(Kind::output);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      bindings.outputs[i] = written(outputs[i]);
      bindings.cotangents[i] =
          filled(outputs[i], [](std::int64_t k) { return std::sin(0.3 * static_cast<double>(k)); });
      if (model.derivatives(Kind::input).of_output(i)) bindings.jvps[i] = written(outputs[i]);
    }
    const auto& derivatives = model.derivatives(Kind::input).all();
    for (std::size_t i = 0; i < derivatives.size(); ++i) {
      const bool batched = derivatives[i].batched;
      bindings.blocks[i] = batched ? written(derivatives[i].block) : Points{room(derivatives[i].block, 1), 0};
    }
    const auto& parameters = model.variables(Kind::parameter);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      bindings.parameters[i] = {snapshot.parameters[i].data_as<char>(), 0};
    for (int kind = 0; kind < 5; ++kind) {
      const bool whole = kind == NEML2_REPORT_STATUS || kind == NEML2_REPORT_ITERATIONS;
      const std::int64_t size = kind == NEML2_REPORT_RESIDUAL_HISTORY ? snapshot.options.miters() : 1;
      bindings.report[kind] = written({"", "", whole ? DType::int32 : DType::float64, Dims{size}, 0});
    }
    unknowns.resize(model.variables(Kind::unknown).size());
    bindings.unknowns = &unknowns;
    bindings.copies = model::inputs_to_copy(model, bindings, snapshot.options.miters());
  }

  double& strain(const Model& model, std::int64_t point) {
    return reinterpret_cast<double*>(bindings.inputs[model.find(Kind::input, "strain")].data)[6 * point];
  }

  bool same(const Asked& other) const {
    for (std::size_t i = 0; i < results.size(); ++i)
      if (std::memcmp(results[i].data(), other.results[i].data(),
                      static_cast<std::size_t>(results[i].numel() * results[i].itemsize())) != 0)
        return false;
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      if (!unknowns[i].data() != !other.unknowns[i].data()) return false;
      if (unknowns[i].data() && std::memcmp(unknowns[i].data(), other.unknowns[i].data(),
                                            static_cast<std::size_t>(8 * unknowns[i].numel())) != 0)
        return false;
    }
    return true;
  }

  model::Bindings bindings;
  model::Snapshot snapshot;
  Vector<Tensor> unknowns;

 private:
  char* room(const model::Variable& variable, std::int64_t points) {
    results.push_back(Tensor::zeros(variable.dtype, Dims{points}.then(variable.point_shape)));
    return results.back().data_as<char>();
  }
  Points written(const model::Variable& variable) {
    return {room(variable, bindings.points), variable.point_shape.product()};
  }
  template <class Value>
  Points filled(const model::Variable& variable, Value&& value) {
    given.push_back(Tensor::empty(DType::float64, Dims{bindings.points}.then(variable.point_shape)));
    for (std::int64_t k = 0; k < given.back().numel(); ++k) given.back().data_as<double>()[k] = value(k);
    return {given.back().data_as<char>(), variable.point_shape.product()};
  }

  Vector<Tensor> given, results;
};

Tally evaluate(const Routes& routes, const Asked& asked) {
  return model::evaluate(routes, asked.snapshot.options, asked.bindings);
}

Tally evaluate(const std::shared_ptr<const Dispatch>& dispatch, const Asked& asked) {
  return evaluate(Routes(dispatch->primary(), dispatch), asked);
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Some points fail if `failing` is set: all of the first and the last sub-batch, and one between.
void two_devices_equal_one(const char* name, bool failing) {
  constexpr std::int64_t points = 23;
  const auto alone = load(name);
  Asked expected(*alone, points);
  const auto spoil = [&](Asked& asked) {
    for (const std::int64_t point : {0, 11, 22})
      if (failing) asked.strain(*alone, point) = nan;
  };
  spoil(expected);
  const Tally tally = evaluate(Routes(alone), expected);
  const Pair models = load_two(name);
  expect((tally.worst() != NEML2_OK) == failing, "points fail where they should");
  for (std::int64_t size = 1; size <= points + 1; ++size)
    for (const std::int64_t other : {std::int64_t{1}, std::int64_t{5}, points + 1}) {
      const auto dispatch = spread(models, size, other);
      for (int repeat = 0; repeat < 3; ++repeat) {
        Asked asked(*dispatch->primary(), points);
        spoil(asked);
        const Tally outcome = evaluate(dispatch, asked);
        const std::string which = join(name, ", sub-batches of ", size, " and ", other);
        expect(asked.same(expected), join("two devices give what one does: ", which));
        expect(outcome.message(points) == tally.message(points), join("and tell the same: ", which));
        expect(outcome.parts.empty() == !failing, join("parts are told where points failed: ", which));
      }
      expect(dispatch->points_evaluated(0) + dispatch->points_evaluated(1) == 3 * points, "all points are counted");
    }
}

void each_sub_batch_with_failed_points_is_told() {
  const auto dispatch = spread("viscoplastic", 5, 5);
  Asked asked(*dispatch->primary(), 20);
  for (const std::int64_t point : {6, 7, 19}) asked.strain(*dispatch->primary(), point) = 1e200;
  const Tally outcome = evaluate(dispatch, asked);
  expect(outcome.count[NEML2_OK] == 17 && outcome.worst() > NEML2_NON_FINITE, "three points failed");
  expect(outcome.parts.size() == 2, "in two sub-batches");
  const std::string first = outcome.parts[0].what(), second = outcome.parts[1].what();
  expect(first.starts_with("points 5 to 9 on ") && second.starts_with("points 15 to 19 on "), "each tells its points");
  expect(first.find("2 of 5 points") != std::string::npos && first.find("is point 6)") != std::string::npos,
         "and counts them as the caller does: " + first);
}

// A parameter that varies within a batch that converges as a whole is refused, if a sub-batch has such points.
void a_failure_is_told_as_it_is_and_several_together() {
  const auto dispatch = spread("combined_hardening", 4, 4);
  Model& primary = *dispatch->primary();
  primary.set_option("convergence", std::string_view("batch"));
  const std::size_t parameter = primary.find(Kind::parameter, "yield_stress");
  const auto run = [&](std::vector<double> values) {
    Asked asked(primary, std::ssize(values));
    asked.bindings.parameters[parameter] = {reinterpret_cast<char*>(values.data()), 1};
    evaluate(dispatch, asked);
  };
  const std::vector<double> good(16, 10.0);
  std::vector<double> one = good, all = good;
  one[9] = 20;
  for (std::size_t p = 1; p < all.size(); p += 2) all[p] = 20;
  for (int repeat = 0; repeat < 20; ++repeat) {
    run(good);
    expect_error(NEML2_ERROR_SHAPE, "A package takes one value of 'yield_stress'", [&] { run(one); });
    try {
      run(all);
      expect(false, "points of several values are refused");
    } catch (const AggregateError& error) {
      expect(error.status() == NEML2_ERROR_SHAPE && error.subject() == "yield_stress", "it is an error of its kind");
      expect(error.errors().size() == 2, "each device failed");
      expect(std::string(error.errors()[0].what()).starts_with("points 0 to 3 on "), "in the order of their points");
    } catch (const Error& error) {  // the other device had not begun
      expect(std::string(error.what()).starts_with("A package takes one value of"), "one is told as it is");
    }
  }
  run(good);
}

void points_that_failed_are_told_beside_an_error() {
  const auto dispatch =
      std::make_shared<const Dispatch>(std::vector<Dispatch::Device>{{"cpu", load("combined_hardening"), {4, 8, 1.0}}});
  Model& primary = *dispatch->primary();
  primary.set_option("convergence", std::string_view("batch"));
  Asked asked(primary, 12);
  asked.strain(primary, 2) = nan;
  std::vector<double> yields(12, 10.0);
  yields[5] = 20;
  asked.bindings.parameters[primary.find(Kind::parameter, "yield_stress")] = {reinterpret_cast<char*>(yields.data()),
                                                                              1};
  try {
    evaluate(dispatch, asked);
    expect(false, "the second sub-batch is refused");
  } catch (const AggregateError& error) {
    expect(error.status() == NEML2_ERROR_SHAPE && error.errors().size() == 2, "both sub-batches are told");
    expect(error.errors()[0].status() > NEML2_NON_FINITE, "the first with its points that failed");
    expect(std::string(error.errors()[1].what()).starts_with("points 4 to 7 on cpu: "), "the second with its reason");
  }
  expect(dispatch->points_evaluated(0) == 4, "the third is not begun");
}

void a_fatal_error_is_worse_than_points_that_failed() {
  const Error converged{NEML2_NOT_CONVERGED, "", "a"}, singular{NEML2_SINGULAR, "", "b"};
  const Error runtime{NEML2_ERROR_RUNTIME, "x", "c"}, memory{NEML2_ERROR_MEMORY, "y", "d"};
  expect(AggregateError({converged, singular}).status() == NEML2_SINGULAR, "of recoverable errors the worst counts");
  expect(AggregateError({singular, memory, runtime}).status() == NEML2_ERROR_MEMORY, "of fatal ones the first");
  expect(AggregateError({singular, runtime}).subject() == "x", "and its subject");
}

void parameters_and_options_are_those_of_the_first() {
  const auto dispatch = spread("elasticity", 3, 2);
  Model& primary = *dispatch->primary();
  const auto alone = load("elasticity");
  for (const double young : {100e3, 123e3}) {
    Tensor value = Tensor::empty(DType::float64, {});
    *value.data_as<double>() = young;
    for (Model* model : {&primary, alone.get()}) model->set_parameter(0, value);
    Asked asked(primary, 20), expected(*alone, 20);
    evaluate(dispatch, asked);
    evaluate(Routes(alone), expected);
    expect(asked.same(expected), "all devices take the parameter of the model");
  }
}

long resident_kib() {
  long pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  expect(file && std::fscanf(file, "%*d %ld", &pages) == 1, "memory can be counted");
  std::fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// Three callers at once, one of whose evaluations has failing points, and one refused ones.
void dispatches_leave_nothing_behind(std::int64_t dispatches) {
  const auto implicit = spread("viscoplastic", 2, 3);
  const auto batch = spread("combined_hardening", 2, 2);
  batch->primary()->set_option("convergence", std::string_view("batch"));
  const std::size_t parameter = batch->primary()->find(Kind::parameter, "yield_stress");
  const Routes of_implicit(implicit->primary(), implicit), of_batch(batch->primary(), batch);
  std::atomic<std::int64_t> failed = 0, refused = 0, good = 0;
  const auto call = [&](std::int64_t count, int caller) {
    double yields[] = {10, 10, 20, 20, 30, 40, 50, 60};
    for (std::int64_t k = 0; k < count; ++k) {
      const Routes& routes = caller == 2 ? of_batch : of_implicit;
      Asked asked(routes.model(), 8);
      if (caller == 1 && k % 3 == 0) asked.strain(routes.model(), k % 8) = nan;
      if (caller == 2 && k % 2 == 0) asked.bindings.parameters[parameter] = {reinterpret_cast<char*>(yields), 1};
      try {
        const Tally outcome = evaluate(routes, asked);
        ++(outcome.worst() == NEML2_OK ? good : failed);
      } catch (const Error&) {
        ++refused;
      }
    }
  };
  const auto run = [&](std::int64_t count) {
    std::thread threads[] = {std::thread(call, count, 0), std::thread(call, count, 1), std::thread(call, count, 2)};
    for (std::thread& thread : threads) thread.join();
  };
  const std::int64_t each = dispatches / 3 + 1;
  run(each / 10 + 10);
  const long before = resident_kib();
  failed = refused = good = 0;
  run(each);
  const long after = resident_kib();
  std::printf("%ld dispatches: %ld good, %ld with failed points, %ld refused; %ld KiB before, %ld after\n",
              static_cast<long>(3 * each), good.load(), failed.load(), refused.load(), before, after);
  expect(failed == (each + 2) / 3 && refused == (each + 1) / 2, "those fail that should");
  expect(watched || after - before < 1024, "memory does not grow");
}

}  // namespace

int main(int argc, char** argv) {
  for (const char* name : {"elasticity", "viscoplastic", "combined_hardening"})
    for (const bool failing : {false, true}) two_devices_equal_one(name, failing);
  each_sub_batch_with_failed_points_is_told();
  a_failure_is_told_as_it_is_and_several_together();
  points_that_failed_are_told_beside_an_error();
  a_fatal_error_is_worse_than_points_that_failed();
  parameters_and_options_are_those_of_the_first();
  dispatches_leave_nothing_behind(argc > 2 ? std::atol(argv[2]) : watched ? 1000 : 10000);
  return 0;
}
