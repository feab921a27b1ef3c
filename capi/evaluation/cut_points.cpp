#include "capi/evaluation/cut_points.h"

#include <algorithm>
#include <cstdint>
#include <variant>

#include "capi/evaluation/plan.h"

namespace neml2_capi::model {

bool may_cut(const artifact::Metadata& metadata) {
  return std::ranges::any_of(metadata.segments, [](const artifact::Segment& segment) {
    const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment);
    return implicit && implicit->max_substepping_level > 0;
  });
}

void cut_failed(const Plan& plan, const Bindings& bindings, const Range& range, const Points& status,
                const Route& substeps, Workspace& workspace, Tally& tally) {
  const auto* found = reinterpret_cast<const std::int32_t*>(status.data);
  const auto failed = [&](std::int64_t p) { return found[(p - range.begin) * status.stride] > NEML2_NON_FINITE; };
  const std::int64_t end = range.begin + range.points;
  for (std::int64_t p = range.begin, q = p; p < end; p = q) {
    if (!failed(p)) {
      tally.add(found[(p - range.begin) * status.stride], p);
      q = p + 1;
      continue;
    }
    while (q < end && failed(q)) ++q;
    q = substeps.end_of_range(plan.options(), bindings, p, q - p);
    substeps.run(plan, bindings, {p, q - p, range.number, range.turns}, workspace, tally);
  }
}

}  // namespace neml2_capi::model
