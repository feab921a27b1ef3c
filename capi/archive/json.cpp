#include "capi/archive/json.h"

#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi::archive {
namespace {

using nlohmann::json;

// Returns what is beyond the limits, or an empty text. Depth and number of values follow from the punctuation outside of
// texts, whether or not the rest is JSON.
std::string excess(std::string_view text) {
  if (text.size() > limits::json_bytes)
    return join("it has ", text.size(), " bytes, expected at most ", limits::json_bytes);
  std::size_t depth = 0, values = 1;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) {
      i += c == '\\';
      continue;
    }
    const bool opens = c == '[' || c == '{';
    depth += opens;
    depth -= depth > 0 && (c == ']' || c == '}');
    values += opens || c == ',';
    if (depth > limits::json_depth) return join("its values are nested more than ", limits::json_depth, " deep");
    if (values > limits::json_values) return join("it has more than ", limits::json_values, " values");
  }
  return "";
}

// Returns the reason of the parser, which may repeat much of the document.
std::string clipped(std::string_view reason) {
  constexpr std::size_t longest = 300;
  return std::string(reason.substr(0, longest)) + (reason.size() > longest ? "..." : "");
}

}  // namespace

json parse_json(std::string_view text, std::string& problem) {
  problem = excess(text);
  if (!problem.empty()) return json(json::value_t::discarded);
  try {
    return json::parse(text);
  } catch (const json::exception& error) {
    problem = clipped(error.what());
    return json(json::value_t::discarded);
  }
}

}  // namespace neml2_capi::archive
