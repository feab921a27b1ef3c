// Default floating-point environment for the time that the library computes: hosts trap, round and flush.
#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace neml2_capi {

#if defined(__x86_64__)

// Scope that replaces the host's environment. Most hosts change only the control word of the vector unit, so the word
// of the x87 unit, which computes long doubles, is read and left alone if it is the default.
class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() : vector_unit_(_mm_getcsr()) {
    if ((vector_unit_ & ~flags) != default_vector_unit) _mm_setcsr(default_vector_unit);
    unsigned short x87_unit = 0;
    __asm__ volatile("fnstcw %0" : "=m"(x87_unit));
    both_changed_ = x87_unit != default_x87_unit;
    if (!both_changed_) return;
    std::fegetenv(&host_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() {
    if (both_changed_) std::fesetenv(&host_);
    if (_mm_getcsr() != vector_unit_) _mm_setcsr(vector_unit_);
  }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  static constexpr unsigned flags = 0x3f;  // record past exceptions
  static constexpr unsigned default_vector_unit = 0x1f80;
  static constexpr unsigned short default_x87_unit = 0x37f;

  unsigned vector_unit_;
  bool both_changed_ = false;
  std::fenv_t host_;
};

#else

class DefaultFloatingPoint {
 public:
  DefaultFloatingPoint() {
    std::fegetenv(&host_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatingPoint() { std::fesetenv(&host_); }
  DefaultFloatingPoint(const DefaultFloatingPoint&) = delete;
  DefaultFloatingPoint& operator=(const DefaultFloatingPoint&) = delete;

 private:
  std::fenv_t host_;
};

#endif

}  // namespace neml2_capi
