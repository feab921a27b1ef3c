/*
 * neml2_capi_experimental.hpp: the C++ face of neml2_capi_experimental.h.
 *
 * What may change in any release: graphs, the runtime libtorch, operators of yours, streams of CUDA and schedulers. The
 * conventions of neml2_capi.hpp hold here too; a Graph serves many threads at once.
 */
#ifndef NEML2_CAPI_EXPERIMENTAL_HPP
#define NEML2_CAPI_EXPERIMENTAL_HPP

#include <neml2_capi_experimental.h>

#include <neml2_capi.hpp>

namespace neml2 {

/* ---------------------------------------------------------------------------------------------
 * Graphs
 * ------------------------------------------------------------------------------------------- */

/** One AOTInductor package (.pt2), ready to run: tensors in, tensors out. */
class Graph : public detail::Handle<neml2_graph, neml2_graph_free> {
 public:
  using Handle::Handle;

  /** What a graph was compiled for, of one input: sizes are fixed if least and greatest are equal. `name` is what
   *  the author of the package called it, if the package tells, else "arg0_1"; `order` has the axes from the
   *  outermost to the innermost one in memory: 0, 1, ... if it is row-major. */
  struct Input {
    int32_t dtype;
    Shape least, greatest;
    std::string name;
    Shape order;
  };

  /** The same of an output, as far as the package tells: `sizes` has -1 if one depends on the inputs. What an
   *  operator outside of the package returns may have the `dtype` 0 and not have `sizes`. */
  struct Output {
    std::string name;
    int32_t dtype;
    bool has_sizes;
    Shape sizes;
  };

  /** How arguments and results are made of tensors: torch's pytree specifications in JSON, or empty. */
  struct CallSpec {
    std::string in, out;
  };

  explicit Graph(const Source& source) : Handle(detail::opened(neml2_graph_open, source)) {}

  /** Throws what the constructor would, as far as that needs no code of the package to run. Returns the runtime
   *  that would be taken, one of NEML2_RUNTIME_*. */
  static int32_t check(const Source& source) {
    const neml2_source given = source.get();
    return detail::made(neml2_graph_check, &given);
  }

  /** What it runs on: NEML2_RUNTIME_BUILTIN or NEML2_RUNTIME_LIBTORCH. */
  int32_t runtime() const { return inspect().runtime; }

  /** Where its inputs and outputs are. */
  Device device() const { return detail::device_of(inspect()); }

  int64_t input_count() const { return detail::made(neml2_graph_variable_count, get(), NEML2_INPUT); }
  int64_t output_count() const { return detail::made(neml2_graph_variable_count, get(), NEML2_OUTPUT); }

  Input input(int64_t index) const {
    const neml2_graph_variable_info of = detail::inspected(neml2_graph_variable_inspect, get(), NEML2_INPUT, index);
    const auto list = [&](const int64_t* sizes) { return Shape(sizes, sizes + of.ndim); };
    return {of.dtype, list(of.least), list(of.greatest), of.name, list(of.order)};
  }

  Output output(int64_t index) const {
    const neml2_graph_variable_info of = detail::inspected(neml2_graph_variable_inspect, get(), NEML2_OUTPUT, index);
    return {of.name, of.dtype, of.least != nullptr, of.least ? Shape(of.least, of.least + of.ndim) : Shape()};
  }

  CallSpec call_spec() const {
    const neml2_graph_info info = inspect();
    return {info.in_spec, info.out_spec};
  }

  /** Run the graph. The outputs may share storage with the inputs and with one another, and need not be row-major. With
   *  `guards` false the inputs are not checked, except their number, and not copied if they lie in memory otherwise
   *  than the package wants: those that do not fit give wrong results, or end the process. */
  std::vector<Tensor> run(const std::vector<std::reference_wrapper<const Tensor>>& inputs, bool guards = true) const {
    std::vector<neml2_tensor*> given, made(static_cast<std::size_t>(output_count()));
    for (const Tensor& input : inputs) given.push_back(input.get());
    std::vector<Tensor> outputs(made.size());
    const auto execute = guards ? neml2_graph_run : neml2_graph_run_unguarded;
    detail::completed(execute(made.data(), static_cast<int64_t>(made.size()), get(), given.data(),
                              static_cast<int64_t>(given.size())));
    std::transform(made.begin(), made.end(), outputs.begin(), [](neml2_tensor* owned) { return Tensor(owned); });
    return outputs;
  }

