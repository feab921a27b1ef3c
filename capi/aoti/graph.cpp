// A package on the built-in provider: everything is checked at load, and what remains for a run is one call.
#include "capi/aoti/graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "capi/aoti/builtin/container.h"
#include "capi/aoti/builtin/elf.h"
#include "capi/aoti/builtin/image.h"
#include "capi/aoti/builtin/isa.h"
#include "capi/aoti/builtin/provider.h"
#include "capi/aoti/constants.h"
#include "capi/aoti/extern_nodes.h"
#include "capi/aoti/source.h"
#include "capi/artifact/archive.h"
#include "capi/error.h"

namespace neml2_capi::aoti {
namespace {

using builtin::Container;
using builtin::Image;
using builtin::Provider;

// ---- Loading
// ---------------------------------------------------------------------------------------------------------

std::string_view entry_of(const artifact::Archive& archive, std::string_view suffix) {
  const auto entry = archive.find(suffix);
  if (!entry)
    throw Error(NEML2_ERROR_ARTIFACT, "",
                join("the archive has no entry *", suffix,
                     ". It should be a .pt2 package as neml2-compile writes it, with its source."));
  return *entry;
}

builtin::Target read_target(std::string_view text) {
  try {
    const auto metadata = nlohmann::json::parse(text);
    builtin::Target target;
    target.device = metadata.at("AOTI_DEVICE_KEY").get<std::string>();
    target.machine = metadata.at("AOTI_MACHINE").get<std::string>();
    target.instruction_sets = metadata.at("AOTI_CPU_ISA").get<std::string>();
    return target;
  } catch (const nlohmann::json::exception& error) {
    throw Error(NEML2_ERROR_ARTIFACT, "", join("the metadata in the package is malformed: ", error.what()));
  }
}

// What is wrong with a package, all of it: a check that fails keeps no other from being made.
class Findings {
 public:
  explicit Findings(std::string package) : package_(std::move(package)) {}

  template <class Check>
  void collect(Check&& check) {
    try {
      check();
    } catch (const Error& error) {
      add(error.status(), error.what());
    } catch (const std::length_error& error) {
      add(NEML2_ERROR_UNSUPPORTED, error.what());
    }
  }
  bool empty() const { return text_.empty(); }

  // One error of the first status, with a line for each.
  void raise_if_any() const {
    if (!empty()) throw Error(status_, package_, text_);
  }

 private:
  void add(std::int32_t status, const char* what) {
    if (empty()) status_ = status;
    text_ += join(empty() ? "" : "\n", package_, ": ", what);
  }

  std::string package_;
  std::string text_;
  std::int32_t status_ = NEML2_OK;
};

// Give every node its function, and name all that the provider lacks at once.
void resolve(const builtin::Object& object, std::vector<builtin::OperatorNode>& nodes) {
  const Provider& provider = Provider::get();
  std::set<std::string> missing;
  for (const builtin::Import& import : object.imports)
    if (import.required && !dlsym(provider.library, builtin::provided_name(import.name).c_str()))
      missing.insert(import.name);
  for (builtin::OperatorNode& node : nodes) {
    node.function = provider.find_operator(node.target.c_str());
    if (!node.function) missing.insert(node.target);
  }
  if (missing.empty()) return;
  std::string list;
  for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("the package calls what the built-in runtime does not have: ", list,
                   ". There is no other runtime in this version: write the model without it, and compile it again. "
                   "Operators that may be called: ",
                   provider.supported_operators()));
}

// ---- Running
// ---------------------------------------------------------------------------------------------------------

// "(2..1048576, 6)"
std::string describe(const InputSpec& spec) {
  std::string text = "(";
  for (std::int64_t axis = 0; axis < spec.least.size(); ++axis) {
    const std::int64_t least = spec.least[axis], greatest = spec.greatest[axis];
    text += axis ? ", " : "";
    text += least == greatest ? std::to_string(least) : join(least, "..", greatest);
  }
  return text + (spec.least.size() == 1 ? ",)" : ")");
}

class BuiltinGraph final : public Graph {
 public:
  BuiltinGraph(std::string package, Signature signature, std::vector<builtin::OperatorNode> nodes, Image& image)
      : package_(std::move(package)),
        signature_(std::move(signature)),
        nodes_(std::move(nodes)),
        image_(image),
        compiled_(image_, package_) {
    require_arity();
  }

