// One time step: Newton's method on the balance of forces.
#pragma once

#include <Eigen/SparseLU>
#include <algorithm>
#include <cmath>
#include <vector>

#include "assembly.h"
#include "material.h"

namespace fem {

enum class Outcome { CONVERGED, POINTS_FAILED, DIVERGED };

struct StepResult {
  Outcome outcome = Outcome::DIVERGED;
  std::vector<double> residuals;  ///< one per iteration, relative to the magnitude of the forces in the last
  int failed_points = 0;
  double cut = 0.5;  ///< by what to multiply the time step if it did not converge
};

class Newton {
 public:
  double tolerance = 1e-11;
  int max_iterations = 12;

  /// From the accepted state of `material` at displacements `u` to the time `time`, with `prescribed`, the increment of
  /// the displacements at the constraints. If the step converges, `u` and the current state of `material` are the
  /// new ones, to be committed by the caller; else `u` is as it was. `system` is left as of the last iteration.
  ///
  /// The first iteration finds the forces at unchanged displacements (stress relaxes with time), and moves the
  /// constraints with the whole body, by its tangent: to move them alone would put all of the strain into the elements
  /// next to them.
  StepResult step(const Assembly& assembly, Material& material, double time, const Eigen::VectorXd& prescribed,
                  Eigen::VectorXd& u, LinearSystem& system) {
    StepResult result;
    Eigen::VectorXd trial = u, missing = prescribed;
    std::vector<double> norms;
    while (int(norms.size()) < max_iterations) {
      assembly.set_strains(trial, material);
      if (!material.evaluate(time)) {
        result.outcome = Outcome::POINTS_FAILED;
        result.failed_points = material.failed_points();
        result.cut = material.suggested_cut();
        break;
      }
      assembly.assemble(material, missing, system);
      norms.push_back(system.residual.norm());
      if (!std::isfinite(norms.back())) break;
      if (norms.size() > 1 && norms.back() <= tolerance * system.magnitude) {
        result.outcome = Outcome::CONVERGED;
        u = trial;
        break;
      }
      if (norms.size() == 1) lu_.analyzePattern(system.stiffness);
      lu_.factorize(system.stiffness);
      if (lu_.info() != Eigen::Success) break;
      assembly.add_free(-lu_.solve(system.residual), trial);
      trial += missing;
      missing.setZero();
    }
    for (const double norm : norms) result.residuals.push_back(norm / system.magnitude);
    return result;
  }

 private:
  Eigen::SparseLU<Eigen::SparseMatrix<double>> lu_;  ///< the tangent of combined hardening is not symmetric
};

}  // namespace fem
