#include "capi/evaluation/plan.h"

#include <algorithm>
#include <optional>

#include "capi/capsule/capsule.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/results.h"
#include "capi/threads/pool.h"

namespace neml2_capi::model {
namespace {

int threads_for(const Options& options, std::int64_t points) {
  if (points <= 1) return 1;
  return options.threads() ? options.threads() : threads::available_processors();
}

}  // namespace

Plan::Plan(const Routes& routes, const Options& options, const Request& request)
    : routes_(routes),
      options_(options),
      request_(request),
      chosen_(routes.choose(request_, options_)),
      rescue_(options_.rescue() > 0 && chosen_.solves() && !request_.slopes ? std::optional<Rescue>(chosen_)
                                                                            : std::nullopt),
      bounded_(within_bounds(), model(), options_),
      threads_(threads_for(options_, request_.points)),
      chunk_(route().chunk_size(options_, request_)) {
  route().check(options_, request_.points);
  // What the route evaluates by plans of its own has been looked at. A layer around a law leaves that to the law.
  if (!model().is_around_another()) options_ = options_.with_bounds_checked();
}

// Several threads get several chunks each, of an amount of work beside which it is little to begin and end one, and of
// whole vectors.
std::int64_t Plan::chunk_size() const {
  if (threads_ == 1) return chunk_.most;
  if (chunk_.shared != 0) return chunk_.shared;
  constexpr double worthwhile = 200e-6;  // seconds
  const auto worthwhile_points = static_cast<std::int64_t>(std::min(worthwhile / routes_.seconds_per_point(), 2048.0));
  const std::int64_t shared = std::max(request_.points / (4 * threads_), worthwhile_points);
  constexpr std::int64_t vector = 16;
  return std::min(chunk_.most, (shared / vector + 1) * vector);
}

Tally Plan::run(const Bindings& bindings, Workspace& workspace) const {
  if (request_.points == 0) {
    clear_sums(model(), bindings);
    return {};
  }
  if (!options_.capsule()) return evaluate(bindings, workspace);
  return with_capsule(model(), bindings, options_,
                      [&](const Bindings& watched) { return evaluate(watched, workspace); });
}

Tally Plan::evaluate(const Bindings& bindings, Workspace& workspace) const {
  const std::int64_t points = request_.points, size = chunk_size();
  clear_rescues(bindings, 0, points);
  if (route().end_of_range(options_, bindings, 0, size) < points) {
    check(bindings);
    return Chunks(*this, route(), bindings, size).run(threads_, workspace);
  }
  const std::optional<Stopwatch> watch = threads_ > 1 ? std::optional(Stopwatch()) : std::nullopt;
  Tally tally;
  route().run(*this, bindings, {0, points}, workspace, tally);
  if (watch) routes_.note_time(watch->seconds(), points);
  return tally;
}

void Plan::check(const Bindings& bindings) const {
  if (model().baked_batch() == 0) return;
  for (std::int64_t begin = 0; begin < bindings.points;)
    begin = route().end_of_range(options_, bindings, begin, chunk_.most);
}

Tally evaluate(const Routes& routes, const Options& options, const Bindings& bindings) {
  const Plan plan(routes, options, Request(bindings));
  const Borrowed workspace(routes);
  return plan.run(bindings, *workspace);
}

}  // namespace neml2_capi::model
