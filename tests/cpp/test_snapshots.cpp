// Snapshots that evaluations take of a model, while another thread sets its parameters.
#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "capi/artifact/metadata.h"
#include "capi/model/model.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using model::Model;
using model::Snapshot;

namespace {

Tensor number(double value, const Dims& sizes = {}) {
  Tensor tensor = Tensor::empty(DType::float64, sizes);
  *tensor.data_as<double>() = value;
  return tensor;
}

double value_of(const Snapshot& snapshot, std::size_t i) { return *snapshot.parameters[i].data_as<double>(); }

std::shared_ptr<Model> load() {
  return Model::load(artifact::read_metadata(artifacts() / "combined_hardening", "cpu", "float64"));
}

void only_values_change_without_notice() {
  const auto model = load();
  Snapshot snapshot;
  expect(model->take(snapshot), "the first snapshot is new");
  model->set_parameter(1, number(7));
  expect(!model->take(snapshot) && value_of(snapshot, 1) == 7, "a value");
  *model->parameter(1).data_as<double>() = 8;
  expect(!model->take(snapshot) && value_of(snapshot, 1) == 8, "a value that was written through its handle");
  model->set_parameter(1, Tensor::zeros(DType::float64, {3}));
  expect(model->take(snapshot) && snapshot.parameters[1].sizes() == Dims({3}), "another shape");
  model->parameter(1).data_as<double>()[2] = 9;
  expect(!model->take(snapshot) && snapshot.parameters[1].data_as<double>()[2] == 9, "a value of three");
  model->set_option("chunk", 7.0);
  expect(model->take(snapshot), "an option");
}

// Counts the snapshots without a moment of their own, while `write` sets the first of two values to 1, the second to 1,
// the first to 2 and so on. `values_of` reads both.
template <class Write, class Read>
int torn(Model& model, int last, Write write, Read values_of) {
  write(model, 0, 0);
  write(model, 1, 0);
  std::thread writer([&] {
    for (int k = 1; k <= last; ++k)
      for (std::size_t i : {0u, 1u}) write(model, i, k);
  });
  std::atomic<int> wrong = 0;
  const auto watch = [&] {
    Snapshot snapshot;
    for (double second = 0; second < last;) {
      model.take(snapshot);
      const auto [now, then] = values_of(snapshot);
      wrong += now - then != 0 && now - then != 1;
      second = then;
    }
  };
  std::thread readers[] = {std::thread(watch), std::thread(watch), std::thread(watch)};
  for (auto& reader : readers) reader.join();
  writer.join();
  return wrong;
}

std::pair<double, double> both_values(const Snapshot& snapshot) {
  return {value_of(snapshot, 0), value_of(snapshot, 1)};
}

void values_are_seen_in_the_order_in_which_they_are_set() {
  const auto write = [](Model& model, std::size_t i, int k) { model.set_parameter(i, number(k)); };
  expect(torn(*load(), 600000, write, both_values) == 0, "snapshots of a moment that was not there");
}

void a_value_is_seen_after_the_shape_that_was_set_before_it() {
  const auto write = [](Model& model, std::size_t i, int k) {
    model.set_parameter(i, number(k, i == 0 && k % 2 ? Dims{1} : Dims{}));
  };
  expect(torn(*load(), 600000, write, both_values) == 0, "shapes of a moment that was not there");
}

void a_value_is_seen_after_the_option_that_was_set_before_it() {
  const auto write = [](Model& model, std::size_t i, int k) {
    if (i == 0)
      model.set_option("atol", double(k));
    else
      model.set_parameter(1, number(k));
  };
  const auto values_of = [](const Snapshot& snapshot) {
    return std::pair(snapshot.options.number("atol"), value_of(snapshot, 1));
  };
  expect(torn(*load(), 600000, write, values_of) == 0, "options of a moment that was not there");
}

void an_array_is_seen_whole() {
  const auto write = [](Model& model, std::size_t i, int k) {
    Tensor all = Tensor::empty(DType::float64, {64});
    std::fill_n(all.data_as<double>(), 64, k);
    model.set_parameter(i, all);
  };
  std::atomic<bool> whole = true;
  const auto values_of = [&](const Snapshot& snapshot) {
    for (std::size_t i : {0u, 1u}) {
      const double* const all = snapshot.parameters[i].data_as<double>();
      if (!std::all_of(all, all + snapshot.parameters[i].numel(), [&](double x) { return x == all[0]; })) whole = false;
    }
    return both_values(snapshot);
  };
  expect(torn(*load(), 100000, write, values_of) == 0 && whole, "arrays of a moment that was not there");
}

}  // namespace

int main() {
  only_values_change_without_notice();
  values_are_seen_in_the_order_in_which_they_are_set();
  a_value_is_seen_after_the_shape_that_was_set_before_it();
  a_value_is_seen_after_the_option_that_was_set_before_it();
  an_array_is_seen_whole();
  return 0;
}
