// A law of small strain under large deformation: it takes F, and makes the stress that is asked for of its own.
#pragma once

#include "capi/deformation/measure.h"
#include "capi/model/tensor_pair.h"
#include "capi/views/change.h"

namespace neml2_capi::model {

class LargeStrain final : public Change {
 public:
  // Finds the strain and the stress of the law if their names are empty. Throws as tensor_pair_of() does.
  LargeStrain(const Model& law, deformation::Measure measure, deformation::Stress stress, std::string_view strain_name,
              std::string_view stress_name);

  Refusal before(Point& point, bool with_slopes) const override;
  void after(Point& point, bool with_slopes) const override;

 private:
  deformation::Measure measure_;
  deformation::Stress stress_;
};

}  // namespace neml2_capi::model
