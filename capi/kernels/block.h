// What a block of material points goes through, as plain data: code for several instruction sets reads it.
//
// A block has as many points as a vector has lanes. Values stand in scratch memory as kernels take them: component c of
// lane l at [c * lanes + l]. Counts of components are counts of vectors.
#pragma once

#include <cstdint>

#include "capi/newton/settings.h"
#include "capi/values/counts.h"
#include "neml2_capi/kernels/c/neml2_kernel.h"

namespace neml2_capi::kernels {

template <class X>
struct List {
  const X* items = nullptr;
  std::int64_t count = 0;
};

// A run of a kernel; none if `kernel` is null.
struct Run {
  const neml2_kernel* kernel = nullptr;
  const void* const* inputs = nullptr;
  void* const* outputs = nullptr;
  void* kept = nullptr;
};

// Components that are copied from one place of the scratch to another; zeros if `from` is null.
template <class T>
struct Move {
  const T* from;
  T* to;
  std::int64_t components;
};

// An array of the caller's, of `components` elements a point, `stride` elements apart; not bound if `data` is null.
template <class T>
struct Bound {
  T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t components = 1;
  T* scratch = nullptr;
  bool lasts = true;  // of an input: nothing writes over it, so that one value for all points is read once
  model::Named named = {};
};

// An array of derivatives of the caller's, (sites, rows, columns) a point, and where they are found in the scratch; zeros
// if `scratch` is null.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t sites = 1, rows = 1, columns = 1;
  const T* scratch = nullptr;
  std::int64_t row_stride = 1;  // in vectors
  model::Named named = {};
};

// A scalar input and its value a step before, such as the time.
template <class T>
struct Increment {
  Bound<T> now, before;
};

// What Newton's method did to a system, over all blocks of a walk.
struct Trace {
  double *greatest_norm, *least_step;  // by iteration
  std::int64_t* left;                  // by iteration: points that go on
  std::int64_t converged, iterations;  // the most of any point
  std::int64_t failed, status;         // the first point that failed, or -1
  double norm;                         // its |r|
};

// The unknowns that make a residual vanish. As packages return it, the residual is -r.
template <class T>
struct Implicit {
  std::int64_t number = 0;  // among the systems of the model
  bool is_cut = false;      // if a point fails, substeps follow
  std::int64_t unknowns = 0;
  Run system;                   // the Jacobian, in blocks, and the residual at `u`
  Run residual;                 // at `trial`
  Run newton_step;              // from both; if its pivots were bad for a lane, `trusted` is not 1
  List<Move<T>> assemble = {};  // the blocks of the Jacobian, into one matrix
  T *u = nullptr, *r = nullptr, *jacobian = nullptr, *step = nullptr, *trial = nullptr, *trial_residual = nullptr;
  T *trusted = nullptr, *pivoted = nullptr;  // the latter: a step by row pivoting
  List<Move<T>> unpack = {};                 // the solution, into the values
  List<Move<T>> iterates = {};               // the last iterate, of unknowns that stand in pieces
};

// A block of derivatives (rows, columns), whose rows are `stride` vectors apart, times directions (columns, count), added
// to `to` (rows, count). If `from` is null, the directions are columns of the unit matrix, from the column `first` on.
template <class T>
struct Product {
  const T* block;
  std::int64_t stride, rows, columns;
  const T* from;
  std::int64_t first;
  T* to;
};

// The transpose of (rows, columns) of a matrix of the scratch, times `from`, added to `to`.
template <class T>
struct Adjoint {
  const T* matrix;
  std::int64_t stride, rows, columns;
  const T* from;
  T* to;
};

// What a segment does to `count` directions, by the chain rule.
template <class T>
struct Chain {
  List<Run> operators = {};
  List<Move<T>> zeros = {};  // what products are added to
  List<Product<T>> products = {};
  const Implicit<T>* system = nullptr;  // of an implicit one: -(dr/du)^-1 times `right`, in its place
  T* right = nullptr;
  List<Move<T>> unpack = {};  // what follows for unknowns that stand in pieces
  std::int64_t count = 0;
};

// A segment: a forward one is `run` alone; of an implicit one that is the predictor.
template <class T>
struct Step {
  List<Move<T>> begin = {};
  Run run;
  std::int64_t passes = 1;
  Move<T> feedback = {nullptr, nullptr, 0};  // between two passes
  List<Move<T>> pack = {};
  const Implicit<T>* implicit = nullptr;
  const Chain<T>* chain = nullptr;  // if derivatives are wanted
};

// Arrays of reports; elements are int32 or double.
struct Reports {
  Bound<std::int32_t> status, iterations;
  Bound<double> residual_norm, suggested_cut, history;
};

// Points [begin, end) of the caller's arrays, through all segments.
template <class T>
struct Walk {
  std::int64_t begin = 0, end = 0;
  List<Bound<T>> inputs;   // parameters, tangents and cotangents too
  List<Bound<T>> outputs;  // also those that are not bound: they decide whether a point is finite
  List<Increment<T>> increments;
  List<Bound<T>> iterates;  // unknowns, written if a point failed
  List<Move<T>> seeds;      // tangents, to where directions begin
  List<Matrix<T>> blocks;   // derivatives of all kinds
  List<Move<T>> zeros;      // what products of derivatives with tangents and cotangents are added to
  List<Product<T>> products;
  List<Adjoint<T>> pulled;
  List<Step<T>> steps;
  newton::Settings rules;
  Reports reports;
  Trace* traces = nullptr;   // by system, if the log wants them
  bool mark_failed = false;  // NaN for results of failed points; else they are left as they are
  bool input_first = false;  // blocks are transposed
};

// The functions for one instruction set.
template <class T>
struct Functions {
  int lanes;
  void (*walk)(const Walk<T>& walk, model::Counts& counts);
};

// By the name of a target of kernels: "x86-64-v3". Null if this library has no code for it, or this machine does not
// run it.
template <class T>
const Functions<T>* functions(const char* target);

}  // namespace neml2_capi::kernels
