// JSON documents of untrusted files, as trees of nlohmann/json. To destroy a value with children takes
// memory there, and ends the process if there is none: a document takes its tree apart from the leaves on.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace neml2_capi {

class JsonDocument {
 public:
  // Throws nlohmann::json::exception if the text is not JSON, or is beyond the limits of JSON (bytes, depth, number of
  // values), which are compared first. So functions that call themselves may walk the tree.
  explicit JsonDocument(std::string_view text);
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  const nlohmann::json& root() const { return root_; }

 private:
  class Builder;

  nlohmann::json root_;
};

}  // namespace neml2_capi
