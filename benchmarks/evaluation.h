// A model evaluated through the C ABI, as a host does it: arrays are bound once, and then it is run.
#pragma once

#include <array>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "neml2_capi.h"
#include "serve.h"

namespace benchmark {

// A recoverable status is an error, too: all points of a benchmark converge.
inline void check(std::int32_t status) {
  if (status == NEML2_OK) return;
  char message[4096] = "";
  if (status < 0) neml2_error_message(message, sizeof message, nullptr);
  throw std::runtime_error(*message ? message : "points failed, with status " + std::to_string(status));
}

using Model = std::shared_ptr<neml2_model>;
using Call = std::shared_ptr<neml2_call>;

inline Model load(const Task& task) {
  neml2_source source{};
  source.size = sizeof source;
  source.path = task.artifact.c_str();
  neml2_model* model = nullptr;
  check(neml2_model_open(&model, &source));
  Model owner(model, [](neml2_model* p) { neml2_model_free(&p); });
  const std::int32_t status = neml2_model_option_set_number(model, "threads", task.threads);
  if (task.threads > 1 || status != NEML2_ERROR_NAME) check(status);
  return owner;
}

inline Call create_call(const Model& model) {
  neml2_call* call = nullptr;
  check(neml2_call_create(&call, model.get()));
  return Call(call, [](neml2_call* p) { neml2_call_free(&p); });
}

inline neml2_variable_info inspected(const Model& model, std::int32_t kind, std::int64_t index) {
  neml2_variable_info info{};
  info.size = sizeof info;
  check(neml2_model_variable_inspect(&info, model.get(), kind, index));
  return info;
}

inline std::int64_t count_of(const Model& model, std::int32_t kind) {
  std::int64_t count = 0;
  check(neml2_model_variable_count(&count, model.get(), kind));
  return count;
}

// Zeros for `points` points of every output.
inline std::vector<Array> outputs_of(const Model& model, std::int64_t points) {
  std::vector<Array> outputs;
  for (std::int64_t i = 0; i < count_of(model, NEML2_OUTPUT); ++i) {
    const neml2_variable_info of = inspected(model, NEML2_OUTPUT, i);
    Array output{of.name, {of.shape, of.shape + of.ndim}, {}};
    output.values.resize(static_cast<std::size_t>(points * output.size()));
    outputs.push_back(std::move(output));
  }
  return outputs;
}

// Binds an array that the call reads; the cast is safe, since inputs are not written.
inline void bind_array(const Call& call, std::int32_t role, const std::string& name, const double* values,
                       std::int64_t stride) {
  check(neml2_call_bind(call.get(), role, name.c_str(), const_cast<double*>(values), NEML2_FLOAT64, stride));
}

inline void bind_inputs(const Call& call, const std::vector<Array>& inputs) {
  for (const Array& array : inputs) bind_array(call, NEML2_INPUT, array.name, array.values.data(), array.size());
}

inline void bind_outputs(const Call& call, std::vector<Array>& outputs) {
  for (Array& array : outputs) bind_array(call, NEML2_OUTPUT, array.name, array.values.data(), array.size());
}

// One evaluation of a batch: "forward", "jacobian" with all blocks, "tangent" with the one of the stress by the strain, or
// "jvp" along tangents of all inputs.
class Evaluation {
 public:
  explicit Evaluation(const Task& task)
      : points_(task.points),
        inputs_(read_arrays(task.inputs / "inputs", points_)),
        model_(load(task)),
        outputs_(outputs_of(model_, points_)),
        call_(create_call(model_)) {
    bind_inputs(call_, inputs_);
    bind_outputs(call_, outputs_);
    if (task.operation == "jacobian") bind_blocks();
    if (task.operation == "tangent") bind_block("stress", "strain", {6, 6});
    if (task.operation == "jvp") bind_directions(task);
  }

  void run() { check(neml2_call_run(call_.get(), points_)); }

  std::vector<Result> results() const {
    std::vector<Result> results;
    for (const auto* arrays : {&outputs_, &derivatives_})
      for (const Array& array : *arrays) results.push_back({array.name, array.values.data(), array.size()});
    return results;
  }

