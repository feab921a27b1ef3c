// Which leaf of an artifact to load, and which reader understands its metadata.
#include "capi/artifact/metadata.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>

#include "capi/artifact/field.h"
#include "capi/artifact/schema.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

// The device families for which NEML2 compiles. The built-in provider runs the first.
constexpr std::array<std::string_view, 5> device_families = {"cpu", "cuda", "xpu", "hip", "mps"};

nlohmann::json read_json(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw Error(NEML2_ERROR_FILE, path.string(), join(path.string(), " cannot be read."));
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {
    throw Error(NEML2_ERROR_ARTIFACT, path.string(), join(path.string(), " is not JSON: ", error.what()));
  }
}

// "cpu/float64, cuda/float64", or "none"
std::string present_leaves(const fs::path& root) {
  std::vector<std::string> leaves;
  std::error_code ignored;
  for (const fs::directory_entry& device : fs::directory_iterator(root, ignored))
    if (device.is_directory(ignored))
      for (const fs::directory_entry& dtype : fs::directory_iterator(device, ignored))
        if (dtype.is_directory(ignored))
          leaves.push_back(device.path().filename().string() + "/" + dtype.path().filename().string());
  std::sort(leaves.begin(), leaves.end());
  std::string text;
  for (const std::string& leaf : leaves) text += (text.empty() ? "" : ", ") + leaf;
  return text.empty() ? "none" : text;
}

// The family of a device: "cuda" of "cuda:0".
std::string device_family(const std::string& device) {
  const std::string family = device.substr(0, device.find(':'));
  if (std::find(device_families.begin(), device_families.end(), family) == device_families.end())
    throw Error(NEML2_ERROR_UNSUPPORTED, device,
                join("There is no device '", device, "'. This version runs on 'cpu'."));
  return family;
}

DType leaf_dtype(const std::string& name) {
  for (const DType dtype : {DType::float64, DType::float32})
    if (name == name_of(dtype)) return dtype;
  throw Error(NEML2_ERROR_UNSUPPORTED, name,
              join("The element type of a model is 'float64' or 'float32', not '", name, "'."));
}

fs::path choose_leaf(const fs::path& root, const std::string& device, const std::string& dtype) {
  const std::string family = device_family(device);
  fs::path leaf = root / family / dtype;
  std::error_code ignored;
  if (!fs::is_directory(leaf, ignored))
    throw Error(NEML2_ERROR_UNSUPPORTED, family + "/" + dtype,
                join("The artifact ", root.string(), " was not compiled for ", family, "/", dtype,
                     ". Present: ", present_leaves(root), ". Compile it with neml2-compile --device ", family,
                     " --dtype ", dtype, "."));
  if (family != device_families.front())
    throw Error(
        NEML2_ERROR_UNSUPPORTED, device,
        join("The packages in ", leaf.string(), " are for the device '", family, "'. This version runs on 'cpu'."));
  return leaf;
}

// Those that the metadata names.
std::vector<std::string> present(std::vector<std::string> packages) {
  std::erase(packages, "");
  return packages;
}

std::vector<std::string> packages_of(const Segment& segment) {
  if (const auto* forward = std::get_if<ForwardSegment>(&segment))
    return present({forward->value.package, forward->jacobian_package, forward->parameter_jacobian_package});
  const auto& implicit = std::get<ImplicitSegment>(segment);
  std::vector<std::string> packages = {implicit.residual_package,
                                       implicit.jacobian_package,
                                       implicit.solve_package,
                                       implicit.matvec_package,
                                       implicit.preconditioner_setup_package,
                                       implicit.preconditioner_apply_package};
  if (implicit.predictor) packages.push_back(implicit.predictor->package);
  for (const auto& sensitivity : {implicit.given_sensitivity, implicit.parameter_sensitivity})
    if (sensitivity) packages.insert(packages.end(), {sensitivity->operator_package, sensitivity->solve_package});
  return present(std::move(packages));
}

void require_packages(const Metadata& metadata) {
  std::error_code ignored;
  for (std::size_t i = 0; i < metadata.segments.size(); ++i)
    for (const std::string& package : packages_of(metadata.segments[i]))
      if (!fs::is_regular_file(metadata.leaf / package, ignored))
        throw Error(NEML2_ERROR_FILE, package,
                    join("The package ", (metadata.leaf / package).string(), ", which segments[", i,
                         "] of the metadata names, is missing."));
}

}  // namespace

Metadata read_metadata(const fs::path& root, const std::string& device, const std::string& dtype) {
  std::error_code ignored;
  if (!fs::is_directory(root, ignored))
    throw Error(NEML2_ERROR_FILE, root.string(),
                join("There is no folder ", root.string(), ". An artifact is the folder that holds metadata.json."));
  const fs::path path = root / "metadata.json";
  if (!fs::is_regular_file(path, ignored))
    throw Error(NEML2_ERROR_FILE, path.string(),
                join("There is no file ", path.string(), ". An artifact is the folder that holds metadata.json."));

  const std::string file = path.string();
  const nlohmann::json json = read_json(path);
  const Field document(file, json);
  if (const Field schema = document["schema_version"]; schema.integer() != 14)
    throw schema.error(
        join("is ", schema.integer(),
             ". This version reads schema 14, which neml2-compile of NEML2 3.1 writes. Compile the model "
             "with that."),
        NEML2_ERROR_UNSUPPORTED);

  Metadata metadata = read_schema14(document);
  metadata.dtype = leaf_dtype(dtype);
  metadata.leaf = choose_leaf(root, device, dtype);
  require_packages(metadata);
  return metadata;
}

}  // namespace neml2_capi::artifact
