#include <algorithm>
#include <map>
#include <numeric>

#include "capi/base/error.h"
#include "capi/graph/backend.h"
#include "capi/model/lost_sites.h"
#include "capi/model/model.h"
#include "capi/segments/implicit.h"
#include "capi/segments/misfit.h"

namespace neml2_capi::model {
namespace {

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

}  // namespace

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
  metadata_.checksum = artifact::checksum(metadata_, kernels_ ? kernels_->graphs() : "");
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
  takes_kernels_ = wanted.takes_kernels();
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

}  // namespace neml2_capi::model
