#include "capi/plugin/reversible.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <string>

namespace neml2_capi::plugin {
namespace {

constexpr std::size_t POINTS = 13;  // at most: the point itself, and both sides in each direction
constexpr double DISTANCE = 1e-6;   // of a strain from the point's
constexpr double LATER = 3;         // a moment that differs from another one

double greatest(const double* numbers, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(numbers[i]));
  return most;
}

double trace(const double* tangent, std::size_t size) {
  double sum = 0;
  for (std::size_t i = 0; i < size; ++i) sum += tangent[(size + 1) * i];
  return sum;
}

[[noreturn]] void refuse_for(const std::string& reason) {
  refuse("the law has no elastic operator in this state: " + reason +
         ". Ask for the tangent, or integrate without an operator.");
}

// Points that move from a state in next to no time.
class Moves {
 public:
  Moves(const Material& material, const Rest& rest, double part)
      : m_(material), rest_(rest), part_(part), w_(workspace(material, POINTS, Purpose::OPERATOR)) {
    std::copy_n(rest.parameters, w_.parameters.size(), w_.parameters.begin());
    for (std::size_t p = 0; p < POINTS; ++p) {
      std::copy_n(rest.strain, m_.size(), &w_.old_strain[m_.size() * p]);
      std::copy_n(rest.state, m_.row, &w_.old_state[m_.row * p]);
      w_.old_temperature[p] = *rest.temperature;
      std::copy_n(rest.fields, m_.mapping.nfields(), w_.old_fields.begin() + std::ptrdiff_t(p * m_.mapping.nfields()));
    }
  }

  // All points in one call: the first stays, and two go both ways in each direction.
  void go() {
    start(1);
    for (std::size_t p = 1; p < points(); ++p) w_.strain[m_.size() * p + (p - 1) / 2] += p % 2 ? DISTANCE : -DISTANCE;
    run(points());
  }

  // All points to where they came from, in a moment of another length.
  void come_back() {
    w_.old_state = w_.state;
    const std::vector<double> back = w_.old_strain;
    w_.old_strain = w_.strain;
    start(LATER);
    w_.strain = back;
    run(points());
  }

  // The first point alone, by some strain.
  void go(const double* strain) {
    start(1);
    for (std::size_t i = 0; i < m_.size(); ++i) w_.strain[i] += strain[i];
    run(1);
  }

  bool all_ended() const {
    for (std::size_t p = 0; p < points(); ++p)
      if (!ended(p)) return false;
    return true;
  }
  bool ended(std::size_t p) const {
    return w_.status[p] <= NEML2_NON_FINITE && std::isfinite(greatest_or_nan(stress(p), m_.row)) &&
           std::isfinite(greatest_or_nan(tangent(p), m_.size() * m_.size()));
  }
  const double* stress(std::size_t p) const { return &w_.state[m_.row * p]; }
  const double* tangent(std::size_t p) const { return &w_.tangent[m_.size() * m_.size() * p]; }
  std::size_t points() const { return 1 + 2 * m_.size(); }

 private:
  static double greatest_or_nan(const double* numbers, std::size_t count) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::abs(numbers[i]);
    return sum;
  }

  void start(double moments) {
    w_.old_time = rest_.time;
    w_.stand_still(part_, rest_.step);
    w_.time = rest_.time + moments * (w_.time - rest_.time);
  }

  void run(std::size_t points) { (void)w_.call.run(std::int64_t(points)); }

  const Material& m_;
  const Rest rest_;
  const double part_;
  Workspace& w_;
};

