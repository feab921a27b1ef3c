#include "capi/artifact/locate.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "capi/archive/files.h"
#include "capi/base/error.h"
#include "capi/base/sort.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::artifact {

namespace {

namespace fs = std::filesystem;

// Device families for which NEML2 compiles. This library runs the first two.
constexpr std::array<std::string_view, 5> device_families = {"cpu", "cuda", "xpu", "hip", "mps"};

bool is_family(const std::string& name) {
  return std::find(device_families.begin(), device_families.end(), name) != device_families.end();
}

std::string listed(std::vector<std::string> names) {
  heap_sort(names);
  std::string text;
  for (const std::string& name : names) add_name(text, name);
  return text.empty() ? "none" : text;
}

// Lists a folder; what cannot be listed is empty, unless a limit of the process is the reason.
fs::directory_iterator entries_of(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entries(folder, error);
  if (refusals::is_limit(error.value()))
    throw refusals::LimitError(NEML2_ERROR_FILE, folder.string(),
                               join("Cannot list ", folder.string(), ": ", refusals::why(error.value()), ". ",
                                    refusals::remedy(error.value(), "")));
  return entries;
}

std::vector<fs::path> folders_of(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : entries_of(root))
    if (entry.is_directory(ignored)) folders.push_back(entry.path());
  return folders;
}

// Returns "cpu/float64, cuda/float64": of packages, and of kernels alone. Also of an artifact in memory.
std::set<std::string> present_leaves(const fs::path& root) {
  std::set<std::string> leaves;
  for (const std::string_view family : device_families)
    for (const char* dtype : {"float32", "float64"}) {
      const fs::path leaf = root / family / dtype;
      if (archive::is_folder(leaf) || (family == "cpu" && have_kernels(leaf))) leaves.insert(join(family, "/", dtype));
    }
  return leaves;
}

// Returns the <model>_meta.json files of a folder.
std::vector<fs::path> metadata_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : entries_of(folder))
    if (entry.path().filename().string().ends_with("_meta.json") && entry.is_regular_file(ignored))
      files.push_back(entry.path());
  return files;
}

bool is_artifact(const fs::path& folder) {
  return archive::is_file(folder / "metadata.json") || !metadata_files(folder).empty();
}

// Tells of artifacts below and above a folder that is none: those who name one are often a folder away.
std::string nearby(const fs::path& folder) {
  constexpr std::size_t most_entries = 1000;
  std::vector<std::string> found;
  std::size_t looked = 0;
  for (const fs::path& child : folders_of(folder)) {
    if (++looked > most_entries) break;
    if (is_artifact(child)) {
      found.push_back(child.string());
      continue;
    }
    for (const fs::path& grandchild : folders_of(child)) {
      if (++looked > most_entries) break;
      if (is_artifact(grandchild)) found.push_back(grandchild.string());
    }
  }
  fs::path parent = folder.lexically_normal();
  for (int i = 0; i < 4 && found.empty() && parent.has_relative_path(); ++i) {
    parent = parent.parent_path();
    if (!parent.empty() && is_artifact(parent)) found.push_back(parent.string());
  }
  if (found.empty()) return "Pass the folder that neml2-compile wrote.";
  return join(found.size() > 1 ? "There are artifacts in " : "There is an artifact in ", listed(found),
              ": pass that path.");
}

fs::path only_file(const std::vector<fs::path>& files, const fs::path& folder) {
  if (files.size() == 1) return files.front();
  std::vector<std::string> names;
  for (const fs::path& file : files) names.push_back(file.filename().string());
  throw Error(NEML2_ERROR_NAME, folder.string(),
              join("The folder ", folder.string(), " holds several models: ", listed(names),
                   ". Pass the path of one of these files."));
}

Error wrong_device(const fs::path& path, const std::string& family, const std::string& present) {
  return Error(NEML2_ERROR_UNSUPPORTED, family,
               join("The artifact ", path.string(), " was not compiled for ", family, ". Present: ", present,
                    ". Compile it with neml2-compile --device ", family, "."));
}

