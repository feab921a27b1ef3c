// The C++ headers alone, as C++17 and C++20: they include what they need, say nothing that a strict compiler minds, and
// may stand in two files of one program.
#include "neml2_capi.hpp"
#include "neml2_capi_experimental.hpp"
#include "neml2_capi_experimental.hpp"  // twice does no harm
#if __cplusplus >= 202002L
#include <span>
#endif

// The templates, too.
[[maybe_unused]] static void use(neml2::Call& call, const neml2::Model& model,
                                 std::vector<std::array<double, 6>>& points) {
  double number = 0;
  int32_t status[2] = {};
  call.bind_input("strain", points).bind_input("t", number, 0).bind_output("stress", neml2::Span(points).from(6));
  call.bind_report(NEML2_REPORT_STATUS, status).bind_report(NEML2_REPORT_STATUS, nullptr);
#if __cplusplus >= 202002L
  call.bind_input("strain", std::span(points)).bind_output("stress", std::span(points).subspan(1));
#endif
  const neml2::Tensor tensor = neml2::Tensor::own(std::vector<float>(6), {1, 6});
  const auto values = tensor.values<const float>();
  const auto solver = [](neml2::System& system) { system.guess({}); };
  if (values(0, 5) == 0) model.forward_with({{"strain", tensor}}, solver).or_throw();
}

#ifndef SECOND_FILE
int main() {
  const neml2::Tensor tensor;
  return !tensor && neml2::abi_version() / 1000 == NEML2_ABI_VERSION / 1000 ? NEML2_OK : 1;
}
#endif
