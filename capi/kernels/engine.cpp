#include "capi/kernels/engine.h"

#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/kernels/workspace.h"

namespace neml2_capi::kernels {

Engine::Engine(const artifact::Metadata& metadata, const Boundary& boundary, std::shared_ptr<const Folder> folder)
    : metadata_(metadata), boundary_(boundary), folder_(std::move(folder)) {
  try {
    if (!folder_) folder_ = Folder::open(metadata.leaf);
    exists_ = folder_ != nullptr;
    if (!exists_) reason_ = "The artifact has no kernels. Make them: neml2-capi compile INPUT.i --kernels auto";
  } catch (const Error& error) {
    reason_ = error.what();
  }
}

Engine::~Engine() = default;

const std::string& Engine::reason(Asked asked) const {
  if (!reason_.empty()) return reason_;
  const Pool& pool = pools_[asked.index()];
  if (!pool.tried.load(std::memory_order_acquire)) try_out(asked);
  return pool.reason;
}

// std::call_once will not do: an exception through the C library takes memory.
void Engine::try_out(Asked asked) const {
  const std::lock_guard alone(trying_);
  Pool& pool = pools_[asked.index()];
  if (pool.tried.load(std::memory_order_relaxed)) return;
  try {
    std::unique_ptr<Workspace> made = std::make_unique<Workspace>(*folder_, metadata_, boundary_, asked);
    pool.waiting.reserve(pool.made);
    give_back(std::move(made), asked);
  } catch (const Error& error) {
    pool.reason = error.what();
  }
  pool.tried.store(true, std::memory_order_release);
}

std::unique_ptr<Workspace> Engine::take(Asked asked) const {
  {
    const std::lock_guard lock(mutex_);
    Pool& pool = pools_[asked.index()];
    if (!pool.waiting.empty()) {
      std::unique_ptr<Workspace> found = std::move(pool.waiting.back());
      pool.waiting.pop_back();
      return found;
    }
    pool.waiting.reserve(pool.made + 1);  // so that it can always be given back
    ++pool.made;
  }
  try {
    return std::make_unique<Workspace>(*folder_, metadata_, boundary_, asked);
  } catch (...) {
    forget(asked);
    throw;
  }
}

void Engine::forget(Asked asked) const noexcept {
  const std::lock_guard lock(mutex_);
  --pools_[asked.index()].made;
}

void Engine::give_back(std::unique_ptr<Workspace> workspace, Asked asked) const {
  const std::lock_guard lock(mutex_);
  pools_[asked.index()].waiting.push_back(std::move(workspace));
}

void Engine::run(const model::Bindings& arrays, const newton::Settings& rules, Asked asked, std::int64_t begin,
                 std::int64_t end, model::Counts& counts) const {
  std::unique_ptr<Workspace> workspace = take(asked);
  try {
    workspace->run(arrays, rules, begin, end, counts);
  } catch (...) {
    forget(asked);
    throw;
  }
  give_back(std::move(workspace), asked);
}

}  // namespace neml2_capi::kernels
