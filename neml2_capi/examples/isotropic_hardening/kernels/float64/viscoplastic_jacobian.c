/* viscoplastic_jacobian: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_jacobian.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 160 nodes of ATen, SHA-256 e97f24bd44b311cdcb4a68973c18f574c0463f2eda3bb6bb126d53aefa45f76d.
 * Kernel: 139 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void prepare(const void *const *inputs, void *results) {
  lanes *const kept = results;
  const lanes *const givens = inputs[1];
  const lanes *const residual_normality_yield_surface_yield_function_sy = inputs[2];
  const lanes *const residual_elasticity_E = inputs[3];
  const lanes residual_normality_yield_surface_yield_function_sy_value = residual_normality_yield_surface_yield_function_sy[0];
  kept[0] = residual_normality_yield_surface_yield_function_sy_value * 0.816496580927726;
  const lanes t_value = givens[12];
  const lanes t_old_value = givens[13];
  const lanes v31 = t_value - t_old_value;
  kept[1] = v31;
  const lanes residual_elasticity_E_value = residual_elasticity_E[0];
  const lanes v97 = residual_elasticity_E_value * 0.7692307692307692;
  const lanes v110 = v31 * v97;
  kept[2] = v110;
  const lanes strain_0 = givens[0];
  const lanes strain_old_0 = givens[6];
  const lanes v39 = scale_of(v31);
  const lanes v41 = 1.0 / (v31 * v39);
  const lanes v42 = (strain_0 - strain_old_0) * v41 * v39;
  const lanes strain_1 = givens[1];
  const lanes strain_old_1 = givens[7];
  const lanes v43 = (strain_1 - strain_old_1) * v41 * v39;
  const lanes strain_2 = givens[2];
  const lanes strain_old_2 = givens[8];
  const lanes v44 = (strain_2 - strain_old_2) * v41 * v39;
  const lanes v99 = 0.3333333333333333 * (v42 + v43 + v44);
  const lanes v100 = residual_elasticity_E_value * 2.5 * v99;
  const lanes stress_old_0 = givens[15];
  kept[3] = stress_old_0 + v31 * (v100 + v97 * (v42 - v99));
  const lanes stress_old_1 = givens[16];
  kept[4] = stress_old_1 + v31 * (v100 + v97 * (v43 - v99));
  const lanes stress_old_2 = givens[17];
  kept[5] = stress_old_2 + v31 * (v100 + v97 * (v44 - v99));
  const lanes strain_3 = givens[3];
  const lanes strain_old_3 = givens[9];
  const lanes stress_old_3 = givens[18];
  kept[6] = stress_old_3 + (strain_3 - strain_old_3) * v41 * v39 * v110;
  const lanes strain_4 = givens[4];
  const lanes strain_old_4 = givens[10];
  const lanes stress_old_4 = givens[19];
  kept[7] = stress_old_4 + (strain_4 - strain_old_4) * v41 * v39 * v110;
  const lanes strain_5 = givens[5];
  const lanes strain_old_5 = givens[11];
  const lanes stress_old_5 = givens[20];
  kept[8] = stress_old_5 + (strain_5 - strain_old_5) * v41 * v39 * v110;
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const kept = results;
  const lanes *const unknowns = inputs[0];
  const lanes *const givens = inputs[1];
  lanes *const jacobian = outputs[0];
  lanes *const residual = outputs[1];
  lanes *const by_auxiliaries = outputs[2];
  lanes *const auxiliaries = outputs[3];
  const lanes stress_5 = unknowns[5];
  const lanes stress_3 = unknowns[3];
  const lanes stress_4 = unknowns[4];
  const lanes stress_0 = unknowns[0];
  const lanes stress_1 = unknowns[1];
  const lanes stress_2 = unknowns[2];
  const lanes v51 = (stress_2 + (stress_0 + stress_1)) * 0.3333333333333333;
  const lanes v52 = stress_0 - v51;
  by_auxiliaries[1] = v52;
  const lanes v53 = stress_1 - v51;
  by_auxiliaries[3] = v53;
  const lanes v54 = stress_2 - v51;
  by_auxiliaries[5] = v54;
  const lanes v66 = ((stress_5 * stress_5 + (stress_3 * stress_3 + stress_4 * stress_4)) + v52 * v52) + (v53 * v53 + v54 * v54);
  const lanes v71 = square_root(v66 * 1.5 + 2.220446049250313e-16);
  const lanes v73 = 1.0 / v71;
  const lanes v74 = 1.5 * v73;
  const lanes equivalent_plastic_strain_value = unknowns[6];
  const lanes v77 = kept[0];
  const lanes v81 = v71 * 0.816496580927726 - (v77 + equivalent_plastic_strain_value * 1632.9931618554522);
  const lanes v86 = absolute(v81) * 0.008333333333333333;
  const lanes v87 = v86 * v86;
  const lanes v90 = v87 * v87;
  const lanes v82 = sign_of(v81);
  const lanes v89 = 0.5 + 0.5 * v82;
  const lanes v93 = v90 * (v89 * (0.816496580927726 * v87));
  const lanes v110 = kept[2];
  const lanes v111 = v93 * v110;
  const lanes v112 = v74 * v111;
  const lanes v161 = 1.0 + v112;
  jacobian[0] = v161;
  jacobian[1] = v161;
  jacobian[2] = v161;
  jacobian[3] = v161;
  jacobian[4] = v161;
  jacobian[5] = v161;
  const lanes v153 = v86 * (0.016666666666666666 * v82) * v89 * (v90 + 2.0 * v90);
  const lanes v158 = v153 * 1333.3333333333335;
  const lanes v31 = kept[1];
  jacobian[6] = 1.0 + v31 * v158;
  const lanes v125 = kept[3];
  residual[0] = (v125 - stress_0) - v52 * v112;
  const lanes v128 = kept[4];
  residual[1] = (v128 - stress_1) - v53 * v112;
  const lanes v131 = kept[5];
  residual[2] = (v131 - stress_2) - v54 * v112;
  const lanes v134 = kept[6];
  residual[3] = (v134 - stress_3) - stress_3 * v112;
  const lanes v137 = kept[7];
  residual[4] = (v137 - stress_4) - stress_4 * v112;
  const lanes v140 = kept[8];
  residual[5] = (v140 - stress_5) - stress_5 * v112;
  const lanes equivalent_plastic_strain_old_value = givens[14];
  residual[6] = (equivalent_plastic_strain_old_value - equivalent_plastic_strain_value) + v31 * v93;
  const lanes v174 = -v112;
  by_auxiliaries[0] = v174;
  by_auxiliaries[2] = v174;
  by_auxiliaries[4] = v174;
  const lanes v160 = v153 * 0.6666666666666666;
  by_auxiliaries[9] = -(v31 * v160);
  const lanes v155 = 2.0 * (0.5 * v74);
  auxiliaries[3] = v52 * v155;
  auxiliaries[4] = v53 * v155;
  auxiliaries[5] = v54 * v155;
  auxiliaries[6] = stress_3 * v155;
  auxiliaries[7] = stress_4 * v155;
  auxiliaries[8] = stress_5 * v155;
  const lanes v154 = v74 * v110;
  auxiliaries[9] = -(v154 * v158);
  auxiliaries[10] = v154 * v160 - v73 * v74 * v111;
  by_auxiliaries[6] = unknowns[3];
  by_auxiliaries[7] = unknowns[4];
  by_auxiliaries[8] = unknowns[5];
  const lanes c50 = fill(0.3333333333333333);
  auxiliaries[0] = c50;
  auxiliaries[1] = c50;
  auxiliaries[2] = c50;
}

static const neml2_kernel_part input_0_parts[] = {{"stress", 0, 6}, {"equivalent_plastic_strain", 6, 1}};
static const neml2_kernel_part input_1_parts[] = {{"strain", 0, 6}, {"strain~1", 6, 6}, {"t", 12, 1}, {"t~1", 13, 1}, {"equivalent_plastic_strain~1", 14, 1}, {"stress~1", 15, 6}};
static const neml2_kernel_array kernel_inputs[] = {{"unknowns", 7, NEML2_KERNEL_PER_POINT, 1, 2, input_0_parts, 0}, {"givens", 21, NEML2_KERNEL_PER_POINT, 0, 6, input_1_parts, 0}, {"residual.normality.yield_surface.yield_function.sy", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}, {"residual.elasticity.E", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_2_structure[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const signed char output_3_structure[] = {2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"jacobian", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"residual", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}, {"by_auxiliaries", 10, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_2_structure}, {"auxiliaries", 11, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_3_structure}};

static const int32_t output_0_places[] = {0, 8, 16, 24, 32, 40, 48};
static const int32_t output_2_places[] = {0, 2, 3, 5, 6, 8, 11, 14, 17, 19};
static const int32_t output_3_places[] = {0, 1, 2, 10, 11, 12, 13, 14, 15, 26, 28};
static const neml2_kernel_sparse sparse[] = {{0, 49, output_0_places}, {2, 21, output_2_places}, {3, 30, output_3_places}};

const neml2_kernel neml2_kernel_viscoplastic_jacobian = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_jacobian", "e97f24bd44b311cdcb4a68973c18f574c0463f2eda3bb6bb126d53aefa45f76d", sizeof(real), LANES, 4, 4, kernel_inputs, kernel_outputs, 139, 9, prepare, run, 3, sparse, 3, 0, 0, 0};
