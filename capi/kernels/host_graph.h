// What graphs without a package have in common: names and shapes from kernels.json, rows of points, no constants.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/kernels/folder.h"
#include "capi/package/graph.h"

namespace neml2_capi::kernels {

// Every input has one row for each point, also where the package would take one value for all.
class HostGraph : public aoti::Graph {
 public:
  HostGraph(std::string name, DType real, const std::vector<Slot>& inputs) : name_(std::move(name)), real_(real) {
    for (const Slot& slot : inputs) {
      aoti::InputSpec& spec = inputs_.emplace_back();
      spec.name = slot.name;
      spec.dtype = real;
      spec.least = Dims{1}.then(point_shape(slot));
      spec.greatest = Dims{INT64_MAX}.then(point_shape(slot));
      for (std::int64_t axis = 0; axis < spec.least.size(); ++axis) spec.order.push_back(axis);
    }
  }

  aoti::Runtime runtime() const override { return aoti::Runtime::builtin; }
  const std::vector<aoti::InputSpec>& inputs() const override { return inputs_; }
  const std::vector<aoti::OutputSpec>& outputs() const override { return outputs_; }
  bool enforces_bounds() const override { return false; }
  void check(const Vector<Tensor>& inputs) const override {
    bool fits = inputs.size() == inputs_.size();
    for (std::size_t i = 0; fits && i < inputs.size(); ++i) {
      const Dims& sizes = inputs[i].sizes();
      const Dims shape = inputs_[i].least.last(inputs_[i].least.size() - 1);
      fits = inputs[i].dtype() == real_ && sizes.size() == shape.size() + 1 && sizes.last(shape.size()) == shape;
    }
    if (!fits) throw Error(NEML2_ERROR_SHAPE, name_, join(name_, " takes other inputs. Give those that it lists."));
  }
  std::vector<aoti::Constant> constants() const override { return {}; }
  void set_constants(const std::vector<aoti::Constant>& values, bool) override {
    if (!values.empty())
      throw Error(NEML2_ERROR_NAME, values.front().name,
                  join(name_, " is a kernel and has no constant '", values.front().name,
                       "'. Change a promoted parameter of the model instead."));
  }
  const aoti::CallSpec& call_spec() const override { return call_spec_; }

 protected:
  // A value for all points has a batch axis of size 1.
  static Dims point_shape(const Slot& slot) {
    const Dims& shape = slot.shape;
    return !slot.per_point && !shape.empty() && shape[0] == 1 ? shape.last(shape.size() - 1) : shape;
  }
  void add_output(const std::string& name, const Dims& sizes) { outputs_.push_back({name, real_, sizes}); }
  const std::string& name() const { return name_; }
  DType real() const { return real_; }

 private:
  std::string name_;
  DType real_;
  std::vector<aoti::InputSpec> inputs_;
  std::vector<aoti::OutputSpec> outputs_;
  aoti::CallSpec call_spec_;
};

}  // namespace neml2_capi::kernels
