#include "capi/plugin/mapping.h"

#include <algorithm>

#include "capi/base/json_document.h"

namespace neml2_capi::plugin {
namespace {

std::vector<Variable> variables(const nlohmann::json& list) {
  std::vector<Variable> found;
  for (const nlohmann::json& item : list)
    found.push_back(
        {item.at("name"), static_cast<Kind>(item.at("kind").get<int>()), item.at("first"), item.at("size")});
  return found;
}

}  // namespace

std::size_t Mapping::end_of(const std::vector<Variable>& variables) {
  std::size_t end = 0;
  for (const Variable& variable : variables) end = std::max(end, variable.first + variable.size);
  return end;
}

Mapping read_mapping(std::string_view text) {
  const JsonDocument document(text);
  const nlohmann::json& json = document.root();
  Mapping mapping;
  mapping.material = json.at("material");
  mapping.host = json.at("host");
  mapping.strain = json.at("strain");
  mapping.stress = json.at("stress");
  mapping.time = json.at("time");
  mapping.temperature = json.at("temperature");
  mapping.stored_energy = json.at("stored_energy");
  mapping.dissipated_energy = json.at("dissipated_energy");
  mapping.states = variables(json.at("states"));
  mapping.parameters = variables(json.at("parameters"));
  mapping.fields = variables(json.at("fields"));
  for (const nlohmann::json& item : json.at("constants"))
    mapping.constants.push_back({item.at("name"), item.at("values").get<std::vector<double>>()});
  for (const auto& [name, value] : json.at("options").items()) mapping.options.emplace_back(name, value);
  return mapping;
}

}  // namespace neml2_capi::plugin
