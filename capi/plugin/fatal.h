// How an entry that cannot go on ends the analysis.
#pragma once

#include <exception>

namespace neml2_capi::plugin {

// Ends the analysis through STDB_ABQERR and XIT of Abaqus, or their likes in Abaqus/Explicit, if the host has them;
// else by a line on stderr and the exit status 1. The message names the entry and the material, and tells the error.
void fatal(const char* entry, const char* cmname, const std::exception& error) noexcept;

// Tells the host a warning, by its own means if it has them, else by a line on stderr.
void warn(const char* material, const char* words) noexcept;

// Returns the words of an error, also of a lack of memory.
const char* words_of(const std::exception& error) noexcept;

}  // namespace neml2_capi::plugin
