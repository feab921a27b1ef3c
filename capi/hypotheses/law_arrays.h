// Arrays of some points for the law: what the caller gives, with its tensors completed, and room for results.
#pragma once

#include <cstdint>

#include "capi/evaluation/plan.h"
#include "capi/hypotheses/reduction.h"

namespace neml2_capi::model {

// Memory that stays from run to run.
struct LawMemory : Workspace::Kept {
  Workspace workspace;
  Bindings bindings;
  Bindings outside;                              // the caller's, with reports in rooms of its own
  Vector<char> status, iterations, norms, free;  // these
  Vector<double> slopes;                         // of a point: blocks may be written over them
};

class LawArrays {
 public:
  // All of these must outlive it. `outside` are the caller's arrays, of the boundary.
  LawArrays(const Routes& law, const Reduction& reduction, const Bindings& outside, const Range& range,
            LawMemory& memory);

  // Begins with these points, in this order: binds all inputs but the strain, and the parameters.
  void take(const Vector<std::int64_t>& points);
  // Binds what is given of a variable of the law. To the free components of a tensor it adds rows of `at_free`.
  void give(Part part, std::size_t index, const Vector<double>* at_free = nullptr);
  // Binds room for a result of the law.
  void ask(Part part, std::size_t index);
  Tally evaluate(const Options& options);
  const Bindings& bindings() const { return memory_.bindings; }

  // Tells whether a result was asked for.
  bool has(Part part, std::size_t index) const { return memory_.bindings.of(part)[index].data != nullptr; }
  char* row(Part part, std::size_t index, std::size_t row) const;
  // Returns the report of a row; null if the caller does not want it. Status and iterations are there.
  const char* report(int kind, std::size_t row) const;
  // Returns the last iterates of failed points, by unknown, if the caller wants them.
  const Vector<Tensor>& unknowns() const { return unknowns_; }

 private:
  Points gathered(const Points& all, const Variable& variable);
  Points completed(Part part, std::size_t index, const Vector<double>* at_free);
  Points room(const Variable& variable);
  void add_reports(std::int64_t miters);

  const Routes& law_;
  const Reduction& reduction_;
  const Bindings& outside_;
  const Range& range_;
  LawMemory& memory_;
  Vector<std::int64_t> points_;
  bool is_range_ = false;   // the points are the range's
  Vector<Tensor> tensors_;  // of the arrays that are bound
  Vector<Tensor> unknowns_;
};

}  // namespace neml2_capi::model
