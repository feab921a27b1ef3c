// The evaluation of a model on its kernels, in lanes of points.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "capi/base/locks.h"
#include "capi/kernels/boundary.h"
#include "capi/kernels/condensation.h"
#include "capi/kernels/folder.h"
#include "capi/newton/settings.h"
#include "capi/values/bindings.h"
#include "capi/values/counts.h"

namespace neml2_capi::kernels {

class Workspace;

class Engine {
 public:
  // Takes the kernels of a model that has no packages, or opens those beside the packages. Throws std::bad_alloc alone:
  // if there are none, or they do not fit, reason() says so. The metadata must outlive it, and a condensation, which may be null:
  // then arrays are of its caller, and what is not finite or not solved counts as not converged and is not written.
  Engine(const artifact::Metadata& metadata, const Boundary& boundary, std::shared_ptr<const Folder> folder,
         const Condensation* condensation = nullptr);
  ~Engine();

  // Are there kernels at all?
  bool exists() const { return exists_; }
  // Why what is asked for cannot be had from kernels; empty: it can.
  const std::string& reason(Asked asked) const;
  // What the kernels were built for: "x86-64-v3".
  std::string target() const { return folder_ ? folder_->target() : std::string(); }

  // Points [begin, end) of the arrays. Any number of threads may do so at once.
  void run(const model::Bindings& arrays, const newton::Settings& rules, Asked asked, std::int64_t begin,
           std::int64_t end, model::Counts& counts) const;

 private:
  // Workspaces of one kind that wait for a thread.
  struct Pool {
    const Folder* folder = nullptr;
    std::atomic<bool> tried = false;  // `reason` is known
    std::string reason;
    std::vector<std::unique_ptr<Workspace>> waiting;
    std::size_t made = 1;
  };
  // The pool for so many points: few take kernels of fewer lanes.
  Pool& pool_for(Asked asked, std::int64_t points) const;
  const std::string& reason(Pool& pool, Asked asked) const;
  void try_out(Pool& pool, Asked asked) const;
  std::unique_ptr<Workspace> take(Pool& pool, Asked asked) const;
  void give_back(std::unique_ptr<Workspace> workspace, Pool& pool) const;
  // Counts one workspace less: one that an exception destroyed.
  void forget(Pool& pool) const noexcept;

  const artifact::Metadata& metadata_;
  Boundary boundary_;
  const Condensation* condensation_;
  bool exists_ = true;
  std::string reason_;  // against all
  std::shared_ptr<const Folder> folder_;
  mutable locks::Mutex trying_;                     // held by the thread that tries
  mutable locks::Mutex mutex_;                      // guards what waits
  mutable std::array<Pool, 16> pools_, few_;        // by Asked
  std::int64_t least_points_ = 1, few_points_ = 0;  // points for which there are the latter
};

}  // namespace neml2_capi::kernels
