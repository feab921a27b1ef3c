// A whole artifact: named inputs, outputs and promoted parameters over a list of segments.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "capi/kernels/engine.h"
#include "capi/model/options.h"
#include "capi/segments/derivatives.h"
#include "capi/segments/segment.h"
#include "capi/values/device_request.h"
#include "capi/values/evaluation.h"
#include "capi/values/tally.h"

namespace neml2_capi::model {

// What an evaluation keeps of its model while it runs, whatever becomes of the model meanwhile.
struct Snapshot {
  Options options;
  Vector<Tensor> parameters;   // copies of the stored ones
  std::uint64_t settings = 0;  // which options, and which shapes of parameters, by number
};

class Model {
 public:
  // Load the packages. Throws Error as aoti::load_graph() does.
  static std::shared_ptr<Model> load(const artifact::Metadata& metadata, const aoti::Wanted& wanted = {});

  // libtorch where any package runs on it.
  aoti::Runtime runtime() const;

  // Where inputs, parameters and results are.
  Device device() const { return home_; }
  // Where the packages run: another one, where a scheduler moves what they take and return.
  Device compute_device() const { return device_; }
  // What a scheduler spreads over devices is on the host. To be called before others know the model.
  void keep_on_host();

  DType dtype() const { return dtype_; }
  const std::vector<Variable>& variables(Kind kind) const { return variables_[static_cast<std::size_t>(kind)]; }
  // Throws NEML2_ERROR_NAME with the names there are.
  std::size_t find(Kind kind, std::string_view name) const;

  // An input `x~age`, and the positions of the output and of the input `x`; -1 where there is none.
  struct History {
    std::int64_t input, age, output, current;
  };
  std::vector<History> histories() const;

  // With respect to the inputs, or to the parameters.
  const Derivatives& derivatives(Kind kind) const { return kind == Kind::parameter ? by_parameters_ : by_inputs_; }
  const artifact::Metadata& metadata() const { return metadata_; }

  // The stored value of a parameter, sharing its storage.
  Tensor parameter(std::size_t index) const;
  void set_parameter(std::size_t index, const Tensor& value);
  // Memory that the snapshot has from before is used again. False where nothing but values of parameters changed since.
  bool take(Snapshot& snapshot) const;
  Options options() const;
  template <class Value>
  void set_option(std::string_view name, Value value) {
    const std::unique_lock lock(mutex_);
    options_.set(name, value);
    ++settings_;
  }

  // An evaluation of no points, with room for all arrays of this model; none is bound.
  Evaluation evaluation() const;
  // Any number of threads may evaluate at once. The arrays must have passed inputs_to_copy().
  Tally evaluate(const Evaluation& evaluation, const Options& options) const;

  // The same in two steps, for a scheduler: throw NEML2_ERROR_SHAPE or _UNSUPPORTED where the points cannot be evaluated
  // at most `size` at once, and evaluate some, at least one, without a capsule.
  void check_batch(const Evaluation& evaluation, const Options& options, std::int64_t size) const;
  Tally evaluate_points(const Evaluation& evaluation, const Options& options) const;

  // The number of points that is compiled in, and the package that has it; 0 where any will do.
  std::int64_t baked_batch() const { return baked_batch_; }
  const std::string& limiting_package() const { return limiting_package_; }

  // The same over tensors of the model's device, where the processor does not read it: see device_request.h.
  DeviceResults evaluate(const DeviceRequest& request, const Options& options) const;

  // An evaluation that is one run of one package on all points, with its inputs as they lie in the arrays. It can be
  // repeated while the arrays and the settings are the same.
  struct Prepared {
    const GraphCall* graph;
    Vector<Tensor> inputs;
    // Those that are copies: of one value for all points.
    struct Repeated {
      std::size_t input;
      const Variable* variable;
      Points array;
    };
    Vector<Repeated> repeated;
  };
  std::optional<Prepared> prepare(const Evaluation& evaluation, const Options& options) const;
  Tally repeat(const Prepared& prepared, const Evaluation& evaluation) const;

