// A package whose code is mapped: what it has in common whichever runtime it calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/aoti/builtin/image.h"
#include "capi/aoti/graph.h"
#include "capi/aoti/source.h"

namespace neml2_capi::aoti {

class LoadedGraph : public Graph {
 public:
  const std::vector<InputSpec>& inputs() const override { return signature_.inputs; }
  std::int64_t num_outputs() const override { return signature_.num_outputs; }
  bool enforces_bounds() const override { return image_.checks_inputs(); }
  void check(const Vector<Tensor>& inputs) const override;

 protected:
  LoadedGraph(std::string package, Signature signature, builtin::Image& image);

  // Throws NEML2_ERROR_ARTIFACT unless the code has the inputs and outputs of the signature.
  void require_arity(std::size_t num_inputs, std::size_t num_outputs) const;
  void require_count(std::size_t count) const;
  const std::string& package() const { return package_; }
  builtin::Image& image() const { return image_; }
  // Integer kernels cannot run beside one another.
  bool has_integer_kernels() const { return signature_.has_integer_kernels; }

 private:
  void check_input(std::size_t i, const Tensor& input, bool exact) const;
  void check_equal(const Vector<Tensor>& inputs, const std::vector<Axis>& group) const;

  std::string package_;
  Signature signature_;
  builtin::Image& image_;
};

}  // namespace neml2_capi::aoti
