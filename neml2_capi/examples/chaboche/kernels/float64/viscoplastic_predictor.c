/* viscoplastic_predictor: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_predictor.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 5 nodes of ATen, SHA-256 c0355aeaae24af3b41bd8b4b15292e2a02d79fd97a27f26b13ba0a133e2e030a.
 * Kernel: 0 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const stress_old = inputs[0];
  const lanes *const X1_old = inputs[1];
  const lanes *const X2_old = inputs[2];
  const lanes *const equivalent_plastic_strain_old = inputs[3];
  lanes *const stress = outputs[0];
  lanes *const X1_ = outputs[1];
  lanes *const X2_ = outputs[2];
  lanes *const equivalent_plastic_strain = outputs[3];
  (void)results;
  stress[0] = stress_old[0];
  stress[1] = stress_old[1];
  stress[2] = stress_old[2];
  stress[3] = stress_old[3];
  stress[4] = stress_old[4];
  stress[5] = stress_old[5];
  X1_[0] = X1_old[0];
  X1_[1] = X1_old[1];
  X1_[2] = X1_old[2];
  X1_[3] = X1_old[3];
  X1_[4] = X1_old[4];
  X1_[5] = X1_old[5];
  X2_[0] = X2_old[0];
  X2_[1] = X2_old[1];
  X2_[2] = X2_old[2];
  X2_[3] = X2_old[3];
  X2_[4] = X2_old[4];
  X2_[5] = X2_old[5];
  equivalent_plastic_strain[0] = equivalent_plastic_strain_old[0];
}

static const neml2_kernel_array kernel_inputs[] = {{"stress~1", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"X1~1", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"X2~1", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"equivalent_plastic_strain~1", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0, 0, 0, 0, 0, 0};
static const signed char output_2_structure[] = {0, 0, 0, 0, 0, 0};
static const signed char output_3_structure[] = {0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"X1", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}, {"X2", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_2_structure}, {"equivalent_plastic_strain", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_3_structure}};

const neml2_kernel neml2_kernel_viscoplastic_predictor = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_predictor", "c0355aeaae24af3b41bd8b4b15292e2a02d79fd97a27f26b13ba0a133e2e030a", sizeof(real), LANES, 4, 4, kernel_inputs, kernel_outputs, 0, 0, 0, run, 0, 0, 0, 0, 0, 0};
