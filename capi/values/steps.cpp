#include "capi/values/steps.h"

#include <algorithm>

namespace neml2_capi::model {

std::vector<std::pair<std::size_t, std::size_t>> steps_of(const std::vector<Variable>& inputs) {
  std::vector<std::pair<std::size_t, std::size_t>> steps;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto before = std::ranges::find(inputs, inputs[i].name + "~1", &Variable::name);
    if (before != inputs.end() && inputs[i].point_shape.empty() && before->point_shape.empty())
      steps.emplace_back(i, before - inputs.begin());
  }
  return steps;
}

}  // namespace neml2_capi::model
