#include "capi/kernels/engine.h"

#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/kernels/block.h"
#include "capi/kernels/workspace.h"

namespace neml2_capi::kernels {

Engine::Engine(const artifact::Metadata& metadata, const Boundary& boundary, std::shared_ptr<const Folder> folder,
               const Condensation* condensation)
    : metadata_(metadata), boundary_(boundary), condensation_(condensation), folder_(std::move(folder)) {
  try {
    if (!folder_) folder_ = Folder::open(metadata.leaf);
    exists_ = folder_ != nullptr;
    if (!exists_) reason_ = "The artifact has no kernels. Make them: neml2-capi compile INPUT.i --kernels auto";
  } catch (const Error& error) {
    reason_ = error.what();
  }
  if (!folder_) return;
  for (Pool& pool : pools_) pool.folder = folder_.get();
  const Folder* const narrower = folder_->narrower();
  if (!narrower) return;
  for (Pool& pool : few_) pool.folder = narrower;
  least_points_ = folder_->has_sites_in_lanes() ? most_one_by_one + 1 : 1;
  few_points_ = functions(narrower->target().c_str(), itemsize(narrower->real()))->lanes;
}

Engine::~Engine() = default;

const std::string& Engine::reason(Asked asked) const {
  return reason_.empty() ? reason(pools_[asked.index()], asked) : reason_;
}

const std::string& Engine::reason(Pool& pool, Asked asked) const {
  if (!pool.tried.load(std::memory_order_acquire)) try_out(pool, asked);
  return pool.reason;
}

// std::call_once will not do: an exception through the C library takes memory.
void Engine::try_out(Pool& pool, Asked asked) const {
  const std::lock_guard alone(trying_);
  if (pool.tried.load(std::memory_order_relaxed)) return;
  try {
    auto made = std::make_unique<Workspace>(*pool.folder, metadata_, boundary_, asked, condensation_);
    pool.waiting.reserve(pool.made);
    give_back(std::move(made), pool);
  } catch (const Error& error) {
    pool.reason = error.what();
  }
  pool.tried.store(true, std::memory_order_release);
}

Engine::Pool& Engine::pool_for(Asked asked, std::int64_t points) const {
  Pool& few = few_[asked.index()];
  return points >= least_points_ && points <= few_points_ && reason(few, asked).empty() ? few : pools_[asked.index()];
}

std::unique_ptr<Workspace> Engine::take(Pool& pool, Asked asked) const {
  {
    const std::lock_guard lock(mutex_);
    if (!pool.waiting.empty()) {
      std::unique_ptr<Workspace> found = std::move(pool.waiting.back());
      pool.waiting.pop_back();
      return found;
    }
    pool.waiting.reserve(pool.made + 1);  // so that it can always be given back
    ++pool.made;
  }
  try {
    return std::make_unique<Workspace>(*pool.folder, metadata_, boundary_, asked, condensation_);
  } catch (...) {
    forget(pool);
    throw;
  }
}

void Engine::forget(Pool& pool) const noexcept {
  const std::lock_guard lock(mutex_);
  --pool.made;
}

void Engine::give_back(std::unique_ptr<Workspace> workspace, Pool& pool) const {
  const std::lock_guard lock(mutex_);
  pool.waiting.push_back(std::move(workspace));
}

void Engine::run(const model::Bindings& arrays, const newton::Settings& rules, Asked asked, std::int64_t begin,
                 std::int64_t end, model::Counts& counts) const {
  Pool& pool = pool_for(asked, end - begin);
  std::unique_ptr<Workspace> workspace = take(pool, asked);
  try {
    workspace->run(arrays, rules, begin, end, counts);
  } catch (...) {
    forget(pool);
    throw;
  }
  give_back(std::move(workspace), pool);
}

}  // namespace neml2_capi::kernels
