// The route of a model whose kernels run on a device, from their text: arrays of the host go there and back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/accelerator/batch.h"
#include "capi/base/locks.h"
#include "capi/evaluation/route.h"

namespace neml2_capi::accelerator {

// Tells whether an artifact, by its metadata for the CPU, has the text of its law for a device.
bool has_text(const artifact::Metadata& metadata, const graph::Driver& driver);

class ByText final : public model::Route {
 public:
  // Compiles the text, or takes what was compiled before. The model, which is on the host, must outlive it. Throws
  // NEML2_ERROR_UNSUPPORTED if the artifact has no text, or there is no driver or device; NEML2_ERROR_ARTIFACT for a
  // text that does not compile.
  ByText(const model::Model& model, Device device);
  ~ByText() override;

  // Throws NEML2_ERROR_UNSUPPORTED for what the kernels of a text do not give.
  bool gives(const model::Request& request, const model::Options& options) const override;
  void check(const model::Options&, std::int64_t) const override {}
  ChunkSize chunk_size(const model::Options&, const model::Request& request) const override {
    return {request.points, request.points};
  }
  void run(const model::Plan& plan, const model::Bindings& bindings, const model::Range& range,
           model::Workspace& workspace, model::Tally& tally) const override;

  const model::Model& model() const { return model_; }
  const std::string& name() const { return name_; }
  // A text that was compiled, and what its arrays have.
  struct Compiled {
    Sizes sizes;
    std::shared_ptr<const graph::DeviceProgram> program;
  };
  // Returns the text that derives with respect to inputs alone, or the one that does with respect to parameters, too,
  // which is compiled when it is asked for first: throws as the constructor.
  const Compiled& compiled(bool by_parameters) const;
  // Returns how many of the points go to the device at once: `wanted`, or if that is 0 what keeps it busy, as memory allows.
  std::int64_t points_at_once(std::int64_t wanted, const model::Request& request, std::int64_t points) const;
  // Bytes of a point in all memory that a run takes besides the caller's, and in the largest piece.
  struct Room {
    std::int64_t all, largest;
  };
  // Does so for arrays on the device, which take so much: all points, if they fit.
  std::int64_t points_in_place(std::int64_t wanted, const Room& room, std::int64_t points) const;
  // Throws NEML2_ERROR_UNSUPPORTED in the child of a fork.
  void require_same_process() const;

 private:
  // The batches of a thread: one is on the device while the host fills or reads the other.
  struct Pair {
    Batch batches[2];
    Pair(const model::Model& model, const Compiled& of)
        : batches{{model, of.sizes, *of.program}, {model, of.sizes, *of.program}} {}
  };
  std::int64_t fit(const Room& room, std::int64_t wanted, bool limits, std::int64_t points) const;
  bool is_search_of_text(const model::Options& options) const;
  std::unique_ptr<Pair> take(bool by_parameters) const;
  void give_back(std::unique_ptr<Pair> pair, bool by_parameters) const;
  void finish(Batch& batch, const model::Plan& plan, const model::Bindings& bindings, model::Workspace& workspace,
              model::Tally& tally) const;

  const model::Model& model_;
  const std::string name_;  // "opencl:0"
  const Device device_;
  const model::Options then_;  // of the artifact
  const model::ThroughSegments writer_;
  std::shared_ptr<const graph::OpenDevice> open_;
  bool derives_ = false;
  Compiled compiled_;
  mutable locks::Mutex compiling_;
  mutable std::optional<Compiled> by_parameters_;  // stays once it is there

  mutable locks::Mutex mutex_;                             // guards the pairs that wait for a thread
  mutable std::vector<std::unique_ptr<Pair>> waiting_[2];  // 1: by parameters
};

}  // namespace neml2_capi::accelerator
