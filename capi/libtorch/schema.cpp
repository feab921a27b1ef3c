#include "capi/libtorch/schema.h"

#include <iterator>
#include <map>
#include <mutex>

#include "capi/archive/files.h"
#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/libtorch/library.h"

namespace neml2_capi::aoti::libtorch {
namespace {

// Schemas of the operators that NEML2's models call, which are known without a Python package of torch.
constexpr std::string_view known[] = {
    "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
    "LU, Tensor pivots, Tensor info)",
    "aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)",
    "aten::_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()",
    "neml2::opaque_pow(Tensor base, Tensor exponent) -> Tensor",
};

constinit locks::Mutex schemas_mutex;
constinit locks::Lazy<std::map<std::string, std::string>> all_declared;
constinit locks::Lazy<const std::string> all_listed;

std::map<std::string, std::string>& declared() { return all_declared.get(); }

// Returns the file in which torch's Python package lists its operators, a line each: "- func: pow.Scalar(...) ->
// Tensor".
const std::string& listed_operators() {
  return all_listed.get([] {
    const auto packages = Library::get().path().parent_path().parent_path().parent_path();
    return archive::read(packages / "torchgen" / "packaged" / "ATen" / "native" / "native_functions.yaml").value_or("");
  });
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
    const std::lock_guard lock(schemas_mutex);
    const auto found = declared().find(target);
    if (found != declared().end()) return found->second;
  }
  for (const std::string_view schema : known)
    if (schema.starts_with(target + "(")) return std::string(schema);
  return listed_schema(target);
}

}  // namespace

void declare(std::string_view text) {
  const OperatorSchema schema = parse_schema(text);
  const std::lock_guard lock(schemas_mutex);
  declared()[schema.full_name()] = std::string(text);
}

OperatorSchema schema_of(const std::string& target) {
  if (const auto text = find_schema(target)) return parse_schema(*text);
  throw Error(NEML2_ERROR_UNSUPPORTED, "",
              join("The package calls the operator ", target,
                   ", whose schema is not known. Tell it with neml2_operator_declare() before the package is loaded."),
              NEML2_CAUSE_SCHEMA_UNKNOWN);
}

}  // namespace neml2_capi::aoti::libtorch
