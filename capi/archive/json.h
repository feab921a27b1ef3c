// JSON documents of files that nobody vouches for.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace neml2_capi::archive {

// Parses a document within the limits of JSON (bytes, depth, number of values), which are compared first. Returns a
// discarded value, and the reason in `problem`, for one that is malformed or beyond them. The document may be copied,
// written and freed by functions that call themselves: its depth is bounded.
nlohmann::json parse_json(std::string_view text, std::string& problem);

}  // namespace neml2_capi::archive
