// The name of the provider, which changes with each of its builds: in a file of its own, since nothing else need be
// compiled again then.
#include "capi/loader/image.h"

namespace neml2_capi::aoti {

const char provider_file[] = NEML2_PROVIDER_FILE;

}  // namespace neml2_capi::aoti
