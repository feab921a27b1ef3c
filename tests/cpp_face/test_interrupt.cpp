// A host ends a long evaluation by the function that the library asks.
#include <vector>

#include "face.hpp"

static bool wants_an_end = true;

static void an_evaluation_ends_and_goes_on() {
  constexpr int64_t n = 100000;
  const neml2::Model model(face::path("elasticity"));
  std::vector<face::Tensor6> strain(n, {1e-3}), stress(n);
  neml2::Call call(model);
  call.bind_input("strain", strain).bind_output("stress", stress);
  neml2::set_interrupt([] { return wants_an_end; });
  CHECK(face::refuses(NEML2_ERROR_INTERRUPTED, "", [&] { static_cast<void>(call.run(n)); }));
  wants_an_end = false;
  CHECK(call.run(n) == NEML2_OK && stress.back() == stress[0] && stress[0][0] > 0);
  neml2::set_interrupt(nullptr);
  wants_an_end = true;
  CHECK(call.run(n) == NEML2_OK);
}

int main() { return face::run(an_evaluation_ends_and_goes_on); }
