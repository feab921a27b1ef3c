/* The kernels of elasticity. Generated. */
#include "neml2_kernel.h"

extern const neml2_kernel neml2_kernel_elasticity;
extern const neml2_kernel neml2_kernel_elasticity_jvp;

static const neml2_kernel *const kernels[] = {&neml2_kernel_elasticity, &neml2_kernel_elasticity_jvp};
static const neml2_kernel_set set = {NEML2_KERNEL_VERSION, sizeof(neml2_kernel_set),
                                     "elasticity", 2, kernels};

const neml2_kernel_set *neml2_kernels_of_elasticity(void);
const neml2_kernel_set *neml2_kernels_of_elasticity(void) { return &set; }

#ifdef NEML2_KERNELS_SHARED
/* The only symbol that a shared object exports. */
__attribute__((visibility("default"))) const neml2_kernel_set *neml2_kernels(void) {
  return &set;
}
#endif
