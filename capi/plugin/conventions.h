// How hosts write a tensor, and how NEML2 does.
//
//                      order                      shear strain     shear stress
//   NEML2              11, 22, 33, 23, 13, 12     sqrt(2) eps      sqrt(2) sigma     (SR2: Mandel notation)
//   UMAT               11, 22, 33, 12, 13, 23     gamma = 2 eps    sigma
//   UMAT of Kratos     11, 22, 33, 12, 23, 13     gamma = 2 eps    sigma
//   VUMAT              11, 22, 33, 12, 23, 31     eps              sigma
//   generic behaviour  11, 22, 33, 12, 13, 23     sqrt(2) eps      sqrt(2) sigma
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "capi/plugin/mapping.h"

namespace neml2_capi::plugin {

struct Convention {
  int place[6];                                 // of the host's component i, in NEML2's order
  double strain, stress;                        // what a shear component of the host is multiplied by to be NEML2's
  int tensor[9] = {0, 1, 2, 3, 4, 5, 6, 7, 8};  // the same of a tensor, which NEML2 has row by row
  bool in_sequence = false;  // variables stand one behind another, without the stress, not at places of the mapping
  int size = 6, direct = 3;  // components of the strain and the stress, and how many of them are no shears
};

inline constexpr double ROOT = 1.4142135623730951;
inline constexpr Convention UMAT{{0, 1, 2, 5, 4, 3}, ROOT / 2, ROOT};
inline constexpr Convention KRATOS{{0, 1, 2, 5, 3, 4}, ROOT / 2, ROOT};
inline constexpr Convention VUMAT{{0, 1, 2, 5, 3, 4}, ROOT, ROOT};
inline constexpr Convention GENERIC{{0, 1, 2, 5, 4, 3}, 1, 1, {0, 4, 8, 1, 3, 2, 6, 5, 7}, true};
// States of the generic behaviour under a hypothesis, where MFront's tensors lack components: numbers as NEML2 has them.
inline constexpr Convention NUMBERS{{0, 1, 2, 3, 4, 5}, 1, 1, {0, 1, 2, 3, 4, 5, 6, 7, 8}, true};

// Returns the convention of tensors that have some components only, which are positions in NEML2's order.
Convention some_of(const Convention& whole, const std::vector<std::int64_t>& components);

// `to` (all numbers, NEML2's) from the first `count` components of the host, at distance `stride`; the others are 0.
inline void to_model(const Convention& convention, double shear, const double* from, int count, std::size_t stride,
                     double* to) {
  for (int i = 0; i < convention.size; ++i)
    to[convention.place[i]] = i < count ? from[std::size_t(i) * stride] * (i < convention.direct ? 1 : shear) : 0;
}

// The first `count` components of the host from NEML2's.
inline void to_host(const Convention& convention, double shear, const double* from, int count, std::size_t stride,
                    double* to) {
  for (int i = 0; i < count; ++i)
    to[std::size_t(i) * stride] = from[convention.place[i]] / (i < convention.direct ? 1 : shear);
}

// One item of a state variable, turned with the material by `drot` (column-major, as Fortran has it; null: not at all),
// and back. A symmetric tensor has shear of stress.
void item_to_model(const Convention& convention, Kind kind, const double* from, const double* drot, double* to);
void item_to_host(const Convention& convention, Kind kind, const double* from, double* to);

std::size_t item_size(Kind kind);

}  // namespace neml2_capi::plugin
