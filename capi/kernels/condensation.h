// Tensors of a model of which a caller has some components: others are zero, or solved for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neml2_capi::kernels {

// Positions count among the inputs, outputs or derivatives of the model, or of the caller; -1: there is none.
struct Condensation {
  using Components = std::vector<std::int64_t>;
  // Components of a variable of the model, side by side in a variable of the caller.
  struct Held {
    std::size_t caller, variable;
    Components components;
  };
  // A derivative for the caller: direct[rows, columns] - by_free[rows, free] K^-1 of_output[free, columns], by static
  // condensation, where K is the derivative of the components that vanish with respect to the free ones.
  struct Block {
    std::int64_t direct = -1, by_free = -1, of_output = -1;  // of the model; -1: zero
    bool is_of_free = false;                                 // of the free components themselves: - K^-1 of_output
    Components rows, columns;
    std::int64_t model_columns = 0;  // of `direct`, and of `of_output`
  };

  std::vector<Held> inputs, outputs;
  std::size_t input = 0, output = 0;  // symmetric tensors: free components are of the first; the second vanishes there
  std::int64_t tangent = -1;          // derivative of the output with respect to the input
  Components free;                    // side by side
  std::int64_t free_output = -1;      // of the caller: what is found
  std::int64_t free_begin = -1;       // input of the caller: where it begins
  std::vector<Block> by_inputs, by_parameters;
};

}  // namespace neml2_capi::kernels
