#include "capi/aoti/libtorch/graph.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "capi/aoti/builtin/serial_regions.h"
#include "capi/aoti/libtorch/library.h"
#include "capi/aoti/libtorch/tensors.h"
#include "capi/aoti/loaded_graph.h"
#include "capi/error.h"

namespace neml2_capi::aoti::libtorch {
namespace {

constexpr const char* proxy_call = "aoti_torch_proxy_executor_call_function";

// Handles that a package takes over, or gives: those that are left are ours.
class HandleList {
 public:
  explicit HandleList(std::size_t size) : handles_(size, nullptr) {}
  ~HandleList() {
    for (Handle handle : handles_) OwnedHandle{handle};
  }
  HandleList(const HandleList&) = delete;
  HandleList& operator=(const HandleList&) = delete;

  void** data() { return reinterpret_cast<void**>(handles_.data()); }
  std::size_t size() const { return handles_.size(); }
  void set(std::size_t i, OwnedHandle handle) { handles_[i] = handle.release(); }
  OwnedHandle take(std::size_t i) { return OwnedHandle(std::exchange(handles_[i], nullptr)); }

 private:
  Vector<Handle> handles_;
};

// An output that lies in the memory of an input, which libtorch knows for borrowed, takes a share of it.
Tensor owning(Tensor output, const Vector<Tensor>& inputs) {
  const auto* data = static_cast<const char*>(output.data());
  for (const Tensor& input : inputs) {
    const auto* begin = static_cast<const char*>(input.storage().data());
    if (!data || data < begin || data >= begin + input.storage().bytes()) continue;
    return Tensor(input.storage(), output.dtype(), output.sizes(), output.strides(),
                  (data - begin) / output.itemsize());
  }
  return output;
}

class LibtorchGraph final : public LoadedGraph {
 public:
  LibtorchGraph(const std::string& package, Signature signature, std::vector<OperatorCall> calls, builtin::Image& image)
      : LoadedGraph(package, std::move(signature), image), calls_(std::move(calls)) {
    call(nullptr, [&] { return entry().create(&container_, 1, "cpu", nullptr); });
    try {
      std::size_t num_inputs = 0, num_outputs = 0;
      call(nullptr, [&] { return entry().num_inputs(container_, &num_inputs); });
      call(nullptr, [&] { return entry().num_outputs(container_, &num_outputs); });
      require_arity(num_inputs, num_outputs);
    } catch (...) {
      destroy();
      throw;
    }
  }
  ~LibtorchGraph() override { destroy(); }

  Runtime runtime() const override { return Runtime::libtorch; }

  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    require_count(inputs.size());
    if (singular) singular->clear();
    const Vector<Tensor> given = inputs.take();
    try {
      HandleList in(given.size()), out(outputs.size());
      for (std::size_t i = 0; i < given.size(); ++i) in.set(i, handle_of(given[i]));
      Run run{&calls_, singular, {}};
      run_container(in, out, run);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        OwnedHandle output = out.take(i);
        if (!output.get()) throw std::runtime_error(join("output ", i, " was not returned"));
        outputs[i] = new Tensor(owning(libtorch::take(std::move(output)), given));
      }
    } catch (const Error&) {
      throw;
    } catch (const std::runtime_error& error) {
      throw Error(NEML2_ERROR_RUNTIME, package(), join(package(), ": ", error.what()));
    }
  }

 private:
  const builtin::EntryPoints& entry() const { return image().entry(); }

  void destroy() noexcept {
    try {
      entry().destroy(container_);
    } catch (...) {  // nothing more can be done for it
    }
  }

  // The first run folds constants into the container: it is alone. Later ones only read, but for integer kernels.
  void run_container(HandleList& in, HandleList& out, Run& run) const {
    std::unique_lock alone(image().alone(), std::defer_lock);
    if (has_integer_kernels() || !has_run_.load(std::memory_order_acquire)) alone.lock();
    image().note_run();
    const builtin::SerialRegions package_serial(entry().openmp), torch_serial(Library::get().openmp());
    call(&run, [&] { return entry().run(container_, in.data(), in.size(), out.data(), out.size(), nullptr, &run); });
    if (alone) has_run_.store(true, std::memory_order_release);
  }

  // Call into the package. Its C functions return a status, but some throw all the same. `run` may be null.
  template <class Call>
  void call(const Run* run, Call&& call) const {
    try {
      if (call() == 0) return;
    } catch (const std::exception& error) {
      report_failure(error.what());
    } catch (...) {
    }
    report_failure(run && !run->failure.empty() ? run->failure : Library::get().reason());
  }

  [[noreturn]] void report_failure(std::string reason) const {
    const char* own = nullptr;
    if (reason.empty() && entry().last_error && entry().last_error(&own) == 0 && own) reason = own;
    if (reason.empty()) reason = "no reason was given";
    throw Error(NEML2_ERROR_RUNTIME, package(), join(package(), ": the compiled package failed: ", reason));
  }

  std::vector<OperatorCall> calls_;
  builtin::EntryPoints::Container container_ = nullptr;
  mutable std::atomic<bool> has_run_ = false;
};

}  // namespace

builtin::Object bind(std::string_view bytes) {
  const Library& library = Library::get();
  const auto address_of = [&](const std::string& name) {
    return name == proxy_call ? reinterpret_cast<std::uintptr_t>(&call_operator) : library.address_of(name);
  };
  builtin::Provider::get();  // in whose name the package no longer asks for libtorch
  builtin::Object object = builtin::bind_to_addresses(bytes, builtin::provider_file, address_of);
  std::set<std::string> missing;
  for (const builtin::Import& import : object.imports)
    if (import.required && address_of(import.name) == 0) missing.insert(import.name);
  if (missing.empty()) return object;
  std::string list;
  for (const std::string& name : missing) list += (list.empty() ? "" : ", ") + name;
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("the package calls what libtorch ", library.version(), " at ", library.path().string(),
                   " does not have: ", list,
                   ". Use the libtorch that it was compiled with, or a newer one, or compile it again with this one."));
}

std::shared_ptr<Graph> open(const std::string& package, Signature signature, std::vector<OperatorCall> calls,
                            builtin::Image& image) {
  return std::make_shared<LibtorchGraph>(package, std::move(signature), std::move(calls), image);
}

}  // namespace neml2_capi::aoti::libtorch
