/* viscoplastic_solve: a kernel of one graph, in lanes of material points.
 *
 * Model viscoplastic, cpu/float64/viscoplastic_solve.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 0 nodes of ATen, SHA-256 73fd04d2e2dfdb7fd0ef059249c3ed61df480716600c7bc6922d2bf2938abbe6.
 * Kernel: 101 operations on float64 a point.
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
  const lanes v27 = 1.0 / jacobian_0;
  kept[0] = v27;
  const lanes by_auxiliaries_0 = by_auxiliaries[0];
  const lanes v36 = by_auxiliaries_0 * 0.3333333333333333;
  const lanes v56 = jacobian_0 / (by_auxiliaries_0 * 0.6666666666666666 + (jacobian_0 + v36));
  kept[1] = v56;
  const lanes by_auxiliaries_3 = by_auxiliaries[3];
  const lanes auxiliaries_4 = auxiliaries[4];
  const lanes by_auxiliaries_5 = by_auxiliaries[5];
  const lanes auxiliaries_5 = auxiliaries[5];
  const lanes by_auxiliaries_6 = by_auxiliaries[6];
  const lanes auxiliaries_6 = auxiliaries[6];
  const lanes by_auxiliaries_7 = by_auxiliaries[7];
  const lanes auxiliaries_7 = auxiliaries[7];
  const lanes by_auxiliaries_8 = by_auxiliaries[8];
  const lanes auxiliaries_8 = auxiliaries[8];
  const lanes by_auxiliaries_1 = by_auxiliaries[1];
  const lanes auxiliaries_3 = auxiliaries[3];
  const lanes v62 = (by_auxiliaries_6 * auxiliaries_6 + by_auxiliaries_7 * auxiliaries_7) + (by_auxiliaries_8 * auxiliaries_8 + by_auxiliaries_1 * auxiliaries_3);
  const lanes v64 = v27 * ((by_auxiliaries_3 * auxiliaries_4 + by_auxiliaries_5 * auxiliaries_5) + v62);
  kept[2] = v64;
  const lanes jacobian_6 = jacobian[6];
  const lanes v29 = 1.0 / jacobian_6;
  kept[3] = v29;
  const lanes auxiliaries_9 = auxiliaries[9];
  const lanes v72 = auxiliaries_9 * v29;
  kept[4] = v72;
  const lanes by_auxiliaries_9 = by_auxiliaries[9];
  const lanes auxiliaries_10 = auxiliaries[10];
  const lanes v74 = by_auxiliaries_9 * v72 - auxiliaries_10;
  kept[5] = v74;
  const lanes v77 = v64 * v74;
  const lanes v80 = 1.0 / (1.0 - v77);
  kept[6] = v80;
  const lanes v79 = absolute(v77);
  const lanes v50 = absolute(v27);
  const lanes v49 = absolute(v36);
  const lanes v86 = absolute(v50 * (v49 + 2.0 * v49));
  const mask v130 = ((100000000.0 > absolute(v56) * (1.0 + v86)) & (100000000.0 >= v86)) & ((1e+300 > v50) & (1e+300 > absolute(v29)));
  kept[7] = where(((100000000.0 > absolute(v80) * (1.0 + v79)) & (100000000.0 >= v79)) & v130, fill(1.0), fill(0.0));
}

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const kept = results;
  const lanes *const residual = inputs[1];
  const lanes *const by_auxiliaries = inputs[2];
  const lanes *const auxiliaries = inputs[3];
  lanes *const step = outputs[0];
  lanes *const trusted = outputs[1];
  const lanes residual_2 = residual[2];
  const lanes residual_0 = residual[0];
  const lanes residual_1 = residual[1];
  const lanes v58 = residual_2 * 0.3333333333333333 + (residual_0 * 0.3333333333333333 + residual_1 * 0.3333333333333333);
  const lanes by_auxiliaries_0 = by_auxiliaries[0];
  const lanes v27 = kept[0];
  const lanes v56 = kept[1];
  const lanes v107 = v27 * (by_auxiliaries_0 * v58) * v56;
  const lanes residual_6 = residual[6];
  const lanes v72 = kept[4];
  const lanes auxiliaries_4 = auxiliaries[4];
  const lanes auxiliaries_5 = auxiliaries[5];
  const lanes auxiliaries_6 = auxiliaries[6];
  const lanes residual_3 = residual[3];
  const lanes auxiliaries_7 = auxiliaries[7];
  const lanes residual_4 = residual[4];
  const lanes auxiliaries_8 = auxiliaries[8];
  const lanes residual_5 = residual[5];
  const lanes auxiliaries_3 = auxiliaries[3];
  const lanes v69 = (auxiliaries_6 * residual_3 + auxiliaries_7 * residual_4) + (auxiliaries_8 * residual_5 + auxiliaries_3 * residual_0);
  const lanes v71 = v27 * ((auxiliaries_4 * residual_1 + auxiliaries_5 * residual_2) + v69);
  const lanes v74 = kept[5];
  const lanes v80 = kept[6];
  const lanes v99 = v80 * (residual_6 * v72 - v71 * v74);
  const lanes by_auxiliaries_1 = by_auxiliaries[1];
  step[0] = v27 * ((residual_0 - v107) - by_auxiliaries_1 * v99);
  const lanes by_auxiliaries_3 = by_auxiliaries[3];
  step[1] = v27 * ((residual_1 - v107) - by_auxiliaries_3 * v99);
  const lanes by_auxiliaries_5 = by_auxiliaries[5];
  step[2] = v27 * ((residual_2 - v107) - by_auxiliaries_5 * v99);
  const lanes by_auxiliaries_6 = by_auxiliaries[6];
  step[3] = v27 * (residual_3 - by_auxiliaries_6 * v99);
  const lanes by_auxiliaries_7 = by_auxiliaries[7];
  step[4] = v27 * (residual_4 - by_auxiliaries_7 * v99);
  const lanes by_auxiliaries_8 = by_auxiliaries[8];
  step[5] = v27 * (residual_5 - by_auxiliaries_8 * v99);
  const lanes v64 = kept[2];
  const lanes by_auxiliaries_9 = by_auxiliaries[9];
  const lanes v29 = kept[3];
  step[6] = v29 * (residual_6 - by_auxiliaries_9 * (v71 - v64 * v99));
  trusted[0] = kept[7];
}

static const neml2_kernel_array kernel_inputs[] = {{"jacobian", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"residual", 7, NEML2_KERNEL_PER_POINT, 1, 0, 0, 0}, {"by_auxiliaries", 10, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"auxiliaries", 11, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0, 0};
static const signed char output_1_structure[] = {0};
static const neml2_kernel_array kernel_outputs[] = {{"step", 7, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}, {"trusted", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_1_structure}};

const neml2_kernel neml2_kernel_viscoplastic_solve = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "viscoplastic_solve", "73fd04d2e2dfdb7fd0ef059249c3ed61df480716600c7bc6922d2bf2938abbe6", sizeof(real), LANES, 4, 2, kernel_inputs, kernel_outputs, 101, 8, prepare, run, 0, 0, 0, 0, 0, 0};
