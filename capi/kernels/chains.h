// The derivatives of a model, by the chain rule: what each segment does to the columns of the inputs and parameters that
// are asked about.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capi/kernels/boundary.h"
#include "capi/kernels/condensation.h"
#include "capi/kernels/layout.h"
#include "capi/values/bindings.h"

namespace neml2_capi::kernels {

class Chains {
 public:
  // The layout must outlive it, and all its segments must be there.
  Chains(Layout& layout, const artifact::Metadata& metadata, const Boundary& boundary, Asked asked);

  // Plans derivatives with respect to some components of an input alone. Returns where those of an output stand.
  Rows add_free(const Condensation& of, std::int64_t begin, std::int64_t count);

  // Returns where the derivatives of an array stand, which is bound in the last plan.
  Rows rows_of(model::Part part, std::size_t i) const;
  // Returns the first direction of the input of a derivative that is bound in the last plan, if there are directions.
  std::int64_t first_direction(std::size_t derivative) const {
    const auto it = plan_.input_columns.find(inputs_.pairs[derivative].input);
    return it == plan_.input_columns.end() ? 0 : it->second;
  }

  // The plan of a walk over these arrays. It is made again only if other ones are bound than before.
  void add_to(Walk& walk, std::vector<Bound>& inputs, const model::Bindings& arrays);

 private:
  // The derivative of a value: columns of the unit matrix from `first` on, or a matrix, or their sum; else zero.
  struct Direction {
    At at = nowhere;
    std::int64_t first = -1;
    std::int64_t begin = 0, count = 0;  // components that have such columns
    bool zero() const { return at == nowhere && first < 0; }
  };

  using Names = std::set<std::string>;

  // The derivatives with respect to inputs, or to parameters, in the order of the boundary.
  struct By {
    const std::vector<model::Derivative>& derivatives;
    const std::vector<artifact::Pair>& pairs;
    model::Part block, adjoint;
  };

  // Parts of a segment's chain, which refers to these lists.
  struct Pushed {
    Chain chain;
    std::vector<Move> expand, zeros, unpack;
    std::vector<Product> products;
    std::vector<Column> columns;
    // In parts of the increment.
    std::vector<Spread> begins, spreads;
    std::vector<Between> moving;
    std::vector<Product> of_parts;
    std::vector<Move> states;
  };
  struct RoomsInPart {
    At own, partner;
  };

  struct Plan {
    std::int64_t count = 0;  // of directions
    std::map<std::string, Direction> of_values, of_parameters;
    std::map<std::string, std::int64_t> input_columns, parameter_columns;
    std::vector<Pushed> pushed;       // by segment
    std::vector<Bound> given;         // tangents and cotangents, then slopes
    std::vector<std::size_t> slopes;  // those that are read, by number
    std::vector<Move> seeds, zeros;
    std::vector<Matrix> matrices;
    std::vector<Product> products;
    std::vector<Adjoint> pulled;
  };

  static bool is_bound(const model::Bindings& arrays, model::Part part, std::size_t i) {
    return i < arrays.of(part).size() && arrays.of(part)[i].data;
  }
  Places& places(model::Part part) { return places_[static_cast<std::size_t>(part)]; }

  // Takes places for directions, of which there are `most`. Returns whether derivatives have sub-batch axes.
  bool make_rooms(std::int64_t most);
  bool is_made(const std::string& name) const;
  bool is_planned(const model::Bindings& arrays);
  void plan(const model::Bindings& arrays);

  // One direction for each distinct set of inputs that outputs sum over, instead of columns for all of them.
  void plan_jvps(const model::Bindings& arrays);

  // The tangent of an input as a column of each set that has it, among zeros.
  void seed(std::size_t input, const std::vector<std::vector<bool>>& sets);

  // Columns for all inputs that something is asked about.
  void start(const By& by, const model::Bindings& arrays);
  static std::size_t first_of(const std::vector<std::int64_t>* components) {
    return components ? static_cast<std::size_t>(components->front()) : 0;
  }

