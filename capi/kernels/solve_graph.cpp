#include "capi/kernels/solve_graph.h"

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <utility>

#include "capi/graph/solve_package.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::kernels {
namespace {

std::int64_t sum(const std::vector<std::int64_t>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), INT64_C(0));
}

class SolveGraph final : public HostGraph {
 public:
  SolveGraph(const std::string& package, LinearSolve solve, DType real, const std::vector<Slot>& inputs)
      : HostGraph(package, real, inputs), solve_(std::move(solve)) {
    for (const SolvedPart& part : solve_.parts) add_output("", Dims{-1}.then(part.sizes));
  }

  void run(Handles& inputs, Handles& outputs, aoti::SingularInfo* singular) const override {
    const std::int64_t points = inputs[0]->sizes()[0];
    for (Tensor* input : inputs) input->make_row_major();
    const Tensor a = matrix(points, inputs.begin(), solve_.columns);
    const Tensor b = matrix(points, inputs.begin() + solve_.rows.size() * solve_.columns.size(), solve_.sides);
    const Tensor x = aoti::solve_linear(a, b, singular).row_major();
    for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = new Tensor(part_of(x, solve_.parts[i]));
  }

 private:
  // Blocks, row of blocks after row of blocks, as one matrix for each point.
  Tensor matrix(std::int64_t points, Tensor* const* blocks, const std::vector<std::int64_t>& columns) const {
    const std::int64_t height = sum(solve_.rows), width = sum(columns);
    Tensor all = Tensor::empty(real(), {points, height, width});
    with_scalar(real(), [&](auto* type) {
      using Scalar = std::remove_pointer_t<decltype(type)>;
      std::int64_t top = 0;
      for (const std::int64_t rows : solve_.rows) {
        std::int64_t left = 0;
        for (const std::int64_t count : columns) {
          const Scalar* from = (*blocks++)->template data_as<const Scalar>();
          for (std::int64_t p = 0; p < points; ++p)
            for (std::int64_t r = 0; r < rows; ++r, from += count)
              std::copy_n(from, count, all.data_as<Scalar>() + (p * height + top + r) * width + left);
          left += count;
        }
        top += rows;
      }
    });
    return all;
  }

  Tensor part_of(const Tensor& x, const SolvedPart& part) const {
    const std::int64_t points = x.sizes()[0], height = x.sizes()[1], width = x.sizes()[2];
    Tensor made = Tensor::empty(real(), Dims{points}.then(part.sizes));
    with_scalar(real(), [&](auto* type) {
      using Scalar = std::remove_pointer_t<decltype(type)>;
      Scalar* to = made.data_as<Scalar>();
      for (std::int64_t p = 0; p < points; ++p)
        for (std::int64_t r = 0; r < part.rows; ++r) {
          const Scalar* const row = x.data_as<const Scalar>() + (p * height + part.row + r) * width + part.column;
          for (std::int64_t c = 0; c < part.columns; ++c) *to++ = solve_.negative ? -row[c] : row[c];
        }
    });
    return made;
  }

  LinearSolve solve_;
};

}  // namespace

std::shared_ptr<const aoti::Graph> solve_graph(const std::string& package, LinearSolve solve, DType real,
                                               const std::vector<Slot>& inputs) {
  return std::make_shared<SolveGraph>(package, std::move(solve), real, inputs);
}

}  // namespace neml2_capi::kernels