  /** Copies of the constants (weights, buffers), by their names in the module that was compiled. A package of
   *  neml2_capi.export.package() has all; in others, small ones (8 elements or fewer), and those whose elements are all
   *  equal, have become numbers in the code. */
  std::map<std::string, Tensor> constants() const {
    std::map<std::string, Tensor> found;
    for (int64_t i = 0, count = detail::made(neml2_graph_constant_count, get()); i < count; ++i) {
      const char* name = nullptr;
      neml2_tensor* owned = nullptr;
      detail::checked(neml2_graph_constant_get(&owned, &name, get(), i));
      found.emplace(name, Tensor(owned));
    }
    return found;
  }

  /** Replace all of these at once, while the graph may be running: a run uses the values that it began with. The
   *  tensors are copied; with `share` their memory is used, and must not be written any more. */
  void set_constants(const std::map<std::string, std::reference_wrapper<const Tensor>>& values, bool share = false) {
    std::vector<const char*> names;
    std::vector<neml2_tensor*> tensors;
    for (const auto& [name, value] : values) {
      names.push_back(name.c_str());
      tensors.push_back(value.get().get());
    }
    detail::checked(
        neml2_graph_constant_set(get(), static_cast<int64_t>(names.size()), names.data(), tensors.data(), share));
  }

 private:
  neml2_graph_info inspect() const { return detail::inspected(neml2_graph_inspect, get()); }
};

/* ---------------------------------------------------------------------------------------------
 * libtorch
 * ------------------------------------------------------------------------------------------- */

/** The libtorch of this process; the section libtorch of neml2_capi_experimental.h says more. */
struct Libtorch {
  std::string path, version;
};

/** Suggest the place of libtorch, in case nothing else names it: libtorch_cpu.so, its folder, or the folder of the
 *  Python package torch. */
inline void suggest_libtorch(const std::string& place) { detail::checked(neml2_libtorch_suggest(place.c_str())); }

/** Open libtorch, unless it is. */
inline Libtorch find_libtorch() {
  const char *path = nullptr, *version = nullptr;
  detail::checked(neml2_libtorch_open(&path, &version));
  return {path, version};
}

/** Tell the schema of a custom operator, before a package that calls it is loaded for libtorch. */
inline void declare_operator(const std::string& schema) { detail::checked(neml2_operator_declare(schema.c_str())); }

/** Put this thread's work on CUDA device `index` on `stream`, a cudaStream_t; null: on torch's current stream again. */
inline void use_stream(int32_t index, void* stream) { detail::checked(neml2_stream_set(index, stream)); }

namespace detail {

/* Access to what a call knows of its arrays. */
struct Experimental {
  template <class Bind>
  static void bind_input_derivative(Call& call, const std::string& input, int32_t kind, const std::string& variable,
                                    const ConstArray& array, int64_t stride, Bind&& function) {
    const Variable of = call.model_.variable(NEML2_INPUT, input), by = call.model_.variable(kind, variable);
    call.bind({"input derivative", kind, of.name + ":" + by.name, multiply_add(0, of.size(), by.size())}, array, stride,
              0, function, [] { return int32_t{NEML2_OK}; });
  }

  static void forget(Call& call, int64_t component_stride = 1) noexcept {
    call.forget(std::max<int64_t>(component_stride, 1));
  }
};

}  // namespace detail

/** Bind the derivative of an input with respect to `variable`, of `kind` NEML2_INPUT or NEML2_PARAMETER: (input, variable)
 *  for each point, or one for all with a stride of 0. See "Derivatives through steps" in neml2_capi_experimental.h. */
inline void bind_input_derivative(Call& call, const std::string& input, int32_t kind, const std::string& variable,
                                  const ConstArray& array, int64_t stride = dense) {
  const auto function = [&](int64_t distance) {
    return neml2_call_bind_input_derivative(call.get(), input.c_str(), kind, variable.c_str(),
                                            const_cast<void*>(array.data()), array.dtype(), distance);
  };
  detail::Experimental::bind_input_derivative(call, input, kind, variable, array, stride, function);
}

/** Let the arrays of a call be on the device of its model from now on, and its work go to `queue`, a cudaStream_t or
 *  cl_command_queue: see "Arrays on a device" in neml2_capi_experimental.h. All that is bound is taken back; what is bound
 *  next is an address, or a cl_mem for NEML2_MEMORY_BUFFERS, with its length: Span(pointer, size). */
inline void use_device_memory(Call& call, void* queue, int32_t kind = NEML2_MEMORY_ADDRESSES,
                              int64_t component_stride = 1) {
  const neml2_call_memory memory{sizeof(neml2_call_memory), queue, component_stride, kind, 0};
  detail::checked(neml2_call_memory_set(call.get(), &memory));
  detail::Experimental::forget(call, component_stride);
}

/** Let the arrays of a call be on the host again. All that is bound is taken back. */
inline void use_host_memory(Call& call) {
  detail::checked(neml2_call_memory_set(call.get(), nullptr));
  detail::Experimental::forget(call);
}

/** Wait for the runs of a call over memory of a device: the greatest status of a point in all of them since the last wait. */
inline int32_t wait(const Call& call) { return detail::checked(neml2_call_wait(call.get())); }

/** Return the handler of XLA's custom calls: see "Custom calls of XLA" in neml2_capi_experimental.h. */
inline void* xla_handler() {
  void* handler = nullptr;
  detail::checked(neml2_xla_handler_get(&handler));
  return handler;
}

/* ---------------------------------------------------------------------------------------------
 * Operators
 * ------------------------------------------------------------------------------------------- */

/** The arguments of an operator, and the place for its results; the section Operators of neml2_capi_experimental.h says
 *  more. Arguments go by their position in the schema, or find(). One that is None has no value: NEML2_ERROR_MISSING.
 *  */
class OperatorCall {
 public:
  /** Of a call that the C library lends. */
  explicit OperatorCall(neml2_operator_call* borrowed) noexcept : call_(borrowed) {}

