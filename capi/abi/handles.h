// Objects behind the opaque handles of the header, and how a function comes to one: Shared, or Alone, for as long as it
// runs. The types of the header are never defined, so that nothing else can read through a handle.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "capi/abi/guard.h"
#include "capi/abi/handle_table.h"
#include "capi/abi/opening.h"
#include "capi/devices/dispatch.h"
#include "capi/graph/graph.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::abi {

struct TensorObject {
  Tensor value;
};

struct GraphObject {
  std::shared_ptr<graph::Graph> value;
};

namespace xla {
class Calls;
std::shared_ptr<Calls> no_calls();
}  // namespace xla

struct ModelObject {
  explicit ModelObject(OpenedModel opened)
      : value(std::move(opened.model)),
        text(std::move(opened.text)),
        routes(text ? std::make_shared<const model::Routes>(value, text)
                    : std::make_shared<const model::Routes>(value)) {}
  explicit ModelObject(std::shared_ptr<const model::Dispatch> of)
      : value(of->primary()), dispatch(of), routes(std::make_shared<const model::Routes>(value, of)) {}

  std::shared_ptr<model::Model> value;              // of several devices, the first one's
  std::shared_ptr<const model::Dispatch> dispatch;  // null without a scheduler
  std::shared_ptr<const accelerator::ByText> text;  // null but on a device by text
  std::shared_ptr<const model::Routes> routes;
  std::shared_ptr<xla::Calls> xla_calls = xla::no_calls();  // that XLA's custom calls keep
};

struct ReportObject {
  std::vector<Tensor> tensors;  // by NEML2_REPORT_*
  Vector<Tensor> unknowns;      // of failed points; empty if none failed
};

struct CallObject;
struct SolveObject;
struct SystemObject;
struct SchedulerObject;
struct OperatorCallObject;

template <class Of, HandleKind number>
struct HandleOf {
  using Object = Of;
  static constexpr HandleKind kind = number;
};
template <class Handle>
struct Behind;
template <>
struct Behind<neml2_model> : HandleOf<ModelObject, HandleKind::model> {};
template <>
struct Behind<neml2_call> : HandleOf<CallObject, HandleKind::call> {};
template <>
struct Behind<neml2_tensor> : HandleOf<TensorObject, HandleKind::tensor> {};
template <>
struct Behind<neml2_report> : HandleOf<ReportObject, HandleKind::report> {};
template <>
struct Behind<neml2_solve> : HandleOf<SolveObject, HandleKind::solve> {};
template <>
struct Behind<neml2_system> : HandleOf<SystemObject, HandleKind::system> {};
template <>
struct Behind<neml2_graph> : HandleOf<GraphObject, HandleKind::graph> {};
template <>
struct Behind<neml2_operator_call> : HandleOf<OperatorCallObject, HandleKind::operator_call> {};
template <>
struct Behind<neml2_scheduler> : HandleOf<SchedulerObject, HandleKind::scheduler> {};
// The object of a handle that functions only read cannot be written.
template <class Handle>
struct Behind<const Handle> : HandleOf<const typename Behind<Handle>::Object, Behind<Handle>::kind> {};

template <class Handle>
table::Token token_of(Handle* handle) {
  return reinterpret_cast<table::Token>(handle);
}

// Use of a handle that a function was given, until it returns: one that is freed meanwhile goes after that. The
// constructor throws NEML2_ERROR_ARGUMENT for what is no such handle, or is in use in a way that excludes this one.
template <class Handle, bool is_alone>
class Use {
 public:
  using Object = typename Behind<Handle>::Object;

