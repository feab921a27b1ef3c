/* elasticity_jvp: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity_jvp.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 109 nodes of ATen, SHA-256 1a87ed02d3f929ca0c3e64903d11924ede0a06521a4e7863966260f917d1914c.
 * Kernel: 23 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const strain = inputs[0];
  const lanes *const elasticity_E = inputs[1];
  lanes *const stress = outputs[0];
  lanes *const d_stress_d_strain = outputs[1];
  (void)results;
  const lanes strain_0 = strain[0];
  const lanes strain_1 = strain[1];
  const lanes strain_2 = strain[2];
  const lanes v12 = (strain_0 + strain_1 + strain_2) * 0.3333333333333333;
  const lanes elasticity_E_value = elasticity_E[0];
  const lanes v13 = elasticity_E_value * 2.5 * v12;
  const lanes v9 = elasticity_E_value * 0.7692307692307692;
  d_stress_d_strain[21] = v9;
  d_stress_d_strain[28] = v9;
  d_stress_d_strain[35] = v9;
  stress[0] = v13 + v9 * (strain_0 - v12);
  stress[1] = v13 + v9 * (strain_1 - v12);
  stress[2] = v13 + v9 * (strain_2 - v12);
  const lanes strain_3 = strain[3];
  stress[3] = strain_3 * v9;
  const lanes strain_4 = strain[4];
  stress[4] = strain_4 * v9;
  const lanes strain_5 = strain[5];
  stress[5] = strain_5 * v9;
  const lanes v28 = elasticity_E_value * 0.8333333333333333;
  const lanes v33 = v28 + elasticity_E_value * 0.5128205128205129;
  d_stress_d_strain[0] = v33;
  d_stress_d_strain[7] = v33;
  d_stress_d_strain[14] = v33;
  const lanes v34 = v28 - elasticity_E_value * 0.2564102564102564;
  d_stress_d_strain[1] = v34;
  d_stress_d_strain[2] = v34;
  d_stress_d_strain[6] = v34;
  d_stress_d_strain[8] = v34;
  d_stress_d_strain[12] = v34;
  d_stress_d_strain[13] = v34;
  const lanes c26 = fill(0.0);
  d_stress_d_strain[3] = c26;
  d_stress_d_strain[4] = c26;
  d_stress_d_strain[5] = c26;
  d_stress_d_strain[9] = c26;
  d_stress_d_strain[10] = c26;
  d_stress_d_strain[11] = c26;
  d_stress_d_strain[15] = c26;
  d_stress_d_strain[16] = c26;
  d_stress_d_strain[17] = c26;
  d_stress_d_strain[18] = c26;
  d_stress_d_strain[19] = c26;
  d_stress_d_strain[20] = c26;
  d_stress_d_strain[22] = c26;
  d_stress_d_strain[23] = c26;
  d_stress_d_strain[24] = c26;
  d_stress_d_strain[25] = c26;
  d_stress_d_strain[26] = c26;
  d_stress_d_strain[27] = c26;
  d_stress_d_strain[29] = c26;
  d_stress_d_strain[30] = c26;
  d_stress_d_strain[31] = c26;
  d_stress_d_strain[32] = c26;
  d_stress_d_strain[33] = c26;
  d_stress_d_strain[34] = c26;
}

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"d_stress_d_strain", 36, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}};

const neml2_kernel neml2_kernel_elasticity_jvp = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity_jvp", "1a87ed02d3f929ca0c3e64903d11924ede0a06521a4e7863966260f917d1914c", sizeof(real), LANES, 2, 2, kernel_inputs, kernel_outputs, 23, 0, 0, run, 0, 0, 0, 0, 0, 0};