fs::path find_in_folder(const fs::path& folder, const std::string& family) {
  if (fs::path file = folder / "metadata.json"; archive::is_file(file)) return file;
  for (const fs::path& parent : {folder, folder / family})
    if (const auto files = metadata_files(parent); !files.empty()) return only_file(files, parent);

  const std::string name = folder.filename().string();
  if (fs::path file = folder.parent_path() / "metadata.json"; is_family(name) && archive::is_file(file)) {
    if (name != family) throw wrong_device(folder, family, name);
    return file;
  }
  std::vector<std::string> others;
  for (const fs::path& device : folders_of(folder))
    if (is_family(device.filename().string()) && !metadata_files(device).empty())
      others.push_back(device.filename().string());
  if (!others.empty()) throw wrong_device(folder, family, listed(others));
  throw Error(NEML2_ERROR_FILE, folder.string(),
              join("There is no file ", (folder / "metadata.json").string(), ", nor a file ", folder.string(),
                   "/<model>_meta.json. ", nearby(folder)));
}

// Files of an artifact, and of what holds one, that are not its metadata.
bool is_another_file(const fs::path& path) {
  constexpr std::array<std::string_view, 11> others = {".pt2", ".zip",   ".gz", ".xz", ".tar", ".so",
                                                       ".dll", ".dylib", ".c",  ".h",  ".npz"};
  return std::find(others.begin(), others.end(), path.extension().string()) != others.end() ||
         path.filename() == "kernels.json";
}

}  // namespace

std::string device_family(const std::string& device) {
  const std::string family = device.substr(0, device.find(':'));
  if (is_family(family)) return family;
  throw Error(NEML2_ERROR_UNSUPPORTED, device, join("There is no device '", device, "'. Pass 'cpu' or 'cuda'."));
}

void refuse_other_files(const fs::path& path) {
  if (!archive::is_file(path) || !is_another_file(path)) return;
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  throw Error(NEML2_ERROR_FILE, path.string(),
              join("The file ", path.string(), " is no artifact, which is a folder with metadata.json. ",
                   is_artifact(folder) ? join("There is an artifact in ", folder.string(), ": pass that path.")
                                       : nearby(folder),
                   path.extension() == ".pt2" ? " A package alone is opened as a graph." : ""));
}

fs::path find_metadata(const fs::path& path, const std::string& family) {
  if (archive::is_file(path)) return path;
  if (!archive::is_folder(path))
    throw Error(NEML2_ERROR_FILE, path.string(),
                join("There is no folder ", path.string(), ". Pass the folder that holds metadata.json."));
  return find_in_folder(path.has_filename() ? path : path.parent_path(), family);
}

fs::path choose_leaf(const fs::path& root, const std::string& family, const std::string& dtype) {
  fs::path leaf = root / family / dtype;
  if (archive::is_folder(leaf) || have_kernels(leaf)) return leaf;
  const std::set<std::string> present = present_leaves(root);
  const std::string other = dtype == "float64" ? "float32" : "float64";
  throw Error(NEML2_ERROR_UNSUPPORTED, family + "/" + dtype,
              join("The artifact ", root.string(), " was not compiled for ", family, "/", dtype,
                   ". Present: ", listed({present.begin(), present.end()}), ". ",
                   present.contains(family + "/" + other)
                       ? join("Open it with dtype=\"", other, "\" (in C, the field dtype of neml2_source), or compile")
                       : std::string("Compile"),
                   " it with neml2-compile --device ", family, " --dtype ", dtype, "."));
}

fs::path kernels_folder(const fs::path& leaf) { return leaf.parent_path().parent_path() / "kernels" / leaf.filename(); }

bool have_kernels(const fs::path& leaf) {
  return leaf.parent_path().filename() == device_families[0] && archive::is_file(kernels_folder(leaf) / "kernels.json");
}

void require_runnable(const fs::path& leaf, const std::string& family) {
  if (family != device_families[0] && family != device_families[1])
    throw Error(NEML2_ERROR_UNSUPPORTED, family,
                join("The packages in ", leaf.string(), " are for the device '", family,
                     "'. This version runs on 'cpu' and 'cuda': compile the model for one of these."));
}

}  // namespace neml2_capi::artifact