  /** The call, borrowed. */
  neml2_operator_call* get() const noexcept { return call_; }

  /** How many arguments the schema has. */
  int64_t arguments() const { return count(NEML2_INPUT); }

  /** How many tensors are to be given. */
  int64_t outputs() const { return count(NEML2_OUTPUT); }

  /** The position of an argument. */
  int64_t find(const std::string& name) const { return detail::made(neml2_operator_call_find, call_, name.c_str()); }

  /** The name of an argument. */
  std::string name(int64_t i) const { return argument(i).name; }

  /** NEML2_ARGUMENT_NONE and so on. */
  int32_t kind(int64_t i) const { return argument(i).kind; }

  /** Whether an argument is there, and not None. */
  bool given(int64_t i) const { return kind(i) != NEML2_ARGUMENT_NONE; }

  /** A tensor, row-major. Its memory is not to be written, and is gone when the function returns. */
  Tensor tensor(int64_t i) const {
    return Tensor(detail::made(neml2_tensor_share, *first(i, neml2_operator_call_get_tensors)));
  }

  /** A list of tensors; empty if an item is None. */
  std::vector<Tensor> tensors(int64_t i) const {
    std::vector<Tensor> shared;
    for (neml2_tensor* item : list(i, neml2_operator_call_get_tensors))
      shared.emplace_back(item ? detail::made(neml2_tensor_share, item) : nullptr);
    return shared;
  }

  int64_t integer(int64_t i) const { return *first(i, neml2_operator_call_get_integers); }
  bool boolean(int64_t i) const { return integer(i) != 0; }
  double real(int64_t i) const { return *first(i, neml2_operator_call_get_reals); }
  std::string text(int64_t i) const { return first(i, neml2_operator_call_get_text); }

  /** Lists, borrowed until the function returns; of booleans, 0 or 1. */
  Span<const int64_t> integers(int64_t i) const { return list(i, neml2_operator_call_get_integers); }
  Span<const double> reals(int64_t i) const { return list(i, neml2_operator_call_get_reals); }

  /** Give an output. Tensor::zeros() is not copied. NEML2_ERROR_SHAPE and NEML2_ERROR_DTYPE if the package was
   *  compiled for another one. */
  void output(int64_t i, Tensor tensor) {
    neml2_tensor* consumed = tensor.release();
    detail::checked(neml2_operator_call_set_output(call_, i, &consumed));
  }

 private:
  int64_t count(int32_t kind) const {
    return detail::made(neml2_operator_call_count, static_cast<const neml2_operator_call*>(call_), kind);
  }

  neml2_argument_info argument(int64_t i) const { return detail::inspected(neml2_operator_call_inspect, call_, i); }

  template <class Value>
  const Value* first(int64_t i, int32_t (*read)(const Value**, const neml2_operator_call*, int64_t)) const {
    const Value* values = detail::made(read, static_cast<const neml2_operator_call*>(call_), i);
    if (values) return values;
    throw Error(NEML2_ERROR_MISSING, name(i), "The argument '" + name(i) + "' is None: ask given() before its value.");
  }

  template <class Value>
  Span<const Value> list(int64_t i, int32_t (*read)(const Value**, const neml2_operator_call*, int64_t)) const {
    const Value* values = first(i, read);
    const int64_t count = argument(i).count;
    return {values, static_cast<std::size_t>(count < 0 ? 1 : count)};
  }

  neml2_operator_call* call_;
};

/** A function that is an operator, as long as this lives; it ends when no thread is in the function. */
class Operator {
 public:
  /** Register a function for the packages that are loaded from now on. It may be called on several threads at once.
   *  What it throws fails the run: an Error with its status, which must not be NEML2_NON_FINITE, all else with
   *  NEML2_ERROR_RUNTIME. */
  Operator(const std::string& schema, std::function<void(OperatorCall&)> function)
      : function_(new Function(std::move(function)), Unregister{schema}) {
    detail::checked(neml2_operator_register(schema.c_str(), &call, function_.get()));
    function_.get_deleter().registered = true;
  }

