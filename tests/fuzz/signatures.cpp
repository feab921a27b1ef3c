// Readers of what an author named: the call specification of arguments and of results, the exporter's notes, and a size
// of the source; a NUL byte between each two. The first byte counts the tensors.
#include "capi/package/call_spec.h"
#include "capi/package/size_expression.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto texts = fuzz::split(fuzz::text_of(data + 1, size - 1), 4);
  fuzz::read_untrusted([&] {
    aoti::Signature signature;
    signature.inputs.resize(data[0] % 8u);
    signature.outputs.resize(data[0] / 8 % 8u);
    signature.call_spec = {std::string(texts[0]), std::string(texts[1])};
    aoti::name_tensors(signature, std::string(texts[2]));
  });
  fuzz::read_untrusted([&] {
    const aoti::SizeExpression expression(texts[3], {{"s17", 0}, {"s35", 1}});
    const std::int64_t sizes[] = {7, INT64_MAX};
    if (expression.is_known()) expression.evaluate(sizes);
  });
  return 0;
}
