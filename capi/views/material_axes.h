// A law in the axes of its material: its tensors are turned from the axes of the caller, and back.
#pragma once

#include "capi/deformation/tensors.h"
#include "capi/model/model.h"
#include "capi/views/change.h"

namespace neml2_capi::model {

class MaterialAxes final : public Change {
 public:
  // Throws NEML2_ERROR_UNSUPPORTED for a law with a tensor that cannot be turned, or without any.
  explicit MaterialAxes(const Model& law);

  Refusal before(Point& point, bool with_slopes) const override;
  void after(Point& point, bool with_slopes) const override;

  // How a site of a variable is turned.
  enum class Kind { not_at_all, vector, symmetric, tensor };

 private:
  std::vector<Kind> taken_kinds_, made_kinds_;
};

}  // namespace neml2_capi::model
