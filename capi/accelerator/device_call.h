// Calls over memory of a device: the caller's arrays are read and written there, on the caller's queue.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "capi/accelerator/by_text.h"

namespace neml2_capi::accelerator {

// Memory of a caller's arrays.
struct CallerMemory {
  void* queue;                    // a cl_command_queue, or a cudaStream_t
  bool is_address;                // of the device; else they are buffers of OpenCL
  std::int64_t component_stride;  // elements from one value of a point to the next
};

// Throws NEML2_ERROR_SHAPE for points that overlap, of an array whose values lie one after another.
void require_rows(const model::Points& array, const model::Variable& variable);

class DeviceCall {
 public:
  // Throws NEML2_ERROR_ARGUMENT for a queue that does not fit, _UNSUPPORTED for addresses that the device does not take.
  DeviceCall(std::shared_ptr<const ByText> text, const CallerMemory& memory);

  // Puts an evaluation into the queue, and returns. Parameters that are not bound are taken from the snapshot. Throws as
  // ByText::gives(), and for what no call over memory of a device gives.
  void run(const model::Bindings& bindings, const model::Snapshot& snapshot);
  // Puts steps into the queue, whose arrays `first` has. Those behind a step in which a point is not good write nothing.
  // Throws as run(), and as StepArrays; NEML2_ERROR_ARGUMENT or _SHAPE for arrays that overlap.
  void run_steps(const model::Bindings& first, const model::Snapshot& snapshot);
  // Waits for the runs since the last one, and returns the counts of their points: of steps, the points of the first step
  // in which one was not good.
  model::Tally wait();
  // Steps of the last run, 0 if points had one, and after wait() those that all points made.
  std::int64_t steps() const { return steps_; }
  std::int64_t made() const { return made_; }
  std::int64_t component_stride() const { return memory_.component_stride; }

 private:
  // Memory that grows.
  struct Array {
    std::unique_ptr<graph::DeviceMemory> memory;
    std::int64_t bytes = 0;
  };
  struct Shape {
    std::int64_t points, rows, columns;
  };

  Place place_of(const model::Points& array, std::int64_t begin) const;
  // Place of an output's derivatives in the tangent, from a column on.
  Place in_tangent(std::size_t output, std::int64_t column, std::int64_t points) const;
  // The request of a run.
  struct Run {
    std::int64_t size;          // points at once
    bool vary;                  // parameters, from point to point
    LawMemory law;              // without its arrays
    graph::DeviceQueue& queue;  // of the text
    newton::Settings settings;
  };

  void require_given(const model::Bindings& bindings, const model::Snapshot& snapshot) const;
  void require_apart(const model::Bindings& bindings, std::int64_t miters) const;
  void reserve(Array& array, std::int64_t bytes);
  Run prepare(const model::Bindings& bindings, const model::Snapshot& snapshot, std::int64_t size);
  // Puts the points of one step into the queue: the law, and if they are wanted, counts and results.
  void put(const model::Bindings& bindings, const Run& run, bool notes, bool writes);
  std::int64_t until(const model::Points& array) const;
  void launch(graph::Kernel kernel, std::int64_t items, std::span<const graph::DeviceArgument> arguments);
  void tell(std::int64_t points);  // the log of the kernels since the last time
  void copy(const Shape& shape, std::int64_t itemsize, const Place& from, const Place& to, std::uint64_t statuses,
            std::int64_t until);
  void multiply(const Shape& shape, bool adds, const Place& matrix, const Place& vector, const Place& to);
  bool upload_parameters(const model::Bindings& bindings, const model::Snapshot& snapshot);
  // Whether an output is written after all points of a step are known to be good.
  bool is_kept(const model::Points& array) const { return steps_ > 1 && array.step == 0; }
  bool keeps_outputs(const model::Bindings& bindings) const;  // some of them
  static bool has_norms(const model::Bindings& bindings);     // reports of them
  ByText::Room room_of(const model::Bindings& bindings) const;
  Place place_of_parameter(const model::Bindings& bindings, std::size_t parameter, std::int64_t begin) const;
  // Returns the arrays of the law: the caller's, or if they come together, those that the caller's are copied to.
  std::vector<Place> arrays_of(const model::Bindings& bindings, std::int64_t begin, std::int64_t points, bool vary,
                               bool writes);
  void write(const model::Bindings& bindings, std::int64_t begin, std::int64_t points);
  // Derivatives that are bound, and the places of a point's first element.
  struct Block {
    model::Part part;
    const model::Derivative& derivative;
    const model::Points& array;
    std::int64_t rows, columns;
    Place direct, from;  // in the tangent, and what is written: in totals, if inputs move
    bool moves() const { return from.handle != direct.handle; }
  };
  std::vector<Block> blocks_of(const model::Bindings& bindings, std::int64_t points) const;
  void add_up(const model::Bindings& bindings, const Block& block, std::int64_t begin, std::int64_t points);
  void write_block(const model::Bindings& bindings, const Block& block, std::int64_t begin, std::int64_t points);
  void require_slopes(const model::Request& request, const model::Bindings& bindings) const;
  void write_products(const model::Bindings& bindings, model::Part part, std::int64_t begin, std::int64_t points);
  void write_reports(const model::Bindings& bindings, std::int64_t begin, std::int64_t points);
  void clear_summary();

  std::shared_ptr<const ByText> text_;
  const model::Model& model_;
  const Sizes sizes_;
  const CallerMemory memory_;
  const Vector<std::int64_t> inputs_at_, outputs_at_, parameters_at_;  // the first component of each variable
  std::int64_t columns_ = 0;                                           // of the tangent
  bool together_ = false;                                              // of the arrays of the law
  Array inputs_, parameters_, outputs_, tangent_, totals_, reports_, norms_, stored_, summary_;
  std::vector<char> values_;  // of the stored parameters, as they were uploaded
  Vector<std::int64_t> values_at_;
  std::vector<std::int32_t> counts_;   // what the summary is
  std::int64_t points_ = 0;            // since the last wait
  std::int64_t step_ = -1;             // that is put into the queue; -1: points have one
  std::int64_t launched_ = 0;          // kernels, that the log was not told of
  std::int64_t steps_ = 0, made_ = 0;  // of the last run
  // Both are the caller's queue, and wait before the memory goes: the second has the text by parameters, once it is asked
  // for.
  std::unique_ptr<graph::DeviceQueue> queue_, by_parameters_;
};

}  // namespace neml2_capi::accelerator
