// Material points under tension by OpenMP: on a device, or by the host's threads if there is none.
//
//     neml2-capi header aoti/isotropic_hardening -o steel.hpp
//     g++ -std=c++17 -O2 -fopenmp examples/device/openmp.cpp -I. -o tension
//
// tension [POINTS] pulls each point to a strain of its own, and prints strain, stress and tangent.

#include <cstdio>
#include <cstdlib>
#include <vector>

#pragma omp declare target
#include "steel.hpp"

// The state at the end of a step is the old one of the next.
inline void advance(const steel::outputs &out, steel::inputs &in) {
  for (int i = 0; i < 6; ++i) {
    in.strain_old[i] = in.strain[i];
    in.stress_old[i] = out.stress[i];
  }
  in.t_old = in.t;
  in.equivalent_plastic_strain_old = out.equivalent_plastic_strain;
}
#pragma omp end declare target

int main(int argc, char **argv) {
  const long points = argc > 1 ? std::atol(argv[1]) : 5, steps = 10;
  const auto count = static_cast<std::size_t>(points);
  std::vector<steel::inputs> inputs(count);  // zeros: at rest
  std::vector<double> stresses(count), tangents(count);
  steel::inputs *in = inputs.data();
  double *stress = stresses.data(), *tangent = tangents.data();
  long failed = 0;

#pragma omp target data map(tofrom : in[:points]) map(from : stress[:points], tangent[:points])
  for (long step = 1; step <= steps; ++step) {
#pragma omp target teams distribute parallel for reduction(+ : failed) map(tofrom : failed)
    for (long i = 0; i < points; ++i) {
      steel::outputs out;
      steel::tangent slope;
      in[i].t = static_cast<double>(step);
      const double strain = 0.01 * static_cast<double>(i * step) / static_cast<double>(points * steps);
      in[i].strain[0] = strain;
      in[i].strain[1] = in[i].strain[2] = -0.5 * strain;
      const steel::report report = steel::update(in[i], out, &slope);
      failed += report.status != 0;
      stress[i] = out.stress[0];
      tangent[i] = slope.stress_by_strain(0, 0);
      advance(out, in[i]);
    }
  }
  for (long i = 0; i < points; ++i)
    std::printf("%.5f %.17g MPa, tangent %.17g MPa\n", in[i].strain[0], stress[i], tangent[i]);
  return failed != 0;
}
