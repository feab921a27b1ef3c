// Loading a package: everything is checked first, for the runtime that it will call.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "capi/package/graph.h"

namespace neml2_capi::aoti {

// Load a .pt2 file. Throws Error: NEML2_ERROR_FILE, _ARTIFACT, _UNSUPPORTED, with a line for each thing that it found.
std::shared_ptr<Graph> load_graph(const std::filesystem::path& path, const Wanted& wanted = {});
// The same of the content of such a file, which is not needed any more then.
std::shared_ptr<Graph> load_graph(std::string_view content, const Wanted& wanted = {});

// Make all the checks of load_graph() that need no code of the package to be mapped, and throw what they find, a line
// for each. Returns the runtime that load_graph() would take.
Runtime check_package(const std::filesystem::path& path, const Wanted& wanted = {});

}  // namespace neml2_capi::aoti
