// A plate with a hole is pulled, held and pushed back: small strains, quasi-static, one eighth by symmetry.
#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include "checks.h"
#include "history.h"
#include "options.h"
#include "vtk.h"

namespace fem {
namespace {

/// What --check allows. Residuals are relative; the constant is ten times the largest seen with the right tangent.
constexpr double ROUND_OFF = 1e-12, QUADRATIC_CONSTANT = 1000, IMBALANCE = 1e-10, PATCH_DIFFERENCE = 1e-10;

std::vector<Constraint> symmetry_and_load(const Mesh& mesh, const std::vector<int>& end, double displacement) {
  std::vector<Constraint> constraints;
  for (int axis = 0; axis < 3; ++axis)
    for (const int a : nodes_on_plane(mesh, axis, 0)) constraints.push_back({3 * a + axis, 0});
  for (const int a : end) constraints.push_back({3 * a + 1, displacement});
  return constraints;
}

double axial_force(const std::vector<int>& end, const Eigen::VectorXd& reactions) {
  double sum = 0;
  for (const int a : end) sum += reactions[3 * a + 1];
  return sum;
}

double largest_plastic_increment(const Material& material) {
  double largest = 0;
  for (std::size_t p = 0; p < material.points(); ++p) largest = std::max(largest, material.plastic_increment(p));
  return largest;
}

/// Asserts what must hold in each step, and remembers how well it did.
class Checks {
 public:
  void step(const StepReport& report, bool plastic, double imbalance) {
    require(imbalance, IMBALANCE, report.number, "reactions and stresses are out of balance by");
    imbalance_ = std::max(imbalance_, imbalance);
    if (!plastic) return;
    const double constant = quadratic_constant(report.result.residuals, ROUND_OFF);
    require(constant, QUADRATIC_CONSTANT, report.number, "residuals do not fall quadratically: r_next / r^2 is");
    constant_ = std::max(constant_, constant);
    ++plastic_steps_;
  }

  void summary() const {
    std::printf("# balance of reactions and stresses: to %.1e\n", imbalance_);
    std::printf("# quadratic convergence: r_next <= %.0f r^2 in all %d steps with plastic flow\n", constant_,
                plastic_steps_);
  }

 private:
  static void require(double value, double limit, int step, const char* what) {
    if (value <= limit) return;
    char message[128];
    std::snprintf(message, sizeof message, "In step %d %s %.1e.", step, what, value);
    throw std::runtime_error(message);
  }

  double imbalance_ = 0, constant_ = 0;
  int plastic_steps_ = 0;
};

void check_patch(const neml2::Model& model) {
  const double difference = patch_test(model);
  std::printf("# patch test: stresses equal to %.1e\n", difference);
  if (difference > PATCH_DIFFERENCE) throw std::runtime_error("The patch test is not passed.");
}

void run(const Options& options) {
  const neml2::Model model(options.artifact);
  if (options.check) check_patch(model);

  const Plate plate;
  const Mesh mesh = plate_with_hole(plate, {6, 12, 3});
  const std::vector<int> end = nodes_on_plane(mesh, 1, plate.half_height);
  const std::vector<Constraint> constraints = symmetry_and_load(mesh, end, options.displacement);
  const Assembly assembly(mesh, constraints, options.dilatation);
  Material material(model, assembly.points(), options.tangent);
  if (options.yield_stress > 0) material.set_yield_stress(options.yield_stress);
  std::printf("# %zu elements, %zu Gauss points, %zu nodes\n", mesh.elements.size(), assembly.points(),
              mesh.nodes.size());
  std::printf("#     time    step  reaction on_sections  plastic_increment  residuals\n");
  std::printf("#        s       s         N           N\n");

  Checks checks;
  const auto accepted = [&](const StepReport& step) {
    const double increment = largest_plastic_increment(material);
    const double section_force = stress_integral(assembly, material)(1, 1) / plate.half_height;
    std::printf("%3d %6.3f %7.3f %9.3f %11.3f %18.1e ", step.number, step.time, step.dt,
                axial_force(end, step.system.reactions), section_force, increment);
    for (const double residual : step.result.residuals) std::printf(" %.0e", residual);
    std::printf("\n");
    if (!options.vtk.empty()) {
      const std::string number = std::to_string(1000 + step.number).substr(1);
      write_vtk(options.vtk + number + ".vtk", mesh, step.displacements, material);
    }
    if (options.check) checks.step(step, increment > 1e-6, imbalance(mesh, assembly, material, step.system.reactions));
  };
  const auto cut = [](const StepReport& step) {
    std::printf("# step %d to %.3f s is cut: ", step.number, step.time);
    if (step.result.failed_points > 0)
      std::printf("%d points did not converge\n", step.result.failed_points);
    else
      std::printf("no balance after %zu iterations\n", step.result.residuals.size());
  };

  const LoadPath path({{10, 1}, {20, 1}, {30, -0.25}});  // pull, hold, push back
  TimeControl control;
  control.first = options.first_step;
  Newton newton;
  follow(path, control, assembly, constraints, material, newton, accepted, cut);
  if (options.check) checks.summary();
}

}  // namespace
}  // namespace fem

int main(int argc, char** argv) {
  fem::Options options;
  try {
    options = fem::parse(argc, argv);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), fem::USAGE);
    return 2;
  }
  try {
    fem::run(options);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
