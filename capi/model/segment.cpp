#include "capi/model/segment.h"

#include <memory>
#include <utility>

#include "capi/error.h"
#include "capi/model/graph_call.h"
#include "capi/model/implicit.h"

namespace neml2_capi::model {
namespace {

class ForwardSegment : public Segment {
 public:
  ForwardSegment(const artifact::ForwardSegment& segment, Scope& scope) : value_(segment.value, scope) {}

  void run(Chunk& chunk) const override { value_.run(chunk); }
  std::vector<const Package*> packages() const override { return {&value_.package()}; }
  std::vector<std::size_t> uniform_parameters() const override { return value_.uniform_parameters(); }

 private:
  GraphCall value_;
};

}  // namespace

Scope::Scope(const artifact::Metadata& metadata)
    : leaf_(metadata.leaf), dtype_(metadata.dtype), parameters_(metadata.parameters) {}

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
  for (const Value& value : values_) names += (names.empty() ? "" : ", ") + value.name;
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
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].name == name) return i;
  throw Error(NEML2_ERROR_ARTIFACT, name,
              join(who, " takes the parameter '", name, "', which the metadata does not list."));
}

std::unique_ptr<Segment> make_segment(const artifact::Segment& segment, Scope& scope) {
  if (const auto* implicit = std::get_if<artifact::ImplicitSegment>(&segment))
    return std::make_unique<ImplicitSegment>(*implicit, scope);
  return std::make_unique<ForwardSegment>(std::get<artifact::ForwardSegment>(segment), scope);
}

}  // namespace neml2_capi::model
