#include "capi/plugin/point.h"

#include <neml2_capi.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "capi/plugin/bounds.h"

namespace neml2_capi::plugin {
namespace {

using Numbers = std::span<const double>;

bool finite(Numbers numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * 0;  // NaN from the first that is not finite on
  return sum == 0;
}

constexpr const char* COMPONENTS[] = {"11", "22", "33", "23", "13", "12"};

// Whether all that require_finite() looks at is finite, and more: texts are made only if something is not.
bool all_finite(const Material& m, const Workspace& w, std::size_t points, double step) {
  const auto some = [&](const std::vector<double>& numbers, std::size_t of_point) {
    return finite(Numbers(numbers).first(points * of_point));
  };
  return some(w.old_strain, m.size()) && some(w.strain, m.size()) && some(w.old_state, m.row) &&
         some(w.temperature, 1) && some(w.old_temperature, 1) && some(w.fields, m.mapping.nfields()) &&
         finite(w.parameters) && std::isfinite(step) && step >= 0 && std::isfinite(w.old_time);
}

// Refuses the first number that is not finite; `component` tells which it is.
template <class Component>
void require_each(Numbers numbers, const std::string& what, Component component) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i]))
      refuse(what + component(i) +
             " is NaN or infinite. A smaller step does not mend that: find what made it so before this call.");
}

std::string alone(std::size_t) { return ""; }

Numbers row(const Material& m, const std::vector<double>& rows, std::size_t point) {
  return Numbers(rows).subspan(point * m.row, m.row);
}

// The name of the value that stands at a place of a row: the stress or a state.
std::string name_at(const Material& m, std::size_t place) {
  if (place < m.size()) return m.mapping.stress;
  for (std::size_t k = 0; k < m.places.size(); ++k)
    if (m.places[k] >= m.size() && place - m.places[k] < m.mapping.states[k].size) return m.mapping.states[k].name;
  return "";
}

struct Found {
  bool values, tangent;
};

Found run(const Material& m, Workspace& w) {
  const bool good = w.call.run(1) <= NEML2_NON_FINITE;
  tell_warnings(m);
  const bool values = good && finite(row(m, w.state, 0));
  return {values, values && (w.tangent.empty() || finite(Numbers(w.tangent).first(m.size() * m.size())))};
}

// The tangent beside the strain, if it tends to a limit: at a distance, and at a tenth of it.
bool tangent_beside(const Material& m, Workspace& w) {
  constexpr double direction[6] = {0.61, -0.37, 0.23, 0.41, -0.53, 0.31}, far = 1e-7, alike = 1e-2;
  const std::vector<double> strain = w.strain, state = w.state, stored = w.stored, dissipated = w.dissipated;
  double size = 1;
  for (std::size_t i = 0; i < m.size(); ++i) size = std::max(size, std::abs(strain[i]));
  const auto at = [&](double distance) {
    for (std::size_t i = 0; i < m.size(); ++i) w.strain[i] = strain[i] + distance * size * direction[i];
    return run(m, w).tangent;
  };
  bool found = false;
  for (const double distance : {far, -far}) {
    if (!at(distance)) continue;
    const std::vector<double> before = w.tangent;
    if (!at(distance / 10)) continue;
    double greatest = 0, change = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      greatest = std::max(greatest, std::abs(w.tangent[i]));
      change = std::max(change, std::abs(w.tangent[i] - before[i]));
    }
    if ((found = change <= alike * greatest)) break;
  }
  w.strain = strain;
  w.state = state;
  w.stored = stored;
  w.dissipated = dissipated;
  return found;
}

// Refuses an energy that is not finite where the stress is; an energy that is a state stands among the states.
void require_energies(const Material& m, const Workspace& w) {
  const auto require_one = [&](const std::string& name, double energy) {
    if (!name.empty() && !std::isfinite(energy))
      refuse("the output '" + name + "', an energy of the mapping, is not finite, and the stress is. Check where the " +
             "law divides, takes roots or logarithms, or leave the energy out of the mapping.");
  };
  require_one(m.mapping.stored_energy, w.stored_energy(m, 0));
  require_one(m.mapping.dissipated_energy, w.dissipated_energy(m, 0));
}

}  // namespace

std::string last_words() {
  char text[512] = "";
  neml2_error_message(text, sizeof text, nullptr);
  return text;
}

