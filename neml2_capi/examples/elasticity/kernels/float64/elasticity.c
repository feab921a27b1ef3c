/* elasticity: a kernel of one graph, in lanes of material points.
 *
 * Model elasticity, cpu/float64/elasticity.pt2; made with neml2 3.1.0, torch 2.13.0+cpu.
 * Graph: 41 nodes of ATen, SHA-256 264235f612b7125be4b139c5a4888994959f2af2b5618d07a15dd1f74bd4f006.
 * Kernel: 18 operations on float64 a point.
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
  const lanes *const elasticity_E = inputs[1];
  lanes *const stress = outputs[0];
  (void)results;
  const lanes strain_0 = strain[0];
  const lanes strain_1 = strain[1];
  const lanes strain_2 = strain[2];
  const lanes v12 = (strain_0 + strain_1 + strain_2) * 0.3333333333333333;
  const lanes elasticity_E_value = elasticity_E[0];
  const lanes v13 = elasticity_E_value * 2.5 * v12;
  const lanes v9 = elasticity_E_value * 0.7692307692307692;
  stress[0] = v13 + v9 * (strain_0 - v12);
  stress[1] = v13 + v9 * (strain_1 - v12);
  stress[2] = v13 + v9 * (strain_2 - v12);
  const lanes strain_3 = strain[3];
  stress[3] = strain_3 * v9;
  const lanes strain_4 = strain[4];
  stress[4] = strain_4 * v9;
  const lanes strain_5 = strain[5];
  stress[5] = strain_5 * v9;
}

#ifdef NEML2_KERNEL_ROWS
static int64_t run_rows(const void *const *inputs, const int64_t *strides,
                        void *const *outputs, int64_t blocks) {
  for (int64_t block = 0; block < blocks; ++block) {
    lanes strain[6], elasticity_E[1], stress[6];
    const void *const given[] = {strain, elasticity_E};
    void *const made[] = {stress};
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 0, strides[0], strain + 0);
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 2, strides[0], strain + 2);
    pair_from_rows((const double *)inputs[0] + block * LANES * strides[0] + 4, strides[0], strain + 4);
    column_from_rows((const double *)inputs[1] + block * LANES * strides[1] + 0, strides[1], elasticity_E + 0);
    run(given, made, 0);
    if (!are_finite((((strain[0]) + (strain[1] + strain[2])) + ((strain[3]) + (strain[4] + strain[5]))) + (((elasticity_E[0]) + (stress[0] + stress[1])) + ((stress[2] + stress[3]) + (stress[4] + stress[5]))))) return block;
    tensor_to_rows(stress, (double *)outputs[0] + block * LANES * 6);
  }
  return blocks;
}
#else
#define run_rows 0
#endif

static const neml2_kernel_array kernel_inputs[] = {{"strain", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}, {"elasticity.E", 1, NEML2_KERNEL_PER_POINT, 0, 0, 0, 0}};

static const signed char output_0_structure[] = {0, 0, 0, 0, 0, 0};
static const neml2_kernel_array kernel_outputs[] = {{"stress", 6, NEML2_KERNEL_PER_POINT, 0, 0, 0, output_0_structure}};

const neml2_kernel neml2_kernel_elasticity = {
    NEML2_KERNEL_VERSION, sizeof(neml2_kernel), "elasticity", "264235f612b7125be4b139c5a4888994959f2af2b5618d07a15dd1f74bd4f006", sizeof(real), LANES, 2, 1, kernel_inputs, kernel_outputs, 18, 0, 0, run, 0, 0, 0, 0, 0, run_rows};
