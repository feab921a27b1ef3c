// The folder of an artifact's kernels: what kernels.json says, and every kind of damage to it or to the objects.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "capi/archive/sha256.h"
#include "capi/base/limits.h"
#include "capi/kernels/folder.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using kernels::Folder;
using nlohmann::json;

namespace {

namespace fs = std::filesystem;

// A copy of the kernels of an example, without its packages.
class Artifact {
 public:
  Artifact() {
    fs::create_directories(leaf());
    fs::create_directories(folder().parent_path());
    fs::copy(kernels_of_the_example(), folder());
  }
  fs::path leaf() const { return root_ / "cpu/float64"; }
  fs::path folder() const { return root_ / "kernels/float64"; }
  json document() const { return json::parse(read_file(kernels_of_the_example() / "kernels.json")); }
  void write(const std::string& text) const { write_file(folder() / "kernels.json", text); }
  std::unique_ptr<const Folder> open(const json& document, bool alone = false) const {
    write(document.dump());
    return Folder::open(leaf(), alone);
  }
  void refused(const std::string& message, const json& document, std::int32_t status = NEML2_ERROR_ARTIFACT) const {
    expect_error(status, message, [&] { open(document); });
  }

 private:
  static fs::path kernels_of_the_example() {
    return example("elasticity").parent_path().parent_path().parent_path() / "kernels" / "float64";
  }

