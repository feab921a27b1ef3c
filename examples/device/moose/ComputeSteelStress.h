#pragma once

#include "ComputeStressBase.h"

/**
 * Stress of a compiled law for small strains, evaluated where it is called: no libtorch, no library, no copy.
 */
class ComputeSteelStress : public ComputeStressBase {
 public:
  static InputParameters validParams();
  ComputeSteelStress(const InputParameters &parameters);

 protected:
  void initQpStatefulProperties() override;
  void computeQpStress() override;

  const MaterialProperty<RankTwoTensor> &_strain_old;
  const MaterialProperty<RankTwoTensor> &_stress_old;
  MaterialProperty<Real> &_plastic_strain;
  const MaterialProperty<Real> &_plastic_strain_old;
  const Real _youngs_modulus;
  const Real _yield_stress;
};
