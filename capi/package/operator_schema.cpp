#include "capi/package/operator_schema.h"

#include "capi/base/error.h"

namespace neml2_capi::aoti {
namespace {

[[noreturn]] void malformed(std::string_view text, const char* what) {
  throw Error(NEML2_ERROR_ARGUMENT, "schema",
              join("The schema of an operator, '", text, "', ", what,
                   ". Write it as torch does: 'library::name.overload(Tensor x, float factor=1.0) -> Tensor'."));
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

// Splits at the commas outside of brackets and quotes.
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
  std::string plain;  // without notes on aliases: "Tensor(a!)[]" becomes "Tensor[]"
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

// Returns the position of the parenthesis that closes the one at `open`.
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

}  // namespace

OperatorSchema parse_schema(std::string_view text) {
  OperatorSchema schema;
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

std::string OperatorSchema::full_name() const { return name + (overload.empty() ? "" : "." + overload); }

}  // namespace neml2_capi::aoti
