/* viscoplastic_jacobian: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_jacobian.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 160 nodes of ATen, SHA-256 e97f24bd44b311cdcb4a68973c18f574c0463f2eda3bb6bb126d53aefa45f76d.
 * Kernel: 229 operations on float64 a point.
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
  const lanes v121 = residual_elasticity_E_value * 0.7692307692307692;
  kept[1] = v121;
  kept[2] = v31 * v121;
  const lanes v119 = residual_elasticity_E_value * 2.5;
  kept[3] = v119;
  kept[4] = v31 * (v119 - v121);
  kept[5] = v31 * 0.816496580927726;
  const lanes strain_0 = givens[0];
  const lanes strain_old_0 = givens[6];
  const lanes v39 = scale_of(v31);
  const lanes v41 = 1.0 / (v31 * v39);
  kept[6] = (strain_0 - strain_old_0) * v41 * v39;
  const lanes strain_1 = givens[1];
  const lanes strain_old_1 = givens[7];
  kept[7] = (strain_1 - strain_old_1) * v41 * v39;
  const lanes strain_2 = givens[2];
  const lanes strain_old_2 = givens[8];
  kept[8] = (strain_2 - strain_old_2) * v41 * v39;
  const lanes strain_3 = givens[3];
  const lanes strain_old_3 = givens[9];
  kept[9] = (strain_3 - strain_old_3) * v41 * v39;
  const lanes strain_4 = givens[4];
  const lanes strain_old_4 = givens[10];
  kept[10] = (strain_4 - strain_old_4) * v41 * v39;
  const lanes strain_5 = givens[5];
  const lanes strain_old_5 = givens[11];
  kept[11] = (strain_5 - strain_old_5) * v41 * v39;
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const kept = results;
  const lanes *const unknowns = inputs[0];
  const lanes *const givens = inputs[1];
  const lanes *const residual_normality_yield_surface_yield_function_sy = inputs[2];
  lanes *const jacobian = outputs[0];
  lanes *const residual = outputs[1];
  lanes *const by_auxiliaries = outputs[2];
  lanes *const auxiliaries = outputs[3];
  const lanes stress_0 = unknowns[0];
  const lanes stress_1 = unknowns[1];
  const lanes stress_2 = unknowns[2];
  const lanes v51 = (stress_0 + stress_1 + stress_2) * 0.3333333333333333;
  const lanes v52 = stress_0 - v51;
  const lanes v53 = stress_1 - v51;
  const lanes v54 = stress_2 - v51;
  const lanes stress_3 = unknowns[3];
  const lanes stress_4 = unknowns[4];
  const lanes stress_5 = unknowns[5];
  const lanes v62 = v52 * v52 + v53 * v53 + v54 * v54 + stress_3 * stress_3 + stress_4 * stress_4 + stress_5 * stress_5;
  const lanes v66 = v62 * 1.5 + 2.220446049250313e-16;
  const lanes v67 = square_root(v66);
  const lanes v69 = scale_of(v67);
  const lanes v71 = 1.0 / (v67 * v69);
  const lanes v75 = 1.0 * v71 * v69;
  const lanes v77 = 1.5 * v75;
  const lanes residual_normality_yield_surface_yield_function_sy_value = residual_normality_yield_surface_yield_function_sy[0];
  const lanes equivalent_plastic_strain_value = unknowns[6];
  const lanes v86 = (v67 - residual_normality_yield_surface_yield_function_sy_value) * 0.816496580927726 - equivalent_plastic_strain_value * 1632.9931618554522;
  const lanes v94 = sign_of(v86);
  const lanes v96 = 0.5 * (1.0 + v94);
  const lanes v99 = absolute(v86) * 0.008333333333333333;
  const lanes v100 = v99 * v99;
  const lanes v102 = v100 * v100;
  const lanes v103 = v96 * v100 * v102;
  const lanes v104 = 0.816496580927726 * v103;
  const lanes v156 = v77 * v104;
  const lanes v137 = kept[2];
  const lanes v160 = v137 * v156;
  const lanes v161 = 1.0 + v160;
  jacobian[12] = v161;
  jacobian[14] = v161;
  jacobian[16] = v161;
  const lanes v228 = 0.3333333333333333 * v160;
  const lanes v183 = 0.3333333333333333 * v156;
  const lanes v165 = kept[4];
  const lanes v230 = v165 * (0.3333333333333333 * (v183 + v156 * 0.6666666666666666) - v183);
  const lanes v232 = v161 - v228 - v230;
  jacobian[0] = v232;
  jacobian[5] = v232;
  jacobian[10] = v232;
  const lanes v234 = -v228 - v230;
  jacobian[1] = v234;
  jacobian[2] = v234;
  jacobian[4] = v234;
  jacobian[6] = v234;
  jacobian[8] = v234;
  jacobian[9] = v234;
  const lanes v152 = v94 * v96 * v99 * 0.016666666666666666 * (v102 + 2.0 * v102);
  const lanes v158 = 1632.9931618554522 * v152;
  const lanes v78 = v52 * v77;
  const lanes v87 = v78 * 0.816496580927726;
  const lanes v184 = v87 * v137;
  const lanes v79 = v53 * v77;
  const lanes v80 = v54 * v77;
  const lanes v193 = v78 * 0.2721655269759087 + v79 * 0.2721655269759087 + v80 * 0.2721655269759087;
  const lanes v231 = v158 * v165 * v193;
  jacobian[3] = -v158 * v184 - v231;
  const lanes v88 = v79 * 0.816496580927726;
  const lanes v190 = v88 * v137;
  jacobian[7] = -v158 * v190 - v231;
  const lanes v89 = v80 * 0.816496580927726;
  const lanes v196 = v89 * v137;
  jacobian[11] = -v158 * v196 - v231;
  const lanes v90 = v77 * 0.816496580927726;
  const lanes v91 = stress_3 * v90;
  const lanes v159 = v91 * v137;
  jacobian[13] = -(v158 * v159);
  const lanes v92 = stress_4 * v90;
  const lanes v162 = v92 * v137;
  jacobian[15] = -(v158 * v162);
  const lanes v93 = stress_5 * v90;
  const lanes v163 = v93 * v137;
  jacobian[17] = -(v158 * v163);
  const lanes v153 = kept[5];
  jacobian[18] = 1.0 + v153 * v158;
  const lanes v42 = kept[6];
  const lanes v112 = v42 - v87 * v103;
  const lanes v43 = kept[7];
  const lanes v113 = v43 - v88 * v103;
  const lanes v44 = kept[8];
  const lanes v114 = v44 - v89 * v103;
  const lanes v123 = 0.3333333333333333 * (v112 + v113 + v114);
  const lanes v119 = kept[3];
  const lanes v124 = v119 * v123;
  const lanes v121 = kept[1];
  const lanes v31 = kept[0];
  const lanes stress_old_0 = givens[15];
  residual[0] = stress_old_0 + v31 * (v124 + v121 * (v112 - v123)) - stress_0;
  const lanes stress_old_1 = givens[16];
  residual[1] = stress_old_1 + v31 * (v124 + v121 * (v113 - v123)) - stress_1;
  const lanes stress_old_2 = givens[17];
  residual[2] = stress_old_2 + v31 * (v124 + v121 * (v114 - v123)) - stress_2;
  const lanes v45 = kept[9];
  const lanes stress_old_3 = givens[18];
  residual[3] = stress_old_3 + (v45 - v91 * v103) * v137 - stress_3;
  const lanes v46 = kept[10];
  const lanes stress_old_4 = givens[19];
  residual[4] = stress_old_4 + (v46 - v92 * v103) * v137 - stress_4;
  const lanes v47 = kept[11];
  const lanes stress_old_5 = givens[20];
  residual[5] = stress_old_5 + (v47 - v93 * v103) * v137 - stress_5;
  const lanes equivalent_plastic_strain_old_value = givens[14];
  residual[6] = equivalent_plastic_strain_old_value + v31 * v104 - equivalent_plastic_strain_value;
  const lanes v157 = 0.816496580927726 * v152;
  const lanes v171 = v104 * (1.5 * (v75 * v71 * v69));
  const lanes v172 = v52 * v171;
  const lanes v173 = v53 * v171;
  const lanes v174 = v54 * v171;
  const lanes v211 = 0.3333333333333333 * v172 + 0.3333333333333333 * v173 + 0.3333333333333333 * v174 - v157 * v193;
  const lanes v229 = v165 * v211;
  by_auxiliaries[0] = v157 * v184 - v137 * v172 - v229;
  by_auxiliaries[1] = v157 * v190 - v137 * v173 - v229;
  by_auxiliaries[2] = v157 * v196 - v137 * v174 - v229;
  const lanes v175 = v137 * v171;
  by_auxiliaries[3] = v157 * v159 - stress_3 * v175;
  by_auxiliaries[4] = v157 * v162 - stress_4 * v175;
  by_auxiliaries[5] = v157 * v163 - stress_5 * v175;
  by_auxiliaries[6] = -(v153 * v157);
  const lanes v154 = 2.0 * (1.5 * where(v66 > 0.0, 0.5 * v71 * v69, fill(0.0)));
  const lanes v169 = v52 * v154;
  const lanes v168 = v54 * v154;
  const lanes v170 = v53 * v154;
  const lanes v222 = 0.3333333333333333 * (v168 + v169 + v170);
  auxiliaries[0] = v169 - v222;
  auxiliaries[1] = v170 - v222;
  auxiliaries[2] = v168 - v222;
  auxiliaries[3] = stress_3 * v154;
  auxiliaries[4] = stress_4 * v154;
  auxiliaries[5] = stress_5 * v154;
}

static const neml2_kernel_part input_0_parts[] = {{"stress", 0, 6}, {"equivalent_plastic_strain", 6, 1}};
static const neml2_kernel_part input_1_parts[] = {{"strain", 0, 6}, {"strain~1", 6, 6}, {"t", 12, 1}, {"t~1", 13, 1}, {"equivalent_plastic_strain~1", 14, 1}, {"stress~1", 15, 6}};
static const neml2_kernel_array kernel_inputs[] = {{"unknowns", 7, NEML2_KERNEL_PER_POINT, 1, 2, input_0_parts, 0}, {"givens", 21, NEML2_KERNEL_PER_POINT, 0, 6, input_1_parts, 0}, {"residual.normality.yield_surface.yield_function.sy", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}, {"residual.elasticity.E", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_2_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_3_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"jacobian", 19, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"residual", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}, {"by_auxiliaries", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_2_structure}, {"auxiliaries", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_3_structure}};

static const int32_t output_0_places[] = {0, 1, 2, 6, 7, 8, 9, 13, 14, 15, 16, 20, 24, 27, 32, 34, 40, 41, 48};
static const int32_t output_2_places[] = {0, 1, 2, 3, 4, 5, 6};
static const int32_t output_3_places[] = {0, 1, 2, 3, 4, 5};
static const neml2_kernel_sparse sparse[] = {{0, 49, output_0_places}, {2, 7, output_2_places}, {3, 8, output_3_places}};

const neml2_kernel neml2_kernel_viscoplastic_jacobian = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_jacobian", "e97f24bd44b311cdcb4a68973c18f574c0463f2eda3bb6bb126d53aefa45f76d", sizeof(real), LANES, 4, 4, kernel_inputs, kernel_outputs, 229, 12, prepare, run, 3, sparse, 1, 0, 0};
