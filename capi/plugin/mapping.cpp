#include "capi/plugin/mapping.h"

#include <algorithm>
#include <iterator>

#include "capi/base/json_document.h"
#include "capi/plugin/conventions.h"

namespace neml2_capi::plugin {
namespace {

std::size_t size(const Json& value) { return static_cast<std::size_t>(value.integer()); }

Kind kind_of(const std::string& name) {
  constexpr const char* names[] = {"scalar", "vector", "symmetric", "tensor"};
  return static_cast<Kind>(std::ranges::find(names, name) - std::begin(names));
}

// A mapping file has an offset as STATEV of UMAT has the variable, whatever the host.
std::vector<double> offset_of(const Variable& variable, const std::vector<double>& in_file) {
  std::vector<double> offset(in_file.size());
  const std::size_t size = item_size(variable.kind);
  for (std::size_t i = 0; i + size <= in_file.size(); i += size)
    item_to_model(UMAT, variable.kind, in_file.data() + i, nullptr, offset.data() + i);
  return offset;
}

// `place` is the key of their places in the array of the host, which are counted from 1.
std::vector<Variable> variables(const Json& list, const char* place) {
  std::vector<Variable> found;
  for (const Json& item : list.elements()) {
    Variable variable;
    variable.name = item.at("name").text();
    variable.size = size(item.at("size"));
    variable.first = size(item.at(place)) - 1;
    if (const auto kind = item.find("kind")) variable.kind = kind_of(kind->text());
    if (const auto offset = item.find("offset")) variable.offset = offset_of(variable, offset->numbers());
    found.push_back(variable);
  }
  return found;
}

Mapping mapping_of(const Json& json) {
  Mapping mapping;
  mapping.material = json.at("material").text();
  mapping.host = json.at("host").text();
  mapping.strain = json.at("strain").text();
  mapping.stress = json.at("stress").text();
  mapping.time = json.at("time").text();
  mapping.temperature = json.at("temperature").text();
  mapping.strain_measure = json.at("strain_measure").text();
  mapping.symmetry = json.at("symmetry").text();
  mapping.stored_energy = json.at("stored_energy").text();
  mapping.dissipated_energy = json.at("dissipated_energy").text();
  mapping.integrates_energies = !json.at("energies").text().empty();
  mapping.states = variables(json.at("states"), "statev");
  mapping.parameters = variables(json.at("parameters"), "props");
  mapping.fields = variables(json.at("fields"), "predef");
  for (const Json& item : json.at("constants").elements())
    mapping.constants.push_back({item.at("name").text(), item.at("value").numbers()});
  for (const auto& [name, value] : json.at("options").members())
    mapping.options.emplace_back(name, value.is_text() ? Mapping::Option(value.text()) : value.number());
  mapping.atol = json.at("solver").at("atol").number();
  mapping.rtol = json.at("solver").at("rtol").number();
  mapping.miters = json.at("solver").at("miters").number();
  mapping.has_stress_history = json.at("has_stress_history").boolean();
  mapping.begin = size(json.at("begin"));
  mapping.size = size(json.at("size"));
  return mapping;
}

}  // namespace

std::size_t Mapping::end_of(const std::vector<Variable>& variables) {
  std::size_t end = 0;
  for (const Variable& variable : variables) end = std::max(end, variable.first + variable.size);
  return end;
}

double Mapping::option(const std::string& name, double otherwise) const {
  for (const auto& [option, value] : options)
    if (const double* number = std::get_if<double>(&value); number && option == name) return *number;
  return otherwise;
}

std::vector<Mapping> read_mappings(std::string_view text) {
  const JsonDocument document(text);
  std::vector<Mapping> mappings;
  for (const Json& json : document.root().elements()) mappings.push_back(mapping_of(json));
  return mappings;
}

}  // namespace neml2_capi::plugin
