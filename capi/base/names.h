// Names that a caller may have meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi {

// Returns the end of a sentence on an unknown name: "; did you mean 'strain'?" if one of the names is near to it, else
// a full stop. Near is a third of its letters changed, left out, added or swapped with the next.
std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names);

}  // namespace neml2_capi
