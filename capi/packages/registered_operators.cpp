#include "capi/packages/registered_operators.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/loader/image.h"
#include "capi/tensor/layout.h"
#include "neml2_capi_experimental.h"

namespace neml2_capi::aoti {
class RegisteredOperator {
 public:
  RegisteredOperator(OperatorSchema schema, graph::OperatorFunction function)
      : schema_(std::move(schema)), name_(schema_.full_name()), function_(std::move(function)) {}

  const OperatorSchema& schema() const { return schema_; }
  const std::string& name() const { return name_; }

  // Throws NEML2_ERROR_UNSUPPORTED for an operator that was unregistered.
  void call(graph::OperatorCall& call) {
    const Running running(*this);
    if (retired_.load())
      throw Error(NEML2_ERROR_UNSUPPORTED, name_,
                  join("The operator ", name_,
                       " was unregistered after the package was loaded. Register it, and load the package again."));
    function_(call);
  }

  void retire() {
    for (const Running* running = innermost; running; running = running->outer)
      if (&running->registered == this)
        throw Error(NEML2_ERROR_ARGUMENT, name_,
                    join("The operator ", name_,
                         " cannot be unregistered by its own function, which is running. Unregister it afterwards."));
    retired_.store(true);
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return running_.load() == 0; });
  }

  // Counts the calls on this thread alone: the child of a fork has no others.
  void forget_others() {
    std::int64_t own = 0;
    for (const Running* running = innermost; running; running = running->outer) own += &running->registered == this;
    running_.store(own);
  }

 private:
  // Call that is under way on this thread, with the calls around it.
  struct Running {
    explicit Running(RegisteredOperator& of) : registered(of), outer(innermost) {
      innermost = this;
      registered.running_.fetch_add(1);
    }
    ~Running() {
      innermost = outer;
      registered.running_.fetch_sub(1);
      if (!registered.retired_.load()) return;
      const std::lock_guard lock(registered.mutex_);
      registered.ended_.notify_all();
    }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    RegisteredOperator& registered;
    const Running* outer;
  };
  static thread_local const Running* innermost;

  OperatorSchema schema_;
  std::string name_;
  graph::OperatorFunction function_;
  std::atomic<bool> retired_ = false;
  std::atomic<std::int64_t> running_ = 0;
  locks::Mutex mutex_;  // of those that wait for the end of the calls
  locks::Condition ended_;
};

thread_local const RegisteredOperator::Running* RegisteredOperator::innermost = nullptr;

RegisteredCall::RegisteredCall(std::shared_ptr<RegisteredOperator> registered, const OperatorNode& node,
                               const SizeExpression::Symbols& symbols)
    : operator_(std::move(registered)),
      arguments_(bind_arguments(
          node, operator_->schema(),
          "does not fit the schema that was registered. Register the one that the model was exported with.")) {
  const auto read = [&](const std::vector<std::string>& texts) {
    std::vector<SizeExpression> expressions;
    for (const std::string& text : texts) expressions.emplace_back(text, symbols);
    return expressions;
  };
  for (const OperatorNode::Output& output : node.outputs)
    expected_.push_back({output.dtype, read(output.sizes), read(output.strides), output.has_layout});
}

const std::string& RegisteredCall::name() const { return operator_->name(); }

void RegisteredCall::check(std::int64_t i, const Tensor& value, const std::int64_t* sizes) const {
  const Expected& expected = expected_[static_cast<std::size_t>(i)];
  if (expected.dtype && value.dtype() != *expected.dtype)
    throw Error(NEML2_ERROR_DTYPE, name(),
                join("Output ", i, " of the operator ", name(), " must be ", name_of(*expected.dtype), ", and is ",
                     name_of(value.dtype()), ". Convert it in the function."));
  if (!expected.has_layout) return;
  bool fits = value.ndim() == std::ssize(expected.sizes);
  std::string wanted;
  for (std::int64_t axis = 0; axis < std::ssize(expected.sizes); ++axis) {
    const SizeExpression& size = expected.sizes[static_cast<std::size_t>(axis)];
    wanted += axis ? ", " : "";
    wanted += size.is_known() ? std::to_string(size.evaluate(sizes)) : "any";
    fits = fits && (!size.is_known() || size.evaluate(sizes) == value.sizes()[axis]);
  }
  if (!fits)
    throw Error(NEML2_ERROR_SHAPE, name(),
                join("Output ", i, " of the operator ", name(), " must have the shape (", wanted,
                     expected.sizes.size() == 1 ? ",)" : ")", ", and has ", value.sizes().str(),
                     ". Return it as the operator's fake implementation does."));
}

