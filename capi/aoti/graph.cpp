// A package on the built-in provider: everything is checked at load, and what remains for a run is one call.
#include "capi/aoti/graph.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "capi/aoti/builtin/elf.h"
#include "capi/aoti/builtin/image.h"
#include "capi/aoti/builtin/isa.h"
#include "capi/aoti/builtin/provider.h"
#include "capi/aoti/extern_nodes.h"
#include "capi/aoti/source.h"
#include "capi/artifact/archive.h"
#include "capi/error.h"

namespace neml2_capi::aoti {
namespace {

using builtin::EntryPoints;
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

// Keeps a package's parallel regions on the calling thread: the host decides about threads. OpenMP has this setting per
// thread.
class SerialRegions {
 public:
  explicit SerialRegions(const EntryPoints& entry) : entry_(entry) {
    if (!entry_.set_openmp_levels) return;
    levels_ = entry_.openmp_levels();
    entry_.set_openmp_levels(0);
  }
  ~SerialRegions() {
    if (entry_.set_openmp_levels) entry_.set_openmp_levels(levels_);
  }
  SerialRegions(const SerialRegions&) = delete;
  SerialRegions& operator=(const SerialRegions&) = delete;

 private:
  const EntryPoints& entry_;
  int levels_ = 0;
};

// Why the package failed. What the provider says comes first, since a package only knows that a call failed.
[[noreturn]] void report_failure(const EntryPoints& entry, const std::string& package, std::string reason) {
  if (reason.empty()) reason = Provider::get().last_error();
  const char* own = nullptr;
  if (reason.empty() && entry.last_error && entry.last_error(&own) == 0 && own) reason = own;
  if (reason.empty()) reason = "no reason was given";
  throw Error(NEML2_ERROR_RUNTIME, package, join(package, ": the compiled package failed: ", reason));
}

// What a package makes after its first run, which may make constants for all later ones, only this thread can reach.
class ConfinedRun {
 public:
  explicit ConfinedRun(bool confined) {
    if (memory::thread_cache) memory::thread_cache->in_confined_run = confined;
  }
  ~ConfinedRun() {
    if (memory::thread_cache) memory::thread_cache->in_confined_run = false;
  }
  ConfinedRun(const ConfinedRun&) = delete;
  ConfinedRun& operator=(const ConfinedRun&) = delete;
};

// Call into the package. Its C functions return a status, but some throw all the same.
template <class Call>
void call_package(const EntryPoints& entry, const std::string& package, Call&& call) {
  try {
    if (call() == 0) return;
  } catch (const std::exception& error) {
    report_failure(entry, package, error.what());
  } catch (...) {
  }
  report_failure(entry, package, "");
}

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
      : package_(std::move(package)), signature_(std::move(signature)), nodes_(std::move(nodes)), image_(image) {
    call_package(entry(), package_, [&] { return entry().create(&container_, 1, "cpu", nullptr); });
    try {
      require_arity();
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~BuiltinGraph() override { destroy(); }

  const std::vector<InputSpec>& inputs() const override { return signature_.inputs; }
  std::int64_t num_outputs() const override { return signature_.num_outputs; }
  bool enforces_bounds() const override { return image_.checks_inputs(); }

  void check(const Vector<Tensor>& inputs) const override {
    require_count(inputs.size());
    const bool exact = enforces_bounds();
    for (std::size_t i = 0; i < inputs.size(); ++i) check_input(i, inputs[i], exact);
    for (const std::vector<Axis>& group : signature_.equal_axes) check_equal(inputs, group);
  }

  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    require_count(inputs.size());
    if (singular) singular->clear();
    builtin::RunContext context;
    context.nodes = &nodes_;
    context.singular = singular;
    run_container(inputs, outputs, context);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i]) throw Error(NEML2_ERROR_RUNTIME, package_, join(package_, ": output ", i, " was not returned"));
  }

 private:
  const EntryPoints& entry() const { return image_.entry(); }

  void destroy() noexcept {
    try {
      entry().destroy(container_);
    } catch (...) {  // nothing more can be done for it
    }
  }

  void require_arity() const {
    std::size_t ninputs = 0, noutputs = 0;
    call_package(entry(), package_, [&] { return entry().num_inputs(container_, &ninputs); });
    call_package(entry(), package_, [&] { return entry().num_outputs(container_, &noutputs); });
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

  // The first run folds constants into the container: it is alone. Later ones only read, but for integer kernels.
  void run_container(Handles& inputs, Handles& outputs, builtin::RunContext& context) const {
    std::unique_lock alone(image_.alone(), std::defer_lock);
    const bool has_run = has_run_.load(std::memory_order_acquire);
    if (signature_.has_integer_kernels || !has_run) alone.lock();
    image_.note_run();
    const SerialRegions serial(entry());
    const ConfinedRun confined(has_run);
    call_package(entry(), package_, [&] {
      return entry().run(container_, inputs.data(), inputs.size(), outputs.data(), outputs.size(), nullptr, &context);
    });
    if (alone) has_run_.store(true, std::memory_order_release);
  }

  std::string package_;
  Signature signature_;
  std::vector<builtin::OperatorNode> nodes_;
  Image& image_;
  EntryPoints::Container container_ = nullptr;
  mutable std::atomic<bool> has_run_ = false;
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

std::shared_ptr<const Graph> load_builtin(const std::filesystem::path& path, const std::string& package) {
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

void Graph::check_file(const std::filesystem::path& path) { naming_package(path, read_checked); }

std::shared_ptr<const Graph> Graph::load(const std::filesystem::path& path) {
  return naming_package(path, load_builtin);
}

}  // namespace neml2_capi::aoti
