/* viscoplastic_residual: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_residual.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 160 nodes of ATen, SHA-256 c999963464df3219b169c0fd42c7c2bd8bca8f45d85a81e6863c200bfe239876.
 * Kernel: 98 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const unknowns = inputs[0];
  const lanes *const givens = inputs[1];
  const lanes *const residual_normality_yield_surface_yield_function_sy = inputs[2];
  const lanes *const residual_elasticity_E = inputs[3];
  lanes *const residual = outputs[0];
  (void)results;
  const lanes t_value = givens[12];
  const lanes t_old_value = givens[13];
  const lanes v31 = t_value - t_old_value;
  const lanes strain_0 = givens[0];
  const lanes strain_old_0 = givens[6];
  const lanes v39 = 1.0 / v31;
  const lanes stress_0 = unknowns[0];
  const lanes stress_1 = unknowns[1];
  const lanes stress_2 = unknowns[2];
  const lanes v48 = (stress_0 + stress_1 + stress_2) * 0.3333333333333333;
  const lanes v49 = stress_0 - v48;
  const lanes v50 = stress_1 - v48;
  const lanes v51 = stress_2 - v48;
  const lanes stress_3 = unknowns[3];
  const lanes stress_4 = unknowns[4];
  const lanes stress_5 = unknowns[5];
  const lanes v58 = v49 * v49 + v50 * v50 + v51 * v51 + stress_3 * stress_3 + stress_4 * stress_4 + stress_5 * stress_5;
  const lanes v63 = square_root(v58 * 1.5 + 2.220446049250313e-16);
  const lanes residual_normality_yield_surface_yield_function_sy_value = residual_normality_yield_surface_yield_function_sy[0];
  const lanes equivalent_plastic_strain_value = unknowns[6];
  const lanes v70 = (residual_normality_yield_surface_yield_function_sy_value - v63) * 0.816496580927726 + equivalent_plastic_strain_value * 1632.9931618554522;
  const lanes v73 = absolute(v70);
  const lanes v74 = v73 * v73;
  const lanes v75 = (1.0 - sign_of(v70)) * v74 * v74 * v74;
  const lanes v79 = 2.0508228968936018e-13 * ((1.0 / v63) * v75);
  const lanes v87 = (strain_0 - strain_old_0) * v39 - v49 * v79;
  const lanes strain_1 = givens[1];
  const lanes strain_old_1 = givens[7];
  const lanes v88 = (strain_1 - strain_old_1) * v39 - v50 * v79;
  const lanes strain_2 = givens[2];
  const lanes strain_old_2 = givens[8];
  const lanes v89 = (strain_2 - strain_old_2) * v39 - v51 * v79;
  const lanes v95 = v87 + v88 + v89;
  const lanes residual_elasticity_E_value = residual_elasticity_E[0];
  const lanes v97 = residual_elasticity_E_value * 0.8333333333333333 * v95;
  const lanes v96 = 0.3333333333333333 * v95;
  const lanes v101 = residual_elasticity_E_value * 0.7692307692307692;
  const lanes stress_old_0 = givens[15];
  residual[0] = stress_old_0 + v31 * (v97 + (v87 - v96) * v101) - stress_0;
  const lanes stress_old_1 = givens[16];
  residual[1] = stress_old_1 + v31 * (v97 + (v88 - v96) * v101) - stress_1;
  const lanes stress_old_2 = givens[17];
  residual[2] = stress_old_2 + v31 * (v97 + (v89 - v96) * v101) - stress_2;
  const lanes strain_3 = givens[3];
  const lanes strain_old_3 = givens[9];
  const lanes v111 = v31 * v101;
  const lanes stress_old_3 = givens[18];
  residual[3] = stress_old_3 + ((strain_3 - strain_old_3) * v39 - stress_3 * v79) * v111 - stress_3;
  const lanes strain_4 = givens[4];
  const lanes strain_old_4 = givens[10];
  const lanes stress_old_4 = givens[19];
  residual[4] = stress_old_4 + ((strain_4 - strain_old_4) * v39 - stress_4 * v79) * v111 - stress_4;
  const lanes strain_5 = givens[5];
  const lanes strain_old_5 = givens[11];
  const lanes stress_old_5 = givens[20];
  residual[5] = stress_old_5 + ((strain_5 - strain_old_5) * v39 - stress_5 * v79) * v111 - stress_5;
  const lanes equivalent_plastic_strain_old_value = givens[14];
  residual[6] = equivalent_plastic_strain_old_value + v31 * v75 * 1.3672152645957346e-13 - equivalent_plastic_strain_value;
}

static const neml2_kernel_part input_0_parts[] = {{"stress", 0, 6}, {"equivalent_plastic_strain", 6, 1}};
static const neml2_kernel_part input_1_parts[] = {{"strain", 0, 6}, {"strain~1", 6, 6}, {"t", 12, 1}, {"t~1", 13, 1}, {"equivalent_plastic_strain~1", 14, 1}, {"stress~1", 15, 6}};
static const neml2_kernel_array kernel_inputs[] = {{"unknowns", 7, NEML2_KERNEL_PER_POINT, 0, 2, input_0_parts, 0}, {"givens", 21, NEML2_KERNEL_PER_POINT, 0, 6, input_1_parts, 0}, {"residual.normality.yield_surface.yield_function.sy", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}, {"residual.elasticity.E", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}};

static const neml2_kernel_part output_0_parts[] = {{"stress_residual", 0, 6}, {"equivalent_plastic_strain_residual", 6, 1}};
static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"residual", 7, NEML2_KERNEL_PER_POINT, 0, 2, output_0_parts, output_0_structure}};

const neml2_kernel neml2_kernel_viscoplastic_residual = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_residual", "c999963464df3219b169c0fd42c7c2bd8bca8f45d85a81e6863c200bfe239876", sizeof(real), LANES, 4, 1, kernel_inputs, kernel_outputs, 98, 0, 0, run};
