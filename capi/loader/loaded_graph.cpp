#include "capi/loader/loaded_graph.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/loader/constants.h"

namespace neml2_capi::aoti {
namespace {

// Returns the sizes of an input: "(2..1048576, 6)".
std::string describe(const InputSpec& spec) {
  std::string text = "(";
  for (std::int64_t axis = 0; axis < spec.least.size(); ++axis) {
    const std::int64_t least = spec.least[axis], greatest = spec.greatest[axis];
    text += axis ? ", " : "";
    text += least == greatest ? std::to_string(least) : join(least, "..", greatest);
  }
  return text + (spec.least.size() == 1 ? ",)" : ")");
}

}  // namespace

LoadedGraph::LoadedGraph(std::string package, Signature signature, Image& image, const Handling& handling,
                         Device device, const char* kernels)
    : package_(std::move(package)),
      signature_(std::move(signature)),
      image_(image),
      handling_(handling),
      device_(device),
      compiled_(image, handling, package_, device, kernels) {
  const std::size_t num_inputs = compiled_.num_inputs(), num_outputs = compiled_.num_outputs();
  if (num_inputs == signature_.inputs.size() && num_outputs == signature_.outputs.size()) return;
  throw Error(NEML2_ERROR_ARTIFACT, package_,
              join(package_, ": The code in the package has ", num_inputs, " inputs and ", num_outputs,
                   " outputs, its source has ", signature_.inputs.size(), " and ", signature_.outputs.size(),
                   ". Compile the model again."));
}

std::shared_ptr<const Container> LoadedGraph::in_use() const {
  if (has_replaced_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    return replaced_;
  }
  return std::shared_ptr<const Container>(std::shared_ptr<void>(), &compiled_);  // not counted
}

void LoadedGraph::require_host() const {
  if (device_.type != Device::Type::cpu)
    throw Error(NEML2_ERROR_UNSUPPORTED, "constants",
                join(package_, ": The constants of a graph on ", device_.str(),
                     " can be neither read nor replaced. Load the package for the CPU."));
}

std::vector<Constant> LoadedGraph::constants() const {
  require_host();
  std::vector<Constant> all;
  for (const PackagedConstant& constant : in_use()->constants()) all.push_back({constant.name, constant.value});
  return all;
}

void LoadedGraph::set_constants(const std::vector<Constant>& values, bool copy) {
  require_host();
  const std::lock_guard alone(setting_);
  std::vector<PackagedConstant> all = in_use()->constants();
  for (const Constant& value : values) replace(all, value, copy);
  auto container = std::make_shared<const Container>(image_, handling_, package_, std::move(all));
  std::shared_ptr<const Container> before;  // goes after the lock: it may free tensors of the host
  const std::lock_guard lock(mutex_);
  before = std::exchange(replaced_, std::move(container));
  has_replaced_.store(true, std::memory_order_release);
}

void LoadedGraph::require_count(std::size_t count) const {
  if (count == signature_.inputs.size()) return;
  throw Error(
      NEML2_ERROR_ARGUMENT, package_,
      join(package_, " takes ", signature_.inputs.size(), " inputs, and was given ", count, ". Pass all of them."));
}

std::string LoadedGraph::labelled(std::int64_t input) const {
  return join(input, " ('", signature_.inputs[static_cast<std::size_t>(input)].name, "')");
}

void LoadedGraph::check(const Vector<Tensor>& inputs) const {
  require_count(inputs.size());
  const bool exact = enforces_bounds();
  for (std::int64_t i = 0; i < std::ssize(inputs); ++i) check_input(i, inputs[static_cast<std::size_t>(i)], exact);
  for (const std::vector<Axis>& group : signature_.equal_axes) check_equal(inputs, group);
}

void LoadedGraph::check_input(std::int64_t i, const Tensor& input, bool exact) const {
  const InputSpec& spec = signature_.inputs[static_cast<std::size_t>(i)];
  if (input.dtype() != spec.dtype)
    throw Error(NEML2_ERROR_DTYPE, package_,
                join("Input ", labelled(i), " of ", package_, " must be ", name_of(spec.dtype), ", and is ",
                     name_of(input.dtype()), ". Convert it first."));
  if (input.data() && input.device() != device_)
    throw Error(NEML2_ERROR_UNSUPPORTED, package_,
                join("Input ", labelled(i), " of ", package_, " must be on ", device_.str(), ", and is on ",
                     input.device().str(), ". Move it there first."));
  bool fits = input.ndim() == spec.least.size();
  for (std::int64_t axis = 0; fits && axis < input.ndim(); ++axis) {
    const bool is_dynamic = spec.least[axis] != spec.greatest[axis];
    // Kernels run a batch of one as any other. They state 2 because of the way torch traces.
    const std::int64_t least = is_dynamic && !exact ? std::min<std::int64_t>(spec.least[axis], 1) : spec.least[axis];
    fits = least <= input.sizes()[axis] && input.sizes()[axis] <= spec.greatest[axis];
  }
  if (fits) return;
  throw Error(NEML2_ERROR_SHAPE, package_,
              join("Input ", labelled(i), " of ", package_, " must have the sizes ", describe(spec), ", and has ",
                   input.sizes().str(), ". Reshape it, or compile the model for these sizes."));
}

void LoadedGraph::check_equal(const Vector<Tensor>& inputs, const std::vector<Axis>& group) const {
  const auto size_of = [&](const Axis& at) { return inputs[static_cast<std::size_t>(at.input)].sizes()[at.axis]; };
  for (const Axis& other : group) {
    if (size_of(other) == size_of(group.front())) continue;
    throw Error(NEML2_ERROR_SHAPE, package_,
                join("Axis ", other.axis, " of input ", labelled(other.input), " of ", package_,
                     " must have the size of axis ", group.front().axis, " of input ", labelled(group.front().input),
                     ", ", size_of(group.front()), ", and has ", size_of(other), ". Give both the same size."));
  }
}

}  // namespace neml2_capi::aoti
