// The HIT stub that neml2-compile writes beside an artifact:
//
//   [Models]
//     [elasticity]
//       type = AOTIModel
//       artifact_path = 'elasticity'
//     []
//   []
#include <nmhit/nmhit.h>

#include <system_error>

#include "capi/artifact/metadata.h"
#include "capi/error.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

std::unique_ptr<nmhit::Node> parse(const fs::path& stub) {
  std::error_code ignored;
  if (!fs::is_regular_file(stub, ignored))
    throw Error(NEML2_ERROR_FILE, stub.string(), join("There is no file ", stub.string(), "."));
  try {
    return nmhit::parse_file(stub);
  } catch (const std::exception& error) {
    throw Error(NEML2_ERROR_ARTIFACT, stub.string(), join(stub.string(), " is not a HIT file: ", error.what()));
  }
}

std::string text_of(const nmhit::Node& model, const char* key) { return model.param_optional<std::string>(key, ""); }

// The models of all [Models] sections.
std::vector<const nmhit::Node*> models_of(const nmhit::Node& root) {
  std::vector<const nmhit::Node*> models;
  for (const nmhit::Node* section : root.children(nmhit::NodeType::Section))
    if (section->path() == "Models")
      for (const nmhit::Node* model : section->children(nmhit::NodeType::Section)) models.push_back(model);
  return models;
}

std::string artifact_path(const fs::path& stub, const std::string& name) {
  const auto root = parse(stub);
  std::string compiled;
  for (const nmhit::Node* model : models_of(*root)) {
    if (text_of(*model, "type") == "AOTIModel") compiled += (compiled.empty() ? "" : ", ") + model->path();
    if (model->path() != name) continue;
    const std::string type = text_of(*model, "type");
    if (type != "AOTIModel")
      throw Error(NEML2_ERROR_NAME, name,
                  join("The model '", name, "' of ", stub.string(), " is of type '", type,
                       "', expected 'AOTIModel'. Pass the stub that neml2-compile wrote."));
    const std::string path = text_of(*model, "artifact_path");
    if (path.empty())
      throw Error(NEML2_ERROR_ARTIFACT, name, join(stub.string(), ": Models/", name, " has no field 'artifact_path'."));
    return path;
  }
  throw Error(NEML2_ERROR_NAME, name,
              join(stub.string(), " has no model '", name,
                   "'. Compiled models in it: ", compiled.empty() ? "none" : compiled, "."));
}

}  // namespace

fs::path artifact_of_stub(const fs::path& stub, const std::string& name) {
  fs::path recorded;
  try {
    recorded = artifact_path(stub, name);
  } catch (const nmhit::Error& error) {  // a field that is not a value
    throw Error(NEML2_ERROR_ARTIFACT, stub.string(), error.what());
  }
  const fs::path folder = stub.parent_path();
  if (recorded.is_relative()) return folder / recorded;

  // An absolute path does not outlive a move of stub and artifact to another place: look beside the stub then.
  std::error_code ignored;
  const fs::path beside = folder / (recorded.has_filename() ? recorded : recorded.parent_path()).filename();
  return !fs::is_directory(recorded, ignored) && fs::is_directory(beside, ignored) ? beside : recorded;
}

}  // namespace neml2_capi::artifact
