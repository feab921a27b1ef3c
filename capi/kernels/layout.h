// Where everything of a model stands in the scratch of a workspace, and which kernel reads and writes what.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/kernels/block.h"
#include "capi/kernels/boundary.h"
#include "capi/kernels/folder.h"
#include "capi/kernels/groups.h"
#include "capi/kernels/memory.h"
#include "capi/kernels/rows_call.h"

namespace neml2_capi::kernels {

[[noreturn]] inline void refuse(const std::string& who, const std::string& why) {
  throw Error(NEML2_ERROR_UNSUPPORTED, who, join(who, " cannot run in lanes: ", why, "."));
}

// Components side by side in the scratch.
struct Place {
  At at = nowhere;
  std::int64_t components = 0;
  const neml2_kernel_sparse* sparse = nullptr;  // of an output of a kernel: which components these are
};
using Places = std::vector<Place>;

// An array of the caller's that goes to a place, or comes from it.
inline Bound bound(const Place& place, model::Part part, std::size_t i, const model::Points& array = {}) {
  return {array, place.components, place.at, {part, static_cast<std::int64_t>(i)}};
}

// A block of derivatives that a kernel of a segment returns: of an output of a forward segment, or of the residual from a
// row on, with respect to a value or parameter, from a column on.
struct Local {
  std::string output, input;
  bool of_parameter = false;
  std::int64_t row = 0;
  At block = nowhere;
  std::int64_t stride = 0, rows = 0, columns = 0, column = 0;
};

// A force at an end of a part of the increment, from both ends of the whole.
inline Between between(const artifact::Substep& force, At own, At partner, const Place& made) {
  const bool is_old = force.role == artifact::Substep::Role::old_force;
  return {is_old ? own : partner, is_old ? partner : own, is_old ? Between::Place::begin : Between::Place::end, made.at,
          made.components};
}

// The derivatives that a segment has.
struct Links {
  std::vector<Run> operators;
  std::vector<Move> expand;  // what they store sparsely, among zeros
  std::vector<Local> locals;
  std::vector<std::string> outputs;  // of a segment without a system
  const Implicit* system = nullptr;
  std::vector<Part> unknowns;  // of the system
  // If its increment may be cut: the givens that change with its parts, and what solutions they become or the other ends of.
  std::vector<artifact::Substep> roles;
};

class Layout {
 public:
  Layout(const Folder& folder, Asked asked, const Functions& functions)
      : folder_(folder), asked_(asked), functions_(functions) {}
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  Place place(std::int64_t components) { return {std::exchange(size_, size_ + components), components}; }
  const Place& value(const std::string& name) const { return found(values, name, "nothing before makes it"); }
  const Place& parameter(const std::string& name) const { return found(parameters, name, "it is no parameter"); }

  void add(const artifact::Segment& segment) {
    links.emplace_back();
    std::visit([&](const auto& one) { add(one); }, segment);
  }

  // Returns memory for all that has a place, for each of the blocks that take turns. Kernels run on it from then on.
  char* make_scratch();
  std::int64_t size() const { return size_; }
  // Two blocks overlap if their operations mostly wait for each other; values alone are looked up for several at once. All
  // fit the first-level cache.
  std::int64_t blocks_in_turn() const {
    const std::int64_t most = operations_ > most_in_turn ? 1 : systems.empty() ? most_blocks : 2;
    return std::clamp<std::int64_t>(most_bytes / std::max<std::int64_t>(size_ * bytes(), 1), 1, most);
  }

  // The whole model as one call of a kernel on rows of such arrays, if it is no more.
  RowsCall on_rows(const std::vector<Bound>& inputs, const std::vector<Bound>& outputs) const;

  // Tells whether kernels write the same into a matrix for any unknowns and tensors: constants, and what is computed of scalars.
  bool is_of_scalars(At at, std::int64_t stride, std::int64_t rows, std::int64_t columns = 1) const;

