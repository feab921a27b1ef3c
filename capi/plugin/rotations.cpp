// Rotations of a generic behaviour whose mapping calls it orthotropic: hosts of MGIS turn gradients from the global axes to
// the material's, and stresses and operators back. `axes` is row-major, and its columns are the unit vectors of the
// material's axes. In and out may be one array.
#include <algorithm>
#include <cstddef>

#include "capi/deformation/tensors.h"
#include "capi/plugin/conventions.h"
#include "capi/plugin/exported.h"

namespace neml2_capi::plugin {
namespace {

using deformation::Matrix;

enum class Way { to_material, to_global };

// Turns `count` arrays of (rows, columns) tensors of 6 or 9 components; columns 1: a tensor alone.
template <std::size_t rows, std::size_t columns>
void turn(double* to, const double* from, const double* axes, std::size_t count, Way way) {
  Matrix q;
  std::copy_n(axes, 9, q.begin());
  if (way == Way::to_material) q = deformation::transpose(q);
  const auto turn_of = [&]<std::size_t size>() {
    if constexpr (size == 6)
      return deformation::turn_of_six(q);
    else
      return deformation::turn_of_nine(q);
  };
  const auto place = [](std::size_t size, std::size_t i) {
    return std::size_t(size == 9 ? GENERIC.tensor[i] : GENERIC.place[i]);
  };
  const auto left = turn_of.template operator()<rows>();
  for (std::size_t p = 0; p < count; ++p, to += rows * columns, from += rows * columns) {
    deformation::Dense<rows, columns> values;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        values[columns * place(rows, i) + (columns == 1 ? 0 : place(columns, j))] = from[columns * i + j];
    values = deformation::product<rows, rows, columns>(left, values);
    if constexpr (columns > 1) {
      const auto right = deformation::transposed<columns, columns>(turn_of.template operator()<columns>());
      values = deformation::product<rows, columns, columns>(values, right);
    }
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j)
        to[columns * i + j] = values[columns * place(rows, i) + (columns == 1 ? 0 : place(columns, j))];
  }
}

}  // namespace
}  // namespace neml2_capi::plugin

#define ROTATE(what, suffix, rows, columns, way)                                                                     \
  extern "C" EXPORTED void NEML2_Tridimensional_rotate##what##suffix(double* to, const double* from,                 \
                                                                     const double* axes) {                           \
    using namespace neml2_capi::plugin;                                                                              \
    turn<rows, columns>(to, from, axes, 1, way);                                                                     \
  }                                                                                                                  \
  extern "C" EXPORTED void NEML2_Tridimensional_rotateArrayOf##what##suffix(double* to, const double* from,          \
                                                                            const double* axes, std::size_t count) { \
    using namespace neml2_capi::plugin;                                                                              \
    turn<rows, columns>(to, from, axes, count, way);                                                                 \
  }

// A gradient is the strain, or F of a behaviour of large strain.
extern "C" int NEML2_GradientsTypes[];

extern "C" EXPORTED void NEML2_Tridimensional_rotateArrayOfGradients(double* to, const double* from, const double* axes,
                                                                     std::size_t count) {
  using namespace neml2_capi::plugin;
  constexpr int tensor = 3;
  if (NEML2_GradientsTypes[0] == tensor)
    turn<9, 1>(to, from, axes, count, Way::to_material);
  else
    turn<6, 1>(to, from, axes, count, Way::to_material);
}
extern "C" EXPORTED void NEML2_Tridimensional_rotateGradients(double* to, const double* from, const double* axes) {
  NEML2_Tridimensional_rotateArrayOfGradients(to, from, axes, 1);
}

ROTATE(ThermodynamicForces, , 6, 1, Way::to_global)
ROTATE(ThermodynamicForces, _CauchyStress, 6, 1, Way::to_global)
ROTATE(ThermodynamicForces, _PK2Stress, 6, 1, Way::to_global)
ROTATE(ThermodynamicForces, _PK1Stress, 9, 1, Way::to_global)
ROTATE(TangentOperatorBlocks, , 6, 6, Way::to_global)
ROTATE(TangentOperatorBlocks, _dsig_dF, 6, 9, Way::to_global)
ROTATE(TangentOperatorBlocks, _dPK2_dEGL, 6, 6, Way::to_global)
ROTATE(TangentOperatorBlocks, _dPK1_dF, 9, 9, Way::to_global)
ROTATE(TangentOperatorBlocks, _dtau_ddF, 6, 9, Way::to_global)
