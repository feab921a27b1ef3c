// A linear solve between two kernels, called as its package would be: blocks of a matrix, then of right-hand sides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "capi/kernels/host_graph.h"

namespace neml2_capi::kernels {

// Part of the solution that is returned: `sizes` of a point hold rows by columns.
struct SolvedPart {
  std::int64_t row, rows, column, columns;
  Dims sizes;
};

struct LinearSolve {
  std::vector<std::int64_t> rows;     // of each group of residuals
  std::vector<std::int64_t> columns;  // of each group of unknowns
  std::vector<std::int64_t> sides;    // of each group of right-hand sides
  bool negative = false;              // minus the solution
  std::vector<SolvedPart> parts;
};

std::shared_ptr<const aoti::Graph> solve_graph(const std::string& package, LinearSolve solve, DType real,
                                               const std::vector<Slot>& inputs);

}  // namespace neml2_capi::kernels
