#include "capi/segments/segment.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/load.h"
#include "capi/kernels/in_place.h"
#include "capi/newton/system.h"
#include "capi/segments/forward.h"
#include "capi/segments/implicit.h"

namespace neml2_capi::model {

Scope::Scope(const artifact::Metadata& metadata, const aoti::Wanted& wanted)
    : metadata_(metadata), wanted_(wanted), dtype_(metadata.dtype) {}

Package Scope::load(const std::string& package) const {
  const std::filesystem::path path = metadata_.leaf / package;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) return Package(package, aoti::load_graph(path, wanted_));
  if (!wanted_.device.value_or(Device()).is_host() ||
      (wanted_.runtime != aoti::Runtime::automatic && wanted_.runtime != aoti::Runtime::builtin))
    throw Error(NEML2_ERROR_UNSUPPORTED, package,
                join(package,
                     " is missing, and kernels in its place run on the built-in runtime and the cpu alone. Open "
                     "the model there, or compile it with neml2-capi compile --kernels auto."));
  if (!kernels_) kernels_ = kernels::Folder::open(metadata_.leaf);
  if (!kernels_)
    throw Error(NEML2_ERROR_FILE, package, join(path.string(), " is missing. Copy or compile the artifact again."));
  return Package(package, kernels::graph_in_place_of(package, *kernels_, metadata_));
}

void Scope::note_dtype(const Package& package) {
  for (std::size_t i = 0; i < package.num_inputs() && !dtype_noted_; ++i) {
    const DType dtype = package.input_dtype(i);
    if (dtype != DType::float64 && dtype != DType::float32) continue;
    dtype_ = dtype;
    dtype_noted_ = true;
  }
}

std::size_t Scope::require(const std::string& name, const std::string& who) const {
  const auto it = positions_.find(name);
  if (it != positions_.end()) return it->second;
  std::string names;
  for (const Value& value : values_) add_name(names, value.name);
  throw Error(NEML2_ERROR_ARTIFACT, name,
              join("The metadata asks for '", name, "' as ", who,
                   ", but no input and no earlier segment has this name. There are: ", names,
                   ". Was it edited by hand? Compile the model again, with --rename-input or --rename-output."));
}

std::size_t Scope::provide(const std::string& name) {
  const auto [it, added] = positions_.emplace(name, values_.size());
  if (added) values_.push_back({name, {}, dtype_, false});
  return it->second;
}

void Scope::declare(std::size_t value, const Dims& point_shape, DType dtype, const std::string& who) {
  Value& known = values_[value];
  if (known.known && !(known.point_shape == point_shape && known.dtype == dtype))
    throw Error(NEML2_ERROR_ARTIFACT, known.name,
                join("'", known.name, "' is ", name_of(dtype), " of shape ", point_shape.str(), " to ", who, ", but ",
                     name_of(known.dtype), " of shape ", known.point_shape.str(),
                     " before. The folder mixes files of different compilations: compile the model again."));
  known.point_shape = point_shape;
  known.dtype = dtype;
  known.known = true;
}

std::size_t Scope::parameter(const std::string& name, const std::string& who) const {
  for (std::size_t i = 0; i < parameters().size(); ++i)
    if (parameters()[i].name == name) return i;
  throw Error(NEML2_ERROR_ARTIFACT, name,
              join(who, " takes the parameter '", name, "', which the metadata does not list."));
}

namespace {

PairInfo named_pair(const artifact::Pair& pair, bool of_parameter, const Scope& scope) {
  const std::string name = join(pair.output, ":", pair.input);
  PairInfo info;
  info.of_parameter = of_parameter;
  info.output = scope.require(pair.output, "a derivative " + name);
  info.input = of_parameter ? scope.parameter(pair.input, "The derivative " + name)
                            : scope.require(pair.input, "a derivative " + name);
  info.shape.name = name;
  return info;
}

const Dims& input_shape(const PairInfo& info, const Scope& scope) {
  return info.of_parameter ? scope.parameters()[info.input].base_shape : scope.values()[info.input].point_shape;
}

}  // namespace

PairInfo pair_info(const artifact::Pair& pair, const Package& package, std::size_t slot, bool of_parameter,
                   const Scope& scope) {
  PairInfo info = named_pair(pair, of_parameter, scope);
  info.batched = package.batched_output(slot);
  info.point_shape = package.output_shape(slot);
  // A block that is the same for all points has a batch axis of size 1.
  if (!info.batched && !info.point_shape.empty()) info.point_shape = info.point_shape.last(info.point_shape.size() - 1);
  info.shape = block_shape(info.shape.name, info.point_shape.product(),
                           scope.values()[info.output].point_shape.product(), pair.output_base_shape.product(),
                           input_shape(info, scope).product(), pair.input_base_shape.product());
  return info;
}

PairInfo dense_pair(const artifact::Pair& pair, bool of_parameter, const Scope& scope) {
  PairInfo info = named_pair(pair, of_parameter, scope);
  const Dims& output = scope.values()[info.output].point_shape;
  const Dims& input = input_shape(info, scope);
  info.point_shape = output.then(input);
  info.shape = block_shape(info.shape.name, info.point_shape.product(), output.product(), output.product(),
                           input.product(), input.product());
  return info;
}

Tensor PairInfo::rows(Tensor tensor) const {
  if (!batched) {
    Dims sizes = tensor.sizes();
    sizes[0] = std::min<std::int64_t>(sizes[0], 1);
    tensor = Tensor(tensor.storage(), tensor.dtype(), sizes, tensor.strides(), tensor.offset());
  }
  tensor.make_row_major();
  return tensor;
}

Block PairInfo::block(Tensor tensor, const Chunk& chunk) const {
  return {output, of_parameter ? chunk.values.size() + input : input, &shape, rows(std::move(tensor)), batched};
}

Chunk Chunk::select(const Vector<std::int64_t>& rows) const {
  Chunk chunk;
  chunk.points = static_cast<std::int64_t>(rows.size());
  chunk.values.resize(values.size());
  chunk.parameters = select_rows(parameters, rows);
  chunk.newton = newton;
  chunk.by_values = by_values;
  chunk.by_parameters = by_parameters;
  return chunk;
}

void Segment::run_along(Chunk& chunk, Directions& directions) const {
  chunk.by_values = true;
  push_forward(run(chunk), outputs(), directions);
}

std::unique_ptr<Segment> make_segment(const artifact::Segment& segment, Scope& scope) {
  if (const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment))
    return std::make_unique<ImplicitSegment>(*implicit, scope);
  return std::make_unique<ForwardSegment>(std::get<artifact::ForwardSegment>(segment), scope);
}

}  // namespace neml2_capi::model
