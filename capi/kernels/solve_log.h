// Log of Newton's method in lanes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capi/kernels/block.h"
#include "capi/newton/newton.h"

namespace neml2_capi::kernels {

class SolveLog {
 public:
  SolveLog(std::size_t systems, const newton::Settings& rules);
  SolveLog(const SolveLog&) = delete;
  SolveLog& operator=(const SolveLog&) = delete;

  // By system, to be filled by a walk.
  Trace* traces() { return traces_.data(); }
  // After it: the iterations of each system, and its end.
  void write(const std::vector<std::string>& systems, std::int64_t first_point, std::int64_t points) const;

 private:
  const newton::Settings& rules_;
  std::vector<double> norms_, steps_;
  std::vector<std::int64_t> left_;
  std::vector<Trace> traces_;
};

}  // namespace neml2_capi::kernels
