#include "capi/model/model.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>

#include "capi/artifact/locate.h"
#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/base/names.h"
#include "capi/graph/backend.h"
#include "capi/model/lost_sites.h"
#include "capi/platform/refusals.h"
#include "capi/segments/implicit.h"
#include "capi/segments/misfit.h"

namespace neml2_capi::model {
namespace {

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"input", "output", "parameter", "unknown"};
  return names[static_cast<std::size_t>(kind)];
}

// Copies values that another thread may write meanwhile, or read: a word at a time, and what is left by bytes.
void copy_words(const void* from, void* to, std::size_t bytes) {
  const auto copy = [&]<class Word>(Word, std::size_t begin) {
    std::size_t at = begin;
    for (; at + sizeof(Word) <= bytes; at += sizeof(Word))
      __atomic_store_n(
          reinterpret_cast<Word*>(static_cast<char*>(to) + at),
          __atomic_load_n(reinterpret_cast<const Word*>(static_cast<const char*>(from) + at), __ATOMIC_ACQUIRE),
          __ATOMIC_RELEASE);
    return at;
  };
  copy(std::uint8_t{}, copy(std::uint64_t{}, 0));
}

void copy_words(const Tensor& from, const Tensor& to) {
  copy_words(from.data(), to.data(), static_cast<std::size_t>(from.numel() * from.itemsize()));
}

std::string boundary_name(const std::map<std::string, std::string>& aliases, const std::string& name) {
  const auto it = aliases.find(name);
  return it == aliases.end() ? name : it->second;
}

// Returns a variable as packages know it, checked against the metadata: its last axes are the base axes, those before
// them sub-batch axes, which must be those that the metadata lists, if it does.
Variable boundary_variable(const artifact::Variable& variable, const Value& value,
                           const std::map<std::string, std::string>& aliases) {
  const Dims shape = value.known ? value.point_shape : variable.point_shape();
  const std::int64_t sub_ndim = shape.size() - variable.base_shape.size();
  if (sub_ndim < 0 || !(shape.last(variable.base_shape.size()) == variable.base_shape))
    throw misfit(variable.name, "'", variable.name, "' has the base shape ", variable.base_shape.str(),
                 " in the metadata, but the shape ", shape.str(), " per point to ", value.told_by);
  if (variable.sites_told && !(shape == variable.point_shape()))
    throw misfit(variable.name, "'", variable.name, "' has the sub-batch shape ", variable.sub_batch_shape.str(),
                 " in the metadata, but ", shape.first(sub_ndim).str(), " to ", value.told_by);
  return {boundary_name(aliases, variable.name), variable.type, value.dtype, shape, sub_ndim};
}

Tensor stored_value(const artifact::Parameter& parameter, DType leaf) {
  Tensor value = Tensor::empty(parameter.dtype.value_or(leaf), parameter.shape);
  const auto fill = [&](auto* out) {
    using Scalar = std::remove_pointer_t<decltype(out)>;
    for (std::size_t i = 0; i < parameter.values.size(); ++i) out[i] = static_cast<Scalar>(parameter.values[i]);
  };
  switch (value.dtype()) {
    case DType::float64: fill(value.data_as<double>()); break;
    case DType::float32: fill(value.data_as<float>()); break;
    case DType::int64: fill(value.data_as<std::int64_t>()); break;
    case DType::int32: fill(value.data_as<std::int32_t>()); break;
    case DType::boolean: fill(value.data_as<bool>()); break;
    default:
      throw Error(NEML2_ERROR_UNSUPPORTED, parameter.name,
                  join("The parameter '", parameter.name, "' has the element type ", neml2_capi::name_of(value.dtype()),
                       ", which is not supported."));
  }
  return value;
}

bool takes_kernels_on(graph::Runtime runtime) {
  return runtime == graph::Runtime::automatic || runtime == graph::Runtime::builtin;
}

// Tells whether kernels may replace packages that are there.
bool may_take_kernels(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  return !metadata.kernels_only && artifact::have_kernels(metadata.leaf) &&
         wanted.device.value_or(Device()).is_host() && takes_kernels_on(wanted.runtime);
}

}  // namespace

