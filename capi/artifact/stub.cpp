// Reads the HIT stub that neml2-compile writes beside an artifact:
//
//   [Models]
//     [elasticity]
//       type = AOTIModel
//       artifact_path = 'elasticity'
//     []
//   []
//
// Until NEML2 3.0.3 the model has a field `meta` instead, the path of the metadata. From 3.0.4 to 3.0.6 the path is
// absolute, and a field `solver` names a block of [Solvers], the settings of Newton's method.
#include <nmhit/nmhit.h>

#include <algorithm>
#include <string_view>
#include <system_error>

#include "capi/archive/file_bytes.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

Error malformed(const fs::path& stub, const std::string& why) {
  return Error(NEML2_ERROR_ARTIFACT, stub.string(),
               join(stub.string(), " ", why, ". Pass the stub that neml2-compile wrote."));
}

// Returns the first message of the parser, with its place: "model_aoti.i:3:2: node has no value".
std::string first_of(const nmhit::Error& error, const fs::path& stub) {
  if (error.messages.empty()) return error.what();
  const nmhit::ErrorMessage& first = error.messages.front();
  return join(stub.string(), ":", first.line, ":", first.column, ": ", first.message);
}

// Returns the text with blanks instead of comments, which keep what the input file says.
std::string without_comments(std::string_view text) {
  std::string plain(text);
  for (std::size_t at = plain.find('#'); at != std::string::npos; at = plain.find('#', at)) {
    const std::size_t end = std::min(plain.find('\n', at), plain.size());
    std::fill(plain.begin() + static_cast<std::ptrdiff_t>(at), plain.begin() + static_cast<std::ptrdiff_t>(end), ' ');
  }
  return plain;
}

// Refuses what no stub needs, and what the parser, which calls itself, is not made for. It follows includes and
// substitutions without end.
void require_plain(const fs::path& stub, std::string_view text) {
  for (const char* mark : {"!include", "${"})
    if (text.find(mark) != std::string_view::npos)
      throw malformed(stub, join("has '", mark, "', which no stub needs and which is not followed"));
  std::size_t depth = 0, path = 0, sections = 0, fields = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool closes = text.substr(i, 2) == "[]";
    const bool opens = text[i] == '[' && !closes;
    sections += opens;
    fields += text[i] == '=';
    depth += opens;
    depth -= closes && depth > 0;
    path = text[i] == '/' ? path + 1 : text[i] == ' ' || text[i] == '\n' || text[i] == '[' ? 0 : path;
    if (depth > limits::stub_depth || path > limits::stub_path)
      throw malformed(stub, join("is nested more than ", limits::stub_depth, " deep"));
    if (std::max(sections, fields) > limits::stub_entries)
      throw malformed(stub, join("has too many sections or fields; expected at most ", limits::stub_entries));
  }
}

std::unique_ptr<nmhit::Node> parse(const fs::path& stub) {
  std::error_code ignored;
  if (!fs::is_regular_file(stub, ignored))
    throw Error(NEML2_ERROR_FILE, stub.string(),
                join("There is no file ", stub.string(), ". Pass the stub that neml2-compile wrote."));
  const std::string text = without_comments(archive::FileBytes(stub, limits::stub_bytes).view());
  require_plain(stub, text);
  try {
    return nmhit::parse_text(text);
  } catch (const nmhit::Error& error) {
    throw malformed(stub, join("is not a HIT file: ", first_of(error, stub)));
  }
}

std::string text_of(const nmhit::Node& block, const char* key) { return block.param_optional<std::string>(key, ""); }

// Returns the blocks of all sections of this name.
std::vector<const nmhit::Node*> blocks_of(const nmhit::Node& root, const char* name) {
  std::vector<const nmhit::Node*> blocks;
  for (const nmhit::Node* section : root.children(nmhit::NodeType::Section))
    if (section->path() == name)
      for (const nmhit::Node* block : section->children(nmhit::NodeType::Section)) blocks.push_back(block);
  return blocks;
}

