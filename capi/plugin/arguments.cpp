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

}  // namespace

void states_to_model(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                     const double* drot, double* to) {
  for_each(m.mapping.states, convention, m.mapping, [&](const Variable& state, std::size_t k, std::size_t first) {
    const std::size_t size = item_size(state.kind);
    double item[9], offset[9];
    for (std::size_t i = 0; i < state.size; i += size) {
      double* const value = to + m.places[k] + i;
      for (std::size_t j = 0; j < size; ++j) item[j] = from[(first + i + j) * stride];
      item_to_model(convention, state.kind, item, drot, value);
      if (state.offset.empty()) continue;
      item_to_model(NUMBERS, state.kind, state.offset.data() + i, drot, offset);
      for (std::size_t j = 0; j < size; ++j) value[j] += offset[j];
    }
  });
}

void states_to_host(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                    double* to) {
  for_each(m.mapping.states, convention, m.mapping, [&](const Variable& state, std::size_t k, std::size_t first) {
    const std::size_t size = item_size(state.kind);
    double value[9], item[9];
    for (std::size_t i = 0; i < state.size; i += size) {
      std::copy_n(from + m.places[k] + i, size, value);
      for (std::size_t j = 0; j < size && !state.offset.empty(); ++j) value[j] -= state.offset[i + j];
      item_to_host(convention, state.kind, value, item);
      for (std::size_t j = 0; j < size; ++j) to[(first + i + j) * stride] = item[j];
    }
  });
}

void fields_to_model(const Material& m, const Convention& convention, const double* from, std::size_t stride,
                     double* to) {
  for_each(m.mapping.fields, convention, m.mapping, [&](const Variable& field, std::size_t, std::size_t first) {
    to[field.first] = from[first * stride] + (field.offset.empty() ? 0 : field.offset.front());
  });
}

void parameters_to_model(const Material& m, const Convention& convention, const double* from, double* to) {
  for_each(m.mapping.parameters, convention, m.mapping, [&](const Variable& parameter, std::size_t, std::size_t first) {
    std::copy_n(from + first, parameter.size, to + parameter.first);
  });
}

}  // namespace neml2_capi::plugin
