// What an evaluation in lanes is asked for, and of what model.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "capi/newton/newton.h"
#include "capi/values/derivative.h"
#include "capi/values/non_finite.h"
#include "capi/values/points.h"

namespace neml2_capi::kernels {

// Which derivatives are wanted: with respect to inputs, to parameters, and whether in products.
struct Asked {
  bool by_values = false, by_parameters = false, products = false;
  std::size_t index() const { return (by_values ? 1u : 0u) + (by_parameters ? 2u : 0u) + (products ? 4u : 0u); }
  bool any() const { return by_values || by_parameters; }
};

// What a model shows at its boundary, in the order of its metadata.
struct Boundary {
  const std::vector<model::Variable>& inputs;
  const std::vector<model::Variable>& outputs;
  const std::vector<model::Variable>& parameters;
  const std::vector<model::Variable>& unknowns;
  const std::vector<model::Derivative>& derivatives;
  const std::vector<model::Derivative>& parameter_derivatives;
};

// The arrays of an evaluation, each in the order of the boundary. Those that are not bound are null.
struct Request {
  std::span<const model::Points> inputs, parameters, outputs;
  std::span<const model::Points> iterates;                  // by unknown: written if a point failed; empty: not wanted
  std::span<const model::Points> blocks, parameter_blocks;  // by derivative
  std::span<const model::Points> tangents, jvps;            // by input, by output
  std::span<const model::Points> cotangents;                // by output
  std::span<const model::Points> adjoints, parameter_adjoints;  // by input, by parameter: a row for each point
  std::span<const model::Points, 5> report;
  newton::Settings rules;
  bool mark_failed = false;
  bool input_first = false;

  std::span<const model::Points> of(model::Part part) const {
    switch (part) {
      case model::Part::input: return inputs;
      case model::Part::parameter: return parameters;
      case model::Part::tangent: return tangents;
      case model::Part::cotangent: return cotangents;
      case model::Part::output: return outputs;
      case model::Part::block: return blocks;
      case model::Part::parameter_block: return parameter_blocks;
      case model::Part::jvp: return jvps;
      case model::Part::adjoint: return adjoints;
      case model::Part::parameter_adjoint: return parameter_adjoints;
    }
    return {};
  }
};

}  // namespace neml2_capi::kernels
