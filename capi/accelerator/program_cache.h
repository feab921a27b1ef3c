// Compiled programs of devices, kept in the user's folder of caches: to compile a text takes seconds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "capi/graph/driver.h"

namespace neml2_capi::accelerator {

// Returns what is kept under a key, or what `make` returns, which is then kept. What is damaged, and what `take` refuses
// by an Error, is made again. A folder that cannot be read or written is no error: the log of "model" tells it.
void with_cached(const std::string& key, const std::function<std::string()>& make,
                 const std::function<void(const std::string&)>& take);

// Returns the program of a text on a device.
std::shared_ptr<const graph::DeviceProgram> program_of(const graph::OpenDevice& device, std::string_view text);

}  // namespace neml2_capi::accelerator
