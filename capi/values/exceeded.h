// What of an evaluation is beyond a bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "capi/tensor/tensor.h"

namespace neml2_capi::model {

// Points that are beyond one bound, by its position among the model's, and the first of them.
struct Exceeded {
  std::size_t bound = 0;
  bool fails = false;       // points fail for it
  std::int64_t points = 0;  // of all steps
  std::int64_t step = 0, point = 0, component = 0;
  double value = 0;
};

// Adds what was found to what is known.
inline void add(Vector<Exceeded>& all, const Exceeded& found) {
  for (Exceeded& known : all) {
    if (known.bound != found.bound) continue;
    const std::int64_t points = known.points + found.points;
    if (std::tie(found.step, found.point) < std::tie(known.step, known.point)) known = found;
    known.points = points;
    return;
  }
  all.push_back(found);
}

}  // namespace neml2_capi::model
