/* elasticity_pjac: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity_pjac.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 148 nodes of ATen, SHA-256 045c64e52b413131e8732ad25c945da514924e925ab699a1c2dfdca38d84c28a.
 * Kernel: 16 operations on float64 a point.
 * Generated: change the model, or the generator, not this text.
 */
#include "functions.h"
#include "neml2_kernel.h"
#include "rows.h"

#ifdef NEML2_KERNEL_ROWS
static INTO_ROWS void run(const void *const *inputs, void *const *outputs, const void *results);
#endif

static void run(const void *const *inputs, void *const *outputs, const void *results) {
  const lanes *const strain = inputs[0];
  lanes *const d_stress_d_elasticity_E = outputs[0];
  (void)results;
  const lanes strain_0 = strain[0];
  const lanes strain_1 = strain[1];
  const lanes strain_2 = strain[2];
  const lanes v6 = strain_0 + strain_1 + strain_2;
  const lanes v8 = v6 * 0.3333333333333333;
  const lanes v15 = 0.8333333333333333 * v6;
  d_stress_d_elasticity_E[0] = (strain_0 - v8) * 0.7692307692307692 + v15;
  d_stress_d_elasticity_E[1] = v15 + (strain_1 - v8) * 0.7692307692307692;
  d_stress_d_elasticity_E[2] = v15 + (strain_2 - v8) * 0.7692307692307692;
  const lanes strain_3 = strain[3];
  d_stress_d_elasticity_E[3] = strain_3 * 0.7692307692307692;
  const lanes strain_4 = strain[4];
  d_stress_d_elasticity_E[4] = strain_4 * 0.7692307692307692;
  const lanes strain_5 = strain[5];
  d_stress_d_elasticity_E[5] = strain_5 * 0.7692307692307692;
}

#ifdef NEML2_KERNEL_ROWS
static int64_t run_rows(const void *const *inputs, const int64_t *strides,
                        void *const *outputs, int64_t blocks) {
  for (int64_t block = 0; block < blocks; ++block) {
    lanes strain[6], elasticity_E[1], d_stress_d_elasticity_E[6];
    const void *const given[] = {strain, elasticity_E};
    void *const made[] = {d_stress_d_elasticity_E};
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 0, strides[0], strain + 0);
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 2, strides[0], strain + 2);
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 4, strides[0], strain + 4);
    column_from_rows((const double *)inputs[1] + block * LANES * strides[1] + 0, strides[1], elasticity_E + 0);
    run(given, made, 0);
    if (!are_finite((((strain[0]) + (strain[1] + strain[2])) + ((strain[3]) + (strain[4] + strain[5]))) + (((elasticity_E[0]) + (d_stress_d_elasticity_E[0] + d_stress_d_elasticity_E[1])) + ((d_stress_d_elasticity_E[2] + d_stress_d_elasticity_E[3]) + (d_stress_d_elasticity_E[4] + d_stress_d_elasticity_E[5]))))) return block;
    tensor_to_rows(d_stress_d_elasticity_E, (double *)outputs[0] + block * LANES * 6);
  }
  return blocks;
}
#else
#define run_rows 0
#endif

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"d_stress_d_elasticity.E", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}};

const neml2_kernel neml2_kernel_elasticity_pjac = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity_pjac", "045c64e52b413131e8732ad25c945da514924e925ab699a1c2dfdca38d84c28a", sizeof(real), LANES, 2, 1, kernel_inputs, kernel_outputs, 16, 0, 0, run, 0, 0, 0, 0, 0, run_rows};
