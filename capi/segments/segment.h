// Segments of a model: graphs and nonlinear solves that run in order over a state of named values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/artifact/metadata.h"
#include "capi/kernels/folder.h"
#include "capi/newton/newton.h"
#include "capi/segments/block.h"
#include "capi/segments/package.h"
#include "capi/values/non_finite.h"

namespace neml2_capi::model {

// Value between segments. Its shape is what the packages take or return; if the metadata says more, they must
// agree.
struct Value {
  std::string name;
  Dims point_shape;
  DType dtype = DType::float64;
  bool known = false;   // the shape was told by a package, or by the metadata of an implicit segment
  std::string told_by;  // which it was
};

// Values and promoted parameters that the segments refer to, by position.
class Scope {
 public:
  Scope(const artifact::Metadata& metadata, const graph::Wanted& wanted);

  // Returns the position of a value that will be there from now on: an input, or what a segment makes.
  std::size_t provide(const std::string& name);
  // Returns the position of a value that is there. Throws NEML2_ERROR_ARTIFACT if nothing before makes it.
  std::size_t require(const std::string& name, const std::string& who) const;
  // Notes the shape of a value. Throws NEML2_ERROR_ARTIFACT for another one than before.
  void declare(std::size_t value, const Dims& point_shape, DType dtype, const std::string& who);
  // Returns the position of a promoted parameter. Throws NEML2_ERROR_ARTIFACT if there is none.
  std::size_t parameter(const std::string& name, const std::string& who) const;

  // Takes the element type of floating-point values from the first package. The name of the leaf does not tell:
  // neml2-compile 3.1.0 writes float64 packages to a float32 leaf.
  void note_dtype(const Package& package);

  // Loads a package of the artifact, for the runtime that was asked for; or the kernel in its place, if there are
  // no packages.
  Package load(const std::string& package) const;
  std::optional<Package> load_if_named(const std::string& package) const;
  // Does the same for a package that solves linear systems, which no kernel does; `jacobian` makes them, and returns
  // `residuals` right-hand sides.
  std::optional<Package> load_solver(const std::string& package, const std::string& jacobian,
                                     std::size_t residuals) const;
  // Returns the kernels instead of packages; null if there are packages.
  const std::shared_ptr<const kernels::Folder>& kernels() const { return kernels_; }
  bool has_packages() const { return kernels_ == nullptr; }
  DType dtype() const { return dtype_; }
  std::vector<Value>& values() { return values_; }
  const std::vector<Value>& values() const { return values_; }
  const std::vector<artifact::Parameter>& parameters() const { return parameters_; }

 private:
  std::filesystem::path leaf_;
  std::shared_ptr<const kernels::Folder> kernels_;
  graph::Wanted wanted_;
  DType dtype_;
  bool dtype_noted_ = false;
  std::vector<Value> values_;
  std::map<std::string, std::size_t> positions_;
  const std::vector<artifact::Parameter>& parameters_;
};

struct Chunk;
class GraphCall;

// Derivative that a segment can find.
struct PairInfo {
  std::size_t output = 0, input = 0;  // positions among the values; of the input, or among the parameters
  bool of_parameter = false;
  bool batched = true;  // else one row for all points
  Dims point_shape;     // of the block as the package returns it
  BlockShape shape;

  // Returns a package's output as a view: one row per point, or one if all are the same.
  Tensor view(const Tensor& tensor) const;
  // Returns that row-major.
  Tensor rows(const Tensor& tensor) const { return view(tensor).row_major(); }
  // Returns it as a block.
  Block block(Tensor tensor, const Chunk& chunk) const;
};

// Returns the pair whose block is output `slot` of a package.
PairInfo pair_info(const artifact::Pair& pair, const Package& package, std::size_t slot, bool of_parameter,
                   const Scope& scope);

// Returns a pair whose block is a dense matrix.
PairInfo dense_pair(const artifact::Pair& pair, bool of_parameter, const Scope& scope);

// Material points that are evaluated together.
struct Chunk {
  std::int64_t points = 0;
  std::int64_t begin = 0;     // the number of the first one in the evaluation
  Vector<Tensor> values;      // by position in the scope; one row per point, row-major; empty before it is made
  Vector<Tensor> parameters;  // one row per point, row-major
  newton::Settings newton;
  double substep_del_tol = 1e-6;
  Device device;  // of all tensors

  // Derivatives that the segments are to find.
  bool by_values = false, by_parameters = false;

  newton::Reports reports;  // so far
  Vector<Tensor> unknowns;  // if wanted, by position: if points failed, their last iterates
  bool keep_unknowns = false;
  Vector<Tensor> guesses;  // if given, by position: where Newton's method begins, but where they are NaN
  NonFinite non_finite;    // the first of them, once all results are there

  // Lets go of all values, and of what they stand in.
  void release_values() {
    for (auto* tensors : {&values, &parameters, &unknowns, &guesses})
      for (Tensor& tensor : *tensors) tensor.reset();
  }

  // Returns a chunk of some of the points, in this order, with the same settings and parameters, and no values.
  Chunk select(const Vector<std::int64_t>& rows) const;
};

class Segment {
 public:
  virtual ~Segment() = default;

  // Makes the outputs from the inputs. Returns the derivatives that the chunk asks for, as far as they were compiled.
  virtual Vector<Block> run(Chunk& chunk) const = 0;

  // Makes the outputs, and replaces the directions of the inputs by theirs. It may cost less than the blocks do.
  virtual void run_along(Chunk& chunk, Directions& directions) const;

  // Returns the package, if all that the segment does is one run of it, on values and parameters as they are; and
  // the one that gives derivatives with respect to values, too.
  virtual const GraphCall* only_graph() const { return nullptr; }
  virtual const GraphCall* only_jacobian() const { return nullptr; }

  // Tells whether its equations have a value in them: where iterations begin, or what the parts of an increment go
  // through, changes no solution.
  virtual bool depends_on(std::size_t value) const = 0;
  // Returns the values that it makes.
  virtual const std::vector<std::size_t>& outputs() const = 0;
  // Returns the derivatives that it can find.
  virtual std::vector<const PairInfo*> pairs() const = 0;
  // Returns the packages, for what they say of batches.
  virtual std::vector<const Package*> packages() const = 0;
  // Returns the most bytes that one of the packages that make the outputs reads and writes for each point.
  virtual std::int64_t bytes_per_point() const = 0;
  // Returns the parameters that the segment takes as one value for all points of a run.
  virtual std::vector<std::size_t> uniform_parameters() const = 0;
};

std::unique_ptr<Segment> make_segment(const artifact::Segment& segment, Scope& scope);

}  // namespace neml2_capi::model
