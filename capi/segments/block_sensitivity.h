// The sensitivity of an implicit segment as one package, as before schema 12.
#pragma once

#include <string>
#include <vector>

#include "capi/segments/operands.h"
#include "capi/segments/placed_pair.h"

namespace neml2_capi::model {

class BlockSensitivity {
 public:
  // `groups`: how many groups of unknowns and givens the package takes before the parameters.
  BlockSensitivity(const artifact::Sensitivity& sensitivity, const std::vector<std::string>& parameters,
                   std::size_t groups, bool of_parameters, const Scope& scope);

  Vector<Block> run(const Operands& at, const Chunk& chunk) const;

  const std::vector<PlacedPair>& pairs() const { return pairs_; }
  const Package& package() const { return package_; }

 private:
  Package package_;
  ParameterTail tail_;
  std::vector<PlacedPair> pairs_;
};

}  // namespace neml2_capi::model
