#include "capi/hypotheses/law_arrays.h"

#include <algorithm>
#include <cstring>

#include "capi/evaluation/arrays.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {

LawArrays::LawArrays(const Routes& law, const Reduction& reduction, const Bindings& outside, const Range& range,
                     LawMemory& memory)
    : law_(law), reduction_(reduction), outside_(outside), range_(range), memory_(memory) {
  if (memory_.bindings.inputs.size() != law.model().variables(Kind::input).size())
    memory_.bindings = bindings_for(law.model());
}

void LawArrays::take(const Vector<std::int64_t>& points) {
  points_ = points;
  is_range_ = std::ssize(points) == range_.points;  // they are sorted, and each is there once
  // Packages of a fixed batch take whole ones.
  const std::int64_t batch = std::max<std::int64_t>(law_.model().baked_batch(), 1);
  while (std::ssize(points_) % batch != 0) points_.push_back(points_.back());
  tensors_.clear();
  Bindings& bindings = memory_.bindings;
  bindings.points = std::ssize(points_);
  for (const Part part : all_parts) std::ranges::fill(bindings.of(part), Points());
  std::ranges::fill(bindings.report, Points());
  bindings.copies.assign(bindings.inputs.size(), false);
  for (std::size_t i = 0; i < bindings.inputs.size(); ++i)
    if (i != reduction_.strain()) give(Part::input, i);
  for (std::size_t i = 0; i < bindings.parameters.size(); ++i) give(Part::parameter, i);
}

void LawArrays::give(Part part, std::size_t index, const Vector<double>* at_free) {
  const Kind kind = kind_of(part);
  Points& bound = memory_.bindings.of(part)[index];
  if (kind != Kind::parameter && reduction_.roles(kind)[index].is_reduced)
    bound = completed(part, index, at_free);
  else if (const Points& all = outside_.of(part)[index]; all.data)
    bound = gathered(all, law_.model().variables(kind)[index]);
}

void LawArrays::ask(Part part, std::size_t index) {
  if (!has(part, index)) memory_.bindings.of(part)[index] = room(law_.model().variable(part, index));
}

Points LawArrays::room(const Variable& variable) {
  tensors_.push_back(Tensor::empty(variable.dtype, Dims{std::ssize(points_)}.then(variable.point_shape)));
  return {tensors_.back().data_as<char>(), variable.point_shape.product()};
}

Points LawArrays::gathered(const Points& all, const Variable& variable) {
  const std::int64_t size = itemsize(variable.dtype);
  if (is_one_value(all)) return all;
  if (is_range_) return {point(all, range_.begin, size), all.stride};
  const Points own = room(variable);
  const auto bytes = static_cast<std::size_t>(own.stride * size);
  for (std::size_t i = 0; i < points_.size(); ++i)
    std::memcpy(own.data + i * bytes, point(all, points_[i], size), bytes);
  return own;
}

Points LawArrays::completed(Part part, std::size_t index, const Vector<double>* at_free) {
  const Variable& variable = law_.model().variables(kind_of(part))[index];
  const Reduction::Role& role = reduction_.roles(kind_of(part))[index];
  const Hypothesis& hypothesis = reduction_.hypothesis();
  const Points own = room(variable), given = outside_.of(part)[index];
  const Points others = role.others < 0 ? Points() : outside_.of(part)[static_cast<std::size_t>(role.others)];
  with_scalar(variable.dtype, [&]<class Scalar>(Scalar*) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Scalar));
    Scalar* whole = reinterpret_cast<Scalar*>(own.data);
    const auto place = [&](const Points& array, const Components& at, std::int64_t p) {
      if (!array.data) return;
      const auto* from = reinterpret_cast<const Scalar*>(point(array, p, size));
      for (const std::int64_t c : at) whole[c] = *from++;
    };
    for (std::size_t i = 0; i < points_.size(); ++i, whole += symmetric_size) {
      std::fill_n(whole, symmetric_size, Scalar(0));
      place(given, hypothesis.given, points_[i]);
      place(others, role.held, points_[i]);
      if (!at_free) continue;
      const std::size_t n = hypothesis.free.size(), row = std::min(i, at_free->size() / n - 1);
      for (std::size_t k = 0; k < n; ++k) whole[hypothesis.free[k]] += static_cast<Scalar>((*at_free)[row * n + k]);
    }
  });
  return own;
}

void LawArrays::add_reports(std::int64_t miters) {
  Bindings& bindings = memory_.bindings;
  for (int kind = 0; kind < num_reports; ++kind) {
    const bool always = kind == NEML2_REPORT_STATUS || kind == NEML2_REPORT_ITERATIONS;
    if (!always && !outside_.report[kind].data && kind != NEML2_REPORT_SUGGESTED_CUT &&
        kind != NEML2_REPORT_RESIDUAL_NORM)
      continue;
    const Dims shape = kind == NEML2_REPORT_RESIDUAL_HISTORY ? Dims{miters} : Dims();
    bindings.report[kind] = room({"", "", dtype_of_report(kind), shape, 0});
  }
}

Tally LawArrays::evaluate(const Options& options) {
  Bindings& bindings = memory_.bindings;
  add_reports(options.miters());
  unknowns_.clear();
  if (outside_.unknowns) unknowns_.resize(law_.model().variables(Kind::unknown).size());
  bindings.unknowns = outside_.unknowns ? &unknowns_ : nullptr;
  memory_.workspace.forget();
  return Plan(law_, options, Request(bindings)).evaluate(bindings, memory_.workspace);
}

char* LawArrays::row(Part part, std::size_t index, std::size_t row) const {
  const Points& array = memory_.bindings.of(part)[index];
  return point(array, static_cast<std::int64_t>(row), itemsize(law_.model().variable(part, index).dtype));
}

const char* LawArrays::report(int kind, std::size_t row) const {
  const Points& array = memory_.bindings.report[kind];
  return array.data ? point(array, static_cast<std::int64_t>(row), itemsize(dtype_of_report(kind))) : nullptr;
}

}  // namespace neml2_capi::model
