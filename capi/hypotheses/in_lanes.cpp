#include "capi/hypotheses/in_lanes.h"

#include <cstddef>

namespace neml2_capi::model {
namespace {

class InLanes {
 public:
  explicit InLanes(FreeSolve& solve)
      : s_(solve), follow_(solve.has_products() || solve.check.is_needed()), own_(solve.memory.outside) {
    own_ = s_.bindings;
    own_.mark_failed = false;
    own_.unknowns = nullptr;
    add(own_.report[NEML2_REPORT_STATUS], s_.memory.status, 1, sizeof(std::int32_t));
    if (!follow_) return;
    add(own_.report[NEML2_REPORT_ITERATIONS], s_.memory.iterations, 1, sizeof(std::int32_t));
    add(own_.report[NEML2_REPORT_RESIDUAL_NORM], s_.memory.norms, 1, sizeof(double));
    if (!s_.free.empty()) add(free(), s_.memory.free, std::ssize(s_.free), itemsize(s_.law.dtype()));
  }

  Vector<std::size_t> run(const kernels::Engine& lanes) {
    const std::int64_t begin = s_.range.begin, end = begin + s_.range.points;
    Counts counts;
    lanes.run(own_, s_.options.newton(), asked_of_lanes(s_.plan.request(), s_.reduction, s_.law), begin, end, counts);
    Vector<std::size_t> open, done;
    if (!follow_ && counts.count[NEML2_OK] > 0) s_.tally.add(NEML2_OK, counts.first[NEML2_OK], counts.count[NEML2_OK]);
    if (!follow_ && counts.count[NEML2_OK] == s_.range.points) return open;
    for (std::int64_t p = begin; p < end; ++p) {
      const bool is_good = reported<std::int32_t>(NEML2_REPORT_STATUS, p) == NEML2_OK;
      if (is_good && !follow_) continue;
      (is_good ? done : open).push_back(s_.points.size());
      s_.add(p);
      if (is_good) keep(s_.points.back(), p);
    }
    look_at_bounds(done);
    return open;
  }

 private:
  Points& free() { return own_.outputs[static_cast<std::size_t>(s_.reduction.free_output())]; }

  void add(Points& array, Vector<char>& room, std::int64_t size, std::int64_t itemsize) const {
    if (array.data) return;
    room.resize(static_cast<std::size_t>(s_.range.points * size * itemsize));
    array = {room.data() - s_.range.begin * size * itemsize, size};
  }

  template <class Number>
  Number reported(int kind, std::int64_t p) const {
    return *reinterpret_cast<const Number*>(point(own_.report[kind], p, sizeof(Number)));
  }

  void keep(FreeStrain& each, std::int64_t p) {
    each.iterations = reported<std::int32_t>(NEML2_REPORT_ITERATIONS, p);
    each.norm = reported<double>(NEML2_REPORT_RESIDUAL_NORM, p);
    if (s_.free.empty()) return;
    const Numbers found(point(free(), p, itemsize(s_.law.dtype())), s_.law.dtype());
    for (std::size_t k = 0; k < s_.free.size(); ++k) each.now[k] = found[k];
  }

  // Looks at what the law was given in lanes.
  void look_at_bounds(const Vector<std::size_t>& done) {
    if (!s_.check.is_needed() || done.empty()) return;
    s_.take(done);
    s_.look_at_bounds(0, done.size());
  }

  FreeSolve& s_;
  const bool follow_;  // points that are done
  Bindings& own_;
};

}  // namespace

kernels::Asked asked_of_lanes(const Request& request, const Reduction& reduction, const Model& law) {
  kernels::Asked asked;
  asked.by_parameters = request.parameter_blocks;
  asked.slopes = request.slopes;
  asked.by_values = request.blocks || request.slopes || !reduction.hypothesis().free.empty() ||
                    (request.parameter_blocks && law.carries_parameters());
  return asked;
}

Vector<std::size_t> run_in_lanes(FreeSolve& solve, const kernels::Engine& lanes) { return InLanes(solve).run(lanes); }

}  // namespace neml2_capi::model
