// Variables and derivatives that a model has in common with its kernels, and requests for them.
#pragma once

#include <cstddef>
#include <vector>

#include "capi/values/derivative.h"

namespace neml2_capi::kernels {

// Which derivatives are wanted: with respect to inputs, to parameters, whether in products, and whether inputs move.
struct Asked {
  bool by_values = false, by_parameters = false, products = false, slopes = false;
  std::size_t index() const {
    return (by_values ? 1u : 0u) + (by_parameters ? 2u : 0u) + (products ? 4u : 0u) + (slopes ? 8u : 0u);
  }
  bool any() const { return by_values || by_parameters; }
};

// Variables and derivatives of a model, in the order of its metadata.
struct Boundary {
  const std::vector<model::Variable>& inputs;
  const std::vector<model::Variable>& outputs;
  const std::vector<model::Variable>& parameters;
  const std::vector<model::Derivative>& derivatives;
  const std::vector<model::Derivative>& parameter_derivatives;
};

}  // namespace neml2_capi::kernels
