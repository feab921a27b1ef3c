#include "capi/evaluation/transient.h"

#include <algorithm>

#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/results.h"
#include "capi/platform/process.h"

namespace neml2_capi::model {
namespace {

// Beside so many points it is little to begin a step, and memory is read in long runs.
constexpr std::int64_t MOST_POINTS = 2048;

}  // namespace

Transient::Transient(const Plan& plan, const Bindings& first)
    : plan_(plan), first_(first), arrays_(plan.model(), first), steps_(first.steps), end_(first.steps) {
  plan_.check(first_);
}

Route::ChunkSize Transient::chunk_size(const Options& options, const Request& request) const {
  const ChunkSize chunk = plan_.route().chunk_size(options, request);
  if (chunk.shared != 0) return chunk;
  constexpr std::int64_t vector = 16;
  const std::int64_t in_cache = platform::level2_cache() / 2 / arrays_.bytes_per_point();
  std::int64_t most = std::clamp(in_cache / vector * vector, vector, MOST_POINTS);
  if (plan_.threads() > 1) most = std::min(most, (request.points / (4 * plan_.threads()) / vector + 1) * vector);
  return {std::min(chunk.most, most), 0};
}

std::int64_t Transient::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                     std::int64_t size) const {
  return plan_.route().end_of_range(options, bindings, begin, size);
}

Tally Transient::run(Workspace& workspace) {
  run_all(workspace);
  exceeded_ = std::move(all_.exceeded);
  Tally tally = std::move(tally_);
  tally.count[NEML2_OK] = first_.points;
  for (std::int32_t status = NEML2_NON_FINITE; status < num_statuses; ++status)
    tally.count[NEML2_OK] -= tally.count[status];
  if (arrays_.keep_last() && made() < steps_) {
    // Other points went on, and wrote where one step has room.
    steps_ = std::max<std::int64_t>(made(), 1);
    arrays_.end_at(steps_);
    run_blocks(workspace);
  }
  return tally;
}

void Transient::run_all(Workspace& workspace) {
  // Capsules and the log of solves are about all points of a step.
  if (plan_.options().capsule() || log::on(log::Channel::newton, log::Level::info))
    run_step_by_step(workspace);
  else
    run_blocks(workspace);
}

void Transient::run_blocks(Workspace& workspace) {
  const std::int64_t size = chunk_size(plan_.options(), plan_.request()).most;
  all_ = Chunks(plan_, *this, first_, size).run(plan_.threads(), workspace);
}

void Transient::run_step_by_step(Workspace& workspace) {
  all_ = {};
  Bindings bindings = first_;
  bindings.steps = 1;
  for (std::int64_t step = 0; step < made(); ++step) {
    arrays_.go_to(step, bindings);
    workspace.forget();
    Tally tally = plan_.run(bindings, workspace);
    keep(step, tally.exceeded, all_);
    note(step, tally);
  }
}

// Keeps the bounds that a step went beyond.
void Transient::keep(std::int64_t step, Vector<Exceeded>& exceeded, Tally& all) {
  for (Exceeded& each : exceeded) {
    each.step = step;
    add(all.exceeded, each);
  }
}

void Transient::run(const Plan& plan, const Bindings& first, const Range& range, Workspace& workspace,
                    Tally& all) const {
  Bindings bindings = first;
  for (std::int64_t step = 0; step < steps_ && step <= end_.load(std::memory_order_relaxed); ++step) {
    interrupt::check();
    arrays_.go_to(step, bindings);
    workspace.forget();
    clear_rescues(bindings, range.begin, range.points);
    Tally tally;
    plan.route().run(plan, bindings, range, workspace, tally);
    keep(step, tally.exceeded, all);
    note(step, tally);
  }
}

void Transient::note(std::int64_t step, const Tally& tally) const {
  if (tally.worst() == NEML2_OK) return;
  const std::lock_guard lock(mutex_);
  if (step == end_.load(std::memory_order_relaxed)) return tally_.add(tally);
  if (step > end_.load(std::memory_order_relaxed)) return;
  tally_ = tally;
  end_.store(step, std::memory_order_relaxed);
}

}  // namespace neml2_capi::model
