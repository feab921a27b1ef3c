// Extern operators of the built-in provider; see Operator in operator_node.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "capi/provider/provider.h"

namespace neml2_capi::aoti::builtin {

// Returns the argument that the package was compiled with, or `otherwise` if it left the default.
bool flag(const OperatorNode& node, std::string_view name, bool otherwise);

// aten::_linalg_solve_ex(A, B, left=True, check_errors=False) -> (result, LU, pivots, info)
void linalg_solve_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t* integers);

// aten::linalg_inv_ex(A, check_errors=False) -> (inverse, info)
void linalg_inv_ex(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t* integers);

// aten::_linalg_check_errors(info, api_name, is_matrix)
void linalg_check_errors(RunContext& run, const OperatorNode& node, Tensor* const* tensors,
                         const std::int64_t* integers);

// neml2::opaque_pow(base, exponent) and aten::pow.Tensor_Tensor
void opaque_pow(RunContext& run, const OperatorNode& node, Tensor* const* tensors, const std::int64_t* integers);

}  // namespace neml2_capi::aoti::builtin