// Takes the kernels if the packages do not run on this machine.
std::shared_ptr<Model> Model::make(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  const auto with = [&](const artifact::Metadata& chosen) { return std::shared_ptr<Model>(new Model(chosen, wanted)); };
  try {
    return with(metadata);
  } catch (const Error& error) {
    const bool is_limit = dynamic_cast<const refusals::LimitError*>(&error) != nullptr;
    if ((error.status() != NEML2_ERROR_UNSUPPORTED && !is_limit) || !may_take_kernels(metadata, wanted)) throw;
    artifact::Metadata alone = metadata;
    alone.kernels_only = true;
    try {
      const auto model = with(alone);
      log::write(log::Channel::model, log::Level::warning, metadata.leaf.string(),
                 ": the model runs on its kernels, since its packages do not run here. ", error.what());
      return model;
    } catch (const Error& other) {
      throw Error(error.status(), error.subject(), join(error.what(), " Nor do its kernels run: ", other.what()),
                  error.cause());
    }
  }
}

// Runs the packages on zeros, to learn about them; nobody can retry that.
std::shared_ptr<Model> Model::open(const artifact::Metadata& metadata, const graph::Wanted& wanted) try {
  return make(metadata, wanted);
} catch (const Error& error) {
  if (error.status() < NEML2_OK) throw;
  throw Error(NEML2_ERROR_RUNTIME, error.subject(),
              join(error.what(),
                   ". It was called with zeros, while the model was loaded: if there is no result, it "
                   "should give NaN."));
}

std::shared_ptr<Model> Model::load(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  const auto start = std::chrono::steady_clock::now();
  const std::shared_ptr<Model> model = open(metadata, wanted);
  if (!log::on(log::Channel::model, log::Level::warning)) return model;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  model->tell(time.count());
  return model;
}

graph::Runtime Model::runtime() const {
  if (law_) return law_->runtime();
  if (!device_.is_host()) return graph::Runtime::tensors;
  for (const auto& segment : segments_)
    for (const Package* package : segment->packages())
      if (package->runtime() != graph::Runtime::builtin) return package->runtime();
  return graph::Runtime::builtin;
}

// Logs what a user may want to know of a model that was loaded in `seconds`.
void Model::tell(double seconds) const {
  const auto write = [](log::Level level, const auto&... parts) { log::write(log::Channel::model, level, parts...); };
  const std::string where = metadata_.leaf.string();
  const auto runtime_text = [&] {
    const std::string library = graph::library_of(runtime());
    if (library.empty()) return std::string("kernels alone");
    return runtime() == graph::Runtime::builtin ? "built-in provider " + library : library;
  };
  if (dtype_ != metadata_.dtype)
    write(log::Level::warning, where, ": the packages are ", neml2_capi::name_of(dtype_), ", though compiled as ",
          neml2_capi::name_of(metadata_.dtype), "; give and expect ", neml2_capi::name_of(dtype_), ".");
  std::size_t packages = 0, implicit = 0;
  for (const auto& segment : segments_) packages += segment->packages().size();
  for (const artifact::Segment& segment : metadata_.segments)
    implicit += std::holds_alternative<artifact::ImplicitSegment>(segment);
  write(log::Level::info, "loaded ", where, " in ", std::round(1e4 * seconds) / 10, " ms: segments ",
        metadata_.segments.size(), " (implicit ", implicit, "), packages ", packages, ", ", runtime_text(),
        baked_batch_ == 0 ? "" : join(", in runs of exactly ", baked_batch_, " points"));
}

Model::Model(artifact::Metadata metadata, const graph::Wanted& wanted)
    : metadata_(std::move(metadata)), device_(wanted.device.value_or(Device())), options_(metadata_) {
  device_.by_operators = device_.is_host() && wanted.runtime == graph::Runtime::tensors;
  home_ = device_;
  const graph::OnStream here(device_);
  if (metadata_.outputs.empty())
    throw Error(NEML2_ERROR_ARTIFACT, "outputs", "The metadata lists no outputs: there is nothing to evaluate.");
  Scope scope(metadata_, {wanted.runtime, device_});
  kernels_ = scope.kernels();
  for (const artifact::Variable& input : metadata_.inputs) scope.provide(input.name);
  for (const artifact::Segment& segment : metadata_.segments) segments_.push_back(make_segment(segment, scope));
  dtype_ = scope.dtype();
  refuse_lost_sites(metadata_, scope);
  add_variables(scope);
  num_values_ = scope.values().size();
  values_of_[NEML2_PARAMETER].resize(metadata_.parameters.size());
  std::iota(values_of_[NEML2_PARAMETER].begin(), values_of_[NEML2_PARAMETER].end(), num_values_);
  for (const artifact::Parameter& parameter : metadata_.parameters)
    parameters_.push_back(device_.is_host() ? stored_value(parameter, dtype_)
                                            : algebra::moved(stored_value(parameter, dtype_), device_));
  by_inputs_ = compiled_derivatives(Kind::input, metadata_.derivatives, scope);
  by_parameters_ = compiled_derivatives(Kind::parameter, metadata_.parameter_derivatives, scope);
  bounds_ = bounds_of(metadata_, variables(Kind::input), variables(Kind::parameter));
  exceeded_ = std::vector<Occasions>(bounds_.size());
  note_batches();
  takes_kernels_ = device_.is_host() && takes_kernels_on(wanted.runtime);
  if (!device_.is_host()) require_device();
}

