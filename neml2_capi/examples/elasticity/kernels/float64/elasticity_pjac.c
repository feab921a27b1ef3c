/* elasticity_pjac: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity_pjac.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 148 nodes of ATen, SHA-256 13b0b5493be8e199f5967dfb8f694fb0953c872a4694c8830dbba02937958752.
 * Kernel: 16 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const strain = inputs[0];
  lanes *const d_stress_d_elasticity_E = outputs[0];
  (void)results;
  const lanes strain_0 = strain[0];
  const lanes strain_1 = strain[1];
  const lanes strain_2 = strain[2];
  const lanes v8 = strain_0 + strain_1 + strain_2;
  const lanes v10 = v8 * 0.3333333333333333;
  const lanes v15 = 0.8333333333333333 * v8;
  d_stress_d_elasticity_E[0] = 0.7692307692307692 * (strain_0 - v10) + v15;
  d_stress_d_elasticity_E[1] = v15 + 0.7692307692307692 * (strain_1 - v10);
  d_stress_d_elasticity_E[2] = v15 + 0.7692307692307692 * (strain_2 - v10);
  const lanes strain_3 = strain[3];
  d_stress_d_elasticity_E[3] = strain_3 * 0.7692307692307692;
  const lanes strain_4 = strain[4];
  d_stress_d_elasticity_E[4] = strain_4 * 0.7692307692307692;
  const lanes strain_5 = strain[5];
  d_stress_d_elasticity_E[5] = strain_5 * 0.7692307692307692;
}

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"d_stress_d_elasticity.E", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}};

const neml2_kernel neml2_kernel_elasticity_pjac = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity_pjac", "13b0b5493be8e199f5967dfb8f694fb0953c872a4694c8830dbba02937958752", sizeof(real), LANES, 2, 1, kernel_inputs, kernel_outputs, 16, 0, 0, run, 0, 0, 0, 0, 0};
