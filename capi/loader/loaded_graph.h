// Package whose code is mapped, on either runtime.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/base/locks.h"
#include "capi/graph/graph.h"
#include "capi/loader/container.h"
#include "capi/loader/image.h"
#include "capi/package/signature.h"

namespace neml2_capi::aoti {

using graph::Constant;
using graph::Graph;
using graph::Runtime;
using graph::SingularInfo;

class LoadedGraph : public Graph {
 public:
  const std::vector<InputSpec>& inputs() const override { return signature_.inputs; }
  const std::vector<OutputSpec>& outputs() const override { return signature_.outputs; }
  Device device() const override { return device_; }
  const CallSpec& call_spec() const override { return signature_.call_spec; }
  bool enforces_bounds() const override { return image_.checks_inputs(); }
  void check(const Vector<Tensor>& inputs) const override;

  std::vector<Constant> constants() const override;
  void set_constants(const std::vector<Constant>& values, bool copy) override;

 protected:
  // Throws NEML2_ERROR_ARTIFACT unless the code has the inputs and outputs of the signature.
  LoadedGraph(std::string package, Signature signature, Image& image, const Handling& handling, Device device = {},
              const char* kernels = nullptr);

  void require_count(std::size_t count) const;
  const std::string& package() const { return package_; }
  // Returns the container of a run, which keeps it while others may replace its constants.
  std::shared_ptr<const Container> in_use() const;
  const Signature& signature() const { return signature_; }

 private:
  void require_host() const;
  // Returns number and name of an input: "0 ('strain')".
  std::string labelled(std::int64_t input) const;
  void check_input(std::int64_t i, const Tensor& input, bool exact) const;
  void check_equal(const Vector<Tensor>& inputs, const std::vector<Axis>& group) const;

  std::string package_;
  Signature signature_;
  Image& image_;
  const Handling& handling_;
  Device device_;
  const Container compiled_;  // lives as long as the graph, since other containers use its constants

  locks::FreedMutex setting_;  // serializes set_constants()
  std::atomic<bool> has_replaced_ = false;
  mutable locks::Mutex mutex_;  // guards what follows
  std::shared_ptr<const Container> replaced_;
};

}  // namespace neml2_capi::aoti
