// Reader of operators' schemas.
#include "capi/package/operator_schema.h"
#include "tests/fuzz/fuzz.h"

using namespace neml2_capi;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const aoti::OperatorSchema schema = aoti::parse_schema(fuzz::text_of(data, size));
    fuzz::require(schema.full_name().size() <= size, "a schema holds its name");
  } catch (const Error& error) {  // an argument of the program, not a file
    fuzz::require(error.status() == NEML2_ERROR_ARGUMENT, "a schema that is malformed has the status ARGUMENT");
  }
  return 0;
}