// Returns the value in memory that nobody else has, in the order of the axes that the package's code expects.
Tensor RegisteredCall::laid_out(std::int64_t i, Tensor&& value, const std::int64_t* sizes) const {
  Dims strides = value.sizes().row_major();
  const auto& expected = expected_[static_cast<std::size_t>(i)].strides;
  const bool all_known =
      std::all_of(expected.begin(), expected.end(), [](const SizeExpression& stride) { return stride.is_known(); });
  for (std::int64_t axis = 0; all_known && axis < std::ssize(expected); ++axis)
    strides[axis] = expected[static_cast<std::size_t>(axis)].evaluate(sizes);

  const auto is_as_wanted = [&](const Tensor& tensor) {
    for (std::int64_t axis = 0; axis < tensor.ndim(); ++axis)
      if (tensor.sizes()[axis] > 1 && tensor.strides()[axis] != strides[axis]) return false;
    return true;
  };
  if (value.storage().is_own() && value.storage().is_unique() && is_as_wanted(value))
    return Tensor(value.storage(), value.dtype(), value.sizes(), strides, value.offset());

  const Tensor wanted(value.storage(), value.dtype(), value.sizes(), strides);
  const Tensor made = copied_in_order(value, order_of(wanted));
  if (made.numel() > 0 && !is_as_wanted(made))
    throw Error(
        NEML2_ERROR_UNSUPPORTED, name(),
        join("The package takes output ", i, " of the operator ", name(), " with the strides ", strides.str(),
             ", which leave gaps or overlap. Compile it with a fake implementation that returns a dense tensor."));
  return Tensor(made.storage(), made.dtype(), made.sizes(), strides);
}

// A package prints the failures that it sees. So if the source tells all of the layout, a failed function gives
// zeros, later functions are not called, and the run fails at its end.
bool RegisteredCall::give_zeros(const std::int64_t* sizes, Tensor* const* outputs) const {
  const auto is_known = [](const SizeExpression& size) { return size.is_known(); };
  for (const Expected& expected : expected_)
    if (!expected.dtype || !expected.has_layout || !std::all_of(expected.sizes.begin(), expected.sizes.end(), is_known))
      return false;
  for (std::int64_t i = 0; i < std::ssize(expected_); ++i) {
    const Expected& expected = expected_[static_cast<std::size_t>(i)];
    Dims shape;
    for (const SizeExpression& size : expected.sizes) shape.push_back(size.evaluate(sizes));
    *outputs[i] = laid_out(i, Tensor::zeros(*expected.dtype, shape), sizes);
  }
  return true;
}

// Call of a user's function by a call site.
class Invocation final : public graph::OperatorCall {
 public:
  Invocation(const RegisteredCall& call, const std::int64_t* sizes, Tensor* const* tensors,
             const std::int64_t* integers);

  const std::string& name() const override { return call_.name(); }
  std::int64_t num_outputs() const override { return std::ssize(outputs_); }
  void set_output(std::int64_t i, Tensor&& value) override;
  std::optional<Tensor>& output(std::int64_t i) { return outputs_[static_cast<std::size_t>(i)]; }

 private:
  const RegisteredCall& call_;
  const std::int64_t* sizes_;
  Vector<std::optional<Tensor>> outputs_;
};

