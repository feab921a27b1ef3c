#include "capi/views/evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "capi/evaluation/gathered.h"
#include "capi/evaluation/results.h"
#include "capi/model/remark.h"
#include "capi/tensor/rows.h"
#include "capi/views/point_values.h"

namespace neml2_capi::model {
namespace {

bool has_failed(std::int32_t status) { return status > NEML2_NON_FINITE; }

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

View::Memory& View::memory_of(Workspace& workspace) {
  if (auto* const same = dynamic_cast<Memory*>(workspace.kept.get())) return *same;
  workspace.kept = std::make_unique<Memory>();
  return static_cast<Memory&>(*workspace.kept);
}

View::Evaluation::Evaluation(const View& view, const Options& options, const Bindings& own, Memory& memory)
    : view_(view),
      options_(options),
      own_(own),
      memory_(memory),
      law_(memory_.law),
      rows_(0, own.points),
      wanted_(view.change_->made().size()) {
  Change::Point& point = memory_.point;
  const std::size_t taken = change().taken().size(), made = change().made().size();
  point.taken.resize(taken);
  point.law_inputs.resize(taken);
  point.of_input.resize(taken);
  point.law_outputs.resize(made);
  point.made.resize(made);
  point.of_law.resize(made);
  point.direct.resize(made);
}

std::int32_t& View::Evaluation::status(std::int64_t p) const {
  return *reinterpret_cast<std::int32_t*>(point(law_.report[NEML2_REPORT_STATUS], p, sizeof(std::int32_t)));
}

// Tells whether anything of an output is asked for.
bool View::Evaluation::concerns(const Change::Made& made, std::size_t index) const {
  for (const Part part : {Part::output, Part::jvp, Part::cotangent})
    if (is_bound(part, made.position)) return true;
  const auto of_blocks = [&](const std::vector<Points>& blocks, const std::vector<Rule>& rules) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (blocks[i].data && rules[i].made == static_cast<std::int64_t>(index)) return true;
    return false;
  };
  return of_blocks(own_.blocks, view_.by_inputs_) || of_blocks(own_.parameter_blocks, view_.by_parameters_);
}

void View::Evaluation::bind() {
  law_ = own_;
  if (!law_.report[NEML2_REPORT_STATUS].data)
    law_.report[NEML2_REPORT_STATUS] = rows_.add({"", "", DType::int32, {}, 0}, false);
  for (std::size_t m = 0; m < wanted_.size(); ++m) wanted_[m] = concerns(change().made()[m], m);
  slopes_ = any_bound(own_.blocks) || any_bound(own_.parameter_blocks) || any_bound(own_.jvps) ||
            any_bound(own_.adjoints) || any_bound(own_.parameter_adjoints);
  bind_given();
  bind_outputs();
  bind_blocks();
  bind_products();
}

// Results of the law that the caller may have, too; else rows of our own.
Points View::Evaluation::of_law(Part part, std::size_t position) {
  const Points& callers = own_.of(part)[position];
  return callers.data && !is_replaced(static_cast<std::int64_t>(position))
             ? callers
             : rows_.add(law().variables(Kind::output)[position], false);
}

void View::Evaluation::bind_given() {
  const auto& inputs = law().variables(Kind::input);
  law_.inputs.resize(inputs.size());
  law_.tangents.resize(inputs.size());
  law_.adjoints.resize(inputs.size());
  law_.copies.resize(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (view_.taken_at_[i] < 0) continue;
    law_.inputs[i] = rows_.add(inputs[i], false);
    law_.copies[i] = false;
    if (law_.tangents[i].data) law_.tangents[i] = rows_.add(inputs[i], false);
    law_.adjoints[i] =
        own_.adjoints[i].data && law().is_compiled(Part::adjoint, i) ? rows_.add(inputs[i], false) : Points();
  }
}

void View::Evaluation::bind_outputs() {
  law_.outputs.resize(law().variables(Kind::output).size());
  for (std::size_t o = 0; o < law_.outputs.size(); ++o)
    if (is_replaced(static_cast<std::int64_t>(o))) law_.outputs[o] = {};
  for (std::size_t m = 0; m < wanted_.size(); ++m) {
    if (!wanted_[m]) continue;
    anything_ = true;
    if (const std::int64_t of = change().made()[m].of_law; of >= 0 && !law_.outputs[at(of)].data)
      law_.outputs[at(of)] = of_law(Part::output, at(of));
  }
}

void View::Evaluation::bind_blocks() {
  for (const auto& [part, rules] :
       {std::pair(Part::block, &view_.by_inputs_), std::pair(Part::parameter_block, &view_.by_parameters_)})
    for (std::size_t i = 0; i < rules->size(); ++i)
      if (own_.of(part)[i].data && ((*rules)[i].made >= 0 || (*rules)[i].taken >= 0)) blocks_in_place_ = false;
  for (const auto& [part, rules] :
       {std::pair(Part::block, &view_.by_inputs_), std::pair(Part::parameter_block, &view_.by_parameters_)}) {
    auto& blocks = law_.of(part);
    const std::size_t count = law().count(part);
    blocks.resize(count);
    if (blocks_in_place_) continue;
    anything_ = true;
    std::fill(blocks.begin(), blocks.end(), Points());
    for (std::size_t i = 0; i < rules->size(); ++i)
      if (const std::int64_t of = (*rules)[i].law; own_.of(part)[i].data && of >= 0 && !blocks[at(of)].data)
        blocks[at(of)] = rows_.add(law().variable(part, at(of)), false);
  }
  if (!blocks_in_place_) law_.input_first = false;
}

void View::Evaluation::bind_products() {
  const std::size_t outputs = law().variables(Kind::output).size();
  law_.jvps.resize(outputs);
  law_.cotangents.resize(outputs);
  for (std::size_t o = 0; o < outputs; ++o)
    if (is_replaced(static_cast<std::int64_t>(o))) law_.jvps[o] = law_.cotangents[o] = {};
  Vector<bool> own_rows(outputs);
  for (const Change::Made& made : change().made()) {
    if (made.of_law < 0) continue;
    const std::size_t of = at(made.of_law);
    if (is_bound(Part::jvp, made.position) && !law_.jvps[of].data && law().is_compiled(Part::jvp, of))
      law_.jvps[of] = of_law(Part::jvp, of);
    if (!is_bound(Part::cotangent, made.position)) continue;
    cotangents_ = true;
    if (!own_rows[of]) law_.cotangents[of] = rows_.add(law().variables(Kind::output)[of], false);
    own_rows[of] = true;
  }
  for (const auto& taken : change().taken())
    anything_ |= taken.position < view_.taken_at_.size() && is_bound(Part::adjoint, taken.position);
}

void View::Evaluation::load_taken(std::int64_t p) {
  for (std::size_t k = 0; k < change().taken().size(); ++k) {
    const Change::Taken& taken = change().taken()[k];
    load(own_.inputs[taken.position], taken.variable, p, memory_.point.taken[k]);
  }
}

// Gives the law inputs of NaN, by which the point is NEML2_NON_FINITE.
void View::Evaluation::give_nan(std::int64_t p) {
  for (Values& taken : memory_.point.taken) std::fill(taken.begin(), taken.end(), std::nan(""));
  change().before(memory_.point, any_bound(own_.tangents));
  give(p);
}

// Gives the law its inputs and their tangents.
void View::Evaluation::give(std::int64_t p) {
  const auto& inputs = law().variables(Kind::input);
  for (std::size_t k = 0; k < change().taken().size(); ++k) {
    const Change::Taken& taken = change().taken()[k];
    if (taken.position >= inputs.size()) continue;
    store(law_.inputs[taken.position], inputs[taken.position], p, memory_.point.law_inputs[k]);
    if (!law_.tangents[taken.position].data) continue;
    load(own_.tangents[taken.position], taken.variable, p, memory_.numbers);
    store(law_.tangents[taken.position], inputs[taken.position], p, times(memory_.point.of_input[k], memory_.numbers));
  }
  if (cotangents_) give_cotangents(p);
}

// The cotangent of an output of the law comes from all outputs that are made of it, and from its own.
void View::Evaluation::give_cotangents(std::int64_t p) {
  Change::Point& point = memory_.point;
  const auto& outputs = law().variables(Kind::output);
  for (std::size_t m = 0; m < wanted_.size(); ++m)
    if (const std::int64_t of = change().made()[m].of_law; of >= 0)
      point.law_outputs[m].assign(static_cast<std::size_t>(outputs[at(of)].point_shape.product()), 0.0);
  change().after(point, true);
  for (std::size_t m = 0; m < wanted_.size(); ++m) {
    const Change::Made& made = change().made()[m];
    if (made.of_law < 0 || !is_bound(Part::cotangent, made.position)) continue;
    const std::size_t of = at(made.of_law);
    load(own_.cotangents[made.position], made.variable, p, memory_.numbers);
    Values sum = times(point.of_law[m], memory_.numbers, true);
    bool is_first = true;
    for (std::size_t before = 0; before < m; ++before)
      if (change().made()[before].of_law == made.of_law && is_bound(Part::cotangent, change().made()[before].position))
        is_first = false;
    const Points& others = is_first && !is_replaced(made.of_law) ? own_.cotangents[of] : law_.cotangents[of];
    if (others.data) {
      load(others, outputs[of], p, memory_.numbers);
      add_to(sum, memory_.numbers);
    }
    store(law_.cotangents[of], outputs[of], p, sum);
  }
}

Tally View::Evaluation::run() {
  bind();
  Vector<LeftOut> bad;
  std::string reason;
  NonFinite given;
  for (std::int64_t p = 0; p < own_.points; ++p) {
    load_taken(p);
    const Change::Refusal refusal = change().before(memory_.point, any_bound(own_.tangents));
    if (refusal.why.empty()) {
      give(p);
    } else if (const NonFinite found = non_finite_given(*view_.model_, own_, p); found.point >= 0) {
      if (lost_.empty()) given = found;
      lost_.push_back(p);
      give_nan(p);
    } else {
      const bool mends = refusal.is_of_step && steps_of_zero(*view_.model_, own_, p).empty();
      if (bad.empty()) reason = join(refusal.why, " A smaller step ", mends ? "may" : "does not", " mend that.");
      bad.push_back({p, mends ? 0.5 : 1.0});
    }
  }
  if (!bad.empty()) return without(bad, reason);
  memory_.workspace.forget();
  Tally tally = Plan(*view_.law_, options_, Request(law_)).evaluate(law_, memory_.workspace);
  if (tally.non_finite.point == given.point) tally.non_finite = {};  // by the name of what the law does not have
  tally.note(given);
  if (!anything_ && blocks_in_place_) return tally;
  for (std::int64_t p = 0; p < own_.points; ++p) make(p);
  if (non_finite_.point < 0) return tally;
  tally.note(non_finite_);
  std::fill_n(tally.count, num_statuses, 0);
  for (std::int64_t p = 0; p < own_.points; ++p) tally.add_one(status(p), p);
  return tally;
}

// Makes the results of a point. A point that failed has none, or NaN.
void View::Evaluation::make(std::int64_t p) {
  Change::Point& point = memory_.point;
  const bool failed = has_failed(status(p));
  if (failed && !own_.mark_failed) return;
  load_taken(p);
  for (std::size_t m = 0; m < wanted_.size(); ++m) {
    const std::int64_t of = change().made()[m].of_law;
    if (of < 0) continue;
    const Variable& variable = law().variables(Kind::output)[at(of)];
    if (law_.outputs[at(of)].data)
      load(law_.outputs[at(of)], variable, p, point.law_outputs[m]);
    else
      point.law_outputs[m].assign(static_cast<std::size_t>(variable.point_shape.product()), 0.0);
  }
  change().after(point, slopes_);
  if (failed || std::ranges::binary_search(lost_, p)) mark(p);
  for (std::size_t m = 0; m < wanted_.size(); ++m) write(Part::output, change().made()[m].position, point.made[m], p);
  if (!slopes_) return;
  if (!blocks_in_place_) {
    make_blocks(Part::block, p);
    make_blocks(Part::parameter_block, p);
  }
  make_products(p);
}

// Makes all that is made of a point that failed, or is lost, NaN.
void View::Evaluation::mark(std::int64_t) {
  const auto fill = [](Values& numbers) { std::fill(numbers.begin(), numbers.end(), std::nan("")); };
  Change::Point& point = memory_.point;
  for (Values& made : point.made) fill(made);
  for (auto* slopes : {&point.of_input, &point.of_law, &point.direct})
    for (Change::Slope& slope : *slopes) fill(slope.values);
}

void View::Evaluation::make_blocks(Part part, std::int64_t p) {
  const Change::Point& point = memory_.point;
  const auto& rules = part == Part::block ? view_.by_inputs_ : view_.by_parameters_;
  const Kind kind = kind_of(part);
  Values& block = memory_.numbers;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!own_.of(part)[i].data) continue;
    const Rule& rule = rules[i];
    if (rule.law >= 0) {
      const Derivative& of = law().derivatives(kind).all()[at(rule.law)];
      load(law_.of(part)[at(rule.law)], of.block, p, block);
      if (rule.made >= 0)
        block = times(point.of_law[at(rule.made)], block, false, static_cast<std::size_t>(of.columns));
      // The columns of a row are sites of the input, each of which is multiplied from the right.
      if (rule.taken >= 0) block = times(point.of_input[at(rule.taken)], block, true);
      if (rule.direct) add_to(block, point.direct[at(rule.made)].values);
    } else if (rule.direct) {
      block = point.direct[at(rule.made)].values;
    } else {
      block.assign(static_cast<std::size_t>(view_.model_->variable(part, i).point_shape.product()), 0.0);
    }
    const Derivative& derivative = view_.model_->derivatives(kind).all()[i];
    if (own_.input_first)
      block = transposed_block(block, static_cast<std::size_t>(derivative.rows),
                               static_cast<std::size_t>(derivative.columns));
    write(part, i, block, p);
  }
}

