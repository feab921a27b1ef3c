/* The kernels of viscoplastic. Generated. */
#include "neml2_kernel.h"

extern const neml2_kernel neml2_kernel_viscoplastic_jacobian;
extern const neml2_kernel neml2_kernel_viscoplastic_predictor;
extern const neml2_kernel neml2_kernel_viscoplastic_residual;
extern const neml2_kernel neml2_kernel_viscoplastic_solve;

static const neml2_kernel *const kernels[] = {&neml2_kernel_viscoplastic_jacobian, &neml2_kernel_viscoplastic_predictor, &neml2_kernel_viscoplastic_residual, &neml2_kernel_viscoplastic_solve};
static const neml2_kernel_set set = {NEML2_KERNEL_VERSION, sizeof(neml2_kernel_set),
                                     "viscoplastic", 4, kernels};

const neml2_kernel_set *neml2_kernels_of_viscoplastic(void);
const neml2_kernel_set *neml2_kernels_of_viscoplastic(void) { return &set; }

#ifdef NEML2_KERNELS_SHARED
/* The only symbol that a shared object exports. */
__attribute__((visibility("default"))) const neml2_kernel_set *neml2_kernels(void) {
  return &set;
}
#endif
