// A route: one way to evaluate points. A plan takes the first of a model's that gives what is asked for.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/model/model.h"
#include "capi/model/options.h"
#include "capi/segments/segment.h"
#include "capi/values/bindings.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

class Plan;
class Turns;

// What an evaluation is asked for, without addresses.
struct Request {
  explicit Request(const Bindings& bindings);

  std::int64_t points;
  // Derivatives of each kind.
  bool blocks, parameter_blocks, jvps, adjoints, parameter_adjoints;
  bool slopes;   // of inputs
  bool sums;     // of adjoints over the points
  bool history;  // of residuals

  bool products() const { return jvps || adjoints || parameter_adjoints; }
  bool by_parameters() const { return parameter_blocks || parameter_adjoints; }
  bool by_values(const Model& model) const {
    return blocks || jvps || adjoints || (by_parameters() && model.carries_parameters());
  }
};

// What one thread needs to evaluate points, kept for the next ones. It serves one call's arrays, until it forgets them.
struct Workspace {
  // An input that is a copy of an array, made again for each run.
  struct Copied {
    std::size_t input;
    const Variable* variable;
    Points array;
    bool even_if_dense;
  };

  Chunk chunk;             // for segments
  Bindings bindings;       // of lanes, if some arrays are other ones than the caller's
  Vector<Tensor> inputs;   // of a package: over arrays of the caller, or copies of them
  Vector<Copied> copied;   // these
  std::int64_t begin = 0;  // the points that `inputs` are of
  std::int64_t points = 0;

  // Data that a route around another one keeps, its workspace for example.
  struct Kept {
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept> kept;

  void forget() {
    chunk.release_values();
    inputs.clear();
    points = 0;
  }
};

// Some consecutive points of an evaluation.
struct Range {
  std::int64_t begin = 0, points = 0;
  std::int64_t number = 0;  // among the ranges of the evaluation
  Turns* turns = nullptr;   // that the ranges share; null if this is all points
};

class Route {
 public:
  virtual ~Route() = default;

  // Whether it solves points here, so that some can be solved again.
  virtual bool solves() const { return false; }

  // Whether it gives all that is asked for.
  virtual bool gives(const Request&, const Options&) const { return true; }

  // Whether inputs may move with the variables of derivatives.
  virtual bool takes_slopes(const Request&) const { return false; }

  // Throws NEML2_ERROR_SHAPE or _UNSUPPORTED if so many points cannot be evaluated with these options.
  virtual void check(const Options&, std::int64_t) const {}

  // How many points to evaluate at once: at most, and if several threads share them; 0: fewer, as time tells. A route
  // that divides them itself takes all.
  struct ChunkSize {
    std::int64_t most;
    std::int64_t shared;
  };
  virtual ChunkSize chunk_size(const Options&, const Request& request) const {
    return {request.points, request.points};
  }

  // The end of the range of at most `size` points that begins here. Values of parameters may end it earlier.
  virtual std::int64_t end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                    std::int64_t size) const;

  // Evaluates these points of the caller's arrays, and writes results and reports: all of them, or none if it throws
  // before it writes. Any number of threads may do so at once, each with a workspace of its own.
  virtual void run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                   Tally& tally) const = 0;
};

}  // namespace neml2_capi::model
