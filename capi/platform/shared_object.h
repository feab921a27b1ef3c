// Shared objects in this process.
#pragma once

#include <string>

namespace neml2_capi::platform {

// Whether an object may leave the process again, or is only looked for among those that are there.
enum class Opening { plain, for_ever, only_if_there };

// Opens a shared object, whose symbols stay its own. Returns null, and the words of the dynamic loader, if that is
// not possible. Throws std::bad_alloc if memory lacked.
void* open_shared(const char* path, std::string& reason, Opening how = Opening::plain);

// Returns the address of a function of an object, or null.
void* function_of(void* object, const char* name);

// Returns the folder of the library that this code is in; empty if the loader does not tell.
std::string library_folder();

// Throws std::bad_alloc if there is less memory than the dynamic loader, or a first run of a package, will take. The
// C library ends the process if it lacks memory for a package's thread_local variables; and glibc's loader, if it
// lacks memory for the list of what an object needs, leaves marks behind: later objects, of anybody, do not find those
// libraries any more. If it lacks memory again, while it takes the object back, it keeps its lock.
void require_memory_for_loader();

}  // namespace neml2_capi::platform