  Scratch root_;
};

void kernels_are_found() {
  const Artifact a;
  const auto folder = a.open(a.document(), true);
  expect(folder->has("elasticity.pt2") && folder->has("elasticity_jvp.pt2"), "both kernels");
  expect(folder->find("elasticity.pt2").lanes > 0 && folder->real() == DType::float64, "in double precision");
  expect(folder->target() == "aarch64" || folder->target().starts_with("x86-64-v"), "for this machine");
  const kernels::Arrays& arrays = folder->arrays("elasticity.pt2");
  expect(arrays.inputs.at(0).name == "strain" && arrays.inputs[0].shape == Dims{6}, "its inputs");
  expect(arrays.inputs[0].per_point && arrays.outputs.at(0).name == "stress", "and outputs");
  expect(!folder->has("viscoplastic.pt2"), "another package has none");
  expect_error(NEML2_ERROR_UNSUPPORTED, "viscoplastic.pt2 has no kernel: none was made",
               [&] { folder->find("viscoplastic.pt2"); });
}

void there_need_be_no_kernels() {
  const Artifact a;
  json document = a.document();
  document["kernels"] = json::array();
  document["missing"] = json::parse(R"([{"package": "cpu/float64/elasticity.pt2", "reason": "it is too large"}])");
  const auto folder = a.open(document);
  expect_error(NEML2_ERROR_UNSUPPORTED, "elasticity.pt2 has no kernel: it is too large",
               [&] { folder->find("elasticity.pt2"); });
  fs::remove(a.folder() / "kernels.json");
  expect(!Folder::open(a.leaf()), "no folder of kernels");
}

void a_kernel_goes_with_its_package() {
  const Artifact a;
  const fs::path package = a.leaf() / "elasticity.pt2";
  write_file(package, zip({{"a.txt", "another package"}}));
  const std::string reason = "it was made for another elasticity.pt2";
  const auto replaced = a.open(a.document());
  expect(!replaced->has("elasticity.pt2") && replaced->has("elasticity_jvp.pt2"), "the other one is not there");
  expect_error(NEML2_ERROR_UNSUPPORTED, reason, [&] { replaced->find("elasticity.pt2"); });
  json document = a.document();
  document["kernels"][0]["package_checksum"] = archive::directory_checksum(package);
  expect(a.open(document)->has("elasticity.pt2"), "the package that it was made with");
  document["kernels"][0]["package_checksum"] = nullptr;
  expect_error(NEML2_ERROR_UNSUPPORTED, reason, [&] { a.open(document)->find("elasticity.pt2"); });
  write_file(package, "no archive");
  a.refused("it is not a zip archive", a.document());
}

void a_damaged_document_is_refused() {
  const Artifact a;
  json document = a.document();
  document["version"] = 2;
  a.refused("kernels.json is of version 2, expected 1", document);
  document = a.document();
  document["kernels"][1]["graph_checksum"] = std::string(64, '0');
  a.refused("has no kernel elasticity_jvp of the graph in kernels.json; run neml2-capi build-kernels", document);
  document = a.document();
  document["kernels"][0]["name"] = "viscoplastic";
  a.refused("has no kernel viscoplastic", document);
  document = a.document();
  for (json& object : document["objects"]) object["file"] = "../libm.so.6";
  a.refused("expected the plain name of a file", document);
  document = a.document();
  document["kernels"][0].erase("package");
  a.refused("kernels[0] has no field 'package'", document);
  a.write("not JSON");
  expect_error(NEML2_ERROR_ARTIFACT, "kernels.json is not JSON", [&] { Folder::open(a.leaf()); });
  fs::resize_file(a.folder() / "kernels.json", limits::json_bytes + 1);
  expect_error(NEML2_ERROR_ARTIFACT, "kernels.json cannot be read", [&] { Folder::open(a.leaf()); });
}

void objects_for_other_machines_are_passed_over() {
  const Artifact a;
  json document = a.document();
  for (json& object : document["objects"]) object["target"] = "riscv64";
  a.refused("Build them here: neml2-capi build-kernels", document, NEML2_ERROR_UNSUPPORTED);
  document = a.document();
  for (json& object : document["objects"]) object["lanes"] = 3;
  a.refused("No object in", document, NEML2_ERROR_UNSUPPORTED);
  // Lanes of float32 are others.
  document = a.document();
  for (json& kernel : document["kernels"]) kernel["real"] = "float32";
  a.refused("No object in", document, NEML2_ERROR_UNSUPPORTED);
}

// Damage of the object's bytes.
using Damage = std::function<void(std::string&)>;

// Objects with the damage, of which kernels.json has the checksum if they were `built` so.
void with_objects(const Damage& damage, const std::string& message, bool built = false) {
  const Artifact a;
  json document = a.document();
  for (json& object : document["objects"]) {
    const fs::path file = a.folder() / object["file"].get<std::string>();
    std::string bytes = read_file(file);
    damage(bytes);
    if (built) object["checksum"] = archive::sha256(bytes);
    fs::remove(file);
    if (!bytes.empty()) write_file(file, bytes);
  }
  a.refused(message, document);
}

// The dynamic loader ends the process at most of these.
void a_damaged_object_is_refused() {
  const std::string changed = "is not the object that kernels.json tells of; run neml2-capi build-kernels ARTIFACT";
  with_objects([](std::string& bytes) { bytes.clear(); }, "is missing or empty; run neml2-capi build-kernels ARTIFACT");
  with_objects([](std::string& bytes) { bytes.resize(100); }, changed);
  with_objects([](std::string& bytes) { bytes.resize(bytes.size() / 2); }, changed);
  with_objects([](std::string& bytes) { std::fill(bytes.begin() + 4096, bytes.end(), '\0'); }, changed);
  with_objects([](std::string& bytes) { bytes[bytes.size() / 2] ^= 1; }, changed);
  with_objects([](std::string& bytes) { bytes += '\0'; }, changed);
  with_objects([](std::string& bytes) { bytes.resize(100); }, "cannot be loaded: ", true);
}

void an_object_of_something_else_is_refused() {
  with_objects(
      [](std::string& bytes) {
        replace_all(bytes, std::string_view("\0neml2_kernels\0", 15), std::string_view("\0neml2_kernelz\0", 15));
      },
      "has no kernels; run", true);
  with_objects(
      [](std::string& bytes) {
        const std::uint32_t head[] = {NEML2_KERNEL_VERSION, sizeof(neml2_kernel_set)};  // of the set, in its data
        const std::size_t at = bytes.rfind({reinterpret_cast<const char*>(head), sizeof head});
        expect(at != std::string::npos, "the object has a set of kernels");
        bytes[at] = 9;
      },
      join("is of version 9, expected at most ", NEML2_KERNEL_VERSION), true);
}

void a_checksum_is_the_standards() {
  expect(archive::sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "of nothing");
  expect(archive::sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "of abc");
  for (const std::size_t size : {55u, 56u, 63u, 64u, 65u, 119u, 120u, 128u})
    expect(archive::sha256(std::string(size, 'a')).size() == 64, "of any length");
  expect(
      archive::sha256(std::string(1000000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0",
      "of a million letters");
}

}  // namespace

int main() {
  kernels_are_found();
  there_need_be_no_kernels();
  a_kernel_goes_with_its_package();
  a_damaged_document_is_refused();
  objects_for_other_machines_are_passed_over();
  a_damaged_object_is_refused();
  an_object_of_something_else_is_refused();
  a_checksum_is_the_standards();
  return 0;
}
