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
#include <algorithm>
#include <string_view>
#include <system_error>

#include "capi/archive/file_bytes.h"
#include "capi/artifact/hit.h"
#include "capi/artifact/metadata.h"
#include "capi/base/error.h"
#include "capi/base/limits.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

Hit parse(const fs::path& stub) {
  std::error_code ignored;
  if (!fs::is_regular_file(stub, ignored))
    throw Error(NEML2_ERROR_FILE, stub.string(),
                join("There is no file ", stub.string(), ". Pass the stub that neml2-compile wrote."));
  return Hit(stub.string(), archive::FileBytes(stub, limits::stub_bytes).view());
}

// Returns the name if the model is a compiled one, or the name of the only compiled model if it is empty.
std::string find_model(const Hit& root, const fs::path& stub, const std::string& name) {
  std::vector<std::string> compiled;
  std::string names;
  for (const std::string& model : root.blocks_of("Models")) {
    const std::string type = root.text(join("Models/", model, "/type")).value_or("");
    if (type == "AOTIModel") {
      compiled.push_back(model);
      add_name(names, model);
    }
    if (model != name) continue;
    if (type != "AOTIModel")
      throw Error(NEML2_ERROR_NAME, name,
                  join("The model '", name, "' of ", stub.string(), " is of type '", type,
                       "', expected 'AOTIModel'. Pass the stub that neml2-compile wrote."));
    return model;
  }
  if (name.empty() && compiled.size() == 1) return compiled.front();
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

SolverConfig read_solver(const Hit& root, const fs::path& stub, const std::string& name) {
  const auto solvers = root.blocks_of("Solvers");
  if (std::find(solvers.begin(), solvers.end(), name) == solvers.end())
    throw Error(
        NEML2_ERROR_ARTIFACT, name,
        join(stub.string(), " has no solver '", name, "' in [Solvers]. Pass the stub that neml2-compile wrote."));
  const auto field = [&](const char* key) { return join("Solvers/", name, "/", key); };
  const std::string type = root.text(field("type")).value_or("");
  if (type != "Newton" && type != "NewtonWithLineSearch")
    throw Error(NEML2_ERROR_UNSUPPORTED, name,
                join("The solver '", name, "' of ", stub.string(), " is of type '", type,
                     "', expected 'Newton' or 'NewtonWithLineSearch'. Compile the model with one of these."));
  // The defaults are NEML2's.
  SolverConfig solver;
  solver.atol = root.real(field("abs_tol")).value_or(1e-10);
  solver.rtol = root.real(field("rel_tol")).value_or(1e-8);
  solver.miters = root.integer(field("max_its")).value_or(25);
  if (type == "Newton") return solver;
  solver.ls_type = root.text(field("linesearch_type")).value_or("BACKTRACKING");
  solver.ls_max_iters = root.integer(field("max_linesearch_iterations")).value_or(10);
  solver.ls_cutback = root.real(field("linesearch_cutback")).value_or(2.0);
  solver.ls_c = root.real(field("linesearch_stopping_criteria")).value_or(1e-3);
  return solver;
}

}  // namespace

Stub read_stub(const fs::path& path, const std::string& name) {
  const Hit root = parse(path);
  const std::string model = find_model(root, path, name);
  const auto field = [&](const char* key) { return root.text(join("Models/", model, "/", key)).value_or(""); };
  std::string recorded = field("artifact_path");
  if (recorded.empty()) recorded = field("meta");
  if (recorded.empty())
    throw Error(NEML2_ERROR_ARTIFACT, model,
                join(path.string(), ": Models/", model,
                     " has no field 'artifact_path'. Pass the stub that neml2-compile wrote."));
  Stub stub{resolved(recorded, path.parent_path()), std::nullopt};
  if (const std::string solver = field("solver"); !solver.empty()) stub.solver = read_solver(root, path, solver);
  return stub;
}

}  // namespace neml2_capi::artifact
