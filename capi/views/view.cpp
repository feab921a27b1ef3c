#include "capi/views/view.h"

#include <algorithm>
#include <utility>

#include "capi/base/error.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"
#include "capi/tensor/rows.h"
#include "capi/views/evaluation.h"

namespace neml2_capi::model {
namespace {

// Puts a variable at its position, or behind the others, where its name must be a new one.
void place(std::vector<Variable>& variables, std::size_t position, const Variable& variable) {
  if (position < variables.size()) {
    variables[position] = variable;
    return;
  }
  for (const Variable& other : variables)
    if (other.name == variable.name)
      throw Error(NEML2_ERROR_UNSUPPORTED, variable.name,
                  join("The law has a variable '", variable.name,
                       "' of its own, which a view of it would add. Open it "
                       "as it is."));
  variables.push_back(variable);
}

template <class All>
std::vector<std::int64_t> positions_of(const All& all, std::size_t count) {
  std::vector<std::int64_t> at(count, -1);
  for (std::size_t k = 0; k < all.size(); ++k)
    if (all[k].position < count) at[all[k].position] = static_cast<std::int64_t>(k);
  return at;
}

// Sets `part` to the arrays of a range, numbered from its first point.
void slice(const Model& model, const Bindings& bindings, const Range& range, Bindings& part) {
  part = bindings;
  part.points = range.points;
  const auto shift = [&](Points& array, DType dtype) {
    if (array.data) array.data = point(array, range.begin, itemsize(dtype));
  };
  for (const Part of : all_parts)
    for (std::size_t i = 0; i < part.of(of).size(); ++i) shift(part.of(of)[i], model.variable(of, i).dtype);
  for (int kind = 0; kind < num_reports; ++kind) shift(part.report[kind], dtype_of_report(kind));
  for (std::vector<Points>* rows : {&part.iterates, &part.guesses})
    for (std::size_t i = 0; i < rows->size(); ++i) shift((*rows)[i], model.variables(Kind::unknown)[i].dtype);
}

}  // namespace

View::View(std::shared_ptr<const Routes> law, std::unique_ptr<const Change> change)
    : law_(std::move(law)),
      change_(std::move(change)),
      taken_at_(positions_of(change_->taken(), law_->model().variables(Kind::input).size())),
      made_at_(positions_of(change_->made(), law_->model().variables(Kind::output).size())),
      model_(Model::around(law_->shared_model(), boundary())) {}

Boundary View::boundary() {
  const Model& law = law_->model();
  Boundary all{law.variables(Kind::input), law.variables(Kind::output), {}, {}};
  for (const Change::Taken& each : change_->taken()) place(all.inputs, each.position, each.variable);
  for (const Change::Made& each : change_->made()) place(all.outputs, each.position, each.variable);
  add_rules(Kind::input, all.by_inputs, by_inputs_);
  add_rules(Kind::parameter, all.by_parameters, by_parameters_);
  return all;
}

// Lists the law's derivatives at their own positions, and then the derivatives of additional outputs.
void View::add_rules(Kind kind, std::vector<Derivative>& listed, std::vector<Rule>& rules) const {
  const auto& laws = law_->model().derivatives(kind).all();
  const auto add = [&](const Derivative* of, const Rule& rule) {
    listed.push_back(changed(kind, of, rule));
    rules.push_back(rule);
  };
  const auto taken_of = [&](const Derivative& each) { return kind == Kind::input ? taken_at_[each.input] : -1; };
  for (std::size_t i = 0; i < laws.size(); ++i)
    add(&laws[i], {static_cast<std::int64_t>(i), made_at_[laws[i].output], taken_of(laws[i])});
  for (std::size_t m = 0; m < change_->made().size(); ++m) {
    const Change::Made& made = change_->made()[m];
    if (made.position < made_at_.size()) continue;
    for (std::size_t i = 0; i < laws.size() && made.of_law >= 0; ++i)
      if (laws[i].output == static_cast<std::size_t>(made.of_law)) {
        const std::int64_t taken = taken_of(laws[i]);
        add(&laws[i],
            {static_cast<std::int64_t>(i), static_cast<std::int64_t>(m), taken, taken >= 0 && taken == made.by_taken});
      }
    if (made.of_law >= 0) continue;
    if (kind == Kind::input && made.by_taken >= 0)
      add(nullptr, {-1, static_cast<std::int64_t>(m), made.by_taken, true});
    // An output that does not depend on the law is history, too: derivatives through time take all that it is derived by.
    const std::vector<Variable>& variables = law_->model().variables(kind);
    for (std::size_t v = 0; v < variables.size() && made.variable.sub_ndim == 0; ++v)
      if (variables[v].sub_ndim == 0 && (kind != Kind::input || taken_at_[v] < 0) &&
          std::ranges::any_of(laws, [v](const Derivative& each) { return each.input == v; }))
        add(nullptr, {-1, static_cast<std::int64_t>(m), -1, false, v});
  }
}

Derivative View::changed(Kind kind, const Derivative* law, const Rule& rule) const {
  if (rule.made < 0 && rule.taken < 0) return *law;
  const Change::Made* made = rule.made < 0 ? nullptr : &change_->made()[static_cast<std::size_t>(rule.made)];
  const Change::Taken* taken = rule.taken < 0 ? nullptr : &change_->taken()[static_cast<std::size_t>(rule.taken)];
  const Variable& of = made ? made->variable : law_->model().variables(Kind::output)[law->output];
  const std::size_t position = law ? law->input : rule.position;
  const Variable& by = taken ? taken->variable : law_->model().variables(kind)[position];
  Derivative derivative;
  derivative.output = made ? made->position : law->output;
  derivative.input = taken ? taken->position : position;
  derivative.rows = of.point_shape.product();
  derivative.columns = by.point_shape.product();
  Dims shape = of.point_shape.then(by.point_shape);
  if (law &&
      law->block.point_shape.product() != law_->model().variables(Kind::output)[law->output].point_shape.product() *
                                              law_->model().variables(kind)[law->input].point_shape.product()) {
    derivative.rows = law->rows;  // by site: no view changes how many numbers one has
    derivative.columns = law->columns;
    shape = law->block.point_shape;
  }
  derivative.block = {join(of.name, ":", by.name), "", law_->model().dtype(), shape, 0};
  return derivative;
}

// Tells whether an output depends on what is taken besides the law's output, and that derivative is there.
bool View::is_direct(std::int64_t made) const {
  return std::ranges::any_of(by_inputs_, [&](const Rule& rule) { return rule.made == made && rule.direct; });
}

void View::check(const Options& options, std::int64_t points) const {
  Request request{Bindings()};
  request.points = points;
  const Plan plan(*law_, options, request);
}

Route::ChunkSize View::chunk_size(const Options& options, const Request& request) const {
  ChunkSize size = law_->choose(request, options).chunk_size(options, request);
  constexpr std::int64_t in_cache = 512;  // with the rows of the law beside the caller's
  const bool is_free = size.shared == 0 && options.chunk() == 0 && !options.whole_batch() && model_->baked_batch() == 0;
  if (is_free) size.most = std::min(size.most, in_cache);
  return size;
}

std::int64_t View::end_of_range(const Options& options, const Bindings& bindings, std::int64_t begin,
                                std::int64_t size) const {
  return law_->choose(Request(bindings), options).end_of_range(options, bindings, begin, size);
}

void View::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
               Tally& tally) const {
  Memory& memory = memory_of(workspace);
  Bindings& own = memory.own;
  slice(*model_, bindings, range, own);
  const Sums sums(*model_, own, 0, range.points);
  sums.replace(own);
  Vector<Tensor> unknowns(model_->variables(Kind::unknown).size());
  if (bindings.unknowns) own.unknowns = &unknowns;
  const bool whole = range.points == bindings.points;
  Tally found = Evaluation(*this, whole ? plan.options() : plan.options().in_one_thread(), own, memory).run();
  found.shift(range.begin);
  tally.add(found);
  if (bindings.unknowns) {
    const auto alone = range.turns ? range.turns->alone() : std::unique_lock<locks::FreedMutex>();
    for (std::size_t k = 0; k < unknowns.size(); ++k)
      if (unknowns[k].data()) {
        Groups all = {iterates_of_all(bindings, k, model_->variables(Kind::unknown)[k])};
        for (std::int64_t p = 0; p < range.points; ++p) copy_row({unknowns[k]}, p, all, range.begin + p);
      }
  }
  if (!begin_sums(plan, bindings, range)) return;
  sums.write();
  end_sums(plan, range);
}

}  // namespace neml2_capi::model
