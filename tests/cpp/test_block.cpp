// Products of blocks and directions, for every way in which a block can relate the sites of two values.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "capi/base/error.h"
#include "capi/segments/block.h"

namespace {

using namespace neml2_capi;
using namespace neml2_capi::model;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

Tensor tensor(const Dims& sizes, Vector<double> values) {
  Tensor out = Tensor::empty(DType::float64, sizes);
  std::copy(values.begin(), values.end(), out.data_as<double>());
  return out;
}

Vector<double> values_of(const Tensor& tensor) {
  const double* data = tensor.data_as<const double>();
  return {data, data + tensor.numel()};
}

// One point, one direction: value 0 is the input, value 1 the output. `output`, `input`: their sizes; both scalars at
// each site.
struct Case {
  Case(Vector<double> matrices, std::int64_t output, std::int64_t input)
      : shape(block_shape("y:x", static_cast<std::int64_t>(matrices.size()), output, 1, input, 1)) {
    const auto sites = static_cast<std::int64_t>(matrices.size());
    blocks.push_back({1, 0, &shape, tensor({1, sites, 1, 1}, std::move(matrices)), true});
  }

  Vector<double> forward(Vector<double> direction) const {
    Directions directions = zeros();
    const auto size = static_cast<std::int64_t>(direction.size());
    directions.of[0] = tensor({1, size, 1}, std::move(direction));
    push_forward(blocks, {1}, directions);
    return values_of(directions.of[1]);
  }

  Vector<double> back(Vector<double> direction) const {
    Directions directions = zeros();
    const auto size = static_cast<std::int64_t>(direction.size());
    directions.of[1] = tensor({1, size, 1}, std::move(direction));
    pull_back(blocks, {1}, directions);
    expect(!directions.of[1].data(), "the direction of an output is used up");
    return values_of(directions.of[0]);
  }

  BlockShape shape;
  Vector<Block> blocks;

 private:
  static Directions zeros() {
    Directions directions{1, 1, DType::float64, {}};
    directions.of.resize(2);
    return directions;
  }
};

using Values = Vector<double>;

template <class F>
bool is_refused(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.status() == NEML2_ERROR_UNSUPPORTED && std::string(error.what()).find("y:x") != std::string::npos;
  }
  return false;
}

void sites_are_paired() {
  const Case own({2, 3}, 2, 2), shared({2}, 2, 2);
  expect(own.forward({10, 100}) == Values({20, 300}), "each site has its own matrix");
  expect(own.back({10, 100}) == Values({20, 300}), "and its transpose");
  expect(shared.forward({10, 100}) == Values({20, 200}), "one matrix serves every site");
}

void one_input_reaches_every_site() {
  const Case block({2, 3}, 2, 1);
  expect(block.forward({10}) == Values({20, 30}), "of the output");
  expect(block.back({10, 100}) == Values({320}), "and collects their adjoints");
}

void every_site_reaches_one_output() {
  const Case block({2, 3}, 1, 2);
  expect(block.forward({10, 100}) == Values({320}), "which is their sum");
  expect(block.back({10}) == Values({20, 30}), "and each gets its adjoint");
}

void a_lumped_block_takes_one_change_at_all_sites() {
  const Case mean({2}, 1, 2);
  expect(mean.shape.lumped, "an output without sites from an input with sites");
  expect(mean.forward({10, 10}) == Values({20}), "is what the same change does");
  expect(is_refused([&] { mean.forward({10, 11}); }), "of a change that differs nothing is known");
  expect(is_refused([&] { mean.back({1}); }), "nor of an adjoint");

  Case coupled({2, 3}, 2, 2);
  coupled.shape.lumped = true;
  expect(coupled.forward({10, 10}) == Values({20, 30}), "every site of the output is written");
  expect(is_refused([&] { coupled.forward({10, 11}); }), "and a change that differs is refused");
}

void cells_and_edges_are_other_sites() {
  const Case edges({2, 3}, 2, 3);
  expect(edges.shape.lumped, "two edges between three cells");
  expect(edges.forward({10, 10, 10}) == Values({20, 30}), "are moved by one change of all cells");
  expect(is_refused([&] { edges.forward({10, 10, 11}); }), "of a change that differs nothing is known");
}

void shapes_that_do_not_fit_are_refused() {
  expect(is_refused([] { block_shape("y:x", 6, 2, 1, 3, 1); }), "two sites and three");
  try {
    block_shape("y:x", 5, 2, 2, 2, 2);
    expect(false, "a block of a part of a matrix");
  } catch (const Error& error) {
    expect(error.status() == NEML2_ERROR_ARTIFACT, "tells of a broken artifact");
  }
}

}  // namespace

int main() {
  sites_are_paired();
  one_input_reaches_every_site();
  every_site_reaches_one_output();
  a_lumped_block_takes_one_change_at_all_sites();
  cells_and_edges_are_other_sites();
  shapes_that_do_not_fit_are_refused();
  return 0;
}
