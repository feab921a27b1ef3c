// Points that go to a device together, with memory for them on both sides.
#pragma once

#include <cstdint>
#include <memory>

#include "capi/evaluation/through_segments.h"
#include "capi/graph/driver.h"

namespace neml2_capi::accelerator {

// Numbers of a point, and their type.
struct Sizes {
  // The tangent of a text has columns of the inputs, and of the parameters behind them if it is `by_parameters`.
  explicit Sizes(const model::Model& model, bool by_parameters = false);

  DType real;
  std::int64_t inputs = 0, parameters = 0, outputs = 0, columns = 0;
  // Whether the kernel takes one array of each kind, else one of each variable.
  bool together = false;

  // Bytes that a point takes in all arrays, and in the largest one.
  std::int64_t bytes_per_point(bool with_tangent) const;
  std::int64_t largest_per_point(bool with_tangent) const;
};

bool needs_tangent(const model::Request& request);

// Returns the first column in the tangent of each variable that derivatives are by, and the end of the last.
Vector<std::int64_t> columns_of(const model::Model& model, const Sizes& sizes, model::Kind kind);

// Returns the first component of each variable, and the number of all.
Vector<std::int64_t> offsets_of(const std::vector<model::Variable>& variables);

template <class Value>
graph::DeviceArgument of(const Value& value) {
  return {&value, sizeof value};
}

// Array as a kernel takes it: elements from the first of its memory, between points, rows and columns.
struct Place {
  std::uint64_t handle = 0;
  bool is_address = false;
  std::int64_t first = 0, point = 0, row = 0, column = 0;
};

// Memory that the kernel of a law takes, by its handles. All but the arrays are (components, points).
struct LawMemory {
  std::vector<Place> arrays;  // inputs, parameters, outputs: as many as the text has
  std::uint64_t tangent /* or 0 */, reports, norms /* or 0 */;
  std::uint64_t summary = 0;  // and until when a step is evaluated: see kernels.h
  std::int64_t until = 0;
  std::int64_t derivatives = -1;  // a bit for each input, and behind them each parameter, that the tangent is by
};
// Returns which derivatives are asked for, as LawMemory has them.
std::int64_t derivatives_of(const model::Model& model, const model::Request& request, const model::Bindings& bindings);
void run_law(graph::DeviceQueue& queue, std::int64_t points, const LawMemory& memory, const newton::Settings& settings);

// Adds the arrays of one kind that stand one after another in memory, (components, points) if they vary.
void add_arrays(const std::vector<model::Variable>& variables, bool together, std::uint64_t handle, std::int64_t points,
                bool vary, std::vector<Place>& to);

class Batch {
 public:
  Batch(const model::Model& model, const Sizes& sizes, const graph::DeviceProgram& program)
      : model_(model), sizes_(sizes), queue_(program.queue()) {}

  // Hands points of the caller's arrays to the device, and returns.
  void begin(const model::Bindings& bindings, const model::Plan& plan, std::int64_t begin, std::int64_t points);
  // Waits, and fills the chunk of what came back: outputs, reports, and the derivatives that were asked for.
  model::Derived end(const model::Bindings& bindings, int threads, model::Chunk& chunk);
  // Seconds that the device took for the points of the last end().
  double seconds() const { return queue_->seconds(); }
  bool is_under_way() const { return points_ > 0; }

 private:
  // An array on both sides, (components, points) on the device.
  struct Array {
    std::unique_ptr<graph::DeviceMemory> memory;
    std::shared_ptr<void> host;
    std::int64_t bytes = 0;

    template <class T>
    T* as() const {
      return static_cast<T*>(host.get());
    }
  };
  void reserve(Array& array, std::int64_t bytes);
  template <class Real>
  void gather(const std::vector<model::Points>& arrays, const std::vector<model::Variable>& variables,
              std::int64_t points, int threads, Real* to) const;

  // Puts the entries of the tangent that are asked for on their way to the host.
  void download_tangent(const model::Request& request, const model::Bindings& bindings);

  void note_unknowns(const model::Bindings& bindings, model::Chunk& chunk) const;

  const model::Model& model_;
  const Sizes& sizes_;
  Array inputs_, parameters_, outputs_, tangent_, reports_, norms_;
  bool with_tangent_ = false;
  std::int64_t begin_ = 0, points_ = 0;
  newton::Settings settings_;
  std::unique_ptr<graph::DeviceQueue> queue_;  // waits before the memory goes
};

}  // namespace neml2_capi::accelerator
