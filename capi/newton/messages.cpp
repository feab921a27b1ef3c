#include "capi/newton/messages.h"

#include <string>

#include "capi/base/log.h"

namespace neml2_capi::newton {

using log::Channel;
using log::Level;

void tell_iteration(const Owner& owner, std::int64_t points, std::int64_t iteration, double greatest_norm,
                    std::optional<double> least_step, std::int64_t left) {
  const std::string step = least_step ? join(", least step ", *least_step) : "";
  log::write(Channel::newton, Level::debug, owner.str(points), ": iteration ", iteration,
             ", |r| = ", log::scientific(greatest_norm), step, ", ", left, " left");
}

void tell_end(const Owner& owner, std::int64_t points, const End& end) {
  std::string failure;
  if (end.failed >= 0)
    failure = join("; point ", owner.point(end.failed), end.singular ? ", whose Jacobian is singular," : "",
                   " has |r| = ", log::scientific(end.norm));
  log::write(Channel::newton, Level::info, owner.str(points), ": ", end.converged, " of ", points,
             " converged, in at most ", end.iterations, " iterations", failure);
}

void tell_cuts(const Owner& owner, std::int64_t points, const Cuts& cuts) {
  log::write(Channel::substep, Level::info, owner.str(points), ": ", cuts.points,
             " needed parts of the increment, down to 1/", std::int64_t{1} << cuts.deepest, "; ", cuts.failed,
             " could not be solved");
}

}  // namespace neml2_capi::newton
