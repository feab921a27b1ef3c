#include "capi/packages/builtin_graph.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "capi/base/error.h"
#include "capi/graph/dense.h"
#include "capi/loader/container.h"
#include "capi/loader/loaded_graph.h"
#include "capi/packages/registered_operators.h"
#include "capi/packages/solve_package.h"

namespace neml2_capi::aoti {
namespace {

// Returns the position of each symbol's size among the sizes of a run.
SizeExpression::Symbols positions(const Signature& signature) {
  SizeExpression::Symbols found;
  for (const auto& [name, axis] : signature.symbols) found.emplace(name, found.size());
  return found;
}

// Throws unless a node fits the provider's operators, which take tensors and numbers, and return tensors.
void check_arguments(const OperatorNode& node) {
  if (node.registered) return;  // it was checked against its schema
  for (const Argument& argument : node.inputs)
    if (argument.kind > Argument::Kind::none)
      throw Error(
          NEML2_ERROR_UNSUPPORTED, "",
          join("The package calls the operator ", node.target, " with the argument ", argument.name, " of the kind ",
               argument.kind_name, ", which the built-in runtime does not know. Write the model without it."));
  for (const OperatorNode::Output& output : node.outputs)
    if (!output.is_tensor)
      throw Error(NEML2_ERROR_UNSUPPORTED, "",
                  join("The package calls the operator ", node.target,
                       ", which returns something other than tensors. Write the model without it."));
}

// Handles of the provider: pointers to tensors.
class BuiltinHandling final : public Handling {
 public:
  Tensor tensor_of(void* handle) const override { return *static_cast<Tensor*>(handle); }

  // The lent handle has a storage of its own, whose count tells whether the package forgot its handle: see destroy().
  void* lend(const Tensor& tensor) const override {
    const auto give_back = [](void* storage) { delete static_cast<Storage*>(storage); };
    auto own = std::make_unique<Storage>(tensor.storage());
    Storage counted = Storage::wrap(tensor.data(), tensor.numel() * tensor.itemsize(), give_back, own.get());
    own.release();
    return new Tensor(std::move(counted), tensor.dtype(), tensor.sizes(), tensor.strides());
  }

  void take_back(void* lent) const noexcept override { delete static_cast<Tensor*>(lent); }

  // Code of torch 2.13 forgets its handles, which then are second users of the memory.
  void destroy(const std::function<void()>& destroy, std::vector<void*> handles,
               const std::vector<void*>& lent) const override {
    destroy();
    for (std::size_t i = 0; i < handles.size(); ++i)
      if (handles[i] && !static_cast<Tensor*>(lent[i])->storage().is_unique()) delete static_cast<Tensor*>(handles[i]);
  }

  std::string reason(void*) const override {
    const char* words = Provider::get().last_error();
    if (std::string_view(words) == lack_of_memory) throw std::bad_alloc();
    return words;
  }
};

const BuiltinHandling builtin_handling;

// Scope of a run whose tensors only this thread can reach: any but the first, which may make constants for later ones.
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

bool have_equal_values(const Tensor& a, const Tensor& b) {
  const Tensor first = a.row_major(), second = b.row_major();
  return first.sizes() == second.sizes() && first.dtype() == second.dtype() &&
         std::memcmp(first.data(), second.data(), static_cast<std::size_t>(first.numel() * first.itemsize())) == 0;
}

class BuiltinGraph final : public LoadedGraph {
 public:
  BuiltinGraph(const std::string& package, Signature signature, std::vector<OperatorNode> nodes, Image& image)
      : LoadedGraph(package, std::move(signature), image, builtin_handling),
        nodes_(std::move(nodes)),
        calls_registered_(
            std::any_of(nodes_.begin(), nodes_.end(), [](const OperatorNode& node) { return node.registered; })) {
    if (may_only_solve(this->signature(), nodes_)) solves_ = solves_samples();
  }

