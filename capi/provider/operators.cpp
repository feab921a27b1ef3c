// Table of extern operators, and the call from a package into it.
#include "capi/provider/operators.h"

#include <array>
#include <cstddef>
#include <iterator>
#include <stdexcept>

#include "capi/provider/exports.h"

namespace neml2_capi::aoti::builtin {
namespace {

struct Entry {
  const char* target;
  Operator function;
};

constexpr Entry table[] = {
    {"aten::_linalg_solve_ex", linalg_solve_ex},
    {"aten::_linalg_check_errors", linalg_check_errors},
    {"aten::linalg_inv_ex", linalg_inv_ex},
    {"neml2::opaque_pow", opaque_pow},
};

void call(RunContext& run, std::int64_t index, std::int64_t num_integers, const std::int64_t* integers,
          std::int64_t num_tensors, Tensor* const* tensors) {
  if (!run.nodes || index < 0 || index >= static_cast<std::int64_t>(run.nodes->size()))
    throw std::out_of_range("the package calls extern operator " + std::to_string(index) +
                            ", which its wrapper.json does not list");
  const OperatorNode& node = (*run.nodes)[static_cast<std::size_t>(index)];
  if (!node.function) throw std::runtime_error(node.target + " is not supported by the built-in provider");
  std::int64_t tensors_expected = std::ssize(node.outputs), integers_expected = 0;
  for (const Argument& argument : node.inputs) {
    tensors_expected += argument.num_tensors();
    integers_expected += argument.num_integers();
  }
  if (num_tensors != tensors_expected || num_integers != integers_expected)
    throw std::runtime_error(node.target + " was called with " + std::to_string(num_tensors) + " tensors and " +
                             std::to_string(num_integers) + " integers; wrapper.json says " +
                             std::to_string(tensors_expected) + " and " + std::to_string(integers_expected));
  node.function(run, node, tensors, integers);
}

// The targets, separated by spaces. A load of the library cannot report that memory has run out: this takes none.
constexpr std::size_t length = [] {
  std::size_t total = 0;
  for (const Entry& entry : table) total += std::string_view(entry.target).size() + 1;
  return total;
}();
constexpr std::array<char, length> names = [] {
  std::array<char, length> joined = {};
  std::size_t end = 0;
  for (const Entry& entry : table) {
    if (end > 0) joined[end++] = ' ';
    for (const char c : std::string_view(entry.target)) joined[end++] = c;
  }
  return joined;
}();

}  // namespace

bool flag(const OperatorNode& node, std::string_view name, bool otherwise) {
  for (const Argument& argument : node.inputs)
    if (argument.name == name && argument.kind == Argument::Kind::boolean) return argument.boolean;
  return otherwise;
}

NML2_EXPORT Operator nml2_find_operator(const char* target) {
  for (const Entry& entry : table)
    if (std::string_view(entry.target) == target) return entry.function;
  return nullptr;
}

NML2_EXPORT const char* nml2_supported_operators() { return names.data(); }

NML2_EXPORT Status nml2_torch_proxy_executor_call_function(RunContext* run, int index, int num_integers,
                                                           std::int64_t* integers, int num_tensors, Handle* tensors) {
  return guarded([&] {
    if (!run) throw std::runtime_error("the package was run without its table of extern operators");
    call(*run, index, num_integers, integers, num_tensors, tensors);
  });
}

}  // namespace neml2_capi::aoti::builtin
