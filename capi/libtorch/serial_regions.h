// Scope in which operators of libtorch run on one thread, whatever OpenMP would do.
#pragma once

#include <dlfcn.h>

namespace neml2_capi::aoti::libtorch {

// Setting of an OpenMP run time that bounds the nesting of a thread's parallel regions; null if there is none.
struct OpenMP {
  int (*levels)() = nullptr;
  void (*set_levels)(int) = nullptr;

  // Finds functions of the process first, then of `library` and of the libraries that it needs.
  static OpenMP find(void* library) {
    for (void* scope : {RTLD_DEFAULT, library}) {
      OpenMP found;
      found.levels = reinterpret_cast<int (*)()>(dlsym(scope, "omp_get_max_active_levels"));
      found.set_levels = reinterpret_cast<void (*)(int)>(dlsym(scope, "omp_set_max_active_levels"));
      if (found.levels && found.set_levels) return found;
    }
    return {};
  }
};

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

}  // namespace neml2_capi::aoti::libtorch