  const std::vector<InputSpec>& inputs() const override { return signature_.inputs; }
  std::int64_t num_outputs() const override { return signature_.num_outputs; }
  bool enforces_bounds() const override { return image_.checks_inputs(); }

  void check(const Vector<Tensor>& inputs) const override {
    require_count(inputs.size());
    const bool exact = enforces_bounds();
    for (std::size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i], exact);
    for (const std::vector<Axis>& group : signature_.equal_axes) check_equal(inputs, group);
  }

  std::vector<Constant> constants() const override {
    std::vector<Constant> all;
    for (const builtin::Constant& constant : current_constants()) all.push_back({constant.name, constant.value});
    return all;
  }

  void set_constants(const std::vector<Constant>& values, bool copy) override {
    const std::lock_guard alone(setting_);
    std::vector<builtin::Constant> all = current_constants();
    for (const Constant& value : values) replace(all, value, copy);
    auto container = std::make_shared<const Container>(image_, package_, std::move(all));
    const std::lock_guard lock(mutex_);
    replaced_ = std::move(container);
    has_replaced_.store(true, std::memory_order_release);
  }

  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    require_count(inputs.size());
    if (singular) singular->clear();
    builtin::RunContext context;
    context.nodes = &nodes_;
    context.singular = singular;
    const std::shared_ptr<const Container> replaced = replaced_container();
    const Container& container = replaced ? *replaced : compiled_;
    // Integer kernels cannot run beside one another.
    container.run(inputs, outputs, context, signature_.has_integer_kernels);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i]) throw Error(NEML2_ERROR_RUNTIME, package_, join(package_, ": output ", i, " was not returned"));
  }

 private:
  std::vector<builtin::Constant> current_constants() const {
    const auto replaced = replaced_container();
    return replaced ? replaced->constants() : compiled_.constants();
  }

  // Null while nobody has replaced a constant. What runs keeps its container.
  std::shared_ptr<const Container> replaced_container() const {
    if (!has_replaced_.load(std::memory_order_acquire)) return nullptr;
    const std::lock_guard lock(mutex_);
    return replaced_;
  }

  void require_arity() const {
    const std::size_t ninputs = compiled_.num_inputs(), noutputs = compiled_.num_outputs();
    if (ninputs == signature_.inputs.size() && noutputs == static_cast<std::size_t>(signature_.num_outputs)) return;
    throw Error(
        NEML2_ERROR_ARTIFACT, package_,
        join(package_, ": the code in the package has ", ninputs, " inputs and ", noutputs, " outputs, its source has ",
             signature_.inputs.size(), " and ", signature_.num_outputs, ": compile the model again"));
  }

  void require_count(std::size_t count) const {
    if (count == signature_.inputs.size()) return;
    throw Error(NEML2_ERROR_ARGUMENT, package_,
                join(package_, " takes ", signature_.inputs.size(), " inputs, and was given ", count));
  }

  void check_input(std::size_t i, const Tensor& input, bool exact) const {
    const InputSpec& spec = signature_.inputs[i];
    if (input.dtype() != spec.dtype)
      throw Error(
          NEML2_ERROR_DTYPE, package_,
          join("input ", i, " of ", package_, " must be ", name_of(spec.dtype), ", and is ", name_of(input.dtype())));
    bool fits = input.ndim() == spec.least.size();
    for (std::int64_t axis = 0; fits && axis < input.ndim(); ++axis) {
      const bool is_dynamic = spec.least[axis] != spec.greatest[axis];
      // Kernels run a batch of one as any other; that they state 2 comes from how torch traces.
      const std::int64_t least = is_dynamic && !exact ? std::min<std::int64_t>(spec.least[axis], 1) : spec.least[axis];
      fits = least <= input.sizes()[axis] && input.sizes()[axis] <= spec.greatest[axis];
    }
    if (fits) return;
    throw Error(NEML2_ERROR_SHAPE, package_,
                join("input ", i, " of ", package_, " must have the sizes ", describe(spec), ", and has ",
                     input.sizes().str()));
  }

  void check_equal(const Vector<Tensor>& inputs, const std::vector<Axis>& group) const {
    const auto size_of = [&](const Axis& at) { return inputs[static_cast<std::size_t>(at.input)].sizes()[at.axis]; };
    for (const Axis& other : group) {
      if (size_of(other) == size_of(group.front())) continue;
      throw Error(NEML2_ERROR_SHAPE, package_,
                  join("axis ", other.axis, " of input ", other.input, " of ", package_, " must have the size of axis ",
                       group.front().axis, " of input ", group.front().input, ", ", size_of(group.front()),
                       ", and has ", size_of(other)));
    }
  }

  std::string package_;
  Signature signature_;
  std::vector<builtin::OperatorNode> nodes_;
  Image& image_;
  const Container compiled_;  // lives as long as the graph: others use what they do not replace of its constants

  std::mutex setting_;  // held by the one who sets constants
  std::atomic<bool> has_replaced_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Container> replaced_;
};

