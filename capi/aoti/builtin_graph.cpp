#include "capi/aoti/builtin_graph.h"

#include <dlfcn.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

#include "capi/aoti/builtin/container.h"
#include "capi/aoti/constants.h"
#include "capi/aoti/loaded_graph.h"
#include "capi/error.h"

namespace neml2_capi::aoti {
namespace {

using builtin::Argument;
using builtin::Container;
using builtin::OperatorNode;
using builtin::Provider;

// The provider's operators take tensors and numbers, and return tensors.
void check_arguments(const OperatorNode& node) {
  for (const Argument& argument : node.inputs)
    if (argument.kind > Argument::Kind::none)
      throw Error(
          NEML2_ERROR_UNSUPPORTED, "",
          join("the package calls the operator ", node.target, " with the argument ", argument.name, " of the kind ",
               argument.kind_name, ", which the built-in runtime does not know: write the model without it"));
  for (const OperatorNode::Output& output : node.outputs)
    if (!output.is_tensor)
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("the package calls the operator ", node.target,
                       ", which returns something other than tensors: write the model without it"));
}

class BuiltinGraph final : public LoadedGraph {
 public:
  BuiltinGraph(const std::string& package, Signature signature, std::vector<OperatorNode> nodes, builtin::Image& image)
      : LoadedGraph(package, std::move(signature), image), nodes_(std::move(nodes)), compiled_(image, package) {
    require_arity(compiled_.num_inputs(), compiled_.num_outputs());
  }

  Runtime runtime() const override { return Runtime::builtin; }

  std::vector<Constant> constants() const override {
    std::vector<Constant> all;
    for (const builtin::Constant& constant : current_constants()) all.push_back({constant.name, constant.value});
    return all;
  }

  void set_constants(const std::vector<Constant>& values, bool copy) override {
    const std::lock_guard alone(setting_);
    std::vector<builtin::Constant> all = current_constants();
    for (const Constant& value : values) replace(all, value, copy);
    auto container = std::make_shared<const Container>(image(), package(), std::move(all));
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
    container.run(inputs, outputs, context, has_integer_kernels());
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i])
        throw Error(NEML2_ERROR_RUNTIME, package(), join(package(), ": output ", i, " was not returned"));
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

  std::vector<OperatorNode> nodes_;
  const Container compiled_;  // lives as long as the graph: others use what they do not replace of its constants

  std::mutex setting_;  // held by the one who sets constants
  std::atomic<bool> has_replaced_ = false;
  mutable std::mutex mutex_;  // guards what follows
  std::shared_ptr<const Container> replaced_;
};

}  // namespace

void resolve_builtin(const builtin::Object& object, std::vector<OperatorNode>& nodes) {
  const Provider& provider = Provider::get();
  std::set<std::string> missing;
  for (const builtin::Import& import : object.imports)
    if (import.required && !dlsym(provider.library, builtin::provided_name(import.name).c_str()))
      missing.insert(import.name);
  for (OperatorNode& node : nodes) {
    node.function = provider.find_operator(node.target.c_str());
    if (!node.function) missing.insert(node.target);
  }
  if (missing.empty()) {
    for (const OperatorNode& node : nodes) check_arguments(node);
    return;
  }
  std::string list;
  for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("the package calls what the built-in runtime does not have: ", list,
                   ". Run it on libtorch, or write the model without it and compile it again. Operators that may be "
                   "called: ",
                   provider.supported_operators()));
}

std::shared_ptr<Graph> open_builtin(const std::string& package, Signature signature, std::vector<OperatorNode> nodes,
                                    builtin::Image& image) {
  return std::make_shared<BuiltinGraph>(package, std::move(signature), std::move(nodes), image);
}

}  // namespace neml2_capi::aoti
