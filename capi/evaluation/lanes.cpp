#include "capi/evaluation/lanes.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"

namespace neml2_capi::model {
namespace {

// The last iterates of the range, among all iterates.
void write_iterates(const Model& model, const Bindings& bindings, const Range& range, const PointRows& iterates) {
  const auto alone = range.turns ? range.turns->alone() : std::unique_lock<locks::FreedMutex>();
  const auto& unknowns = model.variables(Kind::unknown);
  for (std::size_t i = 0; i < unknowns.size(); ++i) {
    char* all = iterates_of_all(bindings, i, unknowns[i]).data_as<char>();
    iterates[i].copy_to(all + range.begin * unknowns[i].point_shape.product() * iterates[i].itemsize());
  }
}

}  // namespace

std::unique_ptr<const kernels::Engine> engine_for(const Model& model, const kernels::Condensation* condensation) {
  if (!model.takes_kernels()) return nullptr;
  auto engine = std::make_unique<const kernels::Engine>(
      model.metadata(),
      kernels::Boundary{model.variables(Kind::input), model.variables(Kind::output), model.variables(Kind::parameter),
                        model.derivatives(Kind::input).all(), model.derivatives(Kind::parameter).all()},
      model.kernels(), condensation);
  return engine->exists() ? std::move(engine) : nullptr;
}

Lanes::Lanes(const Model& model) : model_(model), engine_(engine_for(model, nullptr)) {
  if (!engine_) return;
  if (const std::string& reason = engine_->reason({}); !reason.empty())
    log::write(log::Channel::model, log::Level::warning, model.metadata().leaf.string(),
               ": kernels are not used: ", reason);
}

kernels::Asked Lanes::asked_of(const Request& request) const {
  kernels::Asked asked;
  asked.slopes = request.slopes;
  asked.products = request.products();
  asked.by_parameters = request.by_parameters();
  asked.by_values = request.by_values(model_) || request.slopes;
  return asked;
}

std::string Lanes::reason_against(const Request& request, const Options& options) const {
  if (!engine_) return "The model has no kernels that it could run on. Make them: neml2-capi compile INPUT.i";
  if (options.whole_batch()) return "A batch that converges as a whole does not run in lanes. Set convergence = point.";
  if (request.slopes && asked_of(request).products) return "Derivatives of inputs do not run in lanes beside products.";
  return engine_->reason(asked_of(request));
}

bool Lanes::gives(const Request& request, const Options& options) const {
  const bool required = options.kernels() == Options::Kernels::required;
  if ((!engine_ && !required) || options.kernels() == Options::Kernels::off) return false;
  const std::string reason = reason_against(request, options);
  if (reason.empty() || !required) return reason.empty();
  throw Error(NEML2_ERROR_UNSUPPORTED, "kernels", join("The option kernels = required cannot be met. ", reason));
}

Route::ChunkSize Lanes::chunk_size(const Options& options, const Request& request) const {
  return {options.chunk() > 0 ? options.chunk() : request.points, options.chunk()};
}

void Lanes::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                Tally& tally) const {
  PointRows iterates(range.begin, range.points);
  std::optional<Sums> sums;
  if (plan.request().sums) sums.emplace(model_, bindings, range.begin, range.points);
  const Bindings* arrays = &bindings;
  if (bindings.unknowns || sums) {
    Bindings& own = workspace.bindings = bindings;
    arrays = &own;
    if (bindings.unknowns)
      for (const Variable& unknown : model_.variables(Kind::unknown))
        own.iterates.push_back(iterates.add(unknown, true));
    if (sums) sums->replace(own);
  }
  newton::Settings rules = plan.options().newton();
  rules.step_tol = plan.options().substep_del_tol();
  Counts counts;
  engine_->run(*arrays, rules, asked_of(plan.request()), range.begin, range.begin + range.points, counts);
  tally.add(counts);
  if (bindings.unknowns && counts.failed.point >= 0) write_iterates(model_, bindings, range, iterates);
  if (!begin_sums(plan, bindings, range)) return;
  if (sums) sums->write();
  end_sums(plan, range);
}

}  // namespace neml2_capi::model
