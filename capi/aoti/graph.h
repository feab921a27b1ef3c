// One AOTInductor package, loaded and ready to run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capi/tensor/handles.h"

namespace neml2_capi::aoti {

// What a package was compiled for, of one input: read from the checks in its source.
struct InputSpec {
  std::string name;
  DType dtype = DType::float64;
  Dims least;     // per axis, the least and
  Dims greatest;  // the greatest size; equal where the axis is fixed
  Dims order;     // the axes from the outermost to the innermost one in memory, where elements lie side by side

  bool is_row_major() const { return std::is_sorted(order.begin(), order.end()); }
};

// The same of an output, as far as the source says it.
struct OutputSpec {
  std::string name;
  std::optional<DType> dtype;
  std::optional<Dims> sizes;  // -1 where one depends on the inputs
};

// How arguments and results are made of tensors: torch's pytree specifications, in JSON; empty where there is none.
struct CallSpec {
  std::string in, out;
};

// What a package calls: the built-in provider, or libtorch. `automatic`: the built-in provider where it has all that the
// package calls, else libtorch.
// `tensors`: libtorch, and a model's own arithmetic by its operators, too; so on every device but the CPU.
enum class Runtime { automatic, builtin, libtorch, tensors };

// What a package is loaded for.
struct Wanted {
  Runtime runtime = Runtime::automatic;
  std::optional<Device> device = std::nullopt;  // empty: that of the package, the first of its type

  Wanted() = default;
  Wanted(Runtime runtime) : runtime(runtime) {}
  Wanted(Runtime runtime, Device device) : runtime(runtime), device(device) {}
};

// The device of a text: "cpu", "cuda", "cuda:1". Throws NEML2_ERROR_UNSUPPORTED.
Device device_named(const std::string& name);

// The matrices of one run that a factorisation found singular: LAPACK's info, per matrix, in the order of the batch.
// Empty where all were regular.
struct SingularInfo : Vector<std::int32_t> {
  using Vector<std::int32_t>::Vector;
  Vector<Tensor> on_device;  // instead of the above, where the processor does not read the device: one per solve
};

// A constant of a graph, by its name in the module that was compiled.
struct Constant {
  const char* name;
  Tensor value;
};

class Graph {
 public:
  // Load a .pt2 file. Throws Error: NEML2_ERROR_FILE, _ARTIFACT, _UNSUPPORTED, with a line for each thing that it found.
  static std::shared_ptr<Graph> load(const std::filesystem::path& path, const Wanted& wanted = {});
  // The same of the content of such a file, which is not needed any more then.
  static std::shared_ptr<Graph> load(std::string_view content, const Wanted& wanted = {});

  // Make all the checks of load() that need no code of the package to be mapped, and throw what they find, a line for
  // each. Returns the runtime that load() would take.
  static Runtime check_file(const std::filesystem::path& path, const Wanted& wanted = {});

  virtual ~Graph() = default;
  virtual Runtime runtime() const = 0;
  virtual Device device() const { return {}; }  // of inputs and outputs
  virtual const std::vector<InputSpec>& inputs() const = 0;
  virtual const std::vector<OutputSpec>& outputs() const = 0;

  // True when the package itself checks its inputs (AOTI_RUNTIME_CHECK_INPUTS was set when it first ran): it then
  // refuses a batch below its least size, which it would run correctly otherwise.
  virtual bool enforces_bounds() const = 0;

  // Throws NEML2_ERROR_SHAPE, _DTYPE, or _UNSUPPORTED for another device, naming the input's position, unless `inputs`
  // fit the specification. A batch
  // below the least size of a dynamic axis is accepted while bounds are not enforced (but for 0).
  virtual void check(const Vector<Tensor>& inputs) const = 0;

  // Run, on any thread. The inputs must lie in memory as specified, and fit: only their number is checked here.
  // The outputs may be views of inputs, overlap, and have any strides. `singular` (or null) receives what the
  // linear solves of the package met. Throws NEML2_ERROR_RUNTIME with the package's reason.
  Vector<Tensor> run(Vector<Tensor> inputs, SingularInfo* singular = nullptr) const;
  // The same by handles: `outputs` has as many as the package returns, all null. The inputs are taken over; after an
  // error some may still be there.
  virtual void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const = 0;

  // What runs use from now on; not to be written. The values are valid until others are set, or the graph ends.
  virtual std::vector<Constant> constants() const = 0;
  // Replace all of these at once, on any thread: a run that has begun keeps the values that it began with. A value is
  // copied, or its memory used where it lies as the package wants it. Throws NEML2_ERROR_NAME, _DTYPE, _SHAPE, and then
  // changes nothing.
  virtual void set_constants(const std::vector<Constant>& values, bool copy) = 0;

  // Of the module that was compiled.
  virtual const CallSpec& call_spec() const = 0;
};

}  // namespace neml2_capi::aoti
