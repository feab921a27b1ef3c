// The schemas of operators: what the dispatcher must be given cannot be told from a package alone, which records values
// and no types, and leaves defaults out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neml2_capi::aoti::libtorch {

// "Tensor?", "int[2]", "Tensor?[]", "SymInt[]?"
struct Type {
  std::string base;             // "Tensor", "int", ...; "SymInt" is "int"
  bool is_optional = false;     // the value may be None
  bool is_list = false;         // of values
  bool optional_items = false;  // each of which may be None
};

struct Parameter {
  Type type;
  std::string name;
  std::optional<std::string> otherwise;  // the default as it is written: "True"
};

struct Schema {
  std::string name;      // "aten::pow"
  std::string overload;  // "Tensor_Tensor"; empty for the default one
  std::vector<Parameter> parameters;
  std::vector<Type> returns;
};

// Read "aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor". Throws Error NEML2_ERROR_ARGUMENT.
Schema parse_schema(std::string_view text);

// Make the schema of a custom operator known to this process. Throws as parse_schema() does.
void declare(std::string_view schema);

// That of "aten::pow.Tensor_Tensor": as it was declared, else as the files say that torch's Python package keeps of its
// own operators. Throws Error NEML2_ERROR_UNSUPPORTED, with what to do, where neither says.
Schema schema_of(const std::string& target);

}  // namespace neml2_capi::aoti::libtorch
