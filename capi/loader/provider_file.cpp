// Name of the provider. It changes with each build of the provider, and only this file is compiled again then.
#include "capi/loader/image.h"

namespace neml2_capi::aoti {

const char provider_file[] = NEML2_PROVIDER_FILE;

}  // namespace neml2_capi::aoti