// The point whose tangent is elastic: the first, unless the tangents on both sides of it differ, as on a yield surface.
std::size_t stiffest(const Moves& moves, std::size_t size) {
  constexpr double smooth = 1e-4;
  const std::size_t points = moves.points();
  double kink = moves.ended(0) ? 0 : 1;
  for (std::size_t p = 1; p < points && kink <= smooth; p += 2) {
    if (!moves.ended(p) || !moves.ended(p + 1)) continue;
    const double *here = moves.tangent(0), *up = moves.tangent(p), *down = moves.tangent(p + 1);
    double difference = 0;
    for (std::size_t i = 0; i < size * size; ++i)
      difference = std::max(difference, std::abs(up[i] - 2 * here[i] + down[i]));
    kink = std::max(kink, difference / greatest(here, size * size));
  }
  if (kink <= smooth) return 0;
  std::size_t best = points;
  for (std::size_t p = 1; p < points; ++p)
    if (moves.ended(p) && (best == points || trace(moves.tangent(p), size) > trace(moves.tangent(best), size)))
      best = p;
  if (best == points) refuse_for("no strain beside it has a finite stress and tangent");
  return best;
}

// Finds the operator by one of the moments. Returns false if a point did not converge in it; the last one must do.
bool find_elastic(const Material& m, const Rest& rest, double part, bool last, double* to) {
  constexpr double returned = 1e-2, settled = 1e-3;
  const std::size_t size = m.size(), square = size * size;
  Moves moves(m, rest, part);
  moves.go();
  if (!last && !moves.all_ended()) return false;
  const std::size_t best = stiffest(moves, size);
  std::copy_n(moves.tangent(best), square, to);
  const double stiffness = greatest(to, square);
  if (!m.has_history && !m.has_rates) return true;
  moves.come_back();
  if (!last && !moves.all_ended()) return false;
  if (best == 0) {
    double change[36];
    std::transform(to, to + square, moves.tangent(0), change, std::minus<>());
    if (!moves.ended(0) || greatest(change, square) > settled * stiffness)
      refuse_for("its stiffness depends on how short the time is, as a dashpot's does");
    for (std::size_t i = 0; i < square; ++i) to[i] += change[i] / (LATER - 1);  // in no time at all
  }
  const double* home = moves.ended(0) ? moves.stress(0) : rest.state;
  for (std::size_t p = best ? best : 1; p < (best ? best + 1 : moves.points()); ++p)
    for (std::size_t i = 0; i < size; ++i)
      if (!moves.ended(p) || std::abs(moves.stress(p)[i] - home[i]) > returned * stiffness * DISTANCE)
        refuse_for("an increment of strain and another one back, in no time, do not restore the stress");
  return true;
}

// Returns the moment in which it was found.
double find_elastic(const Material& m, const Rest& rest, double* to) {
  constexpr double last = std::end(MOMENTS)[-1];
  for (const double part : MOMENTS)
    if (find_elastic(m, rest, part, part == last, to)) return part;
  return last;
}

}  // namespace

void elastic_operator(const Material& m, const Rest& rest, double* to) { find_elastic(m, rest, to); }

void secant_operator(const Material& m, const Rest& rest, double* to) {
  constexpr double part = 1e-2, straight = 1e-3;
  const double moment = find_elastic(m, rest, to);
  const std::size_t size = m.size();
  const double stiffness = greatest(to, size * size), still[6] = {};
  Moves moves(m, rest, moment);
  moves.go(still);
  double stress[6], step[6];
  std::copy_n(moves.stress(0), size, stress);
  if (greatest(stress, size) == 0) return;
  for (std::size_t i = 0; i < size; ++i) step[i] = -part * stress[i] / stiffness;
  moves.go(step);
  for (std::size_t i = 0; i < size; ++i) {
    double expected = stress[i];
    for (std::size_t j = 0; j < size; ++j) expected += to[size * i + j] * step[j];
    if (!moves.ended(0) || std::abs(moves.stress(0)[i] - expected) > straight * part * greatest(stress, size))
      refuse(
          "the law has no secant operator in this state: its stress does not go back in proportion to the strain. "
          "Ask for the elastic operator or the tangent.");
  }
}

}  // namespace neml2_capi::plugin