bool stands_still(const Material& m, const Workspace& w, std::size_t points) {
  const auto same = [&](const std::vector<double>& a, const std::vector<double>& b, std::size_t of_point) {
    return std::equal(a.begin(), a.begin() + std::ptrdiff_t(points * of_point), b.begin());
  };
  return same(w.strain, w.old_strain, m.size()) && same(w.temperature, w.old_temperature, 1) &&
         same(w.fields, w.old_fields, m.mapping.nfields());
}

void require_finite(const Material& m, const Workspace& w, std::size_t points, double step, const Words& words) {
  const Mapping& map = m.mapping;
  if (all_finite(m, w, points, step)) return;
  const auto at = [&](std::size_t point) { return points == 1 ? "" : " of point " + std::to_string(point + 1); };
  const auto of_tensor = [&](std::size_t i) {
    return ", component " + std::string(COMPONENTS[static_cast<std::size_t>(m.components[i])]) + ",";
  };
  const std::size_t size = m.size();
  for (std::size_t p = 0; p < points; ++p) {
    require_each(Numbers(w.old_strain).subspan(size * p, size), words.old_strain + at(p), of_tensor);
    require_each(Numbers(w.strain).subspan(size * p, size), words.strain + at(p), of_tensor);
    if (m.inputs.count(map.stress + "~1"))
      require_each(row(m, w.old_state, p).first(size), words.stress + at(p), of_tensor);
    for (std::size_t k = 0; k < map.states.size(); ++k)
      require_each(row(m, w.old_state, p).subspan(m.places[k], map.states[k].size),
                   std::string(words.states) + at(p) + ", the state '" + map.states[k].name + "',", alone);
    if (!map.temperature.empty()) {
      require_each(Numbers(w.temperature).subspan(p, 1), words.temperature + at(p), alone);
      if (m.inputs.count(map.temperature + "~1"))
        require_each(Numbers(w.old_temperature).subspan(p, 1), words.temperature + at(p) + " at the beginning", alone);
    }
    for (const Variable& field : map.fields)
      require_each(Numbers(w.fields).subspan(p * map.nfields() + field.first, 1),
                   std::string(words.fields) + at(p) + ", the field '" + field.name + "',", alone);
  }
  for (const Variable& parameter : map.parameters)
    require_each(Numbers(w.parameters).subspan(parameter.first, parameter.size),
                 std::string(words.parameters) + ", the parameter '" + parameter.name + "',", alone);
  if (map.time.empty()) return;
  require_each(Numbers(&step, 1), words.step, alone);
  require_each(Numbers(&w.old_time, 1), words.time, alone);
  if (step < 0) refuse(std::string(words.step) + " is " + std::to_string(step) + "; a time step must be 0 or more.");
}

bool evaluate_point(const Material& m, Workspace& w, double step, const Words& words) {
  w.stays = false;
  require_finite(m, w, 1, step, words);
  Found found = run(m, w);
  if (w.status[0] == NEML2_OUT_OF_BOUNDS) return false;
  if (!found.tangent && step == 0 && m.has_rates) {
    if (!stands_still(m, w, 1))
      refuse(std::string(words.step) + " is 0 while the strain, the temperature or a field changes, and the law has " +
             "rates, which divide by it: give a time step above 0.");
    w.stays = true;
    for (const double part : MOMENTS) {
      w.stand_still(part, step);
      if ((found = run(m, w)).tangent) break;
    }
  }
  if (!found.values) {
    const auto bad = std::find_if_not(w.state.begin(), w.state.begin() + std::ptrdiff_t(m.row),
                                      [](double number) { return std::isfinite(number); });
    if (w.status[0] <= NEML2_NON_FINITE && stands_still(m, w, 1))
      refuse("the output '" + name_at(m, std::size_t(bad - w.state.begin())) +
             "' is not finite, and nothing changes in this increment, so that no smaller step mends it. Check the "
             "state and the constants, and where the law divides, takes roots or logarithms.");
    return false;
  }
  if (!found.tangent && !tangent_beside(m, w))
    refuse("the derivative of '" + m.mapping.stress + "' with respect to '" + m.mapping.strain + "', which is " +
           words.tangent +
           ", is not finite, nor has it a limit beside this strain; the stress itself is. A smaller step " +
           "does not mend that: write the law so that it can be differentiated here.");
  if (!w.stays) {
    require_energies(m, w);
    return true;
  }
  require_each(row(m, w.old_state, 0).first(m.size()), words.stress, alone);
  w.state = w.old_state;  // a law may relax in a moment
  return true;
}

}  // namespace neml2_capi::plugin
