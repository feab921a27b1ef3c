#include "capi/evaluation/package_route.h"

#include <algorithm>
#include <bit>

#include "capi/base/error.h"
#include "capi/platform/process.h"

namespace neml2_capi::model {

// If the choice is the library's, what is read and written takes at most half of the second-level cache, which leaves
// room for what happens inside.
Route::ChunkSize PackageRoute::chunk_of(const Options& options, const Request& request,
                                        std::int64_t bytes_per_point) const {
  const auto exactly = [](std::int64_t points) { return ChunkSize{points, points}; };
  if (model_.baked_batch() != 0) return exactly(model_.baked_batch());
  if (options.whole_batch()) return exactly(request.points);
  if (options.chunk() != 0) return exactly(std::min(options.chunk(), model_.greatest_batch()));
  constexpr std::int64_t least = 16, most = 2048;
  const std::int64_t fit =
      std::clamp(platform::level2_cache() / 2 / std::max<std::int64_t>(bytes_per_point, 1), least, most);
  const auto in_cache = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(fit)));
  return {std::min(in_cache, model_.greatest_batch()), 0};
}

void PackageRoute::check(const Options& options, std::int64_t points) const {
  const std::int64_t baked = model_.baked_batch(), greatest = model_.greatest_batch();
  if (baked != 0 && points % baked != 0)
    throw Error(NEML2_ERROR_SHAPE, model_.limiting_package(),
                join(model_.limiting_package(), " was compiled for a fixed batch of ", baked, " points; got ", points,
                     ". Evaluate a multiple of ", baked, ", or compile the model with --dynamic-batch."));
  if (options.whole_batch() && points > greatest)
    throw Error(NEML2_ERROR_SHAPE, "convergence",
                join("With the option convergence = batch all points run at once, and the packages take at most ",
                     greatest, "; got ", points, ". Evaluate fewer points, or set convergence = point."));
}

}  // namespace neml2_capi::model