  /* The function and the name that it ends by move as one, also to themselves. */
  Operator(Operator&&) noexcept = default;
  Operator& operator=(Operator&& other) noexcept {
    Operator(std::move(other)).function_.swap(function_);
    return *this;
  }

 private:
  using Function = std::function<void(OperatorCall&)>;

  struct Unregister {
    void operator()(const Function* function) const noexcept {
      /* Within the function itself it cannot end: it stays. */
      if (!registered || neml2_operator_unregister(schema.c_str()) == NEML2_OK) delete function;
    }
    std::string schema;
    bool registered = false;
  };

  /* An exception must not pass through C. */
  static int32_t call(void* context, neml2_operator_call* borrowed) noexcept {
    try {
      OperatorCall given(borrowed);
      (*static_cast<const Function*>(context))(given);
      return NEML2_OK;
    } catch (const Error& error) {
      return neml2_error_record(error.status(), error.cause(), error.subject().c_str(), error.what());
    } catch (const std::exception& error) {
      return neml2_error_record(NEML2_ERROR_RUNTIME, NEML2_CAUSE_NONE, nullptr, error.what());
    } catch (...) {
      return neml2_error_record(NEML2_ERROR_RUNTIME, NEML2_CAUSE_NONE, nullptr, "an exception of an unknown type");
    }
  }

  std::unique_ptr<Function, Unregister> function_;
};

/* ---------------------------------------------------------------------------------------------
 * Schedulers
 * ------------------------------------------------------------------------------------------- */

/** Devices over which a model spreads its points, each in sub-batches of its own size; the section Schedulers of
 *  neml2_capi_experimental.h says more:
 *
 *     neml2::Scheduler devices;
 *     devices.add(neml2::cpu, 512).add(neml2::cuda(0), 4096, 8192, 2.0);
 *     const neml2::Model model(neml2::Source("aoti/viscoplastic").scheduler(devices));
 */
class Scheduler : public detail::Handle<neml2_scheduler, neml2_scheduler_free> {
 public:
  /** What was added, with the capacity that it has. */
  struct Entry {
    Device device;
    int64_t batch_size, capacity;
    double priority;
    int32_t runtime; /**< one of NEML2_RUNTIME_* */
  };

  /** Without devices. */
  Scheduler() : Handle(detail::made(neml2_scheduler_create)) {}

  /** Take over a handle of the C library. */
  explicit Scheduler(neml2_scheduler* owned) noexcept : Handle(owned) {}

  /** Add a device. `batch_size` is the number of points of a sub-batch; 0, for a single device only, is no bound.
   *  `capacity` is the number of points that the device may be given at once; 0: twice `batch_size`. Of devices with
   *  capacity left the one of the greatest `priority` gets the next sub-batch. */
  Scheduler& add(Device device, int64_t batch_size = 0, int64_t capacity = 0, double priority = 1.0,
                 int32_t runtime = NEML2_RUNTIME_AUTO) {
    const neml2_device given{sizeof(neml2_device), batch_size,   capacity, priority,
                             device.type,          device.index, runtime,  0};
    detail::checked(neml2_scheduler_add(get(), &given));
    return *this;
  }

  /** What was added, in that order. */
  std::vector<Entry> entries() const {
    std::vector<Entry> list;
    for (int64_t i = 0, n = detail::made(neml2_scheduler_count, get()); i < n; ++i) {
      const neml2_device info = detail::inspected(neml2_scheduler_inspect, get(), i);
      list.push_back({{info.device, info.device_index}, info.batch_size, info.capacity, info.priority, info.runtime});
    }
    return list;
  }

  /** For a process of many on one node, as MPI's, `local_rank` from 0 of `local_size`: keep one device, by that number
   *  modulo their count. NEML2_ERROR_ARGUMENT if there are fewer processes than devices. */
  Scheduler& keep_rank(int64_t local_rank, int64_t local_size) {
    detail::checked(neml2_scheduler_keep_rank(get(), local_rank, local_size));
    return *this;
  }
};

inline Source& Source::scheduler(const Scheduler& devices) {
  if (!devices) throw Error(NEML2_ERROR_ARGUMENT, "scheduler", "The scheduler was moved away; give one with devices.");
  source_.scheduler = devices.get();
  return *this;
}

/** How many points a device of a model's scheduler has evaluated since the model was opened. */
inline int64_t points_evaluated(const Model& model, int64_t index) {
  return detail::made(neml2_model_points, model.get(), index);
}

}  // namespace neml2

#endif
