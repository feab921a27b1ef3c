// Reading stubs: which artifact a model is in, and what is said of a stub that does not tell.
#include "capi/artifact/metadata.h"
#include "tests/cpp/packages.h"

using namespace neml2_capi;
using namespace neml2_capi::testing;
using artifact::read_stub;

namespace {

// A stub beside the folder of its artifact.
class Stub {
 public:
  Stub() { std::filesystem::create_directories(leaf()); }

  std::filesystem::path leaf() const { return folder_ / "cpu" / "float64"; }
  void write(const std::string& text) const { write_file(path_, text); }
  // Writes one with a model "m" in this artifact, and a model that is not compiled.
  void write_model(const std::string& artifact) const {
    write("[Models]\n [m]\n type = AOTIModel\n artifact_path = '" + artifact +
          "'\n []\n [n]\n type = Chaboche\n []\n[]\n");
  }
  void leads_to(const std::filesystem::path& artifact, const std::string& what) const {
    expect(read_stub(path_, "m").artifact == artifact, what);
  }
  void refused(std::int32_t status, const std::string& text, const std::string& model = "m") const {
    expect_error(status, text, [&] { read_stub(path_, model); });
  }

 private:
  Scratch scratch_;
  std::filesystem::path folder_ = scratch_ / "artifact", path_ = folder_ / "model_aoti.i";
};

void an_artifact_is_found(const Stub& stub) {
  const std::filesystem::path artifact = stub.leaf().parent_path();
  stub.write_model("cpu");
  stub.leads_to(artifact, "a relative path");
  stub.write_model("/nowhere/cpu");
  stub.leads_to(artifact, "an absolute path that is gone, beside the stub");
  stub.write_model("/nowhere/cpu/");
  stub.leads_to(artifact, "the same with a slash at its end");
  stub.write_model(stub.leaf().string());
  stub.leads_to(stub.leaf(), "an absolute path");
}

void a_stub_without_a_compiled_model_is_refused(const Stub& stub) {
  stub.refused(NEML2_ERROR_FILE, "There is no file");
  stub.write_model("cpu");
  stub.refused(NEML2_ERROR_NAME, "Compiled models in it: m", "k");
  stub.refused(NEML2_ERROR_NAME, "of type 'Chaboche'", "n");
  stub.write("[Models]\n [m]\n type = AOTIModel\n []\n[]\n");
  stub.refused(NEML2_ERROR_ARTIFACT, "artifact_path");
  stub.write("[Models]\n [m]\n [type]\n []\n []\n[]\n");
  stub.refused(NEML2_ERROR_ARTIFACT, "model_aoti.i:3:2: node has no value");
}

void what_is_not_hit_is_refused(const Stub& stub) {
  for (const std::string& text : {std::string("[Models"), std::string("[Models]\n [m]\n"), std::string("\x01\x02 = ["),
                                  std::string(1, '\0') + "x"}) {
    stub.write(text);
    stub.refused(NEML2_ERROR_ARTIFACT, "is not a HIT file");
  }
}

}  // namespace

int main() {
  const Stub stub;
  a_stub_without_a_compiled_model_is_refused(stub);
  an_artifact_is_found(stub);
  what_is_not_hit_is_refused(stub);
  return 0;
}
