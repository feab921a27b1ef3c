// Arrays of the steps of a transient: where each step reads and writes, and which histories are results of steps before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "capi/model/model.h"
#include "capi/values/bindings.h"

namespace neml2_capi::model {

class StepArrays {
 public:
  // The memory of arrays: on a device `data` may be a handle, which Points::skip moves on.
  enum class Memory { host, device };

  // `first` are the arrays of the first step. Both must outlive it. Throws NEML2_ERROR_MISSING, _SHAPE or _UNSUPPORTED if
  // history cannot be carried from step to step.
  StepArrays(const Model& model, const Bindings& first, Memory memory = Memory::host);

  // Lets bindings, copies of the first, be the arrays of a step. On the host, a result without a step stride that no step
  // reads is written in the last step only; on a device in all of them.
  void go_to(std::int64_t step, Bindings& bindings) const;
  Bindings at(std::int64_t step) const;
  // Makes another step the last one.
  void end_at(std::int64_t steps) { steps_ = steps; }
  // Tells whether a result has room for one step alone.
  bool keep_last() const;
  // Bytes of a point in all arrays, of one step.
  std::int64_t bytes_per_point() const { return bytes_per_point_; }

 private:
  // An array of the bindings, of a part or of the report, and the bytes from a step to the next.
  struct Place {
    Part part = Part::input;
    bool is_report = false;
    std::size_t index = 0;
    std::int64_t bytes = 0;

    const Points& of(const Bindings& bindings) const {
      return is_report ? bindings.report[index] : bindings.of(part)[index];
    }
    Points& of(Bindings& bindings) const { return is_report ? bindings.report[index] : bindings.of(part)[index]; }
  };
  // An input with the value that `source` had some steps before.
  struct Carried {
    std::size_t input;
    Place source;
    std::vector<std::size_t> before;  // the inputs that have its values in the first steps
    std::int64_t age() const { return static_cast<std::int64_t>(before.size()); }
  };
  // The derivative of an input that is a history: the block of an output some steps before, or the derivative of a force. In
  // the first steps, as many as the history is old, it is one of `before`, which the caller gave; null: zero.
  struct CarriedSlope {
    std::size_t slope;
    Place source;
    const Slope* current;
    std::vector<const Slope*> before;
  };

  void add_histories();
  void add_slopes();
  void add_solutions();
  Place block_of(std::size_t output, const Slope& slope, std::int64_t age) const;
  void add_guesses();
  void add_places();
  Place place(Part part, std::size_t index) const;
  void check_source(const Carried& carried) const;
  // Tells whether a result is an input of later steps, or the derivative of one.
  bool is_carried(const Place& result) const;
  static bool is_in_place(const Carried& carried);
  // Returns the array so many steps behind the first.
  Points moved(const Place& place, std::int64_t steps) const;

  const Model& model_;
  const Bindings& first_;
  const Memory memory_;
  std::vector<Carried> carried_;
  std::vector<CarriedSlope> carried_slopes_;
  // Histories that have the values of all unknowns, and their outputs; empty if they have not.
  std::vector<std::pair<std::size_t, std::size_t>> solutions_;
  std::vector<Place> moving_;  // with a step stride
  std::vector<Place> last_;    // written in the last step only
  std::int64_t steps_, bytes_per_point_ = 1;
};

}  // namespace neml2_capi::model
