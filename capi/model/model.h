// Artifact as a whole: named inputs, outputs and promoted parameters over a list of segments. Rooms above evaluate it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capi/base/locks.h"
#include "capi/model/bounds.h"
#include "capi/model/options.h"
#include "capi/segments/derivatives.h"
#include "capi/segments/segment.h"
#include "capi/values/parts.h"

namespace neml2_capi::model {

// Layers that a source asked for around the law of an artifact, in the words of Python's Model(). Empty: none.
struct Views {
  bool material_axes = false;
  std::string hypothesis, strain_measure, stress_measure;
  std::string strain, stress;  // what the source calls them
  // Returns what the state of points depends on: "material_axes, hypothesis plane_stress".
  std::string of_state() const;
};

// Variables and derivatives of a model that is a layer around another one, its law: a hypothesis, for example. Parameters
// and unknowns are the law's.
struct Boundary {
  std::vector<Variable> inputs, outputs;
  std::vector<Derivative> by_inputs, by_parameters;
};

// State of a model that an evaluation keeps while it runs, whatever becomes of the model meanwhile.
struct Snapshot {
  Options options;
  Vector<Tensor> parameters;   // copies of the stored ones
  Vector<Tensor> stored;       // these, if they are on the host; else empty
  std::uint64_t settings = 0;  // which options, and which shapes of parameters, by number
};

class Model {
 public:
  // Loads the packages. Throws Error as graph::open() does.
  static std::shared_ptr<Model> load(const artifact::Metadata& metadata, const graph::Wanted& wanted = {});

  // Makes a model that shows this boundary instead of the law's. It has parameters and options of its own, which begin as
  // the law's, and no segments: a route of its own evaluates it.
  static std::shared_ptr<Model> around(std::shared_ptr<const Model> law, Boundary boundary);

  // Tells whether it is such a model.
  bool is_around_another() const { return law_ != nullptr; }
  // Returns the law itself.
  const Model& innermost() const { return law_ ? law_->innermost() : *this; }

  // Returns all that is around the law of the artifact.
  const Views& views() const { return views_; }
  // Keeps it. Must be called before others know the model.
  void note_views(Views views) { views_ = std::move(views); }

  // Returns libtorch if any package runs on it.
  graph::Runtime runtime() const;

  // Returns the device of inputs, parameters and results.
  Device device() const { return home_; }
  // Returns the device of the packages: another one, if a scheduler moves what they take and return.
  Device compute_device() const { return device_; }
  // Keeps parameters and results on the host, for a scheduler. Must be called before others know the model.
  void keep_on_host();

  DType dtype() const { return dtype_; }
  const std::vector<Variable>& variables(Kind kind) const { return variables_[static_cast<std::size_t>(kind)]; }
  // Returns the position of a variable. Throws NEML2_ERROR_NAME with the names there are.
  std::size_t find(Kind kind, std::string_view name) const;

  // Input `x~age`, and the positions of the output and of the input `x`; -1 if there is none.
  struct History {
    std::int64_t input, age, output, current;
  };
  std::vector<History> histories() const;

  // Returns the bounds of inputs and parameters. A model around another one shows those of its law that are of its own
  // variables; evaluations look at all, which are those of innermost().
  const std::vector<Bound>& bounds() const { return bounds_; }
  // Counts an evaluation that went beyond a bound. Tells whether the log is to have it: the first, second, fourth, ...
  bool note_exceeded(std::size_t bound) const { return exceeded_[bound].note(); }

  // Returns the derivatives with respect to the inputs, or to the parameters.
  const Derivatives& derivatives(Kind kind) const { return kind == Kind::parameter ? by_parameters_ : by_inputs_; }
  // Returns the ones of a part. `given` returns tangents or cotangents by their part, (points, size) each.
  template <class Given>
  Vector<Tensor> derive(Part part, const Derivatives::Chain& chain, Given&& given) const {
    const Derivatives& all = derivatives(kind_of(part));
    if (part == Part::jvp) return all.jvp(chain, given(Part::tangent));
    return is_adjoint(part) ? all.vjp(chain, given(Part::cotangent)) : all.blocks(chain);
  }
  const artifact::Metadata& metadata() const { return metadata_; }

  // Returns the stored value of a parameter, sharing its storage.
  Tensor parameter(std::size_t index) const;
  void set_parameter(std::size_t index, const Tensor& value);
  // Takes a snapshot, in the memory that it has from before. Returns false if only values of parameters changed.
  // Few threads meet in it, and none waits, if nobody sets anything.
  bool take(Snapshot& snapshot) const;
  Options options() const;
  template <class Value>
  void set_option(std::string_view name, Value value) {
    const std::lock_guard lock(mutex_);
    Options changed = options_;
    changed.set(name, value);
    const Writing writing(*this);
    options_ = changed;
    ++settings_;
  }

