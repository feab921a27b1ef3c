// Interface of an AOTInductor package that is loaded and ready to run: graph/load.h makes them.
#pragma once

#include <vector>

#include "capi/graph/runtime.h"
#include "capi/graph/signature.h"
#include "capi/graph/singular.h"
#include "capi/tensor/handles.h"

namespace neml2_capi::graph {

// Constant of a graph, by its name in the module that was compiled.
struct Constant {
  const char* name;
  Tensor value;
};

class Graph {
 public:
  virtual ~Graph() = default;
  virtual Runtime runtime() const = 0;
  virtual Device device() const { return {}; }  // that inputs and outputs are on
  virtual const std::vector<InputSpec>& inputs() const = 0;
  virtual const std::vector<OutputSpec>& outputs() const = 0;

  // True if the package itself checks its inputs (AOTI_RUNTIME_CHECK_INPUTS was set when it first ran): it then
  // refuses a batch below its least size, which it would run correctly otherwise.
  virtual bool enforces_bounds() const = 0;

  // Throws NEML2_ERROR_SHAPE, _DTYPE, or _UNSUPPORTED for another device, with the input's position, unless `inputs`
  // fit the specification. A batch below the least size of a dynamic axis, but not 0, is accepted while bounds are not
  // enforced.
  virtual void check(const Vector<Tensor>& inputs) const = 0;

  // Runs the package, on any thread. The inputs must fit, and lie in memory as specified; only their number is checked.
  // Outputs may be views of inputs, overlap, and have any strides. `singular`, which may be null, receives the singular
  // matrices of linear solves. Throws NEML2_ERROR_RUNTIME with the package's reason.
  Vector<Tensor> run(Vector<Tensor> inputs, SingularInfo* singular = nullptr) const;
  // The same by handles: `outputs` has as many as the package returns, all null. The package takes the inputs over;
  // after an error some may still be there.
  virtual void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const = 0;

  // Returns the constants that runs use from now on, which must not be written. The values are valid until others are
  // set, or the graph ends.
  virtual std::vector<Constant> constants() const = 0;
  // Replaces all of these at once, on any thread. A run that has begun keeps its values. A value is copied, or its
  // memory used if it lies as the package wants it. Throws NEML2_ERROR_NAME, _DTYPE, _SHAPE, and then changes
  // nothing.
  virtual void set_constants(const std::vector<Constant>& values, bool copy) = 0;

  // Returns the structures of the module's arguments and results.
  virtual const CallSpec& call_spec() const = 0;
};

}  // namespace neml2_capi::graph
