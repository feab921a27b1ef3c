#include "capi/plugin/shears.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>

namespace neml2_capi::plugin {
namespace {

double greatest_of(std::span<const double> numbers) {
  double greatest = 0;
  for (const double number : numbers) greatest = std::max(greatest, std::abs(number));
  return greatest;
}

}  // namespace

bool forgets_shears(const Material& m, int components) {
  const Mapping& map = m.mapping;
  constexpr int all = 6;
  return components < all && m.size() == all && m.inputs.count(map.stress + "~1") > 0 &&
         std::ranges::none_of(map.states, [&](const Variable& state) { return state.name == map.stress; });
}

bool has_more_shears(const Convention& c, int components, const double* stress, double scale) {
  constexpr double round_off = 1e-8;  // of laws that solve for the stress
  for (int i = components; i < c.size; ++i)
    if (std::abs(stress[c.place[i]]) > round_off * scale) return true;
  return false;
}

double greatest_stress(const Material& m, const Workspace& w, std::size_t point) {
  const std::size_t n = m.size();
  const auto of_point = [&](const std::vector<double>& rows, std::size_t row, std::size_t count) {
    return rows.empty() ? 0 : greatest_of(std::span<const double>(rows).subspan(row * point, count));
  };
  return std::max({of_point(w.state, m.row, n), of_point(w.old_state, m.row, n),
                   of_point(w.tangent, n * n, n * n) * of_point(w.strain, n, n)});
}

void require_kept(const Material& m, const Convention& c, int components, const double* stress, const Workspace& w,
                  std::size_t point) {
  if (!forgets_shears(m, components) || !has_more_shears(c, components, stress, greatest_stress(m, w, point))) return;
  const Mapping& map = m.mapping;
  refuse("the stress '" + map.stress + "' has shears that the host does not keep for this element, and the law needs " +
         "them in the next increment ('" + map.stress + "~1'). Keep the whole stress: write " + "&state name = '" +
         map.stress + "', kind = 'symmetric', statev = " + std::to_string(map.nstatv() + 1) +
         " / in the mapping file, and add 6 to *DEPVAR.");
}

}  // namespace neml2_capi::plugin
