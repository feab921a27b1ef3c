// Print the stress of an elastic model for one strain.
#include <array>
#include <cstdio>
#include <neml2_capi.hpp>

int main(int argc, char **argv) try {
  const std::array<double, 6> strain = {1e-3, -3e-4, -2.5e-4, 1e-4, -2e-4, 5e-5};  // Mandel notation
  std::array<double, 6> stress = {};

  const neml2::Model model(argc == 2 ? argv[1] : "");
  neml2::Call call(model);
  call.bind_input("strain", strain);
  call.bind_output("stress", stress);
  call.run_or_throw(1);

  for (double component : stress) std::printf("%.17g\n", component);
} catch (const neml2::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
