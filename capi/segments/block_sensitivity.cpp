#include "capi/segments/block_sensitivity.h"

namespace neml2_capi::model {

BlockSensitivity::BlockSensitivity(const artifact::Sensitivity& sensitivity, const std::vector<std::string>& parameters,
                                   std::size_t groups, bool of_parameters, const Scope& scope)
    : package_(scope.load(sensitivity.block_package)) {
  expect_arity(package_, groups + parameters.size(), num_tensors(sensitivity.pairs));
  tail_ = ParameterTail(parameters, package_, groups, scope);
  pairs_ = solved_pairs(sensitivity.pairs, &package_, of_parameters, scope);
}

Vector<Block> BlockSensitivity::run(const Operands& at, const Chunk& chunk) const {
  aoti::SingularInfo ignored;
  return blocks_of(package_.run(at.points(), at.inputs(tail_), &ignored), pairs_, chunk);
}

}  // namespace neml2_capi::model
