// What a block of material points goes through, as plain data: code for several instruction sets reads it.
//
// A block has as many points as a vector has lanes. Values stand in scratch memory as kernels take them: component c of
// lane l at [c * lanes + l]. Counts of components are counts of vectors, and so are places: whatever the instruction set
// and the type of the numbers, a plan is the same.
#pragma once

#include <cstdint>

#include "capi/newton/settings.h"
#include "capi/values/array.h"
#include "capi/values/counts.h"
#include "neml2_capi/kernels/c/neml2_kernel.h"

namespace neml2_capi::kernels {

template <class X>
struct List {
  const X* items = nullptr;
  std::int64_t count = 0;

  [[gnu::always_inline]] const X* begin() const { return items; }
  [[gnu::always_inline]] const X* end() const { return items + count; }
};

// A vector of the scratch, counted from its first one.
using At = std::int64_t;
inline constexpr At nowhere = -1;

// A run of a kernel; none if `kernel` is null.
struct Run {
  const neml2_kernel* kernel = nullptr;
  At arrays = nowhere;  // the list of inputs, outputs, and what prepare() hands to run(), in the scratch itself
  decltype(neml2_kernel::run) of_one = nullptr;  // for a block whose lanes hold the same point
};

// Components that are copied from one place of the scratch to another; zeros if they come from nowhere.
struct Move {
  At from = nowhere, to = nowhere;
  std::int64_t components = 0;
};

// An array of the caller's, of `components` elements a point; not bound if it has no data. In scratch they stand `apart`,
// if an input is a column of a matrix.
struct Bound {
  model::Points array;
  std::int64_t components = 1;
  At at = nowhere;
  model::Named named = {};
  std::int64_t apart = 1;
};
// The most components that stand apart.
constexpr std::int64_t most_in_column = 16;

// An array of derivatives of the caller's, (sites, rows, columns) a point, and where they are found in the scratch; zeros
// if that is nowhere.
struct Matrix {
  model::Points array;
  std::int64_t sites = 1, rows = 1, columns = 1;
  At at = nowhere;
  std::int64_t row_stride = 1;
  model::Named named = {};
};

// A scalar input and its value a step before, such as the time.
struct Increment {
  model::Points now, before;
};

// What Newton's method did to a system, over all blocks of a walk.
struct Trace {
  double *greatest_norm, *least_step;  // by iteration
  std::int64_t* left;                  // by iteration: points that go on
  std::int64_t converged, iterations;  // the most of any point
  std::int64_t failed, status;         // the first point that failed, or -1
  double norm;                         // its |r|
  // Points whose increments were cut, those that failed all the same; how often one was halved at most.
  std::int64_t cut = 0, given_up = 0, deepest = 0;
};

// A block of derivatives (rows, columns), whose rows are `stride` vectors apart, times directions (columns, count), added
// to `to` (rows, count). If they come from nowhere, the directions are columns of the unit matrix, from the column `first`
// on.
struct Product {
  At block;
  std::int64_t stride, rows, columns;
  At from;
  std::int64_t first;
  At to;
};

// The unknowns that make a residual vanish. As packages return it, the residual is -r.
struct Implicit {
  std::int64_t number = 0;  // among the systems of the model
  bool is_cut = false;      // if a point fails, its increment is cut
  std::int64_t unknowns = 0;
  std::int64_t first_part = 0, parts = 0;  // among the unknowns of the model
  Run system;                              // the Jacobian, in blocks, and the residual at `u`
  Run residual;                            // at `trial`
  Run newton_step;                         // from both; if its pivots were bad for a lane, `trusted` is not 1
  List<Move> assemble = {};                // the blocks of the Jacobian, into one matrix
  List<Product> substitute = {};           // then what it depends on through auxiliary unknowns
  At u = nowhere, r = nowhere, jacobian = nowhere, step = nowhere, trial = nowhere, trial_residual = nowhere;
  At trusted = nowhere, pivoted = nowhere;  // the latter: a step by row pivoting
  List<Move> unpack = {};                   // the solution, into the values
  List<Move> iterates = {};                 // the last iterate, of unknowns that stand in pieces
};

// The transpose of (rows, columns) of a matrix of the scratch, times `from`, added to `to`.
struct Adjoint {
  At matrix;
  std::int64_t stride, rows, columns;
  At from, to;
};

// A value between two ends of an increment, in a part of it: at the part's begin or end. From nowhere, its share by the width
// of the part.
struct Between {
  enum class Place { begin, end, width };
  At from, to;
  Place at;
  At made;
  std::int64_t components;  // with `count` directions each, if it is of these
};

// Givens of an implicit segment in a part of the increment.
struct CutIncrement {
  std::int64_t levels = 0;  // how often an increment may be halved
  List<Move> whole = {};    // what they are in the whole increment
  List<Between> moving = {};
  List<Move> states = {};  // solutions that become old states of the next part
  At solution = nowhere;   // of lanes that are done
};

// Directions (rows, count) of a given as a matrix: from `at`, and columns of the unit matrix added.
struct Spread {
  At at, to;
  std::int64_t rows, begin, units, first;  // `units` rows from `begin` on have them, in columns from `first` on
};

// Directions of the givens in a part of the increment: CutIncrement has their values.
struct DirectionsInParts {
  List<Spread> begins = {};   // of old states
  List<Spread> spreads = {};  // of ends of the increment
  List<Between> moving = {};
  List<Product> products = {};
  List<Move> states = {};
  At solution = nowhere;
};

// A column of a matrix of the scratch.
struct Column {
  At at = nowhere;
  std::int64_t stride = 0;  // between its rows
};

// Effect of a segment on `count` directions, by the chain rule.
struct Chain {
  List<Run> operators = {};
  List<Move> expand = {};  // what they store sparsely
  List<Move> zeros = {};   // what products are added to
  List<Product> products = {};
  const Implicit* system = nullptr;  // of an implicit one: -(dr/du)^-1 times `right`, in its place
  At right = nowhere;
  List<Column> columns = {};  // what is solved for, by direction, if operators return it: no product is needed
  At solved = nowhere;        // room for the solutions, if the kernel of the Newton step keeps its factors
  List<Move> unpack = {};     // what follows for unknowns that stand in pieces
  std::int64_t count = 0;
  bool is_of_scalars = false;    // the columns are the same for any unknowns and tensors
  DirectionsInParts parts = {};  // if the increment of the system may be cut
};

// A segment: a forward one is `run` alone; of an implicit one that is the predictor.
struct Step {
  List<Move> begin = {};
  Run run;
  Run values;  // of a forward one, the same without derivatives, if these are the same for any tensors; else without a kernel
  std::int64_t passes = 1;
  Move feedback = {};  // between two passes
  List<Move> pack = {}, guess = {};
  const Implicit* implicit = nullptr;
  const CutIncrement* parts = nullptr;
  const Chain* chain = nullptr;    // if derivatives are wanted
  const Chain* of_free = nullptr;  // of what depends on the free components, by these
};

// A matrix in the scratch, whose rows are `stride` vectors apart; zeros if it is nowhere.
struct Rows {
  At at = nowhere;
  std::int64_t stride = 0;
};

// Components of a symmetric tensor, an input, which are solved for: those of another one, an output, vanish. They stand side
// by side, from `first` on, `count` of them; none if that is 0.
struct Free {
  At input = nowhere, output = nowhere;
  std::int64_t first = 0, count = 0, normal = 0;  // the normal components stand before the shears
  At begin = nowhere;                             // where they begin; at zero if nowhere
  Rows derivative = {};                           // of the output by them
  Rows condensed = {};                            // the same, among the derivatives that the caller asks for
  std::int64_t shears = 0;                        // there, the first direction of the free shears
  List<Move> pack = {};                           // of the step of an implicit segment: what follows from them
  bool moves_scalars = false;                     // there
  At right = nowhere;  // of an implicit segment: the derivative of its residual by them, (unknowns, count)
};

// A block of derivatives for the caller: direct[rows, columns] - by_free[rows, :] K^-1 of_output[free, columns], by static
// condensation, where K is the derivative of the components that vanish with respect to the free ones.
struct Condensed {
  At to = nowhere;
  List<std::int64_t> rows = {}, columns = {};
  Rows direct = {}, by_free = {}, of_output = {};
  bool is_of_free = false;  // of the free components themselves: - K^-1 of_output
};

// A call of a kernel on rows of the caller's arrays, which are all that the walk has; none if `run` is null.
struct OnRows {
  decltype(neml2_kernel::run_rows) run = nullptr;
  List<model::Points> inputs = {}, outputs = {};  // in the order of the kernel
};
inline constexpr std::int64_t most_on_rows = 24;  // arrays

// So many points take less time one after the other, if their sites fill the lanes.
inline constexpr std::int64_t most_one_by_one = 2;

// Points [begin, end) of the caller's arrays, through all segments.
struct Walk {
  std::int64_t begin = 0, end = 0;
  char* scratch = nullptr;
  std::int64_t size = 0;            // of the scratch of a block, in vectors
  std::int64_t blocks_in_turn = 1;  // blocks that have one, one behind the other
  List<Bound> inputs;               // parameters, tangents and cotangents too
  List<Move> spread;                // components of inputs, one by one, to where they belong
  List<Move> packed;                // components of outputs, one by one, to where they stand side by side
  List<Bound> outputs;              // also those that are not bound: they decide whether a point is finite
  List<Increment> increments;
  List<Bound> iterates;  // unknowns, written if a point failed
  List<Bound> guesses;   // where Newton's method begins, but where they are NaN; then all iterates are written
  bool begins_at_solution = false;  // the inputs have what is solved for, too
  List<Move> seeds;                 // tangents, to where directions begin
  List<Matrix> blocks;              // derivatives of all kinds
  List<Move> zeros;                 // what products of derivatives with tangents and cotangents are added to
  List<Product> products;
  List<Adjoint> pulled;
  List<Step> steps;
  OnRows rows;  // instead of the steps, for full blocks
  Free free;
  List<Condensed> condensed;
  newton::Settings rules;
  const model::Points* report = nullptr;  // by NEML2_REPORT_*
  Trace* traces = nullptr;                // by system, if the log wants them
  bool mark_failed = false;               // NaN for results of failed points; else they are left as they are
  bool input_first = false;               // blocks are transposed
  bool has_sites_in_lanes = false;        // a kernel computes sites of one point side by side
  bool takes_good_alone = false;  // what is not solved, or not finite, counts as not converged and is not written
};

// The functions for one instruction set and one type of numbers.
struct Functions {
  std::int32_t lanes, real_size;
  void (*walk)(const Walk& walk, model::Counts& counts);
};

// By the name of a target of kernels, "x86-64-v3", and the size of their numbers. Null if this library has no code for
// it, or this machine does not run it.
const Functions* functions(const char* target, std::int64_t real_size);

}  // namespace neml2_capi::kernels
