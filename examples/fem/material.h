// The material at all Gauss points: one compiled model, one call.
#pragma once

#include <Eigen/Core>
#include <algorithm>
#include <cstdint>
#include <neml2_capi.hpp>
#include <string>
#include <utility>
#include <vector>

namespace fem {

using Vector6 = Eigen::Matrix<double, 6, 1>;
using Matrix6 = Eigen::Matrix<double, 6, 6, Eigen::RowMajor>;

/// The tangents that Newton's method can be given. Only the first is right; the others are there to be noticed.
enum class Tangent { CONSISTENT, ELASTIC, TRANSPOSED };

/// Combined hardening (examples/models/viscoplastic.i) at points that are evaluated together; MPa and s. The state of a
/// point, its strain included, is one row of an array for the current step, and one of another for the last step that
/// was accepted. Accepting a step makes the arrays change places.
class Material {
 public:
  Material(const neml2::Model& model, std::size_t points, Tangent tangent = Tangent::CONSISTENT)
      : call_(model),
        used_tangent_(tangent),
        now_(points * STATE_SIZE),
        before_(points * STATE_SIZE),
        tangents_(points * 36),
        status_(points),
        cuts_(points) {
    call_.bind_input("t", time_, 0).bind_input("t~1", time_before_, 0);  // one value for all points
    call_.bind_derivative("stress", "strain", tangents_);
    call_.bind_report(NEML2_REPORT_STATUS, status_).bind_report(NEML2_REPORT_SUGGESTED_CUT, cuts_);
    bind_states();
  }

  // The call knows where the arrays are.
  Material(const Material&) = delete;
  Material& operator=(const Material&) = delete;

  /// One value for all points, in place of that in the artifact.
  void set_yield_stress(double value) {
    yield_stress_ = value;
    call_.bind_parameter("yield_stress", yield_stress_, 0);
  }

  /// From the accepted state to `time` and the current strains. False if points failed; all can be tried again.
  bool evaluate(double time) {
    time_ = time;
    const bool converged = call_.run(std::int64_t(points())) == NEML2_OK;
    if (converged && elastic_.isZero()) elastic_ = Eigen::Map<const Matrix6>(tangents_.data());
    return converged;
  }

  /// Accept the current state.
  void commit() {
    now_.swap(before_);
    time_before_ = time_;
    bind_states();
  }

  std::size_t points() const { return status_.size(); }
  Eigen::Map<Vector6> strain(std::size_t p) { return Eigen::Map<Vector6>(row(now_, p) + STRAIN); }
  Eigen::Map<const Vector6> stress(std::size_t p) const { return Eigen::Map<const Vector6>(row(now_, p) + STRESS); }
  double plastic_strain(std::size_t p) const { return row(now_, p)[PLASTIC_STRAIN]; }
  double plastic_increment(std::size_t p) const { return plastic_strain(p) - row(before_, p)[PLASTIC_STRAIN]; }

  /// d stress / d strain.
  Matrix6 tangent(std::size_t p) const {
    const Eigen::Map<const Matrix6> consistent(&tangents_[36 * p]);
    if (used_tangent_ == Tangent::ELASTIC) return elastic_;
    if (used_tangent_ == Tangent::TRANSPOSED) return consistent.transpose();
    return consistent;
  }

  int failed_points() const { return int(status_.size()) - int(std::count(status_.begin(), status_.end(), NEML2_OK)); }

  /// By what to multiply the increment that failed, as the worst point has it.
  double suggested_cut() const { return *std::min_element(cuts_.begin(), cuts_.end()); }

 private:
  enum { STRAIN = 0, STRESS = 6, PLASTIC_STRAIN = 12, X1 = 13, X2 = 19, STATE_SIZE = 25 };

  static const double* row(const std::vector<double>& states, std::size_t p) { return &states[STATE_SIZE * p]; }
  static double* row(std::vector<double>& states, std::size_t p) { return &states[STATE_SIZE * p]; }

  void bind_states() {
    const neml2::Span<double> now(now_), before(before_);
    call_.bind_input("strain", now.from(STRAIN), STATE_SIZE);
    call_.bind_input("strain~1", before.from(STRAIN), STATE_SIZE);
    const std::pair<std::string, std::size_t> state[] = {
        {"stress", STRESS}, {"equivalent_plastic_strain", PLASTIC_STRAIN}, {"X1", X1}, {"X2", X2}};
    for (const auto& [name, offset] : state) {
      call_.bind_output(name, now.from(offset), STATE_SIZE);
      call_.bind_input(name + "~1", before.from(offset), STATE_SIZE);
    }
  }

  neml2::Call call_;
  Tangent used_tangent_;
  double time_ = 0, time_before_ = 0, yield_stress_ = 0;
  std::vector<double> now_, before_, tangents_;
  std::vector<std::int32_t> status_;
  std::vector<double> cuts_;
  Matrix6 elastic_ = Matrix6::Zero();  ///< of the first evaluation, at rest
};

}  // namespace fem
