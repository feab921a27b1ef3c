#include "capi/kernels/engine.h"

#include <utility>

#include "capi/base/error.h"

namespace neml2_capi::kernels {

Engine::Engine(const artifact::Metadata& metadata, const Boundary& boundary)
    : metadata_(metadata), boundary_(boundary) {
  try {
    folder_ = Folder::open(metadata.leaf);
    exists_ = folder_ != nullptr;
    if (!exists_)
      for (Pool& pool : pools_)
        pool.reason = "The artifact has no kernels. Make them: neml2-capi compile INPUT.i --kernels auto";
  } catch (const Error& error) {
    for (Pool& pool : pools_) pool.reason = error.what();
  }
  for (const bool derivatives : {false, true}) {
    Pool& pool = pools_[derivatives];
    if (pool.reason.empty()) try {
        give_back(make_workspace(*folder_, metadata_, boundary_, derivatives), derivatives);
        pool.made = 1;
      } catch (const Error& error) {
        pool.reason = error.what();
      }
  }
}

std::unique_ptr<Workspace> Engine::take(bool derivatives) const {
  {
    const std::lock_guard lock(mutex_);
    Pool& pool = pools_[derivatives];
    if (!pool.waiting.empty()) {
      std::unique_ptr<Workspace> found = std::move(pool.waiting.back());
      pool.waiting.pop_back();
      return found;
    }
    pool.waiting.reserve(++pool.made);  // so that it can always be given back
  }
  return make_workspace(*folder_, metadata_, boundary_, derivatives);
}

void Engine::give_back(std::unique_ptr<Workspace> workspace, bool derivatives) const {
  const std::lock_guard lock(mutex_);
  pools_[derivatives].waiting.push_back(std::move(workspace));
}

void Engine::run(const Request& request, bool derivatives, std::int64_t begin, std::int64_t end, Counts& counts) const {
  std::unique_ptr<Workspace> workspace = take(derivatives);
  workspace->run(request, begin, end, counts);
  give_back(std::move(workspace), derivatives);
}

}  // namespace neml2_capi::kernels
