// Reader of a package's generated source (*.wrapper.cpp).
#include "capi/package/source.h"

#include <algorithm>

#include "capi/package/collected_errors.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::read_untrusted([&] {
    aoti::CollectedErrors errors("package.pt2");
    errors.collect([&] {
      const aoti::Signature signature = aoti::read_signature(fuzz::text_of(data, size));
      for (const graph::InputSpec& input : signature.inputs) {
        fuzz::require(input.least.size() == input.greatest.size(), "every axis has both bounds");
        std::vector<std::int64_t> sorted(input.order.begin(), input.order.end());
        std::sort(sorted.begin(), sorted.end());
        fuzz::require(std::ssize(sorted) == input.least.size(), "the order has every axis");
        for (std::int64_t axis = 0; axis < std::ssize(sorted); ++axis)
          fuzz::require(sorted[static_cast<std::size_t>(axis)] == axis && input.least[axis] <= input.greatest[axis],
                        "bounds are possible");
      }
      const auto require_axis = [&](const aoti::Axis& axis) {
        fuzz::require(axis.input >= 0 && axis.input < std::ssize(signature.inputs) && axis.axis >= 0 &&
                          axis.axis < signature.inputs[static_cast<std::size_t>(axis.input)].least.size(),
                      "a symbol is the size of an axis that is there");
      };
      for (const auto& [name, axis] : signature.symbols) require_axis(axis);
      for (const auto& group : signature.equal_axes) std::for_each(group.begin(), group.end(), require_axis);
    });
    errors.raise_if_any();
  });
  return 0;
}
