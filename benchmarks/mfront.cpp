// The scalar law of MFront, perzyna.mfront, through its generic interface, as MGIS calls it: one point after another on
// one thread. "forward" integrates, "tangent" gives d stress / d strain, too.
#include <MFront/GenericBehaviour/BehaviourData.h>

#include <array>
#include <memory>
#include <stdexcept>

#include "arrays.h"
#include "laws.h"
#include "serve.h"

extern "C" int Perzyna_Tridimensional(mfront_gb_BehaviourData*);

namespace benchmark {
namespace {

// Both use Mandel notation, in the orders 11, 22, 33, 23, 13, 12 (NEML2) and 11, 22, 33, 12, 13, 23 (MFront).
constexpr std::array<int, 6> order{0, 1, 2, 5, 4, 3};

std::vector<double> turned(const std::vector<double>& tensors) {
  std::vector<double> result(tensors.size());
  for (std::size_t p = 0; p < tensors.size(); p += 6)
    for (std::size_t i = 0; i < 6; ++i) result[p + i] = tensors[p + static_cast<std::size_t>(order[i])];
  return result;
}

// The elastic strain of a stress.
std::array<double, 6> elastic_strain(const double* stress) {
  const double pressure = poisson / young * (stress[0] + stress[1] + stress[2]);
  std::array<double, 6> strain;
  for (std::size_t i = 0; i < 6; ++i) strain[i] = (1 + poisson) / young * stress[i] - (i < 3 ? pressure : 0);
  return strain;
}

class Points {
 public:
  explicit Points(const Task& task) : points_(static_cast<std::size_t>(task.points)) {
    if (task.operation == "tangent") tangent_ = 4;  // the consistent one
    const std::vector<Array> inputs = read_arrays(task.inputs / "inputs", task.points);
    const auto read = [&](const char* name) { return find(inputs, name).values; };
    strain_ = turned(read("strain"));
    old_strain_ = turned(read("strain~1"));
    old_stress_ = turned(read("stress~1"));
    time_ = read("t");
    const std::vector<double> old_time = read("t~1"), old_p = read("equivalent_plastic_strain~1");
    for (std::size_t p = 0; p < points_; ++p) {
      time_[p] -= old_time[p];
      const auto elastic = elastic_strain(&old_stress_[6 * p]);
      old_state_.insert(old_state_.end(), elastic.begin(), elastic.end());
      old_state_.push_back(old_p[p]);
    }
    stress_.resize(6 * points_);
    state_.resize(7 * points_);
    blocks_.resize(36 * points_);
  }

  void run() {
    const double temperature = 293.15;
    double energies[2] = {}, none = 0;
    char message[512] = "";
    mfront_gb_BehaviourData point{};
    point.error_message = message;
    point.speed_of_sound = &none;
    point.s0.external_state_variables = point.s1.external_state_variables = &temperature;
    point.s0.mass_density = point.s1.mass_density = &none;
    point.s0.stored_energy = point.s0.dissipated_energy = &none;
    point.s1.stored_energy = &energies[0];
    point.s1.dissipated_energy = &energies[1];
    for (std::size_t p = 0; p < points_; ++p) {
      double ratio = 1;
      point.rdt = &ratio;
      point.dt = time_[p];
      point.K = &blocks_[36 * p];
      point.K[0] = tangent_;
      point.s0.gradients = &old_strain_[6 * p];
      point.s1.gradients = &strain_[6 * p];
      point.s0.thermodynamic_forces = &old_stress_[6 * p];
      point.s1.thermodynamic_forces = &stress_[6 * p];
      point.s0.internal_state_variables = &old_state_[7 * p];
      point.s1.internal_state_variables = &state_[7 * p];
      if (Perzyna_Tridimensional(&point) != 1) throw std::runtime_error(message);
    }
  }

  std::vector<Result> results() {
    result_stress_ = turned(stress_);
    result_p_.clear();
    for (std::size_t p = 0; p < points_; ++p) result_p_.push_back(state_[7 * p + 6]);
    std::vector<Result> results{{"stress", result_stress_.data(), 6},
                                {"equivalent_plastic_strain", result_p_.data(), 1}};
    if (tangent_ == 0) return results;
    result_blocks_.resize(blocks_.size());
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const std::size_t i = k / 6 % 6, j = k % 6;
      result_blocks_[k] = blocks_[k - k % 36 + static_cast<std::size_t>(6 * order[i] + order[j])];
    }
    results.push_back({"stress,strain", result_blocks_.data(), 36});
    return results;
  }

 private:
  std::size_t points_;
  double tangent_ = 0;
  std::vector<double> strain_, old_strain_, old_stress_, time_, old_state_;
  std::vector<double> stress_, state_, blocks_, result_stress_, result_p_, result_blocks_;
};

Contestant prepare(const Task& task) {
  if (task.operation != "forward" && task.operation != "tangent")
    throw std::runtime_error("the law has no other derivatives");
  auto work = std::make_shared<Points>(task);
  const auto run = [=](std::int64_t calls) {
    while (calls-- > 0) work->run();
  };
  return {run, [=] { return work->results(); }};
}

}  // namespace
}  // namespace benchmark

int main(int argc, char** argv) { return benchmark::serve(argc, argv, benchmark::prepare); }
