// Chooses the reader of an artifact's schema, and checks that its packages are there.
#include "capi/artifact/metadata.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "capi/archive/crc32.h"
#include "capi/archive/file_bytes.h"
#include "capi/archive/files.h"
#include "capi/artifact/field.h"
#include "capi/artifact/locate.h"
#include "capi/artifact/readers.h"
#include "capi/artifact/schema.h"
#include "capi/base/json_document.h"
#include "capi/base/limits.h"
#include "capi/base/log.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

// A JSON document, and the CRC-32 of its text.
struct Document {
  explicit Document(std::string_view text) : tree(text), checksum(archive::crc32(text)) {}

  JsonDocument tree;
  std::uint32_t checksum;
};

Document read_json(const fs::path& path, const char* remedy) {
  std::optional<archive::FileBytes> file;
  const auto content = archive::mounted(path);
  if (!content) file.emplace(path, limits::json_bytes);
  try {
    return Document(content ? *content : file->view());
  } catch (const JsonError& error) {
    throw Error(NEML2_ERROR_ARTIFACT, path.string(), join(path.string(), " is not JSON: ", error.what(), ". ", remedy));
  }
}

// Returns the checksum of the metadata that kernels.json tells, empty if it tells none. Each loading asks: the text is
// searched, and only the kernels' own reader parses it.
std::string told_checksum(const fs::path& file) {
  const std::string text = archive::read(file, limits::json_bytes).value_or("");
  constexpr std::string_view key = "\"metadata_checksum\":";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return "";
  const std::size_t begin = std::min(text.find_first_not_of(" \n\r\t", at + key.size()), text.size());
  const std::string told = text.substr(begin, text.find_first_of(",}\n\r", begin) - begin);
  return told == "null" ? "" : told.substr(0, 20);
}

// Refuses metadata that were changed since the kernels beside them were written, which tell their checksum. Artifacts of
// neml2-compile alone tell none.
void require_unchanged(const fs::path& path, std::uint32_t checksum, const fs::path& leaf) {
  if (!have_kernels(leaf)) return;
  const std::string told = told_checksum(kernels_folder(leaf) / "kernels.json");
  if (told.empty() || told == std::to_string(checksum)) return;
  throw Error(NEML2_ERROR_ARTIFACT, path.string(),
              join(path.string(), " is not as it was when the model was compiled: its CRC-32 is ", checksum,
                   ", expected ", told,
                   " of kernels.json. Copy or compile the artifact again; if it was edited with intent, run "
                   "neml2-capi build-kernels ARTIFACT."));
}

DType leaf_dtype(const std::string& name) {
  for (const DType dtype : {DType::float64, DType::float32})
    if (name == name_of(dtype)) return dtype;
  throw Error(NEML2_ERROR_UNSUPPORTED, name,
              join("The element type of a model is 'float64' or 'float32', not '", name, "'."));
}

using Reader = Metadata (*)(const Field&);

Reader reader_of(const Field& document) {
  static constexpr std::pair<std::int64_t, Reader> readers[] = {
      {2, read_schema2}, {3, read_schema3}, {7, read_schema7}, {12, read_schema12}, {14, read_schema14}};
  const Field schema = document["schema_version"];
  const auto reader = std::ranges::find(readers, schema.integer(), &std::pair<std::int64_t, Reader>::first);
  if (reader == std::end(readers))
    throw schema.error(join("is ", schema.integer(),
                            ". This version reads the schemas 2, 3, 7, 12 and 14, of NEML2 3.0.0 to 3.1. Compile the "
                            "model with one of these."),
                       NEML2_ERROR_UNSUPPORTED);
  if (const Field type = document["type"]; type.text() != "composed")
    throw type.error(join("is '", type.text(), "', expected 'composed'."), NEML2_ERROR_UNSUPPORTED);
  return reader->second;
}

Metadata read_by(Reader reader, const Field& document) {
  try {
    return reader(document);
  } catch (const std::length_error&) {  // of shapes that are put together
    throw document.error(join("has a variable of more than ", Dims::capacity, " axes."));
  }
}

// Checks device and element type of an artifact of schema 7 or before, where each device has its own metadata.
fs::path recorded_leaf(const fs::path& folder, const Field& document, const std::string& family,
                       const std::string& dtype) {
  const std::string present = document["device"].text() + "/" + document["dtype"].text();
  if (present != family + "/" + dtype)
    throw Error(NEML2_ERROR_UNSUPPORTED, family + "/" + dtype,
                join("The artifact ", folder.string(), " was compiled for ", present, ", not for ", family, "/", dtype,
                     ". Pass that device and element type, or compile the model again with neml2-compile."));
  return folder;
}

// Returns the names that are not empty: a segment lacks some packages.
std::vector<std::string> named(std::vector<std::string> packages) {
  std::erase(packages, "");
  return packages;
}

std::vector<std::string> packages_of(const Segment& segment) {
  if (const auto* forward = std::get_if<ForwardSegment>(&segment))
    return named({forward->value.package, forward->jacobian_package, forward->parameter_jacobian_package});
  const auto& implicit = std::get<ImplicitSegment>(segment);
  std::vector<std::string> packages = {implicit.residual_package,
                                       implicit.jacobian_package,
                                       implicit.solve_package,
                                       implicit.step_package,
                                       implicit.matvec_package,
                                       implicit.preconditioner_setup_package,
                                       implicit.preconditioner_apply_package};
  if (implicit.predictor) packages.push_back(implicit.predictor->package);
  for (const auto& sensitivity : {implicit.given_sensitivity, implicit.parameter_sensitivity})
    if (sensitivity)
      packages.insert(packages.end(),
                      {sensitivity->operator_package, sensitivity->solve_package, sensitivity->block_package});
  return named(std::move(packages));
}

