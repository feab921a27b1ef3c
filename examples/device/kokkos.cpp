// Material points under tension by Kokkos, on the device that it was built for.
//
//     neml2-capi header aoti/isotropic_hardening -o steel.hpp
//     cmake -S examples/device -B build -DKokkos_ROOT=... -DSTEEL=$PWD
//
// tension [POINTS] pulls each point to a strain of its own, and prints strain, stress and tangent.

#include <Kokkos_Core.hpp>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#define NEML2_FUNCTION KOKKOS_INLINE_FUNCTION
#include "steel.hpp"

// [component][point]: neighbouring threads read neighbouring numbers.
using Components = Kokkos::View<steel::real **, Kokkos::LayoutRight>;

// Where a variable begins among the components of its structure.
constexpr int first(std::size_t offset) { return static_cast<int>(offset / sizeof(steel::real)); }
constexpr int strain = first(offsetof(steel::inputs, strain));
constexpr int strain_old = first(offsetof(steel::inputs, strain_old));
constexpr int t = first(offsetof(steel::inputs, t));
constexpr int t_old = first(offsetof(steel::inputs, t_old));
constexpr int plastic_old = first(offsetof(steel::inputs, equivalent_plastic_strain_old));
constexpr int stress_old = first(offsetof(steel::inputs, stress_old));
constexpr int stress = first(offsetof(steel::outputs, stress));
constexpr int plastic = first(offsetof(steel::outputs, equivalent_plastic_strain));

void run(long points) {
  const long steps = 10;
  const int tangent_rows = steel::tangent::rows * steel::tangent::columns;
  Components in("inputs", first(sizeof(steel::inputs)), points);  // zeros: at rest
  Components out("outputs", first(sizeof(steel::outputs)), points);
  Components constants("parameters", first(sizeof(steel::parameters)), 1);
  Components tangent("tangent", tangent_rows, points);
  Kokkos::View<int **, Kokkos::LayoutRight> reports("reports", 2, points);
  Kokkos::View<double *> norms("norms", 2 * points);
  long failed = 0;

  const steel::parameters stored;
  Components::HostMirror host = Kokkos::create_mirror_view(constants);
  for (int k = 0; k < first(sizeof stored); ++k) host(k, 0) = reinterpret_cast<const steel::real *>(&stored)[k];
  Kokkos::deep_copy(constants, host);
  for (long step = 1; step <= steps; ++step) {
    long failed_now = 0;
    Kokkos::parallel_reduce(
        "step", points,
        KOKKOS_LAMBDA(long i, long &count) {
          in(t, i) = static_cast<double>(step);
          in(strain, i) = 0.01 * static_cast<double>(i * step) / static_cast<double>(points * steps);
          in(strain + 1, i) = in(strain + 2, i) = -0.5 * in(strain, i);
          steel::update_point(i, points, in.data(), constants.data(), false, out.data(), tangent.data(), reports.data(),
                              norms.data());
          count += reports(0, i) != 0;
          for (int k = 0; k < 6; ++k) {  // the state at the end of a step is the old one of the next
            in(strain_old + k, i) = in(strain + k, i);
            in(stress_old + k, i) = out(stress + k, i);
          }
          in(t_old, i) = in(t, i);
          in(plastic_old, i) = out(plastic, i);
        },
        failed_now);
    failed += failed_now;
  }
  auto strains = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Kokkos::subview(in, strain, Kokkos::ALL));
  auto stresses = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Kokkos::subview(out, stress, Kokkos::ALL));
  auto slopes = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Kokkos::subview(tangent, 0, Kokkos::ALL));
  for (long i = 0; i < points; ++i)
    std::printf("%.5f %.17g MPa, tangent %.17g MPa\n", strains(i), stresses(i), slopes(i));
  if (failed) std::exit(1);
}

int main(int argc, char **argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  run(argc > 1 ? std::atol(argv[1]) : 5);
}
