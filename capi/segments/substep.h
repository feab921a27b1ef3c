// Adaptive substepping: an increment that a point cannot solve is halved, again and again, for this point alone.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/segments/placed_pair.h"

namespace neml2_capi::model {

class ImplicitSegment;

// Roles of the givens of a segment in a part of the increment.
struct SubstepPlan {
  using Role = artifact::Substep::Role;
  struct Given {
    std::size_t value;
    Role role;
    std::size_t partner;  // of an old state: the unknown that it will be; of a force: the same at the other end
    std::int64_t column;  // of the given's first component among all of them
    std::int64_t size;
  };

  // `needed` holds the givens of the residual, `predicted_from` what the predictor takes; what is not in the list stays
  // as it is. Throws NEML2_ERROR_ARTIFACT if the list of substeps does not fit.
  SubstepPlan(const std::vector<artifact::Substep>& substeps, const std::vector<std::size_t>& unknowns,
              const std::vector<std::size_t>& needed, const std::vector<std::size_t>& predicted_from,
              std::int64_t levels, Scope& scope);

  std::int64_t levels;  // how often an increment may be halved
  std::vector<Given> givens;
  std::vector<std::size_t> held;  // further values, the same in every part of the increment
  std::int64_t num_columns = 0;   // components of all givens, then of all parameters
  Vector<std::int64_t> parameter_columns, parameter_sizes;
  // Derivatives of each unknown with respect to each given, then to each parameter, in a matrix of these columns.
  std::vector<PlacedPair> pairs;
};

// Solves `segment` for the points of the chunk, and returns their derivatives through all parts of the increment.
Vector<Block> run_substepped(const ImplicitSegment& segment, const SubstepPlan& plan, Chunk& chunk);

}  // namespace neml2_capi::model
