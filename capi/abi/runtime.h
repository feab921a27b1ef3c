// The names of runtimes: "auto", "builtin", "libtorch".
#pragma once

#include "capi/package/runtime.h"

namespace neml2_capi::abi {

// NULL is "auto". Throws NEML2_ERROR_NAME.
aoti::Runtime runtime_named(const char* name);

const char* name_of(aoti::Runtime runtime);

}  // namespace neml2_capi::abi
