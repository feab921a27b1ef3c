// Variables and derivatives of a law under a hypothesis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "capi/hypotheses/hypothesis.h"
#include "capi/kernels/condensation.h"
#include "capi/model/model.h"

namespace neml2_capi::model {

// Positions count among the inputs, outputs or derivatives of the law, or of the boundary; -1: there is none.
class Reduction {
 public:
  // Finds the strain and the stress if their names are empty. Throws NEML2_ERROR_NAME or NEML2_ERROR_UNSUPPORTED if the
  // law has none, or lacks the derivative that is needed.
  Reduction(const Model& law, const Hypothesis& hypothesis, std::string_view strain, std::string_view stress);

  // A variable of the law. The boundary has it at the same position, of a tensor only the components that are given.
  struct Role {
    bool is_reduced = false;
    std::int64_t others = -1;  // the variable at the boundary that holds its other components
    Components held{};         // which these are
  };
  // A derivative at the boundary. What is condensed is the strain, and the stress of its free components.
  using Condensed = kernels::Condensation::Block;

  const Hypothesis& hypothesis() const { return hypothesis_; }
  const std::vector<Role>& roles(Kind kind) const { return kind == Kind::output ? outputs_ : inputs_; }
  const std::vector<Condensed>& condensed(Kind kind) const {
    return kind == Kind::parameter ? condensation_.by_parameters : condensation_.by_inputs;
  }
  const kernels::Condensation& condensation() const { return condensation_; }
  std::size_t strain() const { return strain_; }             // an input
  std::size_t stress() const { return stress_; }             // an output
  std::int64_t tangent() const { return tangent_; }          // derivative of the stress with respect to the strain
  std::int64_t free_output() const { return free_output_; }  // at the boundary: the free strains
  std::int64_t free_before() const { return free_before_; }  // at the boundary: what they were a step before
  const Boundary& boundary() const { return boundary_; }

 private:
  void reduce_inputs();
  void reduce_outputs();
  void condense(Kind kind);
  void condense_by_guess();
  void hold();
  void add(Kind kind, std::size_t output, std::size_t variable, Condensed condensed);
  [[noreturn]] void refuse_without_tangent() const;

  const Model& law_;
  Hypothesis hypothesis_;
  std::size_t strain_ = 0, stress_ = 0;
  std::int64_t tangent_ = -1, free_output_ = -1, free_before_ = -1, stress_others_ = -1;
  std::vector<Role> inputs_, outputs_;
  kernels::Condensation condensation_;
  Boundary boundary_;
};

}  // namespace neml2_capi::model
