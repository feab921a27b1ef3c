#include "capi/plugin/arguments.h"

#include <algorithm>

namespace neml2_capi::plugin {
namespace {

// Calls visit(variable, its number, where it begins in the array of the host).
template <class Visit>
void for_each(const std::vector<Variable>& variables, const Convention& convention, const Mapping& mapping,
              Visit visit) {
  std::size_t next = 0;
  for (std::size_t k = 0; k < variables.size(); ++k) {
    const Variable& variable = variables[k];
    if (convention.in_sequence && variable.name == mapping.stress) continue;
    visit(variable, k, convention.in_sequence ? next : variable.first);
    next += variable.size;
  }
}

// A number of the host with the offset of its component, and a number of the model without.
double plus(double number, const Variable& variable, std::size_t component) {
  return variable.offset.empty() ? number : number + variable.offset[component];
}
double minus(double number, const Variable& variable, std::size_t component) {
  return variable.offset.empty() ? number : number - variable.offset[component];
}

}  // namespace

void states_to_model(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                     const double* drot, double* to) {
  for_each(m.mapping.states, convention, m.mapping, [&](const Variable& state, std::size_t k, std::size_t first) {
    const std::size_t size = item_size(state.kind);
    double item[9];
    for (std::size_t i = 0; i < state.size; i += size) {
      for (std::size_t j = 0; j < size; ++j) item[j] = plus(from[(first + i + j) * stride], state, i + j);
      item_to_model(convention, state.kind, item, drot, to + m.places[k] + i);
    }
  });
}

void states_to_host(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                    double* to) {
  for_each(m.mapping.states, convention, m.mapping, [&](const Variable& state, std::size_t k, std::size_t first) {
    const std::size_t size = item_size(state.kind);
    double item[9];
    for (std::size_t i = 0; i < state.size; i += size) {
      item_to_host(convention, state.kind, from + m.places[k] + i, item);
      for (std::size_t j = 0; j < size; ++j) to[(first + i + j) * stride] = minus(item[j], state, i + j);
    }
  });
}

void fields_to_model(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                     double* to) {
  for_each(m.mapping.fields, convention, m.mapping, [&](const Variable& field, std::size_t, std::size_t first) {
    to[field.first] = plus(from[first * stride], field, 0);
  });
}

void parameters_to_model(const Material& m, const Convention& convention, const double* from, double* to) {
  for_each(m.mapping.parameters, convention, m.mapping, [&](const Variable& parameter, std::size_t, std::size_t first) {
    std::copy_n(from + first, parameter.size, to + parameter.first);
  });
}

}  // namespace neml2_capi::plugin
