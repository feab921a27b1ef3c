// The host's floating-point environment is put aside while the library computes: hosts trap, round and flush.
#pragma once

#include <cfenv>

namespace neml2_capi::exec {

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

}  // namespace neml2_capi::exec
