// A whole artifact: named inputs, outputs and promoted parameters over a list of segments.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "capi/model/options.h"
#include "capi/model/points.h"
#include "capi/model/segment.h"

namespace neml2_capi::model {

// How many points ended with each status, and which was the first that did.
struct Tally {
  std::int64_t count[4] = {};
  std::int64_t first[4] = {};

  void add(std::int32_t status, std::int64_t point) {
    if (count[status]++ == 0) first[status] = point;
  }
  std::int32_t worst() const {
    std::int32_t status = NEML2_SINGULAR;
    while (status > NEML2_OK && count[status] == 0) --status;
    return status;
  }
};

enum class Kind : std::int32_t { input = NEML2_INPUT, output = NEML2_OUTPUT, parameter = NEML2_PARAMETER };

// Arrays of the caller's for one evaluation; the vectors follow the order of the variables.
struct Evaluation {
  std::int64_t points = 0;
  std::vector<Points> inputs;      // all bound
  std::vector<Points> parameters;  // all bound
  std::vector<Points> outputs;     // not bound: data is null
  Points report[4];                // by NEML2_REPORT_*, likewise
  bool mark_failed = false;        // write NaN to the outputs of failed points; else leave them
};

class Model {
 public:
  // `root`: the folder of metadata.json. Throws Error as artifact::read_metadata() and aoti::Graph::load() do.
  static std::shared_ptr<Model> load(const std::filesystem::path& root, const std::string& device,
                                     const std::string& dtype);

  DType dtype() const { return dtype_; }
  const std::vector<Variable>& variables(Kind kind) const { return variables_[static_cast<std::size_t>(kind)]; }
  // Throws NEML2_ERROR_NAME with the names there are.
  std::size_t find(Kind kind, std::string_view name) const;

  // The stored value of a parameter, sharing its storage.
  Tensor parameter(std::size_t index) const;
  void set_parameter(std::size_t index, const Tensor& value);
  // Copies of all stored values: what an evaluation begins with, it keeps.
  std::vector<Tensor> copy_parameters() const;

  Options options() const;
  template <class Value>
  void set_option(std::string_view name, Value value) {
    const std::unique_lock lock(mutex_);
    options_.set(name, value);
  }

  // Any number of threads may evaluate at once.
  Tally evaluate(const Evaluation& evaluation, const Options& options) const;

 private:
  explicit Model(const artifact::Metadata& metadata);
  void add_variables(const artifact::Metadata& metadata, Scope& scope);
  void note_batches();
  void check_batch(std::int64_t points, const Options& options) const;
  std::int64_t chunk_at(std::int64_t begin, const Evaluation& evaluation, const Options& options) const;
  std::vector<std::int32_t> run_chunk(const Evaluation& evaluation, const Options& options, std::int64_t begin,
                                      std::int64_t points, const std::vector<bool>& copy) const;

  DType dtype_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Variable> variables_[3];
  std::vector<std::size_t> input_values_, output_values_;  // their positions among the values
  std::size_t num_values_ = 0;
  std::vector<std::size_t> uniform_parameters_;  // taken as one value for all points of a run
  std::int64_t baked_batch_ = 0;
  std::int64_t greatest_batch_ = INT64_MAX;
  std::string limiting_package_;  // the one that has the baked batch

  mutable std::shared_mutex mutex_;  // guards what follows
  std::vector<Tensor> parameters_;
  Options options_;
};

}  // namespace neml2_capi::model
