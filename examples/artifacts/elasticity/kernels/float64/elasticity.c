/* elasticity: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity.pt2; made with neml2 3.1.0, torch 2.13.0.
 * Graph: 41 nodes of ATen, SHA-256 d1b42d27c8cd7e29b57d563bef1b31f2e7378cda284671be4d2dc9850beb184b.
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
  const lanes v9 = strain_0 + strain_1 + strain_2;
  const lanes elasticity_E_value = elasticity_E[0];
  const lanes v12 = elasticity_E_value * 0.8333333333333333 * v9;
  const lanes v11 = v9 * 0.3333333333333333;
  const lanes v16 = elasticity_E_value * 0.7692307692307692;
  stress[0] = v12 + (strain_0 - v11) * v16;
  stress[1] = v12 + (strain_1 - v11) * v16;
  stress[2] = v12 + (strain_2 - v11) * v16;
  const lanes strain_3 = strain[3];
  stress[3] = strain_3 * v16;
  const lanes strain_4 = strain[4];
  stress[4] = strain_4 * v16;
  const lanes strain_5 = strain[5];
  stress[5] = strain_5 * v16;
}

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}};

const neml2_kernel neml2_kernel_elasticity = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity", "d1b42d27c8cd7e29b57d563bef1b31f2e7378cda284671be4d2dc9850beb184b", sizeof(real), LANES, 2, 1, kernel_inputs, kernel_outputs, 18, 0, 0, run};