 private:
  // The derivatives with respect to inputs that were compiled: positions of output and input, and shape of a block.
  struct Derivative {
    std::int64_t output = 0, input = 0;
    std::vector<std::int64_t> shape;
  };
  std::vector<Derivative> derivatives() const {
    std::int64_t count = 0;
    check(neml2_model_derivative_count(&count, model_.get(), NEML2_INPUT));
    std::vector<Derivative> found(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      neml2_derivative_info of{};
      of.size = sizeof of;
      check(neml2_model_derivative_inspect(&of, model_.get(), NEML2_INPUT, i));
      found[static_cast<std::size_t>(i)] = {of.output, of.variable, {of.shape, of.shape + of.ndim}};
    }
    return found;
  }

  void bind_blocks() {
    for (const Derivative& derivative : derivatives()) {
      const std::string of = inspected(model_, NEML2_OUTPUT, derivative.output).name;
      const std::string by = inspected(model_, NEML2_INPUT, derivative.input).name;
      bind_block(of, by, derivative.shape);
    }
  }

  void bind_block(const std::string& of, const std::string& by, const std::vector<std::int64_t>& shape) {
    Array& block = derivatives_.emplace_back(Array{of + "," + by, shape, {}});
    block.values.resize(static_cast<std::size_t>(points_ * block.size()));
    check(neml2_call_bind_derivative(call_.get(), NEML2_INPUT, of.c_str(), by.c_str(), block.values.data(),
                                     NEML2_FLOAT64, block.size()));
  }

  void bind_directions(const Task& task) {
    tangents_ = read_arrays(task.inputs / "tangents", points_);
    for (const Array& array : tangents_)
      bind_array(call_, NEML2_TANGENT, array.name, array.values.data(), array.size());
    std::set<std::int64_t> differentiated;
    for (const Derivative& derivative : derivatives()) differentiated.insert(derivative.output);
    for (std::int64_t output : differentiated) {
      Array& jvp = derivatives_.emplace_back(outputs_[static_cast<std::size_t>(output)]);
      bind_array(call_, NEML2_JVP, jvp.name, jvp.values.data(), jvp.size());
      jvp.name += ",jvp";
    }
  }

  std::int64_t points_;
  std::vector<Array> inputs_;
  Model model_;
  std::vector<Array> outputs_, derivatives_, tangents_;
  Call call_;
};

// The path of the forces, step by step, from a state of zeros. The old and the new state change places.
class Transient {
 public:
  explicit Transient(const Task& task)
      : points_(task.points), forces_(read_arrays(task.inputs / "path", 0)), model_(load(task)) {
    for (std::size_t i = 0; i < 2; ++i) states_[i] = outputs_of(model_, points_);
    for (std::size_t i = 0; i < 2; ++i) {
      calls_[i] = create_call(model_);
      std::vector<Array>& old_state = states_[1 - i];
      for (Array& array : old_state)
        bind_array(calls_[i], NEML2_INPUT, array.name + "~1", array.values.data(), array.size());
      bind_outputs(calls_[i], states_[i]);
    }
  }

  void run() {
    for (Array& array : states_[0]) std::fill(array.values.begin(), array.values.end(), 0.0);
    const auto steps = static_cast<std::int64_t>(forces_.front().values.size()) / forces_.front().size();
    for (std::int64_t k = 1; k < steps; ++k) {
      const Call& call = calls_[static_cast<std::size_t>(k % 2)];
      for (const Array& force : forces_) {
        bind_force(call, force.name, force, k);
        bind_force(call, force.name + "~1", force, k - 1);
      }
      check(neml2_call_run(call.get(), points_));
    }
    last_ = static_cast<std::size_t>((steps - 1) % 2);
  }

  std::vector<Result> results() const {
    std::vector<Result> results;
    for (const Array& array : states_[last_]) results.push_back({array.name, array.values.data(), array.size()});
    return results;
  }

 private:
  // A force has the shape (points..., base...) in each step.
  static void bind_force(const Call& call, const std::string& name, const Array& force, std::int64_t step) {
    const double* values = force.values.data() + step * force.size();
    bind_array(call, NEML2_INPUT, name, values, force.size() / force.shape[0]);
  }

  std::int64_t points_;
  std::vector<Array> forces_;
  Model model_;
  std::array<std::vector<Array>, 2> states_;
  std::array<Call, 2> calls_;
  std::size_t last_ = 0;
};

}  // namespace benchmark
