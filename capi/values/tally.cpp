#include "capi/values/tally.h"

#include <algorithm>
#include <cmath>

#include "capi/base/error.h"
#include "capi/base/log.h"

namespace neml2_capi::model {

void Tally::add(const Vector<std::int32_t>& status, const Vector<std::int32_t>& iterations, const Vector<double>& norms,
                std::int64_t begin) {
  add(status, begin);
  const auto first_failed = std::ranges::find_if(status, [](std::int32_t each) { return each > NEML2_NON_FINITE; });
  if (first_failed == status.end()) return;
  const auto p = static_cast<std::size_t>(first_failed - status.begin());
  note({begin + (first_failed - status.begin()), iterations[p], norms[p]});
}

bool Tally::failed_at_the_guess() const {
  return failed.point >= 0 && failed.iterations == 0 && !std::isfinite(failed.residual_norm);
}

// A smaller step mends what the iterations spoiled, and no residual that was not finite before them.
std::string Tally::advice(const std::string& remark) const {
  const char* rescue = rescue_failed || has_no_rescue ? "" : "set rescue, ";
  const char* limits = has_own_search ? "or raise miters." : "or raise miters or ls_max_iters.";
  if (failed.point < 0) return reason.empty() ? join(". Reduce the step, ", rescue, limits) : ".";
  const std::string norm = join(". Of point ", failed.point, ", |r| = ", log::scientific(failed.residual_norm));
  if (judged_by_caller) return join(norm, ", which your solver gave up: reduce the step, or solve it otherwise.");
  if (solved_by_caller)
    return join(
        norm, ", which your solver accepted. It is ",
        std::isfinite(failed.residual_norm) ? "far above the tolerances of the model, atol and rtol" : "not finite",
        ": iterate on, set them, or accept the point with a status of your own.");
  if (failed_at_the_guess())
    return join(norm, " at the guess, before any iteration: ",
                remark.empty() ? "check its inputs. A smaller step helps only if they are too large."
                               : remark + ". A smaller step does not mend that.");
  const std::string after =
      join(norm, " after ", failed.iterations, failed.iterations == 1 ? " iteration" : " iterations",
           rescue_failed ? ", and no rescue solved it" : "");
  if (!std::isfinite(failed.residual_norm))
    return join(
        after, ": the iterations left the range in which the equations have values. Reduce the step",
        has_own_search ? "." : join(", ", rescue, "or let a line search shorten the iterations' own (ls_max_iters)."));
  return join(after, ": reduce the step, ", rescue, limits);
}

std::string Tally::message(std::int64_t points, const Remarks& remarks) const {
  const char* what[] = {"", "are not finite", "did not converge", "met a singular Jacobian", "are out of bounds"};
  std::string message;
  for (std::int32_t status = num_statuses - 1; status > NEML2_OK; --status)
    if (count[status] > 0)
      message += join(message.empty() ? "" : "; ", count[status], " of ", points, " points ", what[status],
                      " (the first is point ", first[status], ")");
  const bool has_failed = count[NEML2_NOT_CONVERGED] + count[NEML2_SINGULAR] > 0;
  if (worst() > NEML2_NON_FINITE)
    message += join(count[NEML2_OK] > 0 ? ". The other points hold good results" : "",
                    has_failed ? advice(remarks.failed) : ".");
  else
    message += ". The results were written as they are.";
  message += join(remarks.non_finite, remarks.out_of_bounds);
  if (!reason.empty()) message += join(" Of point ", reason_at, ": ", reason);
  return message;
}

}  // namespace neml2_capi::model
