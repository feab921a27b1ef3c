// Schemas of operators, as torch writes them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti {

// Type of an argument or a result: "Tensor?", "int[2]", "Tensor?[]", "SymInt[]?".
struct Type {
  std::string base;             // "Tensor", "int", ...; "SymInt" is "int"
  bool is_optional = false;     // the value may be None
  bool is_list = false;         // a list of values,
  bool optional_items = false;  // each of which may be None

  bool is_tensor() const { return base == "Tensor" && !is_list && !is_optional; }
};

struct Parameter {
  Type type;
  std::string name;
  std::optional<std::string> otherwise;  // the default as it is written: "True"
};

struct OperatorSchema {
  std::string name;      // "aten::pow"
  std::string overload;  // "Tensor_Tensor"; empty for the default one
  std::vector<Parameter> parameters;
  std::vector<Type> returns;

  std::string full_name() const;  // "aten::pow.Tensor_Tensor"
};

// Parses "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor". Throws Error NEML2_ERROR_ARGUMENT.
OperatorSchema parse_schema(std::string_view text);

}  // namespace neml2_capi::aoti
