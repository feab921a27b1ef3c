/* viscoplastic_predictor: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_predictor.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 3 nodes of ATen, SHA-256 4f8cbc13e18877ffa12137cfd497219c81cacdf40871efc65ba2a5cdf43f44c2.
 * Kernel: 0 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const stress_old = inputs[0];
  const lanes *const equivalent_plastic_strain_old = inputs[1];
  lanes *const stress = outputs[0];
  lanes *const equivalent_plastic_strain = outputs[1];
  (void)results;
  stress[0] = stress_old[0];
  stress[1] = stress_old[1];
  stress[2] = stress_old[2];
  stress[3] = stress_old[3];
  stress[4] = stress_old[4];
  stress[5] = stress_old[5];
  equivalent_plastic_strain[0] = equivalent_plastic_strain_old[0];
}

static const neml2_kernel_array kernel_inputs[] = {{"stress~1", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"equivalent_plastic_strain~1", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"equivalent_plastic_strain", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}};

const neml2_kernel neml2_kernel_viscoplastic_predictor = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_predictor", "4f8cbc13e18877ffa12137cfd497219c81cacdf40871efc65ba2a5cdf43f44c2", sizeof(real), LANES, 2, 2, kernel_inputs, kernel_outputs, 0, 0, 0, run, 0, 0, 0, 0, 0, 0};
