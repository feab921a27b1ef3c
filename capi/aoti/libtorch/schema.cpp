#include "capi/aoti/libtorch/schema.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>

#include "capi/aoti/libtorch/library.h"
#include "capi/error.h"

namespace neml2_capi::aoti::libtorch {
namespace {

// What NEML2's models call, wherever libtorch comes from.
constexpr std::string_view known[] = {
    "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
    "LU, Tensor pivots, Tensor info)",
    "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    "neml2::opaque_pow(Tensor base, Tensor exponent) -> Tensor",
};

std::mutex mutex;

std::map<std::string, std::string>& declared() {
  static auto& schemas = *new std::map<std::string, std::string>;
  return schemas;
}

[[noreturn]] void malformed(std::string_view text, const char* what) {
  throw Error(
      NEML2_ERROR_ARGUMENT, "schema",
      join("the schema of an operator, '", text, "', ", what,
           ". It should be as torch writes it: 'library::name.overload(Tensor x, float factor=1.0) -> Tensor'"));
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

bool remove_end(std::string_view& text, std::string_view end) {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

// The pieces between the commas that stand in no bracket and in no quotes.
std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  char quote = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '\'' || c == '"') {
      quote = c;
    } else {
      depth += c == '(' || c == '[';
      depth -= c == ')' || c == ']';
      if (c != ',' || depth != 0) continue;
      pieces.push_back(trimmed(text.substr(begin, i - begin)));
      begin = i + 1;
    }
  }
  if (const auto last = trimmed(text.substr(begin)); !last.empty()) pieces.push_back(last);
  return pieces;
}

Type parse_type(std::string_view text) {
  Type type;
  std::string plain;  // without what it says of aliases: "Tensor(a!)[]"
  int depth = 0;
  for (const char c : text) {
    depth += c == '(';
    if (depth == 0) plain += c;
    depth -= c == ')';
  }
  std::string_view rest = plain;
  type.is_optional = remove_end(rest, "?");
  if (const auto bracket = rest.rfind('['); bracket != std::string_view::npos && rest.ends_with("]")) {
    type.is_list = true;
    rest = rest.substr(0, bracket);
    type.optional_items = remove_end(rest, "?");
  }
  type.base = rest == "SymInt" ? "int" : rest;
  return type;
}

// The place of the parenthesis that closes the one at `open`.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  char quote = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    const char c = text[i];
    if (quote) {
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '\'' || c == '"') quote = c;
    depth += c == '(';
    depth -= c == ')';
    if (depth == 0) return i;
  }
  malformed(text, "has a parenthesis that is not closed");
}

Parameter parse_parameter(std::string_view schema, std::string_view text) {
  Parameter parameter;
  if (const auto equals = text.find('='); equals != std::string_view::npos) {
    parameter.otherwise = trimmed(text.substr(equals + 1));
    text = trimmed(text.substr(0, equals));
  }
  const auto space = text.rfind(' ');
  if (space == std::string_view::npos) malformed(schema, "has an argument without a type or a name");
  parameter.type = parse_type(trimmed(text.substr(0, space)));
  parameter.name = text.substr(space + 1);
  return parameter;
}

// "aten::pow" and "Tensor_Tensor" of "aten::pow.Tensor_Tensor".
std::string full_name(const Schema& schema) {
  return schema.name + (schema.overload.empty() ? "" : "." + schema.overload);
}

// The file in which torch's Python package lists its operators, a line each: "- func: pow.Scalar(...) -> Tensor".
const std::string& listed_operators() {
  static const std::string& text = *new std::string([] {
    const auto packages = Library::get().path().parent_path().parent_path().parent_path();
    std::ifstream file(packages / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }());
  return text;
}

std::optional<std::string> listed_schema(const std::string& target) {
  constexpr std::string_view library = "aten::";
  if (!target.starts_with(library)) return std::nullopt;
  const std::string& text = listed_operators();
  const std::string beginning = "\n- func: " + target.substr(library.size()) + "(";
  const std::size_t at = text.find(beginning);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t begin = text.find(": ", at) + 2;
  return std::string(library) + text.substr(begin, text.find('\n', begin) - begin);
}

std::optional<std::string> find_schema(const std::string& target) {
  {
    const std::lock_guard lock(mutex);
    const auto found = declared().find(target);
    if (found != declared().end()) return found->second;
  }
  for (const std::string_view schema : known)
    if (schema.starts_with(target + "(")) return std::string(schema);
  return listed_schema(target);
}

}  // namespace

Schema parse_schema(std::string_view text) {
  Schema schema;
  const auto open = text.find('(');
  const auto arrow = open == std::string_view::npos ? open : text.find("->", closing(text, open));
  if (arrow == std::string_view::npos) malformed(text, "has no arguments or no results");
  const std::string_view name = trimmed(text.substr(0, open));
  if (name.find("::") == std::string_view::npos) malformed(text, "does not name its library");
  const auto dot = name.find('.');
  schema.name = name.substr(0, dot);
  if (dot != std::string_view::npos) schema.overload = name.substr(dot + 1);
  for (const std::string_view argument : split(text.substr(open + 1, closing(text, open) - open - 1)))
    if (argument != "*") schema.parameters.push_back(parse_parameter(text, argument));
  std::string_view results = trimmed(text.substr(arrow + 2));
  if (results.starts_with("(") && closing(results, 0) == results.size() - 1)
    results = results.substr(1, results.size() - 2);
  for (const std::string_view result : split(results))
    schema.returns.push_back(parse_type(result.substr(0, result.find(' '))));
  return schema;
}

void declare(std::string_view text) {
  const Schema schema = parse_schema(text);
  const std::lock_guard lock(mutex);
  declared()[full_name(schema)] = std::string(text);
}

Schema schema_of(const std::string& target) {
  if (const auto text = find_schema(target)) return parse_schema(*text);
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("the package calls the operator ", target,
                   ", whose schema is not known: tell it with neml2_operator_declare() before the package is loaded"));
}

}  // namespace neml2_capi::aoti::libtorch