namespace {

graph::OperatorCall::Argument argument_of(const BoundArgument& argument, const Parameter& parameter,
                                          Tensor* const*& tensors, const std::int64_t*& integers) {
  using Kind = Argument::Kind;
  const auto next_tensor = [&] {
    Tensor tensor = (*tensors++)->row_major();
    tensor.storage().end_confinement();
    return tensor;
  };
  const Argument& value = argument.value;
  graph::OperatorCall::Argument given{parameter.name.c_str(), NEML2_ARGUMENT_NONE, -1, nullptr, {}, {}, {}};
  const auto is = [&](std::int32_t kind, bool is_list) {
    given.kind = kind;
    if (is_list) given.count = std::ssize(given.tensors) + std::ssize(given.integers) + std::ssize(given.reals);
  };
  switch (value.kind) {
    case Kind::tensor:
    case Kind::tensors:
      for (std::int64_t i = 0; i < value.num_tensors(); ++i) given.tensors.push_back(next_tensor());
      is(NEML2_ARGUMENT_TENSOR, value.kind == Kind::tensors);
      break;
    case Kind::optional_tensors:
      for (const bool is_there : value.booleans) given.tensors.push_back(is_there ? next_tensor() : Tensor());
      is(NEML2_ARGUMENT_TENSOR, true);
      break;
    case Kind::integer:
      given.integers.push_back(argument.is_default ? value.number : *integers++);
      is(NEML2_ARGUMENT_INTEGER, false);
      break;
    case Kind::integers:
      for (std::int64_t i = 0; i < value.count; ++i) given.integers.push_back(*integers++);
      is(NEML2_ARGUMENT_INTEGER, true);
      break;
    case Kind::boolean:
      given.integers.push_back(value.boolean);
      is(NEML2_ARGUMENT_BOOLEAN, false);
      break;
    case Kind::booleans:
      for (const bool item : value.booleans) given.integers.push_back(item);
      is(NEML2_ARGUMENT_BOOLEAN, true);
      break;
    case Kind::real:
      given.reals.push_back(value.real);
      is(NEML2_ARGUMENT_REAL, false);
      break;
    case Kind::reals:
      given.reals.assign(value.reals.begin(), value.reals.end());
      is(NEML2_ARGUMENT_REAL, true);
      break;
    case Kind::text:
      given.text = value.text.c_str();
      is(NEML2_ARGUMENT_TEXT, false);
      break;
    default: break;
  }
  return given;
}

}  // namespace

Invocation::Invocation(const RegisteredCall& call, const std::int64_t* sizes, Tensor* const* tensors,
                       const std::int64_t* integers)
    : call_(call), sizes_(sizes) {
  outputs_.resize(call.expected_.size());
  arguments_.reserve(call.arguments_.size());
  const auto& parameters = call.operator_->schema().parameters;
  for (std::size_t i = 0; i < call.arguments_.size(); ++i)
    arguments_.push_back(argument_of(call.arguments_[i], parameters[i], tensors, integers));
}

void Invocation::set_output(std::int64_t i, Tensor&& value) {
  if (i < 0 || i >= num_outputs())
    throw Error(NEML2_ERROR_ARGUMENT, call_.name(),
                join("The operator ", call_.name(), " returns ", num_outputs(), " tensors; there is no output ", i,
                     ". Outputs are numbered from 0."));
  call_.check(i, value, sizes_);
  outputs_[static_cast<std::size_t>(i)] = call_.laid_out(i, std::move(value), sizes_);
}

void RegisteredCall::run(RunContext& run, const OperatorNode& node, Tensor* const* tensors,
                         const std::int64_t* integers) {
  const RegisteredCall& call = *node.registered;
  Tensor* const* outputs = tensors;
  for (const Argument& argument : node.inputs) outputs += argument.num_tensors();
  if (run.failure && call.give_zeros(run.sizes, outputs)) return;
  try {
    Invocation invocation(call, run.sizes, tensors, integers);
    call.operator_->call(invocation);
    for (std::int64_t i = 0; i < invocation.num_outputs(); ++i) {
      std::optional<Tensor>& made = invocation.output(i);
      if (!made)
        throw Error(NEML2_ERROR_RUNTIME, call.name(),
                    join("The operator ", call.name(), " gave no output ", i, ". Set every output in its function."));
      *outputs[i] = std::move(*made);
    }
  } catch (...) {
    run.failure = std::current_exception();
    if (!call.give_zeros(run.sizes, outputs)) throw;
  }
}

