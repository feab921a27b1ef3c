// Objects behind the handles of a solve and its systems.
#pragma once

#include <memory>

#include "capi/abi/arguments.h"
#include "capi/evaluation/solve.h"

namespace neml2_capi::abi {

// One of the systems of a solve, which come one after another: it is there until the next one.
struct SystemObject {
  neml2_solve* solve;
};

struct SolveObject {
  SolveObject(std::shared_ptr<const model::Routes> routes, model::Bindings bindings, const model::Options& options)
      : value(std::move(routes), std::move(bindings), options) {}
  SolveObject(const SolveObject&) = delete;

  model::Solve value;
  Owned<neml2_system> system;

  // Results of a solve with tensors, which neml2_solve_end() hands out.
  struct Tensors {
    std::shared_ptr<const model::Model> model;
    Dims batch;
    Vector<Tensor> outputs;
    std::unique_ptr<ReportObject> report;
  };
  std::unique_ptr<Tensors> tensors;
};

}  // namespace neml2_capi::abi
