// Functions of a library that is found at run time, by name.
#pragma once

#include <string>

#include "capi/base/error.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::platform {

// Sets a pointer to a function of an open library, or adds its name to those that are lacking.
template <class Function>
void look_up(void* library, const char* name, Function*& function, std::string& lacking) {
  function = reinterpret_cast<Function*>(function_of(library, name));
  if (!function) add_name(lacking, name);
}

}  // namespace neml2_capi::platform
