// The segments of a model: graphs and nonlinear solves that run in order over a state of named values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/model/package.h"
#include "capi/newton/newton.h"

namespace neml2_capi::model {

// A value between segments. Its shape is what the packages take or return; where the metadata says more, they must
// agree.
struct Value {
  std::string name;
  Dims point_shape;
  DType dtype = DType::float64;
  bool known = false;  // the shape was told by a package, or by the metadata of an implicit segment
};

// The values and promoted parameters that the segments refer to, by position.
class Scope {
 public:
  Scope(const artifact::Metadata& metadata);

  // The position of a value that will be there from now on: an input, or what a segment makes.
  std::size_t provide(const std::string& name);
  // The position of a value that is there. Throws NEML2_ERROR_ARTIFACT where nothing before makes it.
  std::size_t require(const std::string& name, const std::string& who) const;
  // Note the shape of a value. Throws NEML2_ERROR_ARTIFACT where something else was said before.
  void declare(std::size_t value, const Dims& point_shape, DType dtype, const std::string& who);
  // The position of a promoted parameter. Throws NEML2_ERROR_ARTIFACT where there is none.
  std::size_t parameter(const std::string& name, const std::string& who) const;

  // The element type of floating-point values is what the first package takes. The name of the leaf does not tell:
  // neml2-compile 3.1.0 writes float64 packages to a float32 leaf.
  void note_dtype(const Package& package);

  const std::filesystem::path& leaf() const { return leaf_; }
  DType dtype() const { return dtype_; }
  std::vector<Value>& values() { return values_; }
  const std::vector<artifact::Parameter>& parameters() const { return parameters_; }

 private:
  std::filesystem::path leaf_;
  DType dtype_;
  bool dtype_noted_ = false;
  std::vector<Value> values_;
  std::map<std::string, std::size_t> positions_;
  const std::vector<artifact::Parameter>& parameters_;
};

// Material points that are evaluated together.
struct Chunk {
  std::int64_t points = 0;
  std::vector<Tensor> values;      // by position in the scope; one row per point, row-major; empty before it is made
  std::vector<Tensor> parameters;  // one row per point, row-major
  newton::Settings newton;

  // What became of each point so far.
  std::vector<std::int32_t> status;
  std::vector<std::int32_t> iterations;
  std::vector<double> residual_norm;
  std::vector<double> history;  // if kept, of the last implicit segment: (points, newton.miters)
};

class Segment {
 public:
  virtual ~Segment() = default;
  virtual void run(Chunk& chunk) const = 0;

  // The packages, for what they say of batches.
  virtual std::vector<const Package*> packages() const = 0;
  // The parameters that the segment takes as one value for all points of a run.
  virtual std::vector<std::size_t> uniform_parameters() const = 0;
};

std::unique_ptr<Segment> make_segment(const artifact::Segment& segment, Scope& scope);

}  // namespace neml2_capi::model