Model::Model(std::shared_ptr<const Model> law, Boundary boundary)
    : law_(std::move(law)),
      metadata_(law_->metadata_),
      device_(law_->device_),
      home_(law_->home_),
      dtype_(law_->dtype_),
      variables_{std::move(boundary.inputs), std::move(boundary.outputs), law_->variables(Kind::parameter),
                 law_->variables(Kind::unknown)},
      uniform_parameters_(law_->uniform_parameters_),
      baked_batch_(law_->baked_batch_),
      greatest_batch_(law_->greatest_batch_),
      limiting_package_(law_->limiting_package_),
      options_(law_->options()) {
  for (std::size_t i = 0; i < variables(Kind::parameter).size(); ++i) parameters_.push_back(law_->parameter(i).copy());
  const auto derivatives = [&](Kind kind, std::vector<Derivative>& listed) {
    Derivatives all(std::vector<std::size_t>(variables(Kind::output).size()),
                    std::vector<std::size_t>(variables(kind).size()));
    for (Derivative& each : listed) all.add(std::move(each));
    all.group();
    return all;
  };
  by_inputs_ = derivatives(Kind::input, boundary.by_inputs);
  by_parameters_ = derivatives(Kind::parameter, boundary.by_parameters);
  bounds_ = bounds_around(*law_, variables(Kind::input));
  exceeded_ = std::vector<Occasions>(bounds_.size());
}

std::shared_ptr<Model> Model::around(std::shared_ptr<const Model> law, Boundary boundary) {
  return std::shared_ptr<Model>(new Model(std::move(law), std::move(boundary)));
}

void Model::add_variables(Scope& scope) {
  const artifact::Aliases& aliases = metadata_.aliases;
  const auto add = [&](Kind kind, const std::vector<artifact::Variable>& variables,
                       const std::map<std::string, std::string>& renamed) {
    std::vector<std::size_t>& positions = values_of_[static_cast<std::size_t>(kind)];
    for (const artifact::Variable& variable : variables) {
      positions.push_back(scope.require(variable.name, join("an ", name_of(kind), " of the model")));
      variables_[static_cast<std::size_t>(kind)].push_back(
          boundary_variable(variable, scope.values()[positions.back()], renamed));
    }
  };
  add(Kind::input, metadata_.inputs, aliases.inputs);
  add(Kind::output, metadata_.outputs, aliases.outputs);
  for (const artifact::Parameter& parameter : metadata_.parameters)
    variables_[NEML2_PARAMETER].push_back({boundary_name(aliases.parameters, parameter.name), "",
                                           parameter.dtype.value_or(dtype_), parameter.base_shape, 0});
  for (const artifact::Segment& segment : metadata_.segments)
    if (const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment))
      for (const artifact::Group& group : implicit->unknowns) add(Kind::unknown, group.variables, aliases.outputs);
}