 private:
  friend class Solve;  // evaluates step by step
  class Work;
  class Borrowed;
  Model(artifact::Metadata metadata, const aoti::Wanted& wanted);
  static std::shared_ptr<Model> open(const artifact::Metadata& metadata, const aoti::Wanted& wanted);
  void add_variables(Scope& scope);
  Derivatives compiled_derivatives(Kind kind, const std::vector<artifact::Pair>& pairs, const Scope& scope) const;
  void note_batches();
  void note_kernels(const aoti::Wanted& wanted);
  void tell(double seconds) const;
  void require_device() const;
  struct Shaping;
  void mark_results(const DeviceRequest& request, const Chunk& chunk, DeviceResults& results) const;
  Tensor mark_outputs(const Shaping& shaping, const Chunk& chunk, Vector<Tensor>& outputs) const;
  bool owns_memory(const Chunk& chunk, std::size_t value) const;
  void mark_derivatives(const Shaping& shaping, const DeviceRequest& request, DeviceResults& results) const;
  void check_batch(std::int64_t points, const Options& options) const;
  Tally evaluate_at_once(const Evaluation& evaluation, const Options& options, bool note) const;
  std::int64_t chunk_size(const Evaluation& evaluation, const Options& options, int threads) const;
  std::int64_t end_of_chunk(std::int64_t begin, std::int64_t size, const Evaluation& evaluation,
                            const Options& options) const;
  // Without chunks and segments: points in one run of the package that is the model, or of that which gives its
  // derivatives with respect to inputs, too. It takes little more than that run does.
  void note_graph();
  const GraphCall* graph_for(const Evaluation& evaluation) const;
  // Whether kernels give what is wanted; throws NEML2_ERROR_UNSUPPORTED where they must and do not.
  bool runs_in_lanes(const Evaluation& evaluation, const Options& options) const;
  Tally evaluate_in_lanes(const Evaluation& evaluation, const Options& options) const;
  int threads_for(std::int64_t points, const Options& options) const;
  // Rows of one value for all points are left in `repeated`, by input of the package, for later points of the
  // evaluation.
  void gather_inputs(const GraphCall& graph, const Evaluation& evaluation, std::int64_t begin, std::int64_t points,
                     Handles& given, Vector<Tensor>& repeated) const;
  void run_graph(const GraphCall& graph, const Evaluation& evaluation, std::int64_t begin, std::int64_t points,
                 Tally& tally, Vector<Tensor>& repeated) const;
  void run_graph(const GraphCall& graph, Handles& given, const Evaluation& evaluation, std::int64_t begin,
                 std::int64_t points, Tally& tally) const;
  void write_graph_blocks(Handles& results, const Evaluation& evaluation, std::int64_t begin,
                          std::int64_t points) const;
  // Make `chunk` that of these points.
  void fill(Chunk& chunk, const Evaluation& evaluation, const Options& options, std::int64_t begin,
            std::int64_t points) const;
  void clear_sums(const Evaluation& evaluation) const;
  void write_results(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const;
  void write_unknowns(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk) const;
  // The derivatives of the points of a chunk, before any of them is written; empty lists where nobody asked.
  struct Found {
    Vector<Tensor> jvps, adjoints, parameter_adjoints, blocks, parameter_blocks;
  };
  Found run_segments(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const;
  // Make all points of a chunk failed ones. Returns derivatives that are written as such.
  Found fail(const Evaluation& evaluation, std::int32_t status, Chunk& chunk) const;
  Vector<Tensor> run_along(const Evaluation& evaluation, std::int64_t begin, Chunk& chunk) const;
  Found find_derivatives(const Evaluation& evaluation, std::int64_t begin, const Chunk& chunk,
                         const Vector<Vector<Block>>& blocks) const;
  void write_derivatives(const Evaluation& evaluation, std::int64_t begin, const Vector<std::int32_t>& status,
                         const Found& found) const;

  artifact::Metadata metadata_;
  Device device_;  // of the packages
  Device home_;    // of parameters and of all that is given
  DType dtype_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Variable> variables_[4];
  std::vector<std::size_t> input_values_, output_values_, unknown_values_;  // their positions among the values
  const GraphCall *graph_ = nullptr, *jacobian_graph_ = nullptr;  // for run_graph(); null where the model is more
  std::vector<std::size_t> graph_inputs_, graph_outputs_;  // which input they take, and which result an output is
  std::vector<std::pair<std::size_t, const PairInfo*>> graph_blocks_;  // and a derivative, with all of it
  Derivatives by_inputs_, by_parameters_;
  std::size_t num_values_ = 0;
  std::vector<std::size_t> uniform_parameters_;  // taken as one value for all points of a run
  std::int64_t baked_batch_ = 0;
  std::int64_t greatest_batch_ = INT64_MAX;
  std::int64_t bytes_per_point_ = 1;  // of the segment that has most
  std::string limiting_package_;      // the one that has the baked batch

  std::unique_ptr<const kernels::Engine> lanes_;  // null where there are no kernels

  mutable std::atomic<double> seconds_per_point_ = 0;  // in an earlier evaluation; 0 before one was measured

  mutable std::mutex chunks_mutex_;  // guards the chunks that no thread works with, and the number of all
  mutable std::vector<std::unique_ptr<Chunk>> chunks_;
  mutable std::size_t num_chunks_ = 0;

  mutable std::shared_mutex mutex_;  // guards what follows
  Vector<Tensor> parameters_;
  Options options_;
  std::uint64_t settings_ = 1;  // counts the changes of options, and of shapes of parameters
};

}  // namespace neml2_capi::model
