#include "capi/model/model.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "capi/error.h"

namespace neml2_capi::model {
namespace {

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"input", "output", "parameter"};
  return names[static_cast<std::size_t>(kind)];
}

std::string boundary_name(const std::map<std::string, std::string>& aliases, const std::string& name) {
  const auto it = aliases.find(name);
  return it == aliases.end() ? name : it->second;
}

// What a package says of a variable, checked against the metadata: its last axes are the base axes, those before them
// sub-batch axes, which the metadata need not list.
Variable boundary_variable(const artifact::Variable& variable, const Value& value,
                           const std::map<std::string, std::string>& aliases) {
  const Dims shape = value.known ? value.point_shape : variable.point_shape();
  const std::int64_t sub_ndim = shape.size() - variable.base_shape.size();
  if (sub_ndim < 0 || !(shape.last(variable.base_shape.size()) == variable.base_shape))
    throw Error(NEML2_ERROR_ARTIFACT, variable.name,
                join("'", variable.name, "' has the base shape ", variable.base_shape.str(),
                     " in the metadata, but the point shape ", shape.str(),
                     " in the packages. The folder mixes files of different compilations: compile the model again."));
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

std::shared_ptr<Model> Model::load(const std::filesystem::path& root, const std::string& device,
                                   const std::string& dtype) {
  return std::shared_ptr<Model>(new Model(artifact::read_metadata(root, device, dtype)));
}

Model::Model(const artifact::Metadata& metadata) : options_(metadata.solver) {
  if (metadata.outputs.empty())
    throw Error(NEML2_ERROR_ARTIFACT, "outputs", "The metadata lists no outputs: there is nothing to evaluate.");
  Scope scope(metadata);
  for (const artifact::Variable& input : metadata.inputs) scope.provide(input.name);
  for (const artifact::Segment& segment : metadata.segments) segments_.push_back(make_segment(segment, scope));
  dtype_ = scope.dtype();
  add_variables(metadata, scope);
  num_values_ = scope.values().size();
  for (const artifact::Parameter& parameter : metadata.parameters)
    parameters_.push_back(stored_value(parameter, dtype_));
  note_batches();
}

void Model::add_variables(const artifact::Metadata& metadata, Scope& scope) {
  const auto add = [&](Kind kind, const std::vector<artifact::Variable>& variables,
                       const std::map<std::string, std::string>& aliases, std::vector<std::size_t>& positions) {
    for (const artifact::Variable& variable : variables) {
      positions.push_back(scope.require(variable.name, join("an ", name_of(kind), " of the model")));
      variables_[static_cast<std::size_t>(kind)].push_back(
          boundary_variable(variable, scope.values()[positions.back()], aliases));
    }
  };
  add(Kind::input, metadata.inputs, metadata.aliases.inputs, input_values_);
  add(Kind::output, metadata.outputs, metadata.aliases.outputs, output_values_);
  for (const artifact::Parameter& parameter : metadata.parameters)
    variables_[NEML2_PARAMETER].push_back({boundary_name(metadata.aliases.parameters, parameter.name), "",
                                           parameter.dtype.value_or(dtype_), parameter.base_shape, 0});
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

std::size_t Model::find(Kind kind, std::string_view name) const {
  std::string names;
  for (std::size_t i = 0; i < variables(kind).size(); ++i) {
    if (variables(kind)[i].name == name) return i;
    names += (i ? ", " : "") + variables(kind)[i].name;
  }
  throw Error(NEML2_ERROR_NAME, std::string(name),
              join("The model has no ", name_of(kind), " '", name, "'. Its ", name_of(kind),
                   "s are: ", names.empty() ? "none" : names, "."));
}

Tensor Model::parameter(std::size_t index) const {
  const std::shared_lock lock(mutex_);
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
  const Tensor copy = value.copy();
  const std::unique_lock lock(mutex_);
  Tensor& stored = parameters_[index];
  if (stored.sizes() == copy.sizes())
    copy.copy_to(stored.data());
  else
    stored = copy;
}

std::vector<Tensor> Model::copy_parameters() const {
  const std::shared_lock lock(mutex_);
  std::vector<Tensor> copies;
  for (const Tensor& parameter : parameters_) copies.push_back(parameter.copy());
  return copies;
}

Options Model::options() const {
  const std::shared_lock lock(mutex_);
  return options_;
}

}  // namespace neml2_capi::model