  Memory memory;
  std::map<std::string, Place> values, parameters;
  Places iterates;                   // by unknown: the last of them
  std::vector<std::string> systems;  // by implicit segment: its name
  std::vector<Step> steps;
  std::vector<Links> links;  // by step

 private:
  // The arrays of a kernel, and where the list of their addresses stands.
  struct Arrays {
    At at;
    std::vector<At> places;
  };
  static constexpr std::int64_t pointer = sizeof(void*);
  static constexpr std::int64_t most_in_turn = 600, most_blocks = 16, most_bytes = 1 << 15;  // operations of each

  std::int64_t bytes() const { return functions_.lanes * functions_.real_size; }  // of a vector

  static const Place& found(const std::map<std::string, Place>& places, const std::string& name, const char* otherwise);

  // Notes what is the same for any unknowns and tensors.
  void note_of_scalars(const std::string& package, const Places& outputs);

  // A kernel that is called with these arrays, if their sizes are what it takes and returns. Outputs that have no place
  // yet get one.
  Run run_of(const std::string& package, const Places& inputs, Places& outputs);
  Places arguments(const artifact::NamedGraph& graph) const;
  void add(const artifact::ForwardSegment& segment);
  void add_pairs(const std::vector<artifact::Pair>& pairs, const Places& made, std::size_t first, bool of_parameter);

  // A place for each group, one after the other.
  Places places_of(const Groups& groups);

  // Sites of two groups are the same ones.
  void expect_sites(const Groups& rows, const Groups& columns, const std::string& who) const;

  // A value into its part of packed groups, or a part into its value.
  static void move(std::vector<Move>& moves, const Part& part, At from, At to, bool pack);

  // A place for an output of a kernel, which has `components` if all of them are stored.
  Place place_of(const neml2_kernel& kernel, std::size_t output, std::int64_t components);

  // Components of a block, which may not all be stored, to where component `first` and `count` behind it belong.
  static void move_stored(std::vector<Move>& moves, const Place& block, std::int64_t first, std::int64_t count, At to);

  // The Jacobian in one matrix; if it is returned as one block with all its zeros, that is the matrix.
  void assemble(const Places& blocks, const Groups& rows, const Groups& columns, bool auxiliaries, Implicit& system);

  // dr/dw dw/du, which is added to the matrix. Each w depends on unknowns and on those before it.
  void add_auxiliaries(const Place& by_auxiliaries, const Place& auxiliaries, Implicit& system,
                       std::vector<Move>& moves);
  void add(const artifact::ImplicitSegment& segment);

  // Gives the givens of a segment places of their own for a part of the increment. Returns the places of the whole's.
  std::map<std::string, Place> begin_parts(const artifact::ImplicitSegment& segment, CutIncrement& parts);
  const CutIncrement* end_parts(const std::map<std::string, Place>& wholes, std::int64_t unknowns, CutIncrement& parts);
  static At sized(const Place& from, const Part& part);
  static Move whole(const Place& from, const Place& to, const std::string& name);
  void predict(const artifact::ImplicitSegment& segment, Step& step);

  // dr/dg, in blocks of groups.
  void add_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands, const Groups& rows,
                       const Groups& givens);

  // Gives a block of an operator a place with all its zeros.
  void expand(Place& block);

  // The columns of a variable in a matrix of a block.
  static Local local(At block, const SubMatrix& matrix, const Part& part);

  // dr/dp, in one matrix behind dr/du.
  void add_parameter_sensitivity(const artifact::ImplicitSegment& segment, const Places& operands, const Groups& rows);

  const Folder& folder_;
  const Asked asked_;
  const Functions& functions_;
  std::int64_t size_ = 0;        // of the scratch
  std::int64_t operations_ = 0;  // of an iteration
  std::vector<Arrays> arrays_ = {};
  std::vector<bool> of_scalars_;  // by place
};

}  // namespace neml2_capi::kernels
