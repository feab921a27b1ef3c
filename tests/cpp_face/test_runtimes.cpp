// What packages run on. Where NEML2_CAPI_LIBTORCH is set, libtorch runs them, too.
#include "face.hpp"

using face::refuses;

static void they_run_on(const std::string& wanted, const std::string& expected) {
  const std::string root = face::path("elasticity"), package = root + "/cpu/float64/elasticity.pt2";
  const neml2::Model model(root, "cpu", "float64", wanted);
  CHECK(model.runtime() == expected);
  CHECK(neml2::Graph(package, wanted).runtime() == expected);
  CHECK(neml2::Graph::check(package, wanted) == expected);
  CHECK(neml2::load_model(root + "_aoti.i", "elasticity", "cpu", "float64", wanted).runtime() == expected);
  const auto strain = face::strains(4);
  std::vector<face::Tensor6> stress(4), expected_stress;
  for (const auto& each : strain) expected_stress.push_back(face::hooke(each));
  neml2::Call call(model);
  call.bind_input("strain", strain);
  call.bind_output("stress", stress);
  CHECK(call.run(4) == NEML2_OK);
  CHECK(face::near(stress, expected_stress));
}

static void what_is_wrong_is_thrown() {
  const std::string root = face::path("elasticity");
  CHECK(refuses(NEML2_ERROR_NAME, "torch", [&] { neml2::Model(root, "cpu", "float64", "torch"); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "schema", [] { neml2::declare_operator("scale"); }));
  neml2::declare_operator("mylib::scale(Tensor x) -> Tensor");
}

int main() {
  return face::run([] {
    they_run_on("auto", "builtin");
    they_run_on("builtin", "builtin");
    what_is_wrong_is_thrown();
    const char* place = std::getenv("NEML2_CAPI_LIBTORCH");
    if (place && *place) {
      they_run_on("libtorch", "libtorch");
      CHECK(neml2::find_libtorch().path.find("libtorch_cpu.so") != std::string::npos);
    } else {
      neml2::suggest_libtorch("/no/such/folder");
      CHECK(refuses(NEML2_ERROR_FILE, "libtorch_cpu.so", [] { neml2::find_libtorch(); }));
    }
  });
}
