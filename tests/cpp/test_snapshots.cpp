// Snapshots that evaluations take of a model, while another thread sets its parameters.
#include <thread>

#include "capi/artifact/metadata.h"
#include "capi/model/model.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using model::Model;
using model::Snapshot;

namespace {

Tensor number(double value) {
  Tensor tensor = Tensor::empty(DType::float64, {});
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

// Both parameters are set to 1, then both to 2, the first always first: no snapshot has the second ahead of it.
void parameters_are_seen_in_the_order_in_which_they_are_set() {
  constexpr int last = 200000;
  const auto model = load();
  model->set_parameter(0, number(0));
  model->set_parameter(1, number(0));
  std::thread writer([&] {
    for (int k = 1; k <= last; ++k)
      for (std::size_t i : {0u, 1u}) model->set_parameter(i, number(k));
  });
  Snapshot snapshot;
  int wrong = 0;
  do {
    model->take(snapshot);
    const double ahead = value_of(snapshot, 0) - value_of(snapshot, 1);
    wrong += ahead != 0 && ahead != 1;
  } while (value_of(snapshot, 1) < last);
  writer.join();
  expect(wrong == 0, join(wrong, " snapshots of a moment that was not there"));
}

}  // namespace

int main() {
  only_values_change_without_notice();
  parameters_are_seen_in_the_order_in_which_they_are_set();
  return 0;
}
