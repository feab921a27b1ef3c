// Operators of the built-in provider, called as packages do, for the programs that test them.
#pragma once

#include <dlfcn.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "capi/provider/provider.h"
#include "capi/tensor/tensor.h"

namespace neml2_capi::test {

#define EXPECT(condition)                                                           \
  do {                                                                              \
    if (!(condition)) {                                                             \
      std::fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (0)

inline void* provider = nullptr;

inline void open_provider(int argc, char** argv) {
  if (argc == 2) provider = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (provider) return;
  std::fprintf(stderr, "usage: %s PROVIDER\n%s\n", argv[0], argc == 2 ? dlerror() : "");
  std::exit(2);
}

template <class Signature>
Signature* find(const char* name) {
  void* symbol = dlsym(provider, name);
  if (!symbol) {
    std::fprintf(stderr, "the provider does not export %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Signature*>(symbol);
}

// The outputs of an extern operator, which must succeed.
inline std::vector<Tensor> call(const char* target, std::vector<Tensor> inputs, std::size_t outputs,
                                std::vector<aoti::Argument> fixed = {}) {
  using namespace aoti;
  OperatorNode node;
  node.target = target;
  Argument tensor;
  tensor.kind = Argument::Kind::tensor;
  node.inputs.assign(inputs.size(), tensor);
  node.inputs.insert(node.inputs.end(), fixed.begin(), fixed.end());
  node.outputs.resize(outputs);
  node.function = find<Operator(const char*)>("nml2_find_operator")(target);
  const std::vector<OperatorNode> nodes = {node};
  RunContext run;
  run.nodes = &nodes;
  std::vector<Tensor> out(outputs);
  std::vector<Tensor*> handles;
  for (Tensor& t : inputs) handles.push_back(&t);
  for (Tensor& t : out) handles.push_back(&t);
  const auto run_operator = find<std::int32_t(RunContext*, int, int, std::int64_t*, int, Tensor**)>(
      "nml2_torch_proxy_executor_call_function");
  if (run_operator(&run, 0, 0, nullptr, static_cast<int>(handles.size()), handles.data()) != 0) {
    std::fprintf(stderr, "%s: %s\n", target, find<const char*()>("nml2_last_error")());
    std::exit(1);
  }
  return out;
}

// Reproducible numbers, evenly distributed.
class Numbers {
 public:
  std::uint64_t bits() {  // splitmix64
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double between(double low, double high) { return low + (high - low) * static_cast<double>(bits() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 42;
};

template <class T>
inline constexpr DType dtype_of = sizeof(T) == 8 ? DType::float64 : DType::float32;

template <class T>
Tensor numbers(Numbers& random, const Dims& sizes) {
  Tensor tensor = Tensor::empty(dtype_of<T>, sizes);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.data_as<T>()[i] = static_cast<T>(random.between(-1, 1));
  return tensor;
}

inline Tensor view(const Tensor& tensor, const Dims& sizes, const Dims& strides, std::int64_t offset = 0) {
  return Tensor(tensor.storage(), tensor.dtype(), sizes, strides, tensor.offset() + offset);
}

// Batch entries first .. first + n of a tensor.
inline Tensor entries(const Tensor& tensor, std::int64_t first, std::int64_t n) {
  Dims sizes = tensor.sizes();
  sizes[0] = n;
  return view(tensor, sizes, tensor.strides(), first * tensor.strides()[0]);
}

// Bit by bit; two that are not numbers are the same.
template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

template <class T>
bool same_values(const Tensor& a, const Tensor& b) {
  if (!(a.sizes() == b.sizes())) return false;
  const Tensor x = a.row_major(), y = b.row_major();
  for (std::int64_t i = 0; i < a.numel(); ++i)
    if (!same(x.data_as<T>()[i], y.data_as<T>()[i])) return false;
  return true;
}

}  // namespace neml2_capi::test
