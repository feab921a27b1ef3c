// Opening of shared objects.
#pragma once

#include <string>

namespace neml2_capi::aoti {

// Opens a shared object with RTLD_NOW, RTLD_LOCAL and `more`. Returns null, and the words of the dynamic loader, where
// that is not possible. Throws std::bad_alloc where memory lacked.
void* open_shared(const char* path, std::string& reason, int more = 0);

// Throws std::bad_alloc where there is less memory than the dynamic loader, or a first run of a package, will take. The
// C library ends the process where it lacks memory for a package's thread_local variables; and glibc's loader, where it
// lacks memory for the list of what an object needs, leaves marks behind: later objects, of anybody, do not find those
// libraries any more. Where it lacks memory again, while it takes the object back, it keeps its lock.
void require_memory_for_loader();

}  // namespace neml2_capi::aoti
