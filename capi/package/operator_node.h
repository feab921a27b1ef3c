// Operators that a package calls, as it records them, and the functions that run them: the contract between
// libneml2_capi and the built-in provider, a library of its own.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/graph/singular.h"

namespace neml2_capi::aoti {

using graph::SingularInfo;

// Argument of an extern operator, as the package's *.wrapper.json records it. Tensors and integers arrive at run
// time, in the order of the arguments; the rest is fixed.
struct Argument {
  enum class Kind {
    tensor,
    integer,
    real,
    boolean,
    text,
    none,
    // Only libtorch and registered operators take the following.
    tensors,
    optional_tensors,
    integers,
    reals,
    booleans,
    scalar_type,
    layout,
    memory_format,
    device,
    unknown,
  };
  std::string name;
  std::string kind_name;  // in the file: "as_tensor"
  Kind kind = Kind::none;
  double real = 0;
  bool boolean = false;
  std::string text;         // of a device: "cuda"
  std::int64_t number = 0;  // torch's, for an element type, a layout or a memory format; a device's index or -1
  std::int64_t count = 0;   // of tensors or integers
  std::vector<double> reals;
  std::vector<bool> booleans;  // for optional tensors: true for each that is there

  // Numbers of tensors and of integers that arrive at run time.
  std::int64_t num_tensors() const {
    return kind == Kind::tensor ? 1 : kind == Kind::tensors || kind == Kind::optional_tensors ? count : 0;
  }
  std::int64_t num_integers() const { return kind == Kind::integer ? 1 : kind == Kind::integers ? count : 0; }
};

struct OperatorNode;
struct RunContext;
class RegisteredCall;  // libneml2_capi's

// Runs an operator: `tensors` holds its tensor inputs and then its outputs, which are assigned (*tensors[i] = ...);
// `integers` its integer inputs. Throws std::exception with the reason.
using Operator = void (*)(RunContext& run, const OperatorNode& node, Tensor* const* tensors,
                          const std::int64_t* integers);

// Call site of an extern operator.
struct OperatorNode {
  std::string target;  // "aten::_linalg_solve_ex"
  std::vector<Argument> inputs;
  struct Output {
    std::string name;       // of the variable in the package's source
    bool is_read = true;    // false if the package does not read its values
    bool is_tensor = true;  // a single one; other kinds have no name
    // Element type and layout that the code after the call expects, if the source tells.
    std::optional<DType> dtype;
    bool has_layout = false;
    std::vector<std::string> sizes, strides;  // "s17", "3L"
  };
  std::vector<Output> outputs;
  Operator function = nullptr;
  std::shared_ptr<const RegisteredCall> registered;  // null unless the operator is a user's function
};

// Context that one run of a package carries to the operators: the opaque proxy executor of the AOTI runtime.
struct RunContext {
  const std::vector<OperatorNode>* nodes = nullptr;
  SingularInfo* singular = nullptr;     // null if the caller did not ask
  const std::int64_t* sizes = nullptr;  // values of the package's symbols, for operators of the user
  std::exception_ptr failure;           // exception of such an operator
};

}  // namespace neml2_capi::aoti