void View::Evaluation::make_products(std::int64_t p) {
  const Change::Point& point = memory_.point;
  const auto& variables = law().variables(Kind::output);
  for (std::size_t m = 0; m < wanted_.size(); ++m) {
    const Change::Made& made = change().made()[m];
    if (!is_bound(Part::jvp, made.position)) continue;
    Values sum(static_cast<std::size_t>(made.variable.point_shape.product()));
    if (made.of_law >= 0 && law_.jvps[at(made.of_law)].data) {
      load(law_.jvps[at(made.of_law)], variables[at(made.of_law)], p, memory_.numbers);
      sum = times(point.of_law[m], memory_.numbers);
    }
    if (view_.is_direct(static_cast<std::int64_t>(m))) {
      const Change::Taken& taken = change().taken()[at(made.by_taken)];
      if (is_bound(Part::tangent, taken.position)) {
        load(own_.tangents[taken.position], taken.variable, p, memory_.numbers);
        add_to(sum, times(point.direct[m], memory_.numbers));
      }
    }
    write(Part::jvp, made.position, sum, p);
  }
  for (std::size_t k = 0; k < change().taken().size(); ++k) {
    const Change::Taken& taken = change().taken()[k];
    if (!is_bound(Part::adjoint, taken.position)) continue;
    Values sum(static_cast<std::size_t>(taken.variable.point_shape.product()));
    if (law_.adjoints[taken.position].data) {
      load(law_.adjoints[taken.position], law().variables(Kind::input)[taken.position], p, memory_.numbers);
      sum = times(point.of_input[k], memory_.numbers, true);
    }
    for (std::size_t m = 0; m < wanted_.size(); ++m) {
      const Change::Made& made = change().made()[m];
      if (made.by_taken != static_cast<std::int64_t>(k) || !view_.is_direct(static_cast<std::int64_t>(m)) ||
          !is_bound(Part::cotangent, made.position))
        continue;
      load(own_.cotangents[made.position], made.variable, p, memory_.numbers);
      add_to(sum, times(point.direct[m], memory_.numbers, true));
    }
    write(Part::adjoint, taken.position, sum, p);
  }
}

// Writes a result, if it is bound, and notes the first that is not finite.
void View::Evaluation::write(Part part, std::size_t index, const Values& values, std::int64_t p) {
  const Points& array = own_.of(part)[index];
  if (!array.data) return;
  store(array, view_.model_->variable(part, index), p, values);
  if (status(p) != NEML2_OK || std::ranges::all_of(values, [](double each) { return std::isfinite(each); })) return;
  status(p) = NEML2_NON_FINITE;
  if (non_finite_.point < 0) non_finite_ = {p, {part, static_cast<std::int64_t>(index)}};
}

// Evaluates all points but those that have no inputs for the law, which have not converged.
Tally View::Evaluation::without(const Vector<LeftOut>& bad, const std::string& reason) {
  Tally tally =
      evaluate_others(*view_.model_, own_, 0, own_.points, bad, NEML2_NOT_CONVERGED, options_.miters(),
                      [&](const Bindings& others) { return Evaluation(view_, options_, others, memory_).run(); });
  tally.note(reason.c_str(), bad.front().point, NEML2_CAUSE_NONE);
  return tally;
}

}  // namespace neml2_capi::model
