// The host's wish to end a long evaluation.
#include "capi/base/interrupt.h"

#include "capi/abi/guard.h"

using namespace neml2_capi;

int32_t neml2_interrupt_set(neml2_interrupt_fn asked, void* context) {
  return abi::guarded([&] { interrupt::set(asked, context); });
}
