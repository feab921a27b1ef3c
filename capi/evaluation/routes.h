// The routes of a model, made once, and what its evaluations leave for the next ones.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "capi/base/locks.h"
#include "capi/evaluation/route.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

class Routes {
 public:
  // Over its kernels and packages.
  explicit Routes(std::shared_ptr<const Model> model);
  // This one, which gives all there is.
  Routes(std::shared_ptr<const Model> model, std::shared_ptr<const Route> only);
  ~Routes();
  Routes(const Routes&) = delete;
  Routes& operator=(const Routes&) = delete;

  const Model& model() const { return *model_; }
  const std::shared_ptr<const Model>& shared_model() const { return model_; }
  // The first that gives what is asked for.
  const Route& choose(const Request& request, const Options& options) const;

  // What a point takes: as measured before, or a guess.
  double seconds_per_point() const;
  void note_time(double seconds, std::int64_t points) const;

 private:
  friend class Borrowed;

  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<const Route>> routes_;
  mutable std::atomic<double> seconds_per_point_ = 0;  // 0 before it was measured

  mutable locks::Mutex mutex_;  // guards the workspaces that wait for a thread, and the number of all
  mutable std::vector<std::unique_ptr<Workspace>> waiting_;
  mutable std::size_t num_workspaces_ = 0;
};

// A workspace that this thread works with, taken from those that wait, so that its memory is used again.
class Borrowed {
 public:
  explicit Borrowed(const Routes& routes);
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Workspace& operator*() const { return *workspace_; }

 private:
  const Routes& routes_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace neml2_capi::model
