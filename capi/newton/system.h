// Batch of independent nonlinear systems r(u) = 0, one per material point, as Newton's method sees it.
//
// Vectors are lists of tensors, one per group, each row-major with one row per point. What is called the residual here
// is -r, as the packages return it: the Newton step then solves A du = residual, with A = dr/du.
#pragma once

#include <cstdint>
#include <vector>

#include "capi/tensor/rows.h"

namespace neml2_capi::newton {

// Keeps these rows of values by row, in this order.
template <class Value>
void keep_rows(Vector<Value>& values, const Vector<std::int64_t>& rows) {
  if (values.empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) values[i] = values[static_cast<std::size_t>(rows[i])];
  values.resize(rows.size());
}

class System {
 public:
  virtual ~System() = default;
  // Take memory that waits, since one is made for every chunk.
  static void* operator new(std::size_t bytes) { return memory::allocate(bytes); }
  static void operator delete(void* system, std::size_t bytes) { memory::release(system, bytes); }

  virtual Groups residual(const Groups& u) = 0;
  // Returns the residual of some rows of `u`, or none if linearize() takes no longer.
  virtual Groups quick_residual(const Groups& /*u*/, const Vector<std::int64_t>& /*rows*/) { return {}; }

  // Returns the residual at `u`, and remembers the operator A there for step().
  virtual Groups linearize(const Groups& u) = 0;

  // Returns the Newton step of the last linearize(), whose operator it uses up. `singular` receives one entry per
  // point, not zero if the operator of the point is singular.
  virtual Groups step(Vector<std::int32_t>& singular) = 0;
  // Returns LAPACK's info of each linear solve of the last step(), if the processor does not read the device.
  virtual Vector<Tensor> singular_on_device() const { return {}; }

  // Goes on with these rows only, in this order. An operator that waits for its step is cut down too.
  virtual void keep(const Vector<std::int64_t>& rows) = 0;

  // Returns false if the number of points is baked into the system: keep() is then not called.
  virtual bool can_shrink() const = 0;
};

}  // namespace neml2_capi::newton
