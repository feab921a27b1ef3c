// Loading of a package, which is first checked for the runtime that it will call.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "capi/package/graph.h"

namespace neml2_capi::aoti {

// Loads a .pt2 file. Throws Error: NEML2_ERROR_FILE, _ARTIFACT, _UNSUPPORTED, with a line for each failed check.
std::shared_ptr<Graph> load_graph(const std::filesystem::path& path, const Wanted& wanted = {});
// Loads the content of such a file, which is not needed afterwards.
std::shared_ptr<Graph> load_graph(std::string_view content, const Wanted& wanted = {});

// Makes all checks of load_graph() that need no mapped code, and throws its errors. Returns the runtime that
// load_graph() would take.
Runtime check_package(const std::filesystem::path& path, const Wanted& wanted = {});

}  // namespace neml2_capi::aoti