// Returns the derivatives that were compiled, with the shapes of their blocks. A block of a model of one segment is
// the segment's; otherwise it is a matrix of all components of the output by all components of the input.
Derivatives Model::compiled_derivatives(Kind kind, const std::vector<artifact::Pair>& pairs, const Scope& scope) const {
  const bool of_parameter = kind == Kind::parameter;
  const std::vector<std::size_t>& outputs = values_of(Kind::output);
  const std::vector<std::size_t>& inputs = values_of(kind);
  Derivatives derivatives(outputs, inputs);
  for (const artifact::Pair& pair : pairs) {
    const PairInfo dense = dense_pair(pair, of_parameter, scope);
    const PairInfo* info = &dense;
    if (segments_.size() == 1) {
      info = nullptr;
      for (const PairInfo* own : segments_.front()->pairs())
        if (own->of_parameter == of_parameter && own->output == dense.output && own->input == dense.input) info = own;
      // The derivative of a solution by the guess of an unknown, or by what only a predictor reads, is zero.
      if (!info && !of_parameter && !segments_.front()->depends_on(dense.input)) info = &dense;
      if (!info)
        throw misfit(dense.shape.name, "The metadata lists the derivative ", dense.shape.name,
                     ", but no package gives it");
    }
    const auto position = [](const std::vector<std::size_t>& all, std::size_t value, const std::string& name) {
      const auto it = std::find(all.begin(), all.end(), value);
      if (it == all.end())
        throw misfit(name, "The metadata lists a derivative of or with respect to '", name,
                     "', which is not at the boundary of the model");
      return static_cast<std::size_t>(it - all.begin());
    };
    Derivative derivative;
    derivative.output = position(outputs, dense.output, pair.output);
    derivative.input = position(inputs, of_parameter ? num_values_ + dense.input : dense.input, pair.input);
    derivative.batched = info->batched;
    derivative.rows = info->shape.rows;
    derivative.columns = info->shape.columns;
    // A solve package returns a matrix also if a value has no axes.
    const Variable& output = variables(Kind::output)[derivative.output];
    const Variable& input = variables(kind)[derivative.input];
    const bool has_sites = output.sub_ndim > 0 || input.sub_ndim > 0;
    derivative.block = {join(output.name, ":", input.name), "", dtype_,
                        has_sites ? info->point_shape : dense.point_shape, 0};
    derivatives.add(std::move(derivative));
  }
  derivatives.group();
  return derivatives;
}

bool Model::cuts_increments() const {
  return std::ranges::any_of(metadata_.segments, [](const artifact::Segment& segment) {
    const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment);
    return implicit && implicit->max_substepping_level > 0;
  });
}

void Model::note_batches() {
  for (const auto& segment : segments_) {
    for (const Package* package : segment->packages()) {
      greatest_batch_ = std::min(greatest_batch_, package->greatest_batch());
      if (package->baked_batch() == 0) continue;
      baked_batch_ = package->baked_batch();
      limiting_package_ = package->name();
    }
    const auto uniform = segment->uniform_parameters();
    uniform_parameters_.insert(uniform_parameters_.end(), uniform.begin(), uniform.end());
  }
  if (baked_batch_ != 0 && baked_batch_ > greatest_batch_)
    throw Error(NEML2_ERROR_UNSUPPORTED, limiting_package_,
                "The packages were compiled for different fixed batches. Compile the model with --dynamic-batch.");
}

void Model::require_device() const {
  for (const auto& segment : segments_)
    if (const auto* implicit = dynamic_cast<const ImplicitSegment*>(segment.get())) implicit->require_device(device_);
  if (baked_batch_ != 0)
    throw Error(NEML2_ERROR_UNSUPPORTED, limiting_package_,
                join(limiting_package_, " was compiled for a fixed batch of ", baked_batch_,
                     " points, and on the device ", device_.str(),
                     " (runtime \"tensors\") all points run at once: compile the model with "
                     "--dynamic-batch."));
}

std::size_t Model::find(Kind kind, std::string_view name) const {
  const auto& all = variables(kind);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].name == name) return i;
  // A parameter may go by the last component of its qualified name, if that is unique.
  std::string names, candidates;
  std::vector<std::string> listed;
  std::size_t found = 0, count = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    names += (i ? ", " : "") + all[i].name;
    listed.push_back(all[i].name);
    const std::size_t dot = all[i].name.rfind('.');
    if (kind != Kind::parameter || dot == std::string::npos || all[i].name.substr(dot + 1) != name) continue;
    candidates += (count++ ? ", " : "") + all[i].name;
    found = i;
  }
  if (count == 1) return found;
  if (count > 1)
    throw Error(NEML2_ERROR_NAME, std::string(name),
                join("The parameter '", name, "' could be one of: ", candidates, ". Give its qualified name."));
  throw Error(NEML2_ERROR_NAME, std::string(name),
              join("The model has no ", name_of(kind), " '", name, "'", did_you_mean(name, listed), " Its ",
                   name_of(kind), "s are: ", names.empty() ? "none" : names, "."));
}

