#include "capi/segments/segment.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "capi/base/error.h"
#include "capi/kernels/graph.h"
#include "capi/newton/system.h"
#include "capi/segments/forward.h"
#include "capi/segments/implicit.h"
#include "capi/segments/misfit.h"

namespace neml2_capi::model {
namespace {

bool is_on_libtorch(graph::Runtime runtime) {
  return runtime == graph::Runtime::libtorch || runtime == graph::Runtime::tensors;
}

}  // namespace

Scope::Scope(const artifact::Metadata& metadata, const graph::Wanted& wanted)
    : leaf_(metadata.leaf),
      kernels_(metadata.kernels_only ? kernels::Folder::open(metadata.leaf, true, metadata.linked) : nullptr),
      wanted_(wanted),
      dtype_(metadata.dtype),
      parameters_(metadata.parameters) {
  if (metadata.kernels_only && (!wanted.device.value_or(Device()).is_host() || is_on_libtorch(wanted.runtime)))
    throw Error(
        NEML2_ERROR_UNSUPPORTED, "runtime",
        "The artifact has kernels only, which run on the CPU and the built-in runtime. Compile it with packages: "
        "neml2-capi compile INPUT.i --kernels auto");
}

Package Scope::load(const std::string& package) const {
  if (has_packages()) return Package(leaf_ / package, wanted_);
  return Package(package, kernels::kernel_graph(kernels_, package));
}

std::optional<Package> Scope::load_solver(const std::string& package, const std::string& jacobian,
                                          std::size_t residuals) const {
  if (has_packages() || package.empty()) return load_if_named(package);
  std::shared_ptr<graph::Graph> graph = kernels::solver_graph(kernels_, jacobian, residuals);
  if (!graph) return std::nullopt;
  return Package(package, std::move(graph));
}

std::optional<Package> Scope::load_if_named(const std::string& package) const {
  if (package.empty()) return std::nullopt;
  return load(package);
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
  if (added) values_.push_back({name, {}, dtype_, false, ""});
  return it->second;
}

void Scope::declare(std::size_t value, const Dims& point_shape, DType dtype, const std::string& who) {
  Value& known = values_[value];
  if (known.known && !(known.point_shape == point_shape && known.dtype == dtype))
    throw misfit(known.name, "'", known.name, "' is ", name_of(dtype), " of shape ", point_shape.str(),
                 " per point to ", who, ", but ", name_of(known.dtype), " of shape ", known.point_shape.str(), " to ",
                 known.told_by);
  if (!known.known) known.told_by = who;
  known.point_shape = point_shape;
  known.dtype = dtype;
  known.known = true;
}

std::size_t Scope::parameter(const std::string& name, const std::string& who) const {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return i;
  throw misfit(name, who, " takes the parameter '", name, "', which the metadata does not list");
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

Tensor PairInfo::view(const Tensor& tensor) const {
  if (batched) return tensor;
  Dims sizes = tensor.sizes();
  sizes[0] = std::min<std::int64_t>(sizes[0], 1);
  return Tensor(tensor.storage(), tensor.dtype(), sizes, tensor.strides(), tensor.offset());
}

Block PairInfo::block(Tensor tensor, const Chunk& chunk) const {
  return {output, of_parameter ? chunk.values.size() + input : input, &shape, rows(tensor), batched};
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
