// Some points of a caller's arrays, in arrays of their own.
#pragma once

#include <cstdint>

#include "capi/evaluation/sums.h"

namespace neml2_capi::model {

class Gathered {
 public:
  enum class Wanted { status, results };
  // Copies the inputs and parameters of these points, which may repeat. Results and reports that are wanted, and bound in
  // `of`, have arrays; status and iterations always have. `miters` is the length of a history of residual norms.
  Gathered(const Model& model, const Bindings& of, Vector<std::int64_t> points, Wanted wanted, std::int64_t miters);

  // Copies derivatives of inputs, and guesses of solutions, too.
  void add_slopes_and_guesses(const Model& model, const Bindings& of);

  std::int64_t point(std::size_t i) const { return points_[i]; }
  std::int32_t status(std::size_t i) const { return number(NEML2_REPORT_STATUS, i); }
  std::int32_t iterations(std::size_t i) const { return number(NEML2_REPORT_ITERATIONS, i); }
  // Write the results and reports of the i-th point, or its reports alone, to the caller's arrays; never its iterations.
  void write(std::size_t i) const { write(i, true); }
  void write_reports(std::size_t i) const { write(i, false); }

  Bindings bindings;

 private:
  struct Result {
    Points all, own;
    std::int64_t bytes, itemsize;  // of a point, of an element
    bool is_report;
  };

  Points add(const Variable& variable, const Points& all, bool is_report);
  Points gather(const Variable& variable, const Points& all);
  std::int32_t number(int report, std::size_t i) const;
  void write(std::size_t i, bool results) const;

  Vector<std::int64_t> points_;
  PointRows rows_;
  Vector<Result> results_;
};

// Calls f(array, variable, part, position) for every result that is bound.
template <class F>
void for_each_result(const Model& model, const Bindings& bindings, F&& f) {
  for (const Part part : all_parts)
    for (std::size_t i = 0; !is_given(part) && i < bindings.of(part).size(); ++i)
      if (bindings.of(part)[i].data) f(bindings.of(part)[i], model.variable(part, i), part, i);
}

}  // namespace neml2_capi::model