  // Return the number of arrays of a part, and the variable of one of them.
  std::size_t count(Part part) const {
    return is_block(part) ? derivatives(kind_of(part)).all().size() : variables(kind_of(part)).size();
  }
  const Variable& variable(Part part, std::size_t i) const {
    return is_block(part) ? derivatives(kind_of(part)).all()[i].block : variables(kind_of(part))[i];
  }

  // Tells whether there can be a result of a part: products are of the derivatives that were compiled.
  bool is_compiled(Part part, std::size_t i) const {
    const Derivatives& all = derivatives(kind_of(part));
    return part == Part::jvp ? all.of_output(i) : !is_adjoint(part) || all.by_input(i);
  }

  // Returns the segments in the order in which they run.
  const std::vector<std::unique_ptr<Segment>>& segments() const { return segments_; }
  // Return the number of values between the segments, and the places of variables among them. Parameters come after.
  std::size_t num_values() const { return num_values_; }
  // Tells whether derivatives by parameters need derivatives by values: what a parameter does to one segment goes on
  // through the values of the next.
  bool carries_parameters() const { return segments_.size() > 1 || cuts_increments(); }
  // Tells whether a segment may cut the increment of a point.
  bool cuts_increments() const;
  const std::vector<std::size_t>& values_of(Kind kind) const { return values_of_[static_cast<std::size_t>(kind)]; }

  // Return the number of points that is compiled in, and the package that has it; 0 if any will do.
  std::int64_t baked_batch() const { return baked_batch_; }
  const std::string& limiting_package() const { return limiting_package_; }
  // Returns the greatest number of points of one run.
  std::int64_t greatest_batch() const { return greatest_batch_; }
  // Tells whether kernels may stand for its packages: for those that the built-in provider runs on the processor.
  bool takes_kernels() const { return takes_kernels_; }
  // Returns the kernels of a model that has no packages; else null.
  const std::shared_ptr<const kernels::Folder>& kernels() const { return kernels_; }
  // Returns the parameters that a package takes as one value for all points of a run.
  const std::vector<std::size_t>& uniform_parameters() const { return uniform_parameters_; }

 private:
  Model(artifact::Metadata metadata, const graph::Wanted& wanted);
  Model(std::shared_ptr<const Model> law, Boundary boundary);
  static std::shared_ptr<Model> open(const artifact::Metadata& metadata, const graph::Wanted& wanted);
  static std::shared_ptr<Model> make(const artifact::Metadata& metadata, const graph::Wanted& wanted);
  void add_variables(Scope& scope);
  Derivatives compiled_derivatives(Kind kind, const std::vector<artifact::Pair>& pairs, const Scope& scope) const;
  bool take_values(Snapshot& snapshot) const;
  void note_batches();
  void tell(double seconds) const;
  void require_device() const;

  std::shared_ptr<const Model> law_;  // that this is a layer around; else null
  Views views_;
  artifact::Metadata metadata_;
  Device device_;  // of the packages
  Device home_;    // of parameters and of all that is given
  DType dtype_;
  std::shared_ptr<const kernels::Folder> kernels_;
  std::vector<std::unique_ptr<Segment>> segments_;
  std::vector<Variable> variables_[4];
  std::vector<std::size_t> values_of_[4];
  Derivatives by_inputs_, by_parameters_;
  std::vector<Bound> bounds_;
  mutable std::vector<Occasions> exceeded_;  // by bound
  std::size_t num_values_ = 0;
  std::vector<std::size_t> uniform_parameters_;
  std::int64_t baked_batch_ = 0;
  std::int64_t greatest_batch_ = INT64_MAX;
  std::string limiting_package_;
  bool takes_kernels_ = false;

  // Scope of a change of what the lock guards.
  struct Writing {
    explicit Writing(Model& model) : of(model) { count(std::memory_order_relaxed); }
    ~Writing() { count(std::memory_order_release); }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;
    void count(std::memory_order order) { of.writes_.store(of.writes_.load(std::memory_order_relaxed) + 1, order); }
    Model& of;
  };

  mutable locks::Mutex mutex_;  // guards what follows
  Vector<Tensor> parameters_;
  Options options_;
  // Counts the changes of options, and of shapes of parameters.
  std::atomic<std::uint64_t> settings_ = 1;
  // Counts where any change begins, and where it ends. All that a snapshot takes without the lock stands between two
  // readings of it.
  std::atomic<std::uint64_t> writes_ = 0;
};

}  // namespace neml2_capi::model
