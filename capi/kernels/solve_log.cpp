#include "capi/kernels/solve_log.h"

#include <algorithm>
#include <optional>

#include "capi/base/log.h"
#include "capi/newton/messages.h"

namespace neml2_capi::kernels {

SolveLog::SolveLog(std::size_t systems, const newton::Settings& rules) : rules_(rules) {
  const auto most = static_cast<std::size_t>(rules.miters);
  norms_.assign(systems * most, 0.0);
  steps_.assign(systems * most, 1.0);
  left_.assign(systems * most, 0);
  for (std::size_t i = 0; i < systems; ++i)
    traces_.push_back({norms_.data() + i * most, steps_.data() + i * most, left_.data() + i * most, 0, 0, -1, 0, 0.0});
}

void SolveLog::write(const std::vector<std::string>& systems, std::int64_t first_point, std::int64_t points) const {
  for (std::size_t i = 0; i < systems.size(); ++i) {
    const Trace& trace = traces_[i];
    const newton::Owner owner{systems[i].c_str(), first_point};
    if (log::on(log::Channel::newton, log::Level::debug))
      for (std::int64_t k = 0; k <= std::min(trace.iterations, rules_.miters - 1); ++k) {
        const bool searched = rules_.ls_max_iters > 1 && k > 0;
        newton::tell_iteration(owner, points, k, trace.greatest_norm[k],
                               searched ? std::optional(trace.least_step[k]) : std::nullopt, trace.left[k]);
      }
    newton::End end{trace.converged, trace.iterations};
    if (trace.failed >= 0) {
      end.failed = trace.failed - first_point;
      end.singular = trace.status == NEML2_SINGULAR;
      end.norm = trace.norm;
    }
    if (log::on(log::Channel::newton, log::Level::info)) newton::tell_end(owner, points, end);
    if (trace.cut > 0) newton::tell_cuts(owner, points, {trace.cut, trace.given_up, trace.deepest});
  }
}

}  // namespace neml2_capi::kernels