std::vector<Model::History> Model::histories() const {
  const auto position = [](const std::vector<Variable>& variables, std::string_view name) {
    const auto it = std::find_if(variables.begin(), variables.end(), [&](const Variable& v) { return v.name == name; });
    return it == variables.end() ? -1 : static_cast<std::int64_t>(it - variables.begin());
  };
  std::vector<History> all;
  const auto& inputs = variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string& name = inputs[i].name;
    const std::size_t tilde = name.rfind('~');
    if (tilde == std::string::npos) continue;
    std::int64_t age = 0;
    const auto [end, failure] = std::from_chars(name.data() + tilde + 1, name.data() + name.size(), age);
    if (failure != std::errc() || end != name.data() + name.size() || age < 1) continue;
    const std::string_view base = std::string_view(name).substr(0, tilde);
    all.push_back({static_cast<std::int64_t>(i), age, position(variables(Kind::output), base), position(inputs, base)});
  }
  return all;
}

void Model::keep_on_host() {
  for (Tensor& parameter : parameters_)
    if (!parameter.device().is_host()) parameter = algebra::moved(parameter, {});
  home_ = {};
}

Tensor Model::parameter(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return parameters_[index];
}

void Model::set_parameter(std::size_t index, const Tensor& value) {
  const Variable& parameter = variables(Kind::parameter)[index];
  if (value.dtype() != parameter.dtype)
    throw Error(NEML2_ERROR_DTYPE, parameter.name,
                join("The parameter '", parameter.name, "' is ", neml2_capi::name_of(parameter.dtype), "; got ",
                     neml2_capi::name_of(value.dtype()), ". Convert the value first."));
  const std::int64_t base_ndim = parameter.point_shape.size();
  if (value.ndim() < base_ndim || !(value.sizes().last(base_ndim) == parameter.point_shape))
    throw Error(NEML2_ERROR_SHAPE, parameter.name,
                join("The parameter '", parameter.name, "' takes the shape (*batch, *", parameter.point_shape.str(),
                     "); got ", value.sizes().str(), "."));
  if (value.device().is_host()) check_parameter(*this, index, value);
  const graph::OnStream here(home_.is_host() ? value.device() : home_);
  Tensor copy = home_.is_host() && value.device().is_host() ? value.copy() : algebra::moved(value, home_);
  const std::lock_guard lock(mutex_);
  Tensor& stored = parameters_[index];
  const Writing writing(*this);
  if (stored.sizes() != copy.sizes()) {
    std::swap(stored, copy);
    ++settings_;
  } else if (home_.is_host()) {
    copy_words(copy, stored);
  } else {
    algebra::assign(stored, copy);
  }
}

// Copies the values of parameters without a lock. Returns false if an option or a shape is another than before, or
// anything was changed meanwhile: writes_ is a sequence lock (Boehm, "Can seqlocks get along with programming language
// memory models?", 2012).
bool Model::take_values(Snapshot& snapshot) const {
  const std::uint64_t writes = writes_.load(std::memory_order_acquire);
  if (!home_.is_host() || snapshot.settings != settings_.load(std::memory_order_acquire)) return false;
  for (std::size_t i = 0; i < snapshot.stored.size(); ++i) copy_words(snapshot.stored[i], snapshot.parameters[i]);
  return writes % 2 == 0 && writes_.load(std::memory_order_relaxed) == writes;
}

bool Model::take(Snapshot& snapshot) const {
  if (take_values(snapshot)) return false;
  Vector<Tensor>& copies = snapshot.parameters;
  const std::lock_guard lock(mutex_);
  if (snapshot.settings == settings_ && home_.is_host()) {
    for (std::size_t i = 0; i < copies.size(); ++i) parameters_[i].copy_to(copies[i].data());
    return false;
  }
  copies.clear();
  for (const Tensor& parameter : parameters_) copies.push_back(parameter.copy());
  snapshot.stored.clear();
  if (home_.is_host()) snapshot.stored = parameters_;
  snapshot.options = options_;
  snapshot.settings = settings_;
  return true;
}

Options Model::options() const {
  const std::lock_guard lock(mutex_);
  return options_;
}

}  // namespace neml2_capi::model