  Use(Handle* handle, const Argument& name)
      : slot_(is_alone ? table::enter_alone(token_of(handle), Behind<Handle>::kind)
                       : table::enter_shared(token_of(handle), Behind<Handle>::kind)) {
    if (!slot_) table::refuse(token_of(handle), Behind<Handle>::kind, name);
  }
  ~Use() {
    if (void* last = is_alone ? table::leave_alone(*slot_) : table::leave_shared(*slot_))
      delete static_cast<Object*>(last);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  // Not of a temporary, which would have left before what it gave is used.
  Object* operator->() const& { return &**this; }
  Object& operator*() const& { return *static_cast<Object*>(table::object_of(*slot_)); }
  Object* operator->() const&& = delete;
  Object& operator*() const&& = delete;

 private:
  table::Slot* slot_;
};

// For functions that any number of threads may call at once; and for functions that a handle has one of at a time.
template <class Handle>
struct Shared : Use<Handle, false> {
  using Use<Handle, false>::Use;
};
template <class Handle>
struct Alone : Use<Handle, true> {
  using Use<Handle, true>::Use;
};
template <class Handle>
Shared(Handle*, Argument) -> Shared<Handle>;
template <class Handle>
Alone(Handle*, Argument) -> Alone<Handle>;

// Run `body` on the object of a handle, as guarded() does.
template <class Handle, class Body>
std::int32_t shared(Handle* handle, const char* name, Body&& body) noexcept {
  return guarded([&] {
    const Shared use(handle, name);
    return body(*use);
  });
}
template <class Handle, class Body>
std::int32_t alone(Handle* handle, const char* name, Body&& body) noexcept {
  return guarded([&] {
    const Alone own(handle, name);
    return body(*own);
  });
}

// Ends a handle without a word about one that is in use, which the last function that runs on it takes along.
template <class Handle>
table::Closed close(Handle* handle) noexcept {
  const table::Closed closed = table::close(token_of(handle), Behind<Handle>::kind);
  delete static_cast<typename Behind<Handle>::Object*>(closed.object);
  return closed;
}

// Frees a handle, as neml2_X_free() does.
template <class Handle>
void release(Handle** handle) noexcept {
  if (!handle || !*handle) return;
  Handle* const given = std::exchange(*handle, nullptr);
  if (const table::Closed closed = close(given); !closed.object)
    table::warn_of_free(token_of(given), Behind<Handle>::kind, closed.in_use);
}

// New handle, which is freed unless it is handed out.
template <class Handle>
class Owned {
 public:
  Owned() = default;
  explicit Owned(std::unique_ptr<typename Behind<Handle>::Object> object)
      : handle_(reinterpret_cast<Handle*>(table::open(Behind<Handle>::kind, object.get()))) {
    object.release();
  }
  ~Owned() {
    if (handle_) close(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(other.release()) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  Handle* get() const { return handle_; }
  Handle* release() noexcept { return std::exchange(handle_, nullptr); }

 private:
  Handle* handle_ = nullptr;
};

// Returns a new handle of an object, which is the caller's.
template <class Handle, class... Values>
Handle* opened(Values&&... values) {
  using Object = typename Behind<Handle>::Object;
  return Owned<Handle>(std::unique_ptr<Object>(new Object{std::forward<Values>(values)...})).release();
}

// Returns the tensor of a handle, which shares its storage.
inline Tensor value_of(const neml2_tensor* handle, const Argument& name) {
  const Shared use(handle, name);
  return use->value;
}

// Returns sizes as they are given; throws if they are too many, or NULL.
Dims shape_of(std::int64_t ndim, const std::int64_t* shape);

// Returns the number of elements of a tensor; throws for sizes that none can have.
std::int64_t count_of(const Dims& sizes);

// Returns a tensor over the caller's memory, row-major if `strides` is NULL; throws for what cannot be one.
// `deleter` is only called when this succeeded.
Tensor view_of(void* data, DType dtype, const Dims& sizes, const std::int64_t* strides, Storage::Deleter deleter,
               void* context, Device device = {});

// Makes handles; NULL for a tensor that is not there.
using Handles = std::vector<Owned<neml2_tensor>>;
Handles handles_of(Vector<Tensor> tensors);
void hand_out(neml2_tensor** out, Handles handles) noexcept;

// Returns the kind to differentiate by; throws for what is no input or parameter.
model::Kind differentiation_kind(std::int32_t kind);

// Throws NEML2_ERROR_UNSUPPORTED if no derivative with respect to variables of this kind was compiled.
void require_derivatives(const model::Model& model, model::Kind kind);

// Throws NEML2_ERROR_UNSUPPORTED, telling what was asked for, if the model computes over tensors of a device.
void require_host(const model::Model& model, const char* what);

// Returns the status of an evaluation. Records a positive one with a message that says what failed, and in which parts
// of it, and what is known of the first points that failed or are not finite.
std::int32_t conclude(const model::Tally& tally, const model::Model& model, const model::Bindings& bindings);

}  // namespace neml2_capi::abi
