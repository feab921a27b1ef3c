/* viscoplastic_solve: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_solve.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 0 nodes of ATen, SHA-256 73fd04d2e2dfdb7fd0ef059249c3ed61df480716600c7bc6922d2bf2938abbe6.
 * Kernel: 164 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"

static void prepare(const void *const *inputs, void *results) {
  lanes *const kept = results;
  const lanes *const jacobian = inputs[0];
  const lanes *const by_auxiliaries = inputs[2];
  const lanes *const auxiliaries = inputs[3];
  const lanes jacobian_0 = jacobian[0];
  const lanes v61 = 1.0 / jacobian_0;
  kept[0] = v61;
  const lanes jacobian_18 = jacobian[18];
  const lanes v46 = 1.0 / jacobian_18;
  kept[1] = v46;
  const lanes jacobian_3 = jacobian[3];
  const lanes v47 = jacobian_3 * v46;
  kept[2] = v47;
  const lanes jacobian_1 = jacobian[1];
  const lanes v62 = jacobian_1 * v61;
  kept[3] = v62;
  const lanes v63 = jacobian_1 * v62;
  const lanes v64 = jacobian_0 - v63;
  const lanes v75 = 1.0 / v64;
  kept[4] = v75;
  const lanes jacobian_7 = jacobian[7];
  const lanes v52 = jacobian_7 * v46;
  kept[5] = v52;
  const lanes v65 = jacobian_1 - v63;
  kept[6] = v65;
  const lanes v76 = v65 * v75;
  kept[7] = v76;
  const lanes v77 = v65 * v76;
  const lanes v88 = 1.0 / (v64 - v77);
  kept[8] = v88;
  const lanes jacobian_11 = jacobian[11];
  const lanes v55 = jacobian_11 * v46;
  kept[9] = v55;
  const lanes by_auxiliaries_6 = by_auxiliaries[6];
  const lanes by_auxiliaries_0 = by_auxiliaries[0];
  const lanes v49 = by_auxiliaries_0 - by_auxiliaries_6 * v47;
  kept[10] = v49;
  const lanes v66 = v49 * v62;
  const lanes by_auxiliaries_1 = by_auxiliaries[1];
  const lanes v67 = by_auxiliaries_1 - by_auxiliaries_6 * v52 - v66;
  kept[11] = v67;
  const lanes by_auxiliaries_2 = by_auxiliaries[2];
  const lanes v80 = by_auxiliaries_2 - by_auxiliaries_6 * v55 - v66 - v67 * v76;
  kept[12] = v80;
  const lanes jacobian_12 = jacobian[12];
  const lanes v32 = 1.0 / jacobian_12;
  kept[13] = v32;
  const lanes auxiliaries_3 = auxiliaries[3];
  const lanes v33 = auxiliaries_3 * v32;
  kept[14] = v33;
  const lanes auxiliaries_4 = auxiliaries[4];
  const lanes v37 = auxiliaries_4 * v32;
  kept[15] = v37;
  const lanes auxiliaries_5 = auxiliaries[5];
  const lanes v41 = auxiliaries_5 * v32;
  kept[16] = v41;
  const lanes auxiliaries_0 = auxiliaries[0];
  const lanes v70 = auxiliaries_0 * v61;
  kept[17] = v70;
  const lanes jacobian_13 = jacobian[13];
  const lanes jacobian_15 = jacobian[15];
  const lanes jacobian_17 = jacobian[17];
  const lanes v58 = (jacobian_13 * v33 + jacobian_15 * v37 + jacobian_17 * v41) * v46;
  kept[18] = v58;
  const lanes v71 = jacobian_1 * v70;
  const lanes auxiliaries_1 = auxiliaries[1];
  const lanes v83 = (v71 - auxiliaries_1) * v75;
  kept[19] = v83;
  const lanes auxiliaries_2 = auxiliaries[2];
  const lanes v89 = (v71 - auxiliaries_2 - v65 * v83) * v88;
  kept[20] = v89;
  const lanes by_auxiliaries_3 = by_auxiliaries[3];
  const lanes v35 = by_auxiliaries_3 * v33;
  const lanes by_auxiliaries_4 = by_auxiliaries[4];
  const lanes v39 = by_auxiliaries_4 * v37;
  const lanes by_auxiliaries_5 = by_auxiliaries[5];
  const lanes v44 = by_auxiliaries_5 * v41;
  const lanes v73 = v49 * v70;
  const lanes v59 = by_auxiliaries_6 * v58;
  const lanes v86 = v67 * v83;
  const lanes v90 = v80 * v89;
  const lanes v94 = 1.0 / (1.0 + v35 + v39 + v44 + v73 - v59 - v86 - v90);
  kept[21] = v94;
  const lanes v128 = absolute(v35) + absolute(v39) + absolute(v44) + absolute(v59) + absolute(v73) + absolute(v86) + absolute(v90);
  const lanes v104 = absolute(jacobian_0);
  const lanes v103 = absolute(v63);
  const lanes v114 = v103 + absolute(v77);
  const lanes v109 = v104 * 100000000.0;
  const mask v164 = ((100000000.0 > absolute(v75) * (v103 + v104)) & (v109 >= v103)) & ((1e+300 > absolute(v61)) & ((1e+300 > absolute(v32)) & (1e+300 > absolute(v46))));
  const mask v166 = ((100000000.0 > absolute(v94) * (1.0 + v128)) & (100000000.0 >= v128)) & (((100000000.0 > absolute(v88) * (v104 + v114)) & (v109 >= v114)) & v164);
  kept[22] = where(v166, fill(1.0), fill(0.0));
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const kept = results;
  const lanes *const jacobian = inputs[0];
  const lanes *const residual = inputs[1];
  const lanes *const by_auxiliaries = inputs[2];
  lanes *const step = outputs[0];
  lanes *const trusted = outputs[1];
  const lanes residual_6 = residual[6];
  const lanes v47 = kept[2];
  const lanes residual_0 = residual[0];
  const lanes v51 = residual_0 - residual_6 * v47;
  const lanes v52 = kept[5];
  const lanes v62 = kept[3];
  const lanes v68 = v51 * v62;
  const lanes residual_1 = residual[1];
  const lanes v69 = residual_1 - residual_6 * v52 - v68;
  const lanes v55 = kept[9];
  const lanes v76 = kept[7];
  const lanes residual_2 = residual[2];
  const lanes v82 = residual_2 - residual_6 * v55 - v68 - v69 * v76;
  const lanes residual_3 = residual[3];
  const lanes v33 = kept[14];
  const lanes residual_4 = residual[4];
  const lanes v37 = kept[15];
  const lanes residual_5 = residual[5];
  const lanes v41 = kept[16];
  const lanes v70 = kept[17];
  const lanes v58 = kept[18];
  const lanes v83 = kept[19];
  const lanes v89 = kept[20];
  const lanes v93 = residual_3 * v33 + residual_4 * v37 + residual_5 * v41 + v51 * v70 - residual_6 * v58 - v69 * v83 - v82 * v89;
  const lanes v94 = kept[21];
  const lanes v134 = v93 * v94;
  const lanes v80 = kept[12];
  const lanes v88 = kept[8];
  const lanes v137 = v88 * (v82 - v80 * v134);
  step[2] = v137;
  const lanes v65 = kept[6];
  const lanes v67 = kept[11];
  const lanes v75 = kept[4];
  const lanes v141 = v75 * (v69 - v65 * v137 - v67 * v134);
  step[1] = v141;
  const lanes jacobian_1 = jacobian[1];
  const lanes v49 = kept[10];
  const lanes v61 = kept[0];
  step[0] = v61 * (v51 - jacobian_1 * v141 - jacobian_1 * v137 - v49 * v134);
  const lanes by_auxiliaries_6 = by_auxiliaries[6];
  const lanes v46 = kept[1];
  const lanes v149 = v46 * (residual_6 - by_auxiliaries_6 * v134);
  step[6] = v149;
  const lanes jacobian_13 = jacobian[13];
  const lanes by_auxiliaries_3 = by_auxiliaries[3];
  const lanes v32 = kept[13];
  step[3] = v32 * (residual_3 - jacobian_13 * v149 - by_auxiliaries_3 * v134);
  const lanes jacobian_15 = jacobian[15];
  const lanes by_auxiliaries_4 = by_auxiliaries[4];
  step[4] = v32 * (residual_4 - jacobian_15 * v149 - by_auxiliaries_4 * v134);
  const lanes jacobian_17 = jacobian[17];
  const lanes by_auxiliaries_5 = by_auxiliaries[5];
  step[5] = v32 * (residual_5 - jacobian_17 * v149 - by_auxiliaries_5 * v134);
  trusted[0] = kept[22];
}

static const neml2_kernel_array kernel_inputs[] = {{"jacobian", 19, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"residual", 7, NEML2_KERNEL_PER_POINT, 1, 0, 0, 0}, {"by_auxiliaries", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"auxiliaries", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0};
static const neml2_kernel_array kernel_outputs[] = {{"step", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"trusted", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}};

const neml2_kernel neml2_kernel_viscoplastic_solve = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_solve", "73fd04d2e2dfdb7fd0ef059249c3ed61df480716600c7bc6922d2bf2938abbe6", sizeof(real), LANES, 4, 2, kernel_inputs, kernel_outputs, 164, 23, prepare, run, 0, 0, 0, 0, 0};
