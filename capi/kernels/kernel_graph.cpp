#include "capi/kernels/kernel_graph.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "capi/kernels/memory.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::kernels {
namespace {

class KernelGraph final : public HostGraph {
 public:
  KernelGraph(const std::string& package, const Kernel& kernel, DType real)
      : HostGraph(package, real, kernel.inputs), kernel_(kernel) {
    for (const Slot& slot : kernel.outputs)
      add_output(slot.name, slot.per_point ? Dims{-1}.then(slot.shape) : slot.shape);
  }

  void run(Handles& inputs, Handles& outputs, aoti::SingularInfo*) const override {
    const std::int64_t points = inputs.size() == 0 ? 1 : inputs[0]->sizes()[0];
    for (Tensor* input : inputs) input->make_row_major();
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Slot& slot = kernel_.outputs[i];
      outputs[i] = new Tensor(Tensor::empty(real(), slot.per_point ? Dims{points}.then(slot.shape) : slot.shape));
    }
    with_scalar(real(),
                [&](auto* type) { run_blocks<std::remove_pointer_t<decltype(type)>>(points, inputs, outputs); });
  }

 private:
  // A block of points, one in each lane, at a time; lanes without a point of their own repeat the last one.
  template <class T>
  void run_blocks(std::int64_t points, Handles& inputs, Handles& outputs) const {
    const neml2_kernel& code = *kernel_.code;
    const std::int64_t lanes = code.lanes;
    Memory memory;
    const auto room = [&](std::int64_t components) {
      return static_cast<T*>(memory.take(static_cast<std::size_t>(components * lanes) * sizeof(T)));
    };
    std::vector<void*> from, to;
    for (std::int32_t i = 0; i < code.input_count; ++i) from.push_back(room(code.inputs[i].components));
    for (std::int32_t i = 0; i < code.output_count; ++i) to.push_back(room(code.outputs[i].components));
    void* const kept = room(code.kept);
    for (std::int64_t begin = 0; begin < points; begin += lanes) {
      for (std::size_t i = 0; i < from.size(); ++i) {
        const std::int64_t components = code.inputs[i].components;
        const T* const rows = inputs[i]->data_as<const T>();
        for (std::int64_t l = 0; l < lanes; ++l)
          for (std::int64_t c = 0; c < components; ++c)
            static_cast<T*>(from[i])[c * lanes + l] = rows[std::min(begin + l, points - 1) * components + c];
      }
      if (code.prepare) code.prepare(from.data(), kept);
      code.run(from.data(), to.data(), kept);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const std::int64_t components = code.outputs[i].components;
        const std::int64_t rows = kernel_.outputs[i].per_point ? std::min(lanes, points - begin) : 1;
        T* const values = outputs[i]->data_as<T>() + (kernel_.outputs[i].per_point ? begin * components : 0);
        for (std::int64_t l = 0; l < rows; ++l)
          for (std::int64_t c = 0; c < components; ++c)
            values[l * components + c] = static_cast<const T*>(to[i])[c * lanes + l];
      }
    }
  }

  const Kernel kernel_;
};

}  // namespace

std::shared_ptr<const aoti::Graph> kernel_graph(const std::string& package, const Kernel& kernel, DType real) {
  return std::make_shared<KernelGraph>(package, kernel, real);
}

}  // namespace neml2_capi::kernels