namespace {

constinit locks::Mutex mutex;
constinit locks::Lazy<std::map<std::string, std::shared_ptr<RegisteredOperator>, std::less<>>> all_operators;

auto& operators() { return all_operators.get(); }

const locks::InChild forget_others([] {
  if (auto* const made = all_operators.made())
    for (auto& [name, registered] : *made) registered->forget_others();
});

void require_supported(std::string_view text, const OperatorSchema& schema) {
  const auto refuse = [&](const std::string& what) {
    throw Error(NEML2_ERROR_ARGUMENT, "schema", join("The operator '", text, "' cannot be registered: ", what));
  };
  if (text.find("!)") != std::string_view::npos) refuse("it writes to an argument. Return the result instead.");
  constexpr std::string_view types[] = {"Tensor", "int", "float", "bool", "str"};
  for (const Parameter& parameter : schema.parameters)
    if (std::find(std::begin(types), std::end(types), parameter.type.base) == std::end(types) ||
        (parameter.type.is_list && parameter.type.base == "str"))
      refuse(join("its argument ", parameter.name,
                  " is of a type that functions do not take. Use Tensor, int, SymInt, float, bool or str, each with or "
                  "without '?', or lists of all but str."));
  if (schema.returns.empty() ||
      !std::all_of(schema.returns.begin(), schema.returns.end(), [](const Type& type) { return type.is_tensor(); }))
    refuse("it must return one or more Tensor, and nothing else. Change its results.");
}

}  // namespace

void register_operator(std::string_view text, graph::OperatorFunction function) {
  OperatorSchema schema = parse_schema(text);
  require_supported(text, schema);
  const std::string name = schema.full_name();
  if (Provider::get().find_operator(name.c_str()))
    throw Error(NEML2_ERROR_ARGUMENT, name,
                join("The built-in runtime has an operator ", name, " of its own. Choose another name."));
  auto made = std::make_shared<RegisteredOperator>(std::move(schema), std::move(function));
  const std::lock_guard lock(mutex);
  if (!operators().emplace(name, std::move(made)).second)
    throw Error(NEML2_ERROR_ARGUMENT, name, join("An operator ", name, " is registered already. Unregister it first."));
}

void unregister_operator(std::string_view text) {
  const std::string_view padded = text.substr(0, text.find('('));
  const std::size_t begin = std::min(padded.find_first_not_of(' '), padded.size());
  const std::string name(padded.substr(begin, padded.find(' ', begin) - begin));
  std::shared_ptr<RegisteredOperator> found;
  {
    const std::lock_guard lock(mutex);
    const auto at = operators().find(name);
    if (at == operators().end())
      throw Error(
          NEML2_ERROR_NAME, name,
          join("There is no operator '", name, "' that was registered. Pass the name or schema of one that was."));
    found = at->second;
  }
  found->retire();
  const std::lock_guard lock(mutex);
  const auto at = operators().find(name);  // again, since another thread may have been faster
  if (at != operators().end() && at->second == found) operators().erase(at);
}

bool bind_registered(OperatorNode& node, const SizeExpression::Symbols& symbols) {
  std::shared_ptr<RegisteredOperator> found;
  {
    const std::lock_guard lock(mutex);
    const auto at = operators().find(node.target);
    if (at == operators().end()) return false;
    found = at->second;
  }
  node.registered = std::make_shared<const RegisteredCall>(std::move(found), node, symbols);
  node.function = &RegisteredCall::run;
  return true;
}

}  // namespace neml2_capi::aoti