// Returns the model of this name, or the only compiled one for an empty name.
const nmhit::Node& find_model(const nmhit::Node& root, const fs::path& stub, const std::string& name) {
  std::vector<const nmhit::Node*> compiled;
  std::string names;
  for (const nmhit::Node* model : blocks_of(root, "Models")) {
    const std::string type = text_of(*model, "type");
    if (type == "AOTIModel") {
      compiled.push_back(model);
      add_name(names, model->path());
    }
    if (model->path() != name) continue;
    if (type != "AOTIModel")
      throw Error(NEML2_ERROR_NAME, name,
                  join("The model '", name, "' of ", stub.string(), " is of type '", type,
                       "', expected 'AOTIModel'. Pass the stub that neml2-compile wrote."));
    return *model;
  }
  if (name.empty() && compiled.size() == 1) return *compiled.front();
  throw Error(NEML2_ERROR_NAME, name,
              join(stub.string(),
                   name.empty() ? std::string(" does not have one compiled model") : " has no model '" + name + "'",
                   ". Compiled models in it: ", names.empty() ? "none" : names, "."));
}

// Returns the recorded path, or the same name beside the stub if stub and artifact were moved together.
fs::path resolved(const fs::path& recorded, const fs::path& folder) {
  std::error_code ignored;
  const fs::path path = folder / recorded;  // `recorded` itself if it is absolute
  const fs::path beside = folder / (recorded.has_filename() ? recorded : recorded.parent_path()).filename();
  return !fs::exists(path, ignored) && fs::exists(beside, ignored) ? beside : path;
}

SolverConfig read_solver(const nmhit::Node& root, const fs::path& stub, const std::string& name) {
  for (const nmhit::Node* block : blocks_of(root, "Solvers")) {
    if (block->path() != name) continue;
    const std::string type = text_of(*block, "type");
    if (type != "Newton" && type != "NewtonWithLineSearch")
      throw Error(NEML2_ERROR_UNSUPPORTED, name,
                  join("The solver '", name, "' of ", stub.string(), " is of type '", type,
                       "', expected 'Newton' or 'NewtonWithLineSearch'. Compile the model with one of these."));
    // The defaults are NEML2's.
    SolverConfig solver;
    solver.atol = block->param_optional("abs_tol", 1e-10);
    solver.rtol = block->param_optional("rel_tol", 1e-8);
    solver.miters = block->param_optional("max_its", 25);
    if (type == "Newton") return solver;
    solver.ls_type = block->param_optional<std::string>("linesearch_type", "BACKTRACKING");
    solver.ls_max_iters = block->param_optional("max_linesearch_iterations", 10);
    solver.ls_cutback = block->param_optional("linesearch_cutback", 2.0);
    solver.ls_c = block->param_optional("linesearch_stopping_criteria", 1e-3);
    return solver;
  }
  throw Error(NEML2_ERROR_ARTIFACT, name,
              join(stub.string(), " has no solver '", name, "' in [Solvers]. Pass the stub that neml2-compile wrote."));
}

Stub read(const fs::path& path, const std::string& name) {
  const auto root = parse(path);
  const nmhit::Node& model = find_model(*root, path, name);
  std::string recorded = text_of(model, "artifact_path");
  if (recorded.empty()) recorded = text_of(model, "meta");
  if (recorded.empty())
    throw Error(NEML2_ERROR_ARTIFACT, model.path(),
                join(path.string(), ": Models/", model.path(),
                     " has no field 'artifact_path'. Pass the stub that neml2-compile wrote."));
  Stub stub{resolved(recorded, path.parent_path()), std::nullopt};
  if (const std::string solver = text_of(model, "solver"); !solver.empty())
    stub.solver = read_solver(*root, path, solver);
  return stub;
}

}  // namespace

Stub read_stub(const fs::path& stub, const std::string& name) {
  try {
    return read(stub, name);
  } catch (const nmhit::Error& error) {  // a field that is not a value, or not of the expected type
    throw Error(NEML2_ERROR_ARTIFACT, stub.string(), first_of(error, stub));
  }
}

}  // namespace neml2_capi::artifact
