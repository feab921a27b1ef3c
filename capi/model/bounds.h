// Bounds of inputs and parameters: where a law is valid, and which values have a meaning.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/tensor/tensor.h"
#include "capi/values/exceeded.h"
#include "capi/values/points.h"

namespace neml2_capi::model {

class Model;

struct Bound {
  Kind kind = Kind::input;   // or a parameter
  std::size_t variable = 0;  // its position
  bool physical = false;
  std::vector<double> lower, upper;  // one for each component, infinite if there is none
  bool is_uniform = true;            // the same for all components
  bool is_of_step = true;            // a smaller step may mend it: it is of no history, and of no parameter

  // Tells whether a value of so many points, `stride` elements apart, is beyond it.
  bool is_exceeded(const Points& array, DType dtype, std::int64_t begin, std::int64_t points) const;
  // Returns the first component of a point that is beyond it, -1 if none is.
  std::int64_t component_beyond(const Points& array, DType dtype, std::int64_t point, double& value) const;
};

// Counts occasions, from any thread.
class Occasions {
 public:
  Occasions() = default;
  Occasions(const Occasions& other) : count_(other.count_.load()) {}
  // Tells whether this is the first, the second, the fourth, and so on.
  bool note() {
    const std::uint64_t number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    return (number & (number - 1)) == 0;
  }

 private:
  std::atomic<std::uint64_t> count_{0};
};

// Returns the bounds that the artifact tells. Throws NEML2_ERROR_ARTIFACT if one is of no input or parameter, of another
// number of components, or of numbers that are whole.
std::vector<Bound> bounds_of(const artifact::Metadata& metadata, const std::vector<Variable>& inputs,
                             const std::vector<Variable>& parameters);

// Returns the bounds of a law that the boundary of a model around it has: of its inputs by their names, if they have as many
// components, or all components have the same bounds.
std::vector<Bound> bounds_around(const Model& law, const std::vector<Variable>& inputs);

// Returns what is beyond a bound, in words: "the input 'temperature' is 700, above 600, the upper bound of its validity".
std::string words_of(const Model& model, const Exceeded& what);

// Writes a warning for each bound that an evaluation went beyond, of points that did not fail for it.
void log_exceeded(const Model& model, const Vector<Exceeded>& all, std::int64_t points, std::int64_t steps);

// Refuses the value of a parameter that is beyond its bounds, or warns, as options say: NEML2_ERROR_ARGUMENT.
void check_parameter(const Model& model, std::size_t parameter, const Tensor& value);

}  // namespace neml2_capi::model
