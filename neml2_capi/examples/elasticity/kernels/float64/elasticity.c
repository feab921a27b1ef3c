/* elasticity: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 41 nodes of ATen, SHA-256 264235f612b7125be4b139c5a4888994959f2af2b5618d07a15dd1f74bd4f006.
 * Kernel: 18 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const strain = inputs[0];
  const lanes *const elasticity_E = inputs[1];
  lanes *const stress = outputs[0];
  (void)results;
  const lanes strain_0 = strain[0];
  const lanes strain_1 = strain[1];
  const lanes strain_2 = strain[2];
  const lanes v12 = (strain_0 + strain_1 + strain_2) * 0.3333333333333333;
  const lanes elasticity_E_value = elasticity_E[0];
  const lanes v13 = elasticity_E_value * 2.5 * v12;
  const lanes v9 = elasticity_E_value * 0.7692307692307692;
  stress[0] = v13 + v9 * (strain_0 - v12);
  stress[1] = v13 + v9 * (strain_1 - v12);
  stress[2] = v13 + v9 * (strain_2 - v12);
  const lanes strain_3 = strain[3];
  stress[3] = strain_3 * v9;
  const lanes strain_4 = strain[4];
  stress[4] = strain_4 * v9;
  const lanes strain_5 = strain[5];
  stress[5] = strain_5 * v9;
}

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}};

const neml2_kernel neml2_kernel_elasticity = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity", "264235f612b7125be4b139c5a4888994959f2af2b5618d07a15dd1f74bd4f006", sizeof(real), LANES, 2, 1, kernel_inputs, kernel_outputs, 18, 0, 0, run, 0, 0, 0, 0, 0};