// What an archive holds, found fit to run here.
struct Contents {
  Signature signature;
  std::vector<builtin::OperatorNode> nodes;
  builtin::Object object;
};

// All that can be known without mapping the code.
Contents read_checked(const std::filesystem::path& path, const std::string& package) {
  const artifact::Archive archive(path);
  Contents contents;
  builtin::Target target;
  Findings findings(package);
  findings.collect([&] { target = read_target(entry_of(archive, ".wrapper_metadata.json")); });
  findings.raise_if_any();
  // A package for another device or machine may have no code, and nothing else to check.
  findings.collect([&] { builtin::check_machine(target); });
  findings.raise_if_any();
  findings.collect([&] {
    const std::string_view source = entry_of(archive, ".wrapper.cpp");
    contents.signature = read_signature(source);
    if (const auto json = archive.find(".wrapper.json")) contents.nodes = parse_extern_nodes(*json, source);
  });
  findings.collect(
      [&] { contents.object = builtin::bind_to_provider(entry_of(archive, ".wrapper.so"), builtin::provider_file); });
  findings.collect([&] { builtin::check_processor(target, contents.object.producers); });
  findings.collect([&] { builtin::check_c_library(contents.object.versions); });
  findings.collect([&] { resolve(contents.object, contents.nodes); });
  findings.raise_if_any();
  return contents;
}

std::shared_ptr<Graph> load_builtin(const std::filesystem::path& path, const std::string& package) {
  Contents contents = read_checked(path, package);
  Image& image = Image::map(path.stem().string(), contents.object.bytes, contents.object.openmp);
  return std::make_shared<BuiltinGraph>(package, std::move(contents.signature), std::move(contents.nodes), image);
}

// Every error tells the package.
template <class Read>
auto naming_package(const std::filesystem::path& path, Read&& read) {
  const std::string package = path.filename().string();
  try {
    return read(path, package);
  } catch (const Error& error) {
    if (!error.subject().empty()) throw;
    throw Error(error.status(), package, join(package, ": ", error.what()));
  } catch (const std::length_error& error) {
    throw Error(NEML2_ERROR_UNSUPPORTED, package, join(package, ": ", error.what()));
  }
}

}  // namespace

Vector<Tensor> Graph::run(Vector<Tensor> inputs, SingularInfo* singular) const {
  Handles given(std::move(inputs)), returned(static_cast<std::size_t>(num_outputs()));
  run(given, returned, singular);
  return returned.take();
}

std::vector<Constant> Graph::constants() const { return {}; }

void Graph::set_constants(const std::vector<Constant>&, bool) {
  throw Error(NEML2_ERROR_UNSUPPORTED, "constants", "The constants of this graph cannot be replaced.");
}

void Graph::check_file(const std::filesystem::path& path) { naming_package(path, read_checked); }

std::shared_ptr<Graph> Graph::load(const std::filesystem::path& path) { return naming_package(path, load_builtin); }

}  // namespace neml2_capi::aoti
