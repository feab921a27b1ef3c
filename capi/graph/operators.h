// Operators that are functions of the host, as a graph calls them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "capi/tensor/tensor.h"

namespace neml2_capi::graph {

// Call of a function of the host: its arguments and its outputs.
class OperatorCall {
 public:
  // Argument with its value, or with the values of a list.
  struct Argument {
    const char* name;
    std::int32_t kind;              // NEML2_ARGUMENT_*
    std::int64_t count;             // of a list; else -1
    const char* text;               // null for all other kinds
    Vector<Tensor> tensors;         // row-major; a missing optional one is null
    Vector<std::int64_t> integers;  // booleans, too
    Vector<double> reals;
  };

  virtual ~OperatorCall() = default;
  virtual const std::string& name() const = 0;  // "aten::pow.Tensor_Tensor"
  virtual std::int64_t num_outputs() const = 0;
  // Takes a result over; its memory is copied unless nobody else has it. Throws NEML2_ERROR_SHAPE or _DTYPE where the
  // graph was compiled for another shape or element type.
  virtual void set_output(std::int64_t i, Tensor&& value) = 0;

  const Vector<Argument>& arguments() const { return arguments_; }  // in the order of the schema

 protected:
  Vector<Argument> arguments_;
};

// Function that any number of threads may call at once. Its exception becomes the run's error.
using OperatorFunction = std::function<void(OperatorCall&)>;

}  // namespace neml2_capi::graph
