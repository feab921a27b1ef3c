// One evaluation of some points of a view: the law's arrays, and what is made of them.
#pragma once

#include "capi/evaluation/others.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/sums.h"
#include "capi/views/view.h"

namespace neml2_capi::model {

// Memory that stays from run to run.
struct View::Memory : Workspace::Kept {
  Workspace workspace;
  Bindings own, law;
  Change::Point point;
  Vector<double> numbers;
};

class View::Evaluation {
 public:
  // The arrays are numbered from the first of the points. All must outlive it.
  Evaluation(const View& view, const Options& options, const Bindings& own, Memory& memory);

  Tally run();

 private:
  const Model& law() const { return view_.law_->model(); }
  const Change& change() const { return *view_.change_; }
  bool is_replaced(std::int64_t output) const { return view_.made_at_[static_cast<std::size_t>(output)] >= 0; }
  bool is_bound(Part part, std::size_t position) const { return own_.of(part)[position].data != nullptr; }
  std::int32_t& status(std::int64_t point) const;

  void bind();
  void bind_given();
  void bind_outputs();
  void bind_blocks();
  void bind_products();
  Points of_law(Part part, std::size_t position);
  bool concerns(const Change::Made& made, std::size_t index) const;

  void load_taken(std::int64_t point);
  void give(std::int64_t point);
  void give_nan(std::int64_t point);
  void give_cotangents(std::int64_t point);
  void make(std::int64_t point);
  void make_blocks(Part part, std::int64_t point);
  void make_products(std::int64_t point);
  void write(Part part, std::size_t index, const Vector<double>& values, std::int64_t point);
  void mark(std::int64_t point);
  Tally without(const Vector<LeftOut>& bad, const std::string& reason);

  const View& view_;
  const Options& options_;
  const Bindings& own_;
  Memory& memory_;
  Bindings& law_;
  PointRows rows_;
  bool slopes_ = false, blocks_in_place_ = true, cotangents_ = false, anything_ = false;
  Vector<bool> wanted_;        // by made
  Vector<std::int64_t> lost_;  // points that were given NaN or infinite numbers, and have no results
  NonFinite non_finite_;
};

}  // namespace neml2_capi::model
