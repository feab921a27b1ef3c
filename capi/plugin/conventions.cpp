#include "capi/plugin/conventions.h"

#include <algorithm>

namespace neml2_capi::plugin {
namespace {

// R T R^T, where `r` is column-major and `t` row by row.
void turn(const double* r, const double (&t)[9], double (&turned)[9]) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) {
      turned[3 * i + j] = 0;
      for (int k = 0; k < 3; ++k)
        for (int l = 0; l < 3; ++l) turned[3 * i + j] += r[i + 3 * k] * t[3 * k + l] * r[j + 3 * l];
    }
}

// The row and the column of NEML2's symmetric components.
constexpr int ROW[6] = {0, 1, 2, 1, 0, 0}, COLUMN[6] = {0, 1, 2, 2, 2, 1};

void turn_symmetric(const double* drot, double* six) {
  double tensor[9], turned[9];
  for (int i = 0; i < 6; ++i)
    tensor[3 * ROW[i] + COLUMN[i]] = tensor[3 * COLUMN[i] + ROW[i]] = six[i] / (i < 3 ? 1 : ROOT);
  turn(drot, tensor, turned);
  for (int i = 0; i < 6; ++i) six[i] = turned[3 * ROW[i] + COLUMN[i]] * (i < 3 ? 1 : ROOT);
}

}  // namespace

Convention some_of(const Convention& whole, const std::vector<std::int64_t>& components) {
  Convention some = whole;
  some.size = some.direct = 0;
  for (const int place : whole.place) {
    const auto at = std::ranges::find(components, place);
    if (at == components.end()) continue;
    some.place[some.size++] = static_cast<int>(at - components.begin());
    some.direct += place < 3;
  }
  return some;
}

std::size_t item_size(Kind kind) {
  constexpr std::size_t sizes[] = {1, 3, 6, 9};
  return sizes[static_cast<int>(kind)];
}

void item_to_model(const Convention& convention, Kind kind, const double* from, const double* drot, double* to) {
  if (kind == Kind::SYMMETRIC) {
    to_model(convention, convention.stress, from, 6, 1, to);
    if (drot) turn_symmetric(drot, to);
  } else if (kind == Kind::TENSOR) {
    double tensor[9];
    for (int i = 0; i < 9; ++i) tensor[convention.tensor[i]] = from[i];
    double turned[9];
    if (drot) turn(drot, tensor, turned);
    std::copy_n(drot ? turned : tensor, 9, to);
  } else if (kind == Kind::VECTOR && drot) {
    for (int i = 0; i < 3; ++i) to[i] = drot[i] * from[0] + drot[i + 3] * from[1] + drot[i + 6] * from[2];
  } else {
    std::copy_n(from, item_size(kind), to);
  }
}

void item_to_host(const Convention& convention, Kind kind, const double* from, double* to) {
  if (kind == Kind::SYMMETRIC)
    to_host(convention, convention.stress, from, 6, 1, to);
  else if (kind == Kind::TENSOR)
    for (int i = 0; i < 9; ++i) to[i] = from[convention.tensor[i]];
  else
    std::copy_n(from, item_size(kind), to);
}

}  // namespace neml2_capi::plugin