// Tells whether kernels are all that was written: neml2-capi compile --kernels only.
bool has_only_kernels(const Metadata& metadata) {
  const std::vector<std::string> packages = packages_of(metadata);
  return have_kernels(metadata.leaf) && std::none_of(packages.begin(), packages.end(), [&](const std::string& package) {
           return archive::is_file(metadata.leaf / package);
         });
}

void require_packages(const Metadata& metadata) {
  for (std::size_t i = 0; i < metadata.segments.size(); ++i)
    for (const std::string& package : packages_of(metadata.segments[i]))
      if (!archive::is_file(metadata.leaf / package))
        throw Error(NEML2_ERROR_FILE, package,
                    join("The package ", (metadata.leaf / package).string(), ", which segments[", i,
                         "] of the metadata names, is missing. Copy or compile the artifact again."));
}

// Returns the numbers of one side, `open` for each that is null.
std::vector<double> read_side(const Field& field, double open) {
  std::vector<double> side;
  for (const Field& each : field.list()) side.push_back(each.is_null() ? open : each.number());
  if (side.empty()) throw field.error("is empty.");
  return side;
}

Bound read_bound(const Field& field) {
  Bound bound;
  bound.variable = field["variable"].text();
  bound.physical = read_choice<bool>(field["kind"], {{"validity", false}, {"physical", true}});
  bound.lower = read_side(field["lower"], -std::numeric_limits<double>::infinity());
  bound.upper = read_side(field["upper"], std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < std::max(bound.lower.size(), bound.upper.size()); ++i) {
    const double lower = bound.lower[std::min(i, bound.lower.size() - 1)];
    const double upper = bound.upper[std::min(i, bound.upper.size() - 1)];
    if (!(lower <= upper)) throw field.error(join("has the lower bound ", lower, " above the upper one, ", upper, "."));
  }
  return bound;
}

Metadata read_artifact(const fs::path& path, const std::string& device, const std::string& dtype) {
  const std::string family = device_family(device);
  const fs::path metadata_path = find_metadata(path, family);
  const std::string file = metadata_path.string();
  const Document read = read_json(metadata_path, "Compile the model again with neml2-compile.");
  const Field document(file, read.tree.root());

  Metadata metadata = read_by(reader_of(document), document);
  log::write(log::Channel::model, log::Level::info, "read ", file, ", schema ", document["schema_version"].integer());
  metadata.dtype = leaf_dtype(dtype);
  const fs::path folder = metadata_path.parent_path();
  metadata.leaf = metadata_path.filename() == "metadata.json" ? choose_leaf(folder, family, dtype)
                                                              : recorded_leaf(folder, document, family, dtype);
  require_runnable(metadata.leaf, family);
  require_unchanged(metadata_path, read.checksum, metadata.leaf);
  metadata.kernels_only = has_only_kernels(metadata);
  if (!metadata.kernels_only) require_packages(metadata);
  metadata.file = metadata_path;
  metadata.bounds = read_bounds(folder);
  return metadata;
}

}  // namespace

std::vector<Bound> read_bounds(const fs::path& folder) {
  const fs::path path = folder / "bounds.json";
  if (!archive::is_file(path)) return {};
  const std::string file = path.string();
  const Document read = read_json(path, "Write it again with neml2-capi bounds.");
  const Field document(file, read.tree.root());
  if (const Field version = document["version"]; version.integer() != 1)
    throw version.error(join("is ", version.integer(), "; this version reads 1."), NEML2_ERROR_UNSUPPORTED);
  return document["bounds"].each(read_bound);
}

std::vector<std::string> packages_of(const Metadata& metadata) {
  std::vector<std::string> all;
  std::set<std::string> known;
  for (const Segment& segment : metadata.segments)
    for (const std::string& package : packages_of(segment))
      if (known.insert(package).second) all.push_back(package);
  return all;
}

Metadata read_metadata(const fs::path& path, const std::string& device, const std::string& dtype) {
  refuse_other_files(path);
  std::error_code ignored;
  const bool is_stub = path.extension() != ".json" && fs::is_regular_file(path, ignored);
  return is_stub ? read_stub_metadata(path, "", device, dtype) : read_artifact(path, device, dtype);
}

Metadata read_stub_metadata(const fs::path& path, const std::string& name, const std::string& device,
                            const std::string& dtype) {
  const Stub stub = read_stub(path, name);
  Metadata metadata = read_artifact(stub.artifact, device, dtype);
  if (stub.solver) metadata.solver = *stub.solver;
  return metadata;
}

Metadata read_metadata_in_memory(std::string_view content, const std::string& device, const std::string& dtype) {
  const auto mount = std::make_shared<const archive::Mount>(content);
  Metadata metadata = read_artifact(mount->path(), device, dtype);
  metadata.content = mount;
  return metadata;
}

}  // namespace neml2_capi::artifact
