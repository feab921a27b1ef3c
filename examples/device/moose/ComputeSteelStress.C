#include "ComputeSteelStress.h"

#include "MooseException.h"
#include "steel.hpp"

registerMooseObject("SteelApp", ComputeSteelStress);

namespace {

// Components of a symmetric tensor in Mandel's notation: where they are in 3 x 3, and their factors.
constexpr unsigned row[6] = {0, 1, 2, 1, 0, 0}, column[6] = {0, 1, 2, 2, 2, 1};
constexpr Real root = 1.41421356237309505;
constexpr Real factor[6] = {1, 1, 1, root, root, root};

void toMandel(const RankTwoTensor &tensor, Real *components) {
  for (unsigned k = 0; k < 6; ++k) components[k] = factor[k] * tensor(row[k], column[k]);
}

}  // namespace

InputParameters ComputeSteelStress::validParams() {
  InputParameters params = ComputeStressBase::validParams();
  params.addClassDescription("Stress of the law in steel.hpp, for small strains");
  params.addParam<Real>("youngs_modulus", steel::parameters().E_, "Young's modulus");
  params.addParam<Real>("yield_stress", steel::parameters().yield_stress, "Yield stress");
  return params;
}

ComputeSteelStress::ComputeSteelStress(const InputParameters &parameters)
    : ComputeStressBase(parameters),
      _strain_old(getMaterialPropertyOld<RankTwoTensor>(_base_name + "mechanical_strain")),
      _stress_old(getMaterialPropertyOld<RankTwoTensor>(_base_name + "stress")),
      _plastic_strain(declareProperty<Real>(_base_name + "equivalent_plastic_strain")),
      _plastic_strain_old(getMaterialPropertyOld<Real>(_base_name + "equivalent_plastic_strain")),
      _youngs_modulus(getParam<Real>("youngs_modulus")),
      _yield_stress(getParam<Real>("yield_stress")) {}

void ComputeSteelStress::initQpStatefulProperties() {
  ComputeStressBase::initQpStatefulProperties();
  _plastic_strain[_qp] = 0;
}

void ComputeSteelStress::computeQpStress() {
  steel::inputs in;
  steel::outputs out;
  steel::tangent tangent;
  steel::parameters constants;
  constants.E_ = _youngs_modulus;
  constants.yield_stress = _yield_stress;
  toMandel(_mechanical_strain[_qp], in.strain);
  toMandel(_strain_old[_qp], in.strain_old);
  toMandel(_stress_old[_qp], in.stress_old);
  in.t = _t;
  in.t_old = _t - _dt;
  in.equivalent_plastic_strain_old = _plastic_strain_old[_qp];

  if (steel::update(in, out, &tangent, constants).status != 0)
    throw MooseException("steel: a point does not converge");  // the executioner cuts the time step
  _plastic_strain[_qp] = out.equivalent_plastic_strain;
  for (unsigned m = 0; m < 6; ++m) {
    const unsigned i = row[m], j = column[m];
    _stress[_qp](i, j) = _stress[_qp](j, i) = out.stress[m] / factor[m];
    for (unsigned n = 0; n < 6; ++n) {
      const unsigned k = row[n], l = column[n];
      const Real slope = tangent.stress_by_strain(static_cast<int>(m), static_cast<int>(n)) / (factor[m] * factor[n]);
      RankFourTensor &jacobian = _Jacobian_mult[_qp];
      jacobian(i, j, k, l) = jacobian(j, i, k, l) = jacobian(i, j, l, k) = jacobian(j, i, l, k) = slope;
    }
  }
  // The law has no elastic strain among its outputs.
  _elastic_strain[_qp] = _mechanical_strain[_qp];
}
