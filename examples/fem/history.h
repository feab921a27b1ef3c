// A load history in time steps that shrink if they fail and grow if they are easy.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "newton.h"

namespace fem {

/// A load factor over time: straight lines between points (time, factor), and 0 at time 0.
class LoadPath {
 public:
  explicit LoadPath(std::vector<std::pair<double, double>> points) : points_(std::move(points)) {}

  double factor(double time) const {
    std::pair<double, double> from(0, 0);
    for (const auto& to : points_) {
      if (time <= to.first)
        return from.second + (to.second - from.second) * (time - from.first) / (to.first - from.first);
      from = to;
    }
    return from.second;
  }

  /// The first time after `time` at which the path has a kink, which a step should meet.
  double next_kink(double time) const {
    for (const auto& point : points_)
      if (point.first > time) return point.first;
    return end();
  }
  double end() const { return points_.back().first; }

 private:
  std::vector<std::pair<double, double>> points_;
};

struct TimeControl {
  double first = 0.1, largest = 1, smallest = 1e-6;  ///< time steps, s
  int easy = 6;                                      ///< the step grows if this many iterations were enough
  double growth = 1.5;
};

/// A step that was accepted, or one that is about to be cut.
struct StepReport {
  int number;
  double time, dt;
  const StepResult& result;
  const LinearSystem& system;
  const Eigen::VectorXd& displacements;
};

/// Follow the path to its end. `accepted` is called for each step before its state becomes the past one, `cut` for
/// each one that is tried again. @throws std::runtime_error if the smallest step does not converge
template <typename Accepted, typename Cut>
void follow(const LoadPath& path, const TimeControl& control, const Assembly& assembly,
            const std::vector<Constraint>& constraints, Material& material, Newton& newton, Accepted accepted,
            Cut cut) {
  Eigen::VectorXd u = Eigen::VectorXd::Zero(assembly.displacements()), prescribed = u;
  LinearSystem system;
  double time = 0, dt = control.first;
  for (int number = 1; time < path.end();) {
    const double kink = path.next_kink(time);
    const double next = time + 1.01 * dt < kink ? time + dt : kink;  // leave no tiny rest
    for (const Constraint& c : constraints) prescribed[c.dof] = path.factor(next) * c.value - u[c.dof];

    const StepResult result = newton.step(assembly, material, next, prescribed, u, system);
    const StepReport report{number, next, next - time, result, system, u};
    if (result.outcome != Outcome::CONVERGED) {
      cut(report);
      dt = result.cut * (next - time);
      if (dt < control.smallest)
        throw std::runtime_error("The step from " + std::to_string(time) + " s does not converge even for " +
                                 std::to_string(control.smallest) + " s.");
      continue;
    }
    accepted(report);
    material.commit();
    time = next;
    ++number;
    if (int(result.residuals.size()) <= control.easy) dt = std::min(control.growth * dt, control.largest);
  }
}

}  // namespace fem
