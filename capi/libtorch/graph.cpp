#include "capi/libtorch/graph.h"

#include <exception>
#include <memory>
#include <new>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "capi/base/error.h"
#include "capi/libtorch/kernel_folder.h"
#include "capi/libtorch/library.h"
#include "capi/libtorch/operators.h"
#include "capi/libtorch/serial_regions.h"
#include "capi/libtorch/stream.h"
#include "capi/libtorch/tensors.h"
#include "capi/loader/container.h"
#include "capi/loader/elf.h"
#include "capi/loader/loaded_graph.h"

namespace neml2_capi::aoti::libtorch {
namespace {

// Returns handles as a package takes them over and gives them: it sets those that it took to null.
void** raw(Vector<OwnedHandle>& handles) {
  static_assert(sizeof(OwnedHandle) == sizeof(void*));
  return reinterpret_cast<void**>(handles.data());
}

// Returns an output that keeps its memory: one in the memory of an input or a constant, which libtorch only borrows,
// shares that storage.
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

// Handles that the package running on this thread has not deleted; null if none are watched.
thread_local std::vector<void*>* watched = nullptr;

// Takes the place of aoti_torch_delete_tensor_object.
Status delete_tensor(Handle handle) noexcept {
  if (watched) std::erase(*watched, handle);
  return Library::get().functions().aoti_torch_delete_tensor_object(handle);
}

// Turns a refusal of libtorch into an error of the package.
template <class Call>
auto naming_package(const std::string& package, Call&& call) {
  try {
    return call();
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    const std::string_view words = error.what();  // libtorch has no numbers for its errors
    const bool singular = words.find("singular") != std::string_view::npos;
    throw Error(NEML2_ERROR_RUNTIME, package, join(package, ": ", words),
                singular ? NEML2_CAUSE_MATRIX_SINGULAR : NEML2_CAUSE_NONE);
  }
}

// Handles of libtorch.
class LibtorchHandling final : public Handling {
 public:
  Tensor tensor_of(void* handle) const override { return borrow(static_cast<Handle>(handle)); }
  void* lend(const Tensor& tensor) const override { return handle_of(tensor).release(); }
  void take_back(void* lent) const noexcept override { OwnedHandle{static_cast<Handle>(lent)}; }

  // Code of torch 2.13 leaves all handles behind.
  void destroy(const std::function<void()>& destroy, std::vector<void*> left,
               const std::vector<void*>&) const override {
    std::erase(left, nullptr);
    watched = &left;
    destroy();
    watched = nullptr;
    for (void* handle : left) OwnedHandle{static_cast<Handle>(handle)};
  }

  std::string reason(void* proxy) const override {
    const Run* run = static_cast<Run*>(proxy);
    if (!run || !run->failure) return Library::get().reason();
    try {
      std::rethrow_exception(run->failure);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return error.what();
    } catch (...) {
      return "an unknown exception";
    }
  }
};

const LibtorchHandling libtorch_handling;

class LibtorchGraph final : public LoadedGraph {
 public:
  LibtorchGraph(const std::string& package, Signature signature, std::vector<OperatorCall> calls, Image& image,
                Device device, std::unique_ptr<const KernelFolder> kernels)
      : LoadedGraph(package, std::move(signature), image, libtorch_handling, device, kernels->path()),
        kernels_(std::move(kernels)),
        calls_(std::move(calls)) {}

  Runtime runtime() const override { return Runtime::libtorch; }

  std::vector<Constant> constants() const override {
    return naming_package(package(), [&] { return LoadedGraph::constants(); });
  }

  void set_constants(const std::vector<Constant>& values, bool copy) override {
    naming_package(package(), [&] { LoadedGraph::set_constants(values, copy); });
  }

  void run(Handles& inputs, Handles& outputs, SingularInfo* singular) const override {
    require_count(inputs.size());
    if (singular) *singular = {};
    const auto container = in_use();
    Vector<Tensor> given = inputs.take();
    naming_package(package(), [&] {
      Vector<OwnedHandle> in, out(outputs.size());
      for (const Tensor& tensor : given) in.push_back(handle_of(tensor));
      Run run{&calls_, singular, {}, !device().is_host()};
      const SerialRegions serial(Library::get().openmp());
      const OnStream here(device());
      container->run(raw(in), in.size(), raw(out), out.size(), &run, signature().has_integer_kernels, here.stream());
      for (const PackagedConstant& constant : container->replaced()) given.push_back(constant.value);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        if (!out[i].get())
          throw std::runtime_error(join("The package did not return output ", i, ". Compile the model again."));
        outputs[i] = new Tensor(owning(libtorch::take(std::move(out[i]), device().by_operators), given));
      }
    });
  }

 private:
  std::unique_ptr<const KernelFolder> kernels_;  // kernels are loaded when they are first run
  std::vector<OperatorCall> calls_;
};

Object bound_object(std::string_view bytes) {
  const Library& library = Library::get();
  const Provider& provider = Provider::get();  // the package asks for this library instead of libtorch
  const auto address_of = [&](const std::string& name) {
    if (name == "aoti_torch_proxy_executor_call_function") return reinterpret_cast<std::uintptr_t>(&call_operator);
    if (name == "aoti_torch_delete_tensor_object") return reinterpret_cast<std::uintptr_t>(&delete_tensor);
    // A package's own regions are the provider's here, too.
    if (is_of_openmp(name)) return provider.address_of(name);
    return library.address_of(name);
  };
  Object object = bind_to_addresses(bytes, provider_file, address_of);
  std::set<std::string> missing;
  for (const Import& import : object.imports)
    if (import.required && address_of(import.name) == 0) missing.insert(import.name);
  if (missing.empty()) return object;
  std::string list;
  for (const std::string& name : missing) add_name(list, name);
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package calls what libtorch ", library.version(), " at ", library.path().string(),
                   " does not have: ", list,
                   ". Use the libtorch of its compilation, or a newer one, or compile the model again with this one."));
}

}  // namespace

Bound bind(std::string_view bytes, const std::vector<OperatorNode>& nodes) {
  Bound bound{bound_object(bytes), {}};
  std::vector<OperatorCall> calls;
  for (const OperatorNode& node : nodes) calls.push_back(resolve(node));
  bound.open = [calls = std::move(calls)](const std::string& package, Signature signature, Image& image, Device device,
                                          const std::vector<KernelFile>& kernels) {
    const OnStream here(device);  // restores the current device, which a package changes
    return std::make_shared<LibtorchGraph>(package, std::move(signature), calls, image, device,
                                           std::make_unique<const KernelFolder>(kernels));
  };
  return bound;
}

}  // namespace neml2_capi::aoti::libtorch
