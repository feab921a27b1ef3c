// One AOTInductor package, loaded and ready to run: graph/load.h makes them.
#pragma once

#include <vector>

#include "capi/package/runtime.h"
#include "capi/package/signature.h"
#include "capi/package/singular.h"
#include "capi/tensor/handles.h"

namespace neml2_capi::aoti {

// A constant of a graph, by its name in the module that was compiled.
struct Constant {
  const char* name;
  Tensor value;
};

class Graph {
 public:
  virtual ~Graph() = default;
  virtual Runtime runtime() const = 0;
  virtual Device device() const { return {}; }  // of inputs and outputs
  virtual const std::vector<InputSpec>& inputs() const = 0;
  virtual const std::vector<OutputSpec>& outputs() const = 0;

  // True when the package itself checks its inputs (AOTI_RUNTIME_CHECK_INPUTS was set when it first ran): it then
  // refuses a batch below its least size, which it would run correctly otherwise.
  virtual bool enforces_bounds() const = 0;

  // Throws NEML2_ERROR_SHAPE, _DTYPE, or _UNSUPPORTED for another device, naming the input's position, unless `inputs`
  // fit the specification. A batch
  // below the least size of a dynamic axis is accepted while bounds are not enforced (but for 0).
  virtual void check(const Vector<Tensor>& inputs) const = 0;

  // Run, on any thread. The inputs must lie in memory as specified, and fit: only their number is checked here.
  // The outputs may be views of inputs, overlap, and have any strides. `singular` (or null) receives what the
  // linear solves of the package met. Throws NEML2_ERROR_RUNTIME with the package's reason.
  Vector<Tensor> run(Vector<Tensor> inputs, SingularInfo* singular = nullptr) const;
  // The same by handles: `outputs` has as many as the package returns, all null. The inputs are taken over; after an
  // error some may still be there.
  virtual void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const = 0;

  // What runs use from now on; not to be written. The values are valid until others are set, or the graph ends.
  virtual std::vector<Constant> constants() const = 0;
  // Replace all of these at once, on any thread: a run that has begun keeps the values that it began with. A value is
  // copied, or its memory used where it lies as the package wants it. Throws NEML2_ERROR_NAME, _DTYPE, _SHAPE, and then
  // changes nothing.
  virtual void set_constants(const std::vector<Constant>& values, bool copy) = 0;

  // Of the module that was compiled.
  virtual const CallSpec& call_spec() const = 0;
};

}  // namespace neml2_capi::aoti
