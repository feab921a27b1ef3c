#include "capi/values/tally.h"

#include "capi/base/error.h"

namespace neml2_capi::model {

std::string Tally::message(std::int64_t points) const {
  const char* what[] = {"", "are not finite", "did not converge", "met a singular Jacobian"};
  std::string message;
  for (std::int32_t status = NEML2_SINGULAR; status > NEML2_OK; --status)
    if (count[status] > 0)
      message += join(message.empty() ? "" : "; ", count[status], " of ", points, " points ", what[status],
                      " (the first is point ", first[status], ")");
  if (worst() > NEML2_NON_FINITE)
    message += join(count[NEML2_OK] > 0 ? ". The other points hold good results" : "",
                    ". Reduce the step, or raise miters or ls_max_iters; a residual norm of NaN tells of bad inputs.");
  else
    message += ". Check the inputs: the results were written as they are.";
  if (!reason.empty()) message += join(" Of point ", reason_at, ": ", reason);
  return message;
}

}  // namespace neml2_capi::model
