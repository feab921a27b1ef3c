// Stubs that were written to crash a reader, or to keep it busy: each is refused before it is parsed.
#include "capi/artifact/metadata.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;

namespace {

constexpr const char* model = "[Models]\n [m]\n type = AOTIModel\n artifact_path = 'm'\n []\n[]\n";

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

class Stub {
 public:
  void refused(const std::string& content, const std::string& reason) const {
    write_file(path_, content);
    expect_error(NEML2_ERROR_ARTIFACT, reason, [&] { artifact::read_stub(path_, "m"); });
    expect_error(NEML2_ERROR_ARTIFACT, "model_aoti.i", [&] { artifact::read_stub(path_, "m"); });
  }
  void read(const std::string& content) const {
    write_file(path_, content);
    expect(artifact::read_stub(path_, "m").artifact.filename() == "m", "the stub is read: " + content.substr(0, 40));
  }

 private:
  Scratch scratch_;
  std::filesystem::path path_ = scratch_ / "model_aoti.i";
};

void other_files_are_not_included(const Stub& stub) {
  stub.refused(std::string("!include model_aoti.i\n") + model, "!include");  // itself: without end
  stub.refused(repeated("!include model_aoti.i\n", 100) + model, "!include");
  stub.refused(std::string(model) + "!include /dev/zero\n", "!include");
  stub.read(std::string("# !include model_aoti.i\n") + model);  // of the input file, whose comments a stub keeps
}

void nothing_is_substituted(const Stub& stub) {
  std::string doubling = "a0 = x\n";
  for (int i = 0; i < 60; ++i) doubling += join("a", i + 1, " = '${a", i, "} ${a", i, "}'\n");
  stub.refused(doubling + model, "${");
  stub.refused("[Models]\n [m]\n type = AOTIModel\n artifact_path = ${path}\n []\n[]\n", "${");
  stub.read(std::string("# ${a}\n") + model);
}

void sections_are_not_nested_without_end(const Stub& stub) {
  constexpr int many = 200000;
  stub.refused(repeated("[a]", many) + repeated("[]", many) + model, "nested");
  stub.refused("[" + repeated("a/", many) + "a]\n[]\n" + model, "nested");
  stub.refused(repeated("a/", many) + "a = 1\n" + model, "nested");
}

void a_stub_is_short(const Stub& stub) {
  std::string fields;
  for (int i = 0; i < 200000; ++i) fields += join("a", i, "=1\n");
  stub.refused(fields + model, "expected at most");
  stub.refused(repeated("[a] []\n", 100000) + model, "expected at most");
  stub.refused(repeated("#\n", 2000000) + model, "bytes");
  stub.read(repeated("# a comment of the input file\n", 1000) + model);
}

}  // namespace

int main() {
  const Stub stub;
  other_files_are_not_included(stub);
  nothing_is_substituted(stub);
  sections_are_not_nested_without_end(stub);
  a_stub_is_short(stub);
  return 0;
}
