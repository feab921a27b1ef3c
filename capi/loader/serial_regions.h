// Scope in which packages run on one thread, whatever OpenMP would do.
#pragma once

#include "capi/loader/image.h"

namespace neml2_capi::aoti {

// Keeps parallel regions on the calling thread, since the host decides about threads. OpenMP's setting is per thread.
class SerialRegions {
 public:
  explicit SerialRegions(const OpenMP& openmp) : openmp_(openmp) {
    if (!openmp_.set_levels) return;
    levels_ = openmp_.levels();
    openmp_.set_levels(0);
  }
  ~SerialRegions() {
    if (openmp_.set_levels) openmp_.set_levels(levels_);
  }
  SerialRegions(const SerialRegions&) = delete;
  SerialRegions& operator=(const SerialRegions&) = delete;

 private:
  const OpenMP& openmp_;
  int levels_ = 0;
};

}  // namespace neml2_capi::aoti
