// Arrays for a walk whose caller passes only some components of the model's tensors, and wants derivatives without the
// components that are solved for.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capi/kernels/chains.h"

namespace neml2_capi::kernels {

class Condenser {
 public:
  // Where components of the caller's arrays stand: `bound`, from the element `offset` of the array on.
  struct Piece {
    Bound bound;
    std::int64_t offset;
  };

  // All but the places must outlive it; these are of the model's inputs and outputs. Throws NEML2_ERROR_UNSUPPORTED if the
  // free components cannot be solved for in lanes.
  Condenser(const Condensation& of, const Boundary& boundary, Places inputs, Places outputs, Layout& layout,
            Chains* chains);

  // The arrays of a caller's inputs, or outputs, that hold components, and the whole ones of the model. Call it once.
  std::vector<Piece> pieces(model::Part part);

  // Binds what the model has to give for what the caller asks.
  const model::Bindings& wanted(const model::Bindings& arrays, char* any);
  // Tells a walk what to condense, for which the chains have been planned.
  void add_to(Walk& walk, const model::Bindings& arrays);

 private:
  // A block of the caller's: its rows and columns, kept, and where it stands.
  struct Block {
    List<std::int64_t> rows, columns;
    At at;
  };
  const std::vector<Condensation::Block>& blocks(model::Part part) const {
    return part == model::Part::block ? of_.by_inputs : of_.by_parameters;
  }
  void expect_solvable() const;
  bool is_fixed(At at) const;
  void want_slopes(const model::Bindings& arrays);
  void to_model(std::size_t& input, const Condensation::Components*& components) const;

  const Condensation& of_;
  const Places inputs_, outputs_;
  Layout& layout_;
  const Chains* chains_;
  Free free_;
  std::vector<Move> spread_;   // components of inputs that do not belong side by side
  std::vector<Move> packed_;   // components of outputs that do not stand side by side
  bool begins_alone_ = false;  // where the free components begin is no other input of the model's
  std::vector<Block> by_inputs_, by_parameters_;
  model::Bindings wanted_;
  std::vector<Condensed> condensed_;
  std::vector<Matrix> matrices_;
};

}  // namespace neml2_capi::kernels
