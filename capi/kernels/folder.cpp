#include "capi/kernels/folder.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "capi/archive/archive.h"
#include "capi/archive/files.h"
#include "capi/archive/sha256.h"
#include "capi/artifact/locate.h"
#include "capi/artifact/readers.h"
#include "capi/base/error.h"
#include "capi/base/json_document.h"
#include "capi/base/limits.h"
#include "capi/base/locks.h"
#include "capi/kernels/block.h"
#include "capi/platform/memory_file.h"
#include "capi/platform/process.h"
#include "capi/platform/shared_object.h"

namespace neml2_capi::kernels {
namespace {

constexpr std::int64_t version = 1;

// From the one with the widest vectors on.
constexpr const char* targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2", "aarch64", "portable"};

int lanes_on(const std::string& target, DType real) {
  const Functions* found = functions(target.c_str(), itemsize(real));
  return found ? found->lanes : 0;
}

std::vector<Array> arrays_of(const artifact::Field& entries) {
  std::vector<Array> arrays;
  for (const artifact::Field& entry : entries.list())
    arrays.push_back({entry["name"].text(), entry["shape"].shape(), entry["per_point"].boolean()});
  return arrays;
}

// Tells whether kernels.json has as many components for each array as the object has.
bool are_those_of(const Arrays& arrays, const neml2_kernel& kernel) {
  bool same = std::ssize(arrays.inputs) == kernel.input_count && std::ssize(arrays.outputs) == kernel.output_count;
  for (std::int32_t i = 0; same && i < kernel.input_count; ++i)
    same = arrays.inputs[static_cast<std::size_t>(i)].shape.product() == kernel.inputs[i].components;
  for (std::int32_t i = 0; same && i < kernel.output_count; ++i) {
    const neml2_kernel_sparse* sparse = sparse_of(kernel, i);
    same = arrays.outputs[static_cast<std::size_t>(i)].shape.product() ==
           (sparse ? sparse->size : kernel.outputs[i].components);
  }
  return same;
}

// Tells whether a kernel was made with the package that is there. If none is there, the kernels are all.
bool fits(const artifact::Field& kernel, const std::filesystem::path& package) {
  if (!archive::is_file(package)) return true;
  const artifact::Field checksum = kernel["package_checksum"];
  return !checksum.is_null() && checksum.integer() == static_cast<std::int64_t>(archive::directory_checksum(package));
}

Error damaged(const std::filesystem::path& path, const std::string& problem, const char* remedy = "compile the model") {
  return Error(NEML2_ERROR_ARTIFACT, path.filename().string(),
               join(path.string(), " ", problem, "; ", remedy, " again."));
}

constexpr const char* linked_again = ". Write kernels and artifact again: neml2-capi static ARTIFACT -o FILE.c";

Error damaged_object(const std::filesystem::path& path, const std::string& problem) {
  return damaged(path, problem, "run neml2-capi build-kernels ARTIFACT");
}

const neml2_kernel_set* mapped(const std::filesystem::path& path, const std::string& content) {
  const platform::MemoryFile file(path.filename().string(), content, archive::mounted(path) ? "" : path);
  std::string reason;
  void* object = platform::open_shared(file.path().c_str(), reason);  // for the life of the process, as packages
  if (!object) throw damaged_object(path, join("cannot be loaded: ", reason));
  const auto kernels = reinterpret_cast<const neml2_kernel_set* (*)()>(platform::function_of(object, "neml2_kernels"));
  if (!kernels) throw damaged_object(path, "has no kernels");
  const neml2_kernel_set* set = kernels();
  if (set->version < 1 || set->version > NEML2_KERNEL_VERSION)
    throw damaged_object(path, join("is of version ", set->version, ", expected at most ", NEML2_KERNEL_VERSION));
  return set;
}

constinit locks::Lazy<std::map<std::string, const neml2_kernel_set*>> all_known;
constinit locks::Mutex mutex;

// Maps each content once. An object that was built again has another content under the same path. One that is cut or
// damaged is found by its checksum: the dynamic loader would crash on it, or its numbers be wrong.
const neml2_kernel_set& load(const std::filesystem::path& path, const std::string& checksum) {
  auto& known = all_known.get();
  const std::string content = archive::read(path).value_or("");
  if (content.empty()) throw damaged_object(path, "is missing or empty");
  const std::lock_guard lock(mutex);
  // First a place, then the object: one that is mapped stays, and must be found again.
  const neml2_kernel_set*& set = known[content];
  if (!set) {
    if (archive::sha256(content) != checksum)
      throw damaged_object(path, "is not the object that kernels.json tells of");
    set = mapped(path, content);
  }
  return *set;
}

// Returns the system that an object is for.
std::string system_of(const artifact::Field& object) {
  const auto system = object.find("system");
  return system ? system->text() : "linux";
}

// Names the targets of the objects, behind a colon.
std::string built_for(const artifact::Field& document) {
  std::string names;
  for (const artifact::Field& entry : document["objects"].list()) {
    const std::string system = system_of(entry);
    add_name(names, entry["target"].text() + (system == "linux" ? "" : " on " + system));
  }
  return names.empty() ? ": they are not built" : ": they are for " + names;
}

// Returns a line for each kernel.
std::string graphs_of(const std::vector<artifact::Field>& kernels) {
  std::string lines;
  for (const artifact::Field& kernel : kernels) {
    const auto graph = kernel.find("graph_checksum");
    const artifact::Field checksum = graph && !graph->is_null() ? *graph : kernel["source_checksum"];
    lines += join(kernel["name"].text(), " ", checksum.text(), "\n");
  }
  return lines;
}

std::unique_ptr<const JsonDocument> parsed(const std::string& file) {
  const std::optional<std::string> text = archive::read(file, limits::json_bytes);
  if (!text) throw damaged(file, "cannot be read");
  try {
    return std::make_unique<const JsonDocument>(*text);
  } catch (const JsonError& error) {
    throw damaged(file, join("is not JSON: ", error.what()));
  }
}

}  // namespace

const neml2_kernel_sparse* sparse_of(const neml2_kernel& kernel, std::int32_t output) {
  if (kernel.version < 2) return nullptr;
  for (std::int32_t i = 0; i < kernel.sparse_count; ++i)
    if (kernel.sparse[i].output == output) return &kernel.sparse[i];
  return nullptr;
}

std::unique_ptr<const Folder> Folder::open(const std::filesystem::path& leaf, bool alone,
                                           const neml2_kernel_set* linked) {
  if (!artifact::have_kernels(leaf)) return nullptr;
  std::unique_ptr<Folder> folder(new Folder(artifact::kernels_folder(leaf)));
  const std::string file = (folder->folder_ / "kernels.json").string();
  const auto json = parsed(file);
  const artifact::Field document(file, json->root());
  if (const auto found = document["version"].integer(); found != version)
    throw damaged(file, join("is of version ", found, ", expected ", version));
  for (const artifact::Field& entry : document["missing"].list())
    folder->missing_[std::filesystem::path(entry["package"].text()).filename().string()] = entry["reason"].prose();
  const auto kernels = document["kernels"].list();
  folder->graphs_ = graphs_of(kernels);
  if (kernels.empty()) return folder;
  folder->real_ = kernels.front()["real"].text() == "float32" ? DType::float32 : DType::float64;
  if (linked) {
    folder->take(folder->checked(*linked), document, leaf, alone);
    return folder;
  }
  const neml2_kernel_set* set = folder->widest(document, std::numeric_limits<std::int64_t>::max());
  if (!set)
    throw Error(NEML2_ERROR_UNSUPPORTED, "kernels",
                join("No object in ", folder->folder_.string(), " is for this machine", built_for(document),
                     ". Build them here: neml2-capi build-kernels ARTIFACT --system ", platform::system_name));
  folder->take(*set, document, leaf, alone);
  try {
    std::unique_ptr<Folder> narrower(new Folder(folder->folder_));
    narrower->real_ = folder->real_;
    narrower->missing_ = folder->missing_;
    set = narrower->widest(document, lanes_on(folder->target_, folder->real_));
    if (set) {
      narrower->take(*set, document, leaf, alone);
      folder->narrower_ = std::move(narrower);
    }
  } catch (const Error&) {  // it is not needed
  }
  return folder;
}

const neml2_kernel_set* Folder::widest(const artifact::Field& document, std::int64_t lanes) {
  const auto objects = document["objects"].list();
  for (const char* target : targets)
    for (const artifact::Field& entry : objects)
      if (const auto found = entry["lanes"].integer(); entry["target"].text() == target &&
                                                       system_of(entry) == platform::system_name &&
                                                       lanes_on(target, real_) == found && found < lanes) {
        object_ = artifact::read_package(entry["file"]);
        target_ = target;
        return &load(folder_ / object_, entry["checksum"].text());
      }
  return nullptr;
}

const neml2_kernel_set& Folder::checked(const neml2_kernel_set& linked) {
  if (linked.version < 1 || linked.version > NEML2_KERNEL_VERSION || linked.count < 1)
    throw Error(NEML2_ERROR_ARTIFACT, "kernels",
                join("The kernels that are linked in are of version ", linked.version, ", expected at most ",
                     NEML2_KERNEL_VERSION, linked_again));
  const std::int32_t lanes = linked.kernels[0]->lanes;
  for (const char* target : targets)
    if (target_.empty() && lanes_on(target, real_) == lanes) target_ = target;
  if (target_.empty())
    throw Error(NEML2_ERROR_UNSUPPORTED, "kernels",
                join("The kernels that are linked in have blocks of ", lanes,
                     " points, which do not run on this "
                     "processor. Compile them with the NEML2_KERNEL_LANES that their file sets."));
  return linked;
}

void Folder::take(const neml2_kernel_set& set, const artifact::Field& document, const std::filesystem::path& leaf,
                  bool alone) {
  for (const artifact::Field& entry : document["kernels"].list()) {
    const std::string name = entry["name"].text(), graph = entry["graph_checksum"].text();
    const std::string package = std::filesystem::path(entry["package"].text()).filename().string();
    const neml2_kernel* kernel = nullptr;
    for (int i = 0; i < set.count; ++i)
      if (set.kernels[i]->name == name && set.kernels[i]->checksum == graph) kernel = set.kernels[i];
    if (!kernel && object_.empty())
      throw Error(NEML2_ERROR_ARTIFACT, "kernels",
                  join("The kernels that are linked in, of ", set.model, ", have no kernel ", name, " of the graph in ",
                       (folder_ / "kernels.json").string(), linked_again));
    if (!kernel) throw damaged_object(folder_ / object_, join("has no kernel ", name, " of the graph in kernels.json"));
    if (!fits(entry, leaf / package)) {
      missing_[package] = "it was made for another " + package + ": compile the model again";
      continue;
    }
    kernels_[package] = kernel;
    auto& of_scalars = of_scalars_[package];
    for (const artifact::Field& output : entry["outputs"].list()) {
      const auto found = output.find("of_scalars");
      of_scalars.push_back(found ? found->each(&artifact::Field::integer) : std::vector<std::int64_t>());
    }
    if (!alone) continue;
    const Arrays& arrays = arrays_[package] = {arrays_of(entry["inputs"]), arrays_of(entry["outputs"])};
    if (!are_those_of(arrays, *kernel))
      throw damaged(folder_ / "kernels.json",
                    join("has other shapes for ", name, " than ", object_.empty() ? "the program" : object_));
  }
}

bool Folder::has_sites_in_lanes() const {
  return std::any_of(kernels_.begin(), kernels_.end(),
                     [](const auto& entry) { return newer(*entry.second, &neml2_kernel::sites) > 0; });
}

const neml2_kernel& Folder::find(const std::string& package) const {
  const auto it = kernels_.find(package);
  if (it != kernels_.end()) return *it->second;
  const auto reason = missing_.find(package);
  throw Error(NEML2_ERROR_UNSUPPORTED, package,
              join(package, " has no kernel: ", reason == missing_.end() ? "none was made" : reason->second, "."));
}

}  // namespace neml2_capi::kernels
