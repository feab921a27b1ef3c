/* The headers alone, as C99, C11, C++17 and C++20: they include what they need and say nothing that a strict compiler
 * minds. */
#include "neml2_capi.h"
#include "neml2_capi_experimental.h"
#include "neml2_capi_experimental.h" /* twice does no harm */

int main(void) {
  neml2_model *model = 0;
  neml2_model_free(&model);
  return neml2_abi_version() == NEML2_ABI_VERSION ? NEML2_OK : 1;
}
