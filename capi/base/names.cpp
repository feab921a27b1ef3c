#include "capi/base/names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

#include "capi/base/error.h"

namespace neml2_capi {
namespace {

// Longer names appear in full in messages, and are not compared.
constexpr std::size_t longest = 64;

bool same(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

// Damerau's distance, in rows of a table of which three are kept.
std::size_t distance(std::string_view a, std::string_view b) {
  std::array<std::array<std::size_t, longest + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    auto& now = rows[i % 3];
    const auto &last = rows[(i + 2) % 3], &before = rows[(i + 1) % 3];
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
        now[j] = std::min(now[j], before[j - 2] + 1);
    }
  }
  return rows[a.size() % 3][b.size()];
}

}  // namespace

std::string did_you_mean(std::string_view wanted, const std::vector<std::string>& names) {
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  if (wanted.size() <= longest)
    for (const std::string& name : names) {
      if (name.size() > longest) continue;
      const std::size_t here = distance(wanted, name);
      if (here >= least) continue;
      least = here;
      nearest = &name;
    }
  return nearest ? join("; did you mean '", *nearest, "'?") : ".";
}

}  // namespace neml2_capi
