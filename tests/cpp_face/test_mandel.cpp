// Symmetric tensors from and to the forms that others have.
#include <algorithm>
#include <cmath>
#include <vector>

#include "face.hpp"

namespace mandel = neml2::mandel;
using face::near;
using mandel::Order;
using mandel::Shear;

static const double root = std::sqrt(2.0);
static const mandel::Tensor<double> tensor = {{{1, 6, 5}, {6, 2, 4}, {5, 4, 3}}};
static const mandel::Six<double> expected = {1, 2, 3, 4 * root, 5 * root, 6 * root};
static const mandel::Six<double> abaqus = {1, 2, 3, 12, 10, 8}, voigt = {1, 2, 3, 4, 5, 6};

static void by_hand() {
  CHECK(near(mandel::from_tensor(tensor), expected));
  const mandel::Tensor<double> back = mandel::to_tensor(expected);
  for (std::size_t i = 0; i < 3; ++i) CHECK(near(back[i], tensor[i]));
  CHECK(near(mandel::from_tensor<double>({{{1, 10, 5}, {2, 2, 4}, {5, 4, 3}}}), expected));
  CHECK(near(mandel::to_voigt(expected, Shear::tensor), voigt));
  CHECK(near(mandel::to_voigt(expected, Shear::engineering, Order::abaqus), abaqus));
  CHECK(near(mandel::from_voigt(abaqus, Shear::engineering, Order::abaqus), expected));
}

static void over_many_points() {
  const std::vector<face::Tensor6> strains = face::strains(5);
  std::vector<face::Tensor6> there(5), back(5);
  std::transform(strains.begin(), strains.end(), there.begin(),
                 [](const auto& e) { return mandel::to_voigt(e, Shear::engineering, Order::abaqus); });
  std::transform(there.begin(), there.end(), back.begin(),
                 [](const auto& e) { return mandel::from_voigt(e, Shear::engineering, Order::abaqus); });
  for (std::size_t p = 0; p < 5; ++p) CHECK(near(back[p], strains[p], 1e-15));
}

static void in_single_precision() {
  const mandel::Six<float> stress = {1, 2, 3, 4, 5, 6};
  const mandel::Six<float> there = mandel::from_voigt(stress, Shear::tensor);
  for (std::size_t i = 3; i < 6; ++i) CHECK(std::abs(there[i] - 1.41421356F * stress[i]) < 1e-6F * there[i]);
}

int main() {
  return face::run([] {
    by_hand();
    over_many_points();
    in_single_precision();
  });
}
