/* viscoplastic_residual: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_residual.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 160 nodes of ATen, SHA-256 efc20383464a1f2ca73affc99aca57c698a0378c4e2cffab016284b5b689b421.
 * Kernel: 108 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void prepare(const void *const *inputs, void *results) {
  lanes *const kept = results;
  const lanes *const givens = inputs[1];
  const lanes *const residual_elasticity_E = inputs[3];
  const lanes t_value = givens[12];
  const lanes t_old_value = givens[13];
  const lanes v31 = t_value - t_old_value;
  kept[0] = v31;
  const lanes residual_elasticity_E_value = residual_elasticity_E[0];
  kept[1] = residual_elasticity_E_value * 2.5;
  const lanes strain_0 = givens[0];
  const lanes strain_old_0 = givens[6];
  const lanes v39 = scale_of(v31);
  const lanes v41 = 1.0 / (v31 * v39);
  kept[2] = (strain_0 - strain_old_0) * v41 * v39;
  const lanes strain_1 = givens[1];
  const lanes strain_old_1 = givens[7];
  kept[3] = (strain_1 - strain_old_1) * v41 * v39;
  const lanes strain_2 = givens[2];
  const lanes strain_old_2 = givens[8];
  kept[4] = (strain_2 - strain_old_2) * v41 * v39;
  const lanes v99 = residual_elasticity_E_value * 0.7692307692307692;
  kept[5] = v99;
  const lanes strain_3 = givens[3];
  const lanes strain_old_3 = givens[9];
  kept[6] = (strain_3 - strain_old_3) * v41 * v39;
  kept[7] = v31 * v99;
  const lanes strain_4 = givens[4];
  const lanes strain_old_4 = givens[10];
  kept[8] = (strain_4 - strain_old_4) * v41 * v39;
  const lanes strain_5 = givens[5];
  const lanes strain_old_5 = givens[11];
  kept[9] = (strain_5 - strain_old_5) * v41 * v39;
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const kept = results;
  const lanes *const unknowns = inputs[0];
  const lanes *const givens = inputs[1];
  const lanes *const residual_normality_yield_surface_yield_function_sy = inputs[2];
  lanes *const residual = outputs[0];
  const lanes stress_0 = unknowns[0];
  const lanes stress_1 = unknowns[1];
  const lanes stress_2 = unknowns[2];
  const lanes v50 = (stress_0 + stress_1 + stress_2) * 0.3333333333333333;
  const lanes v51 = stress_0 - v50;
  const lanes v52 = stress_1 - v50;
  const lanes v53 = stress_2 - v50;
  const lanes stress_3 = unknowns[3];
  const lanes stress_4 = unknowns[4];
  const lanes stress_5 = unknowns[5];
  const lanes v60 = v51 * v51 + v52 * v52 + v53 * v53 + stress_3 * stress_3 + stress_4 * stress_4 + stress_5 * stress_5;
  const lanes v65 = square_root(v60 * 1.5 + 2.220446049250313e-16);
  const lanes residual_normality_yield_surface_yield_function_sy_value = residual_normality_yield_surface_yield_function_sy[0];
  const lanes equivalent_plastic_strain_value = unknowns[6];
  const lanes v73 = (v65 - residual_normality_yield_surface_yield_function_sy_value) * 0.816496580927726 - equivalent_plastic_strain_value * 1632.9931618554522;
  const lanes v79 = absolute(v73) * 0.008333333333333333;
  const lanes v80 = v79 * v79;
  const lanes v82 = 0.816496580927726 * ((1.0 + sign_of(v73)) * 0.5 * v80 * v80 * v80);
  const lanes v83 = (1.5 * (1.0 / v65)) * v82;
  const lanes v42 = kept[2];
  const lanes v91 = v42 - v51 * v83;
  const lanes v43 = kept[3];
  const lanes v92 = v43 - v52 * v83;
  const lanes v44 = kept[4];
  const lanes v93 = v44 - v53 * v83;
  const lanes v101 = 0.3333333333333333 * (v91 + v92 + v93);
  const lanes v102 = kept[1];
  const lanes v103 = v102 * v101;
  const lanes v99 = kept[5];
  const lanes v31 = kept[0];
  const lanes stress_old_0 = givens[15];
  residual[0] = stress_old_0 + v31 * (v103 + v99 * (v91 - v101)) - stress_0;
  const lanes stress_old_1 = givens[16];
  residual[1] = stress_old_1 + v31 * (v103 + v99 * (v92 - v101)) - stress_1;
  const lanes stress_old_2 = givens[17];
  residual[2] = stress_old_2 + v31 * (v103 + v99 * (v93 - v101)) - stress_2;
  const lanes v45 = kept[6];
  const lanes v116 = kept[7];
  const lanes stress_old_3 = givens[18];
  residual[3] = stress_old_3 + (v45 - stress_3 * v83) * v116 - stress_3;
  const lanes v46 = kept[8];
  const lanes stress_old_4 = givens[19];
  residual[4] = stress_old_4 + (v46 - stress_4 * v83) * v116 - stress_4;
  const lanes v47 = kept[9];
  const lanes stress_old_5 = givens[20];
  residual[5] = stress_old_5 + (v47 - stress_5 * v83) * v116 - stress_5;
  const lanes equivalent_plastic_strain_old_value = givens[14];
  residual[6] = equivalent_plastic_strain_old_value + v31 * v82 - equivalent_plastic_strain_value;
}

static const neml2_kernel_part input_0_parts[] = {{"stress", 0, 6}, {"equivalent_plastic_strain", 6, 1}};
static const neml2_kernel_part input_1_parts[] = {{"strain", 0, 6}, {"strain~1", 6, 6}, {"t", 12, 1}, {"t~1", 13, 1}, {"equivalent_plastic_strain~1", 14, 1}, {"stress~1", 15, 6}};
static const neml2_kernel_array kernel_inputs[] = {{"unknowns", 7, NEML2_KERNEL_PER_POINT, 1, 2, input_0_parts, 0}, {"givens", 21, NEML2_KERNEL_PER_POINT, 0, 6, input_1_parts, 0}, {"residual.normality.yield_surface.yield_function.sy", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}, {"residual.elasticity.E", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}};

static const neml2_kernel_part output_0_parts[] = {{"stress_residual", 0, 6}, {"equivalent_plastic_strain_residual", 6, 1}};
static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"residual", 7, NEML2_KERNEL_PER_POINT, 0, 2, output_0_parts, output_0_structure}};

const neml2_kernel neml2_kernel_viscoplastic_residual = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_residual", "efc20383464a1f2ca73affc99aca57c698a0378c4e2cffab016284b5b689b421", sizeof(real), LANES, 4, 1, kernel_inputs, kernel_outputs, 108, 10, prepare, run, 0, 0, 0, 0, 0, 0};