  // An input that moves with a variable: its derivative stands in the columns of that variable, among zeros.
  void move(const model::Bindings& arrays, std::size_t number);

  // Tells whether slopes are all columns of an input, one each, so that they are read where they stand.
  bool has_all_columns(const model::Bindings& arrays, std::size_t input) const;
  const std::map<std::string, std::int64_t>& columns_by(model::Kind kind) const {
    return kind == model::Kind::parameter ? plan_.parameter_columns : plan_.input_columns;
  }
  const std::string& name_of(const model::Slope& slope) const;

  // Tells whether a derivative, or a product with it, is bound.
  static bool is_asked(const By& by, std::size_t i, const model::Bindings& arrays) {
    const model::Derivative& derivative = by.derivatives[i];
    return is_bound(arrays, by.block, i) || is_bound(arrays, by.adjoint, derivative.input) ||
           (by.block == model::Part::block && is_bound(arrays, model::Part::jvp, derivative.output));
  }

  // Tells whether a link of a segment leads to a value that is `made` of it; all links of a system do.
  static bool is_needed(const Links& links, const Local& local, const Names& made) {
    return links.system ? !made.empty() : made.contains(local.output);
  }

  // Sets the chain of each step, as far as derivatives of some values are read.
  void push_forward(Plan& plan, const Chain* Step::*chain, Names read);

  // Returns, by segment, the values that it makes whose derivatives are read by segments after it, or in the end.
  std::vector<Names> read_of_segments(Names read) const;

  // Tells whether products read what is moved.
  static bool is_read(const Move& move, const std::vector<Product>& products);

  // Adds the products of a block with the directions of its input to a room.
  static void push(const Local& local, const Direction& direction, std::int64_t count, At room,
                   std::vector<Product>& products);

  // The directions of givens and unknowns in a part of the increment.
  void push_in_parts(const Plan& plan, std::size_t i, const std::map<std::string, Direction>& made, Pushed& pushed);

  // Finds the column of an operator for each direction, if there is one for each, and it is all that the direction has.
  void find_columns(const Implicit& system, std::int64_t count, Pushed& pushed) const;

  // The directions of the unknowns of a system, side by side in its room until they are solved for.
  void push_through(const Links& links, const std::map<std::string, At>& rooms, std::int64_t count, Pushed& pushed,
                    std::map<std::string, Direction>& made) const;
  void add_blocks(const By& by, const model::Bindings& arrays);
  At block_of(const artifact::Pair& pair) const;
  static Direction direction_of(const std::string& name, const std::map<std::string, Direction>& directions) {
    const auto it = directions.find(name);
    return it == directions.end() ? Direction{} : it->second;
  }

  // The columns of an input in the derivatives of an output; nowhere if they are zero.
  At columns_of(const By& by, std::size_t i) const;
  void add(Matrix matrix, model::Part part, std::size_t i);

  // Sums of products with directions, which begin at zero.
  void add_sums(model::Part part, const model::Bindings& arrays);

  // An output sums over the inputs for which a derivative of it was compiled.
  void add_products(const model::Bindings& arrays);
  void add_adjoints(const By& by, const model::Bindings& arrays);

  Layout& layout_;
  const artifact::Metadata& metadata_;
  const Boundary& boundary_;
  const Asked asked_;
  const By inputs_, parameters_;
  bool direct_ = false;
  std::vector<std::map<std::string, At>> rooms_;  // by segment and output: for directions; of an implicit one, for all
  std::array<Places, 10> places_;                 // by part: of arrays of derivatives
  std::vector<std::map<std::string, RoomsInPart>> rooms_of_parts_;  // by segment and given; of the solution by ""
  Places seeds_;                                                    // by input
  Places slopes_, moving_;                                          // by input: as they are given, and as columns
  std::vector<std::size_t> planned_;                                // which arrays the plan is for
  Plan plan_, free_;
};

}  // namespace neml2_capi::kernels
