/* viscoplastic_residual: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_residual.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 249 nodes of ATen, SHA-256 5ed05e237b4e860a5f320c9006297e87b3fe9b1d7978da0496a43bfed587bcc0.
 * Kernel: 267 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

FUNCTION void compute(const void *const *inputs, void *const *outputs, const void *results, int one) {
  const lanes *const unknowns = inputs[0];
  const lanes *const givens = inputs[1];
  const lanes *const residual_normality_yield_surface_yield_function_sy = inputs[2];
  const lanes *const residual_elasticity_E = inputs[3];
  lanes *const residual = outputs[0];
  (void)results;
  const lanes t_value = givens[12];
  const lanes t_old_value = givens[13];
  const lanes v65 = t_value - t_old_value;
  const lanes residual_elasticity_E_value = residual_elasticity_E[0];
  const lanes strain_0 = givens[0];
  const lanes strain_old_0 = givens[6];
  const lanes v73 = scale_of(v65);
  const lanes v75 = 1.0 / (v65 * v73);
  const lanes stress_0 = unknowns[0];
  const lanes X1_0_ = unknowns[7];
  const lanes X2_0_ = unknowns[13];
  const lanes v82 = stress_0 - X1_0_ - X2_0_;
  const lanes stress_1 = unknowns[1];
  const lanes X1_1_ = unknowns[8];
  const lanes X2_1_ = unknowns[14];
  const lanes v83 = stress_1 - X1_1_ - X2_1_;
  const lanes stress_2 = unknowns[2];
  const lanes X1_2_ = unknowns[9];
  const lanes X2_2_ = unknowns[15];
  const lanes v84 = stress_2 - X1_2_ - X2_2_;
  const lanes v90 = (v82 + v83 + v84) * 0.3333333333333333;
  const lanes v91 = v82 - v90;
  const lanes v92 = v83 - v90;
  const lanes v93 = v84 - v90;
  const lanes stress_3 = unknowns[3];
  const lanes X1_3_ = unknowns[10];
  const lanes X2_3_ = unknowns[16];
  const lanes v85 = stress_3 - X1_3_ - X2_3_;
  const lanes stress_4 = unknowns[4];
  const lanes X1_4_ = unknowns[11];
  const lanes X2_4_ = unknowns[17];
  const lanes v86 = stress_4 - X1_4_ - X2_4_;
  const lanes stress_5 = unknowns[5];
  const lanes X1_5_ = unknowns[12];
  const lanes X2_5_ = unknowns[18];
  const lanes v87 = stress_5 - X1_5_ - X2_5_;
  const lanes v104 = (v91 * v91 + v92 * v92 + v93 * v93 + v85 * v85 + v86 * v86 + v87 * v87) * 1.5 + 2.220446049250313e-16;
  const lanes v105 = square_root(v104);
  const lanes v107 = 1.5 * (1.0 / v105);
  const lanes v108 = v91 * v107;
  const lanes residual_normality_yield_surface_yield_function_sy_value = residual_normality_yield_surface_yield_function_sy[0];
  const lanes equivalent_plastic_strain_value = unknowns[6];
  const lanes v119 = (v105 - residual_normality_yield_surface_yield_function_sy_value) * 0.816496580927726 - (1.0 - lanes_exp(-(8.0 * equivalent_plastic_strain_value))) * 48.98979485566356;
  const lanes v125 = absolute(v119) * 0.008333333333333333;
  const lanes v126 = v125 * v125;
  const lanes v127 = (1.0 + sign_of(v119)) * 0.5 * v126 * v126 * v126;
  const lanes v128 = 0.816496580927726 * v127;
  const lanes v231 = (strain_0 - strain_old_0) * v75 * v73 - v108 * v128;
  const lanes strain_1 = givens[1];
  const lanes strain_old_1 = givens[7];
  const lanes v109 = v92 * v107;
  const lanes v232 = (strain_1 - strain_old_1) * v75 * v73 - v109 * v128;
  const lanes strain_2 = givens[2];
  const lanes strain_old_2 = givens[8];
  const lanes v110 = v93 * v107;
  const lanes v233 = (strain_2 - strain_old_2) * v75 * v73 - v110 * v128;
  const lanes v253 = 0.3333333333333333 * (v231 + v232 + v233);
  const lanes v255 = residual_elasticity_E_value * 2.5 * v253;
  const lanes v251 = residual_elasticity_E_value * 0.7692307692307692;
  const lanes stress_old_0 = givens[27];
  residual[0] = stress_old_0 + v65 * (v255 + v251 * (v231 - v253)) - stress_0;
  const lanes stress_old_1 = givens[28];
  residual[1] = stress_old_1 + v65 * (v255 + v251 * (v232 - v253)) - stress_1;
  const lanes stress_old_2 = givens[29];
  residual[2] = stress_old_2 + v65 * (v255 + v251 * (v233 - v253)) - stress_2;
  const lanes strain_3 = givens[3];
  const lanes strain_old_3 = givens[9];
  const lanes v111 = v85 * v107;
  const lanes v268 = v65 * v251;
  const lanes stress_old_3 = givens[30];
  residual[3] = stress_old_3 + ((strain_3 - strain_old_3) * v75 * v73 - v111 * v128) * v268 - stress_3;
  const lanes strain_4 = givens[4];
  const lanes strain_old_4 = givens[10];
  const lanes v112 = v86 * v107;
  const lanes stress_old_4 = givens[31];
  residual[4] = stress_old_4 + ((strain_4 - strain_old_4) * v75 * v73 - v112 * v128) * v268 - stress_4;
  const lanes strain_5 = givens[5];
  const lanes strain_old_5 = givens[11];
  const lanes v113 = v87 * v107;
  const lanes stress_old_5 = givens[32];
  residual[5] = stress_old_5 + ((strain_5 - strain_old_5) * v75 * v73 - v113 * v128) * v268 - stress_5;
  const lanes equivalent_plastic_strain_old_value = givens[14];
  residual[6] = equivalent_plastic_strain_old_value + v65 * v128 - equivalent_plastic_strain_value;
  const lanes v141 = 2.220446049250313e-16 + X1_0_ * X1_0_ + X1_1_ * X1_1_ + X1_2_ * X1_2_ + X1_3_ * X1_3_ + X1_4_ * X1_4_ + X1_5_ * X1_5_;
  const lanes v189 = 2.220446049250313e-16 + X2_0_ * X2_0_ + X2_1_ * X2_1_ + X2_2_ * X2_2_ + X2_3_ * X2_3_ + X2_4_ * X2_4_ + X2_5_ * X2_5_;
  lanes calls163[CALLS] = {square_root(v141), square_root(v189)};
  lanes others163[CALLS] = {fill(1.2000000000000002), fill(2.2)};
  each_pow(calls163, others163, 2, one);
  const lanes v164 = 1e-06 * calls163[0];
  const lanes X1_old_0 = givens[15];
  residual[7] = X1_old_0 + v65 * (v127 * (v108 * 21773.24215807269 - 400.0 * X1_0_) - X1_0_ * v164) - X1_0_;
  const lanes X1_old_1 = givens[16];
  residual[8] = X1_old_1 + v65 * (v127 * (v109 * 21773.24215807269 - 400.0 * X1_1_) - X1_1_ * v164) - X1_1_;
  const lanes X1_old_2 = givens[17];
  residual[9] = X1_old_2 + v65 * (v127 * (v110 * 21773.24215807269 - 400.0 * X1_2_) - X1_2_ * v164) - X1_2_;
  const lanes X1_old_3 = givens[18];
  residual[10] = X1_old_3 + v65 * (v127 * (v111 * 21773.24215807269 - 400.0 * X1_3_) - X1_3_ * v164) - X1_3_;
  const lanes X1_old_4 = givens[19];
  residual[11] = X1_old_4 + v65 * (v127 * (v112 * 21773.24215807269 - 400.0 * X1_4_) - X1_4_ * v164) - X1_4_;
  const lanes X1_old_5 = givens[20];
  residual[12] = X1_old_5 + v65 * (v127 * (v113 * 21773.24215807269 - 400.0 * X1_5_) - X1_5_ * v164) - X1_5_;
  const lanes v211 = 1e-08 * calls163[1];
  const lanes X2_old_0 = givens[21];
  residual[13] = X2_old_0 + v65 * (v127 * (v108 * 2177.3242158072694 - 40.0 * X2_0_) - X2_0_ * v211) - X2_0_;
  const lanes X2_old_1 = givens[22];
  residual[14] = X2_old_1 + v65 * (v127 * (v109 * 2177.3242158072694 - 40.0 * X2_1_) - X2_1_ * v211) - X2_1_;
  const lanes X2_old_2 = givens[23];
  residual[15] = X2_old_2 + v65 * (v127 * (v110 * 2177.3242158072694 - 40.0 * X2_2_) - X2_2_ * v211) - X2_2_;
  const lanes X2_old_3 = givens[24];
  residual[16] = X2_old_3 + v65 * (v127 * (v111 * 2177.3242158072694 - 40.0 * X2_3_) - X2_3_ * v211) - X2_3_;
  const lanes X2_old_4 = givens[25];
  residual[17] = X2_old_4 + v65 * (v127 * (v112 * 2177.3242158072694 - 40.0 * X2_4_) - X2_4_ * v211) - X2_4_;
  const lanes X2_old_5 = givens[26];
  residual[18] = X2_old_5 + v65 * (v127 * (v113 * 2177.3242158072694 - 40.0 * X2_5_) - X2_5_ * v211) - X2_5_;
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  compute(inputs, outputs, results, 0);
}

static void run_one(const void *const *inputs, void *const *outputs, const void *results) {
  compute(inputs, outputs, results, 1);
}

static const neml2_kernel_part input_0_parts[] = {{"stress", 0, 6}, {"equivalent_plastic_strain", 6, 1}, {"X1", 7, 6}, {"X2", 13, 6}};
static const neml2_kernel_part input_1_parts[] = {{"strain", 0, 6}, {"strain~1", 6, 6}, {"t", 12, 1}, {"t~1", 13, 1}, {"equivalent_plastic_strain~1", 14, 1}, {"X1~1", 15, 6}, {"X2~1", 21, 6}, {"stress~1", 27, 6}};
static const neml2_kernel_array kernel_inputs[] = {{"unknowns", 19, NEML2_KERNEL_PER_POINT, 1, 4, input_0_parts, 0}, {"givens", 33, NEML2_KERNEL_PER_POINT, 0, 8, input_1_parts, 0}, {"residual.normality.yield_surface.yield_function.sy", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}, {"residual.elasticity.E", 1, NEML2_KERNEL_UNIFORM, 0, 0, 0, 0}};

static const neml2_kernel_part output_0_parts[] = {{"stress_residual", 0, 6}, {"equivalent_plastic_strain_residual", 6, 1}, {"X1_residual", 7, 6}, {"X2_residual", 13, 6}};
static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"residual", 19, NEML2_KERNEL_PER_POINT, 0, 4, output_0_parts, output_0_structure}};

const neml2_kernel neml2_kernel_viscoplastic_residual = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_residual", "5ed05e237b4e860a5f320c9006297e87b3fe9b1d7978da0496a43bfed587bcc0", sizeof(real), LANES, 4, 1, kernel_inputs, kernel_outputs, 267, 0, 0, run, 0, 0, 0, run_one, 0, 0};
