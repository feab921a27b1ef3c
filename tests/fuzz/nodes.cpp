// Reader of a package's operators (*.wrapper.json) beside its source, a NUL byte between the two.
#include "capi/package/bound_arguments.h"
#include "capi/package/collected_errors.h"
#include "capi/package/extern_nodes.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

namespace {

constexpr const char* schemas[] = {
    "aten::_linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor "
    "LU, Tensor pivots, Tensor info)",
    "mylib::all(Tensor? a, Tensor[] b, Tensor?[] c, int[2] d, float[] e, bool[3] f, str g='x', ScalarType? h=None, "
    "Device? i=None, Layout? j=None, MemoryFormat? k=None, SymInt l=1, float m=1e-3, bool n=True, Scalar o=2) -> "
    "Tensor(a!)"};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const aoti::OperatorSchema known[] = {aoti::parse_schema(schemas[0]), aoti::parse_schema(schemas[1])};
  const auto texts = fuzz::split(fuzz::text_of(data, size), 2);
  fuzz::read_untrusted([&] {
    aoti::CollectedErrors errors("package.pt2");
    errors.collect([&] {
      for (const aoti::OperatorNode& node : aoti::parse_extern_nodes(texts[0], texts[1]))
        for (const aoti::OperatorSchema& schema : known)
          errors.collect([&] { aoti::bind_arguments(node, schema, "nobody takes. Write the model without it."); });
    });
    errors.raise_if_any();
  });
  return 0;
}
