#include "capi/plugin/conventions.h"

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

std::size_t item_size(Kind kind) {
  constexpr std::size_t sizes[] = {1, 3, 6, 9};
  return sizes[static_cast<int>(kind)];
}

void state_to_model(const Convention& convention, Kind kind, const double* from, std::size_t stride, const double* drot,
                    double* to) {
  if (kind == Kind::SYMMETRIC) {
    to_model(convention, convention.stress, from, 6, stride, to);
    if (drot) turn_symmetric(drot, to);
    return;
  }
  double plain[9];
  const std::size_t size = item_size(kind);
  for (std::size_t i = 0; i < size; ++i) to[i] = plain[i] = from[i * stride];
  if (!drot || kind == Kind::SCALAR) return;
  if (kind == Kind::VECTOR) {
    for (int i = 0; i < 3; ++i) to[i] = drot[i] * plain[0] + drot[i + 3] * plain[1] + drot[i + 6] * plain[2];
    return;
  }
  double turned[9];
  turn(drot, plain, turned);
  for (int i = 0; i < 9; ++i) to[i] = turned[i];
}

void state_to_host(const Convention& convention, Kind kind, const double* from, std::size_t stride, double* to) {
  if (kind == Kind::SYMMETRIC) {
    to_host(convention, convention.stress, from, 6, stride, to);
    return;
  }
  for (std::size_t i = 0; i < item_size(kind); ++i) to[i * stride] = from[i];
}

}  // namespace neml2_capi::plugin
