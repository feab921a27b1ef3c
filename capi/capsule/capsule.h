// A capsule: a file with all that is needed to make a failed evaluation again, elsewhere. neml2-capi replay reads it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/base/error.h"
#include "capi/model/model.h"
#include "capi/values/bindings.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

class Capsule {
 public:
  // Watches an evaluation that is about to begin. Inputs that it will write over are copied now.
  Capsule(const Model& model, const Bindings& bindings, const Options& options);

  // The same, which also reports what the capsule tells of the points.
  const Bindings& bindings() const { return watched_; }

  // Write the capsule if the evaluation failed. If that is not possible, the log says why.
  void end(const Tally& tally) noexcept;
  void end(const Error& error) noexcept;

 private:
  void write(std::int32_t status, const std::string& message, const std::string& subject,
             const std::vector<std::int64_t>& points, const char* kept) const;
  Tensor rows(const Points& array, const Variable& variable, const std::vector<std::int64_t>& points) const;

  const Model& model_;
  const Options& options_;
  Bindings watched_;
  Vector<Tensor> copies_;   // of inputs; empty if there is none
  Vector<Tensor> reports_;  // by NEML2_REPORT_*; empty if the caller has an array
};

// Returns what `run` returns for the evaluation, which a capsule watches if the options name a folder.
template <class Run>
Tally with_capsule(const Model& model, const Bindings& bindings, const Options& options, Run&& run) {
  if (!options.capsule()) return run(bindings);
  Capsule capsule(model, bindings, options);
  try {
    const Tally tally = run(capsule.bindings());
    capsule.end(tally);
    return tally;
  } catch (const Error& error) {
    capsule.end(error);
    throw;
  }
}

}  // namespace neml2_capi::model