  Runtime runtime() const override { return Runtime::builtin; }

  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    require_count(inputs.size());
    SingularInfo own;
    SingularInfo& found = singular ? *singular : own;
    found = {};
    RunContext context;
    context.nodes = &nodes_;
    context.singular = &found;
    if (solves_)
      run_solve(inputs, outputs, found);
    else if (calls_registered_)
      run_registered(inputs, outputs, context);
    else
      run_container(inputs, outputs, context);
    if (!own.empty()) throw_singular(own);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (!outputs[i])
        throw Error(NEML2_ERROR_RUNTIME, package(),
                    join(package(), ": The package did not return output ", i, ". Compile the model again."));
  }

 private:
  bool solves_samples() const {
    const Vector<Tensor> samples = sample_systems(inputs());
    SingularInfo singular;
    const Vector<Tensor> by_package = Graph::run(samples, &singular);
    const Tensor solved = graph::solve_linear(samples[0], samples[1], &singular);
    return singular.empty() && have_equal_values(by_package.front(), solved);
  }

  // Throws for a caller who does not ask which matrices are singular.
  [[noreturn]] void throw_singular(const SingularInfo& info) const {
    const auto first = std::find_if(info.begin(), info.end(), [](std::int32_t i) { return i != 0; });
    throw Error(NEML2_ERROR_RUNTIME, package(),
                join(package(), ": The package failed: matrix ", first - info.begin() + 1, " of ", info.size(),
                     " is singular."),
                NEML2_CAUSE_MATRIX_SINGULAR);
  }

  void run_solve(Handles& inputs, Handles& outputs, SingularInfo& singular) const {
    const ConfinedRun confined(true);
    try {
      outputs[0] = new Tensor(graph::solve_linear(*inputs[0], *inputs[1], &singular));
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      throw Error(NEML2_ERROR_RUNTIME, package(), join(package(), ": The package failed: ", error.what(), "."));
    }
  }

  void run_container(Handles& inputs, Handles& outputs, RunContext& context) const {
    const auto container = in_use();
    const ConfinedRun confined(container->has_run());
    container->run(reinterpret_cast<void**>(inputs.data()), inputs.size(), reinterpret_cast<void**>(outputs.data()),
                   outputs.size(), &context, signature().has_integer_kernels);
  }

  // Throws the error of a user's function, rather than the package's words about it.
  void run_registered(Handles& inputs, Handles& outputs, RunContext& context) const {
    Vector<std::int64_t> sizes;
    for (const auto& [name, axis] : signature().symbols)
      sizes.push_back(inputs[static_cast<std::size_t>(axis.input)]->sizes()[axis.axis]);
    context.sizes = sizes.data();
    try {
      run_container(inputs, outputs, context);
    } catch (const Error&) {
      if (!context.failure) throw;
    }
    if (!context.failure) return;
    try {
      std::rethrow_exception(context.failure);
    } catch (const Error& error) {
      throw Error(error.status(), error.subject(), join(package(), ": ", error.what()), error.cause());
    }
  }

  std::vector<OperatorNode> nodes_;
  bool calls_registered_;
  bool solves_ = false;  // true if it only solves a linear system
};

}  // namespace

void resolve_builtin(const Object& object, const Signature& signature, std::vector<OperatorNode>& nodes) {
  const Provider& provider = Provider::get();
  std::set<std::string> missing;
  for (const Import& import : object.imports)
    if (import.required && provider.address_of(import.name) == 0) missing.insert(import.name);
  bool lacks_operators = false;
  for (OperatorNode& node : nodes) {
    node.function = provider.find_operator(node.target.c_str());
    if (node.function || bind_registered(node, positions(signature))) continue;
    missing.insert(node.target);
    lacks_operators = true;
  }
  if (missing.empty()) {
    for (const OperatorNode& node : nodes) check_arguments(node);
    return;
  }
  std::string list;
  for (const std::string& name : missing) add_name(list, name);
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package calls what the built-in runtime does not have: ", list, ". Run it on libtorch, ",
                   lacks_operators ? "or register a function for the operator (neml2_operator_register) before it is "
                                     "loaded, "
                                   : "",
                   "or write the model without it and compile it again. The built-in runtime has the operators ",
                   provider.supported_operators(), "."));
}

std::shared_ptr<Graph> open_builtin(const std::string& package, Signature signature, std::vector<OperatorNode> nodes,
                                    Image& image) {
  return std::make_shared<BuiltinGraph>(package, std::move(signature), std::move(nodes), image);
}

}  // namespace neml2_capi::aoti
