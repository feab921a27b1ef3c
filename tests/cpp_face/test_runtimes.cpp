// What packages run on. If NEML2_CAPI_LIBTORCH is set, libtorch runs them, too.
#include "face.hpp"

using face::refuses;

static void they_run_on(int32_t wanted, int32_t expected) {
  const std::string root = face::path("elasticity"), package = root + "/cpu/float64/elasticity.pt2";
  const neml2::Model model(neml2::Source(root).device(neml2::cpu).dtype(NEML2_FLOAT64).runtime(wanted));
  CHECK(model.runtime() == expected);
  CHECK(neml2::Graph(neml2::Source(package).runtime(wanted)).runtime() == expected);
  CHECK(neml2::Graph::check(neml2::Source(package).runtime(wanted)) == expected);
  CHECK(neml2::Model(neml2::Source(root + "_aoti.i").name("elasticity").runtime(wanted)).runtime() == expected);
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
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "runtime", [&] { neml2::Model(neml2::Source(root).runtime(4)); }));
  CHECK(refuses(NEML2_ERROR_ARGUMENT, "schema", [] { neml2::declare_operator("scale"); }));
  neml2::declare_operator("mylib::scale(Tensor x) -> Tensor");
}

int main() {
  return face::run([] {
    they_run_on(NEML2_RUNTIME_AUTO, NEML2_RUNTIME_BUILTIN);
    they_run_on(NEML2_RUNTIME_BUILTIN, NEML2_RUNTIME_BUILTIN);
    what_is_wrong_is_thrown();
    const char* place = std::getenv("NEML2_CAPI_LIBTORCH");
    if (place && *place) {
      they_run_on(NEML2_RUNTIME_LIBTORCH, NEML2_RUNTIME_LIBTORCH);
      CHECK(neml2::find_libtorch().path.find("libtorch_cpu.so") != std::string::npos);
    } else {
      neml2::suggest_libtorch("/no/such/folder");
      CHECK(refuses(NEML2_ERROR_FILE, "libtorch_cpu.so", [] { neml2::find_libtorch(); }));
      CHECK(neml2_error_cause() == NEML2_CAUSE_LIBTORCH_MISSING);
    }
  });
}
