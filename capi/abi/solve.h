// Structure behind the handle of a solve.
#pragma once

#include <memory>

#include "capi/abi/arguments.h"
#include "capi/evaluation/solve.h"

// Handle of the systems of a solve, which come one after another.
struct neml2_system {
  neml2_capi::model::Solve& solve;
};

struct neml2_solve {
  explicit neml2_solve(neml2_capi::model::Solve begun) : value(std::move(begun)) {}
  neml2_solve(const neml2_solve&) = delete;

  neml2_capi::model::Solve value;
  neml2_system system{value};

  // Results of a solve with tensors, which neml2_solve_end() hands out.
  struct Tensors {
    std::shared_ptr<const neml2_capi::model::Model> model;
    neml2_capi::Dims batch;
    neml2_capi::abi::Results outputs;
    std::unique_ptr<neml2_report> report;
  };
  std::unique_ptr<Tensors> tensors;
};
