// How an entry that cannot go on ends the analysis.
#pragma once

#include <string>

namespace neml2_capi::plugin {

// Ends the analysis through STDB_ABQERR and XIT of Abaqus, or their likes in Abaqus/Explicit, where the host has them;
// else by a line on stderr and the exit status 1.
void fatal(const std::string& message) noexcept;

}  // namespace neml2_capi::plugin
