#include "capi/devices/marks.h"

#include "capi/graph/algebra.h"
#include "capi/tensor/views.h"
#include "capi/values/steps.h"

namespace neml2_capi::model {
namespace {

using namespace algebra;

// Tells NaN from numbers, of which infinity is one.
Tensor is_number(const Tensor& x) { return at_most(x, x); }

// The points of a batch at which something is bad, whose values go there from batches of their own.
class Bad {
 public:
  Bad(const Dims& batch, Device device) : batch_(batch), count_(filled(DType::float64, batch, 0.0, device)) {}

  void add(const Tensor& values, const Dims& point_shape, Tensor (*is_good)(const Tensor&)) {
    if (!values.data() || !is_real(values.dtype()) || values.numel() == 0) return;
    const Dims own = values.sizes().first(values.ndim() - point_shape.size());
    const Tensor vectors = shaped(values.row_major(), {own.product(), point_shape.product()});
    const Tensor bad = sum(converted(negated(is_good(vectors)), DType::float64), {1}, false);
    count_ = algebra::add(count_, expanded(shaped(bad, own), batch_));
  }
  Tensor mask() const { return negated(at_most(shaped(count_, {batch_.product()}), 0.0)); }

 private:
  const Dims& batch_;
  Tensor count_;
};

void add_given(Bad& bad, const Model& model, const DeviceRequest& request, Tensor (*is_good)(const Tensor&)) {
  for (const Part part : given_parts)
    for (std::size_t i = 0; i < request.given[part].size(); ++i)
      bad.add(request.given[part][i], model.variable(part, i).point_shape, is_good);
}

void add_results(Bad& bad, const Model& model, const DeviceResults& results) {
  for (const Part part : all_parts)
    for (std::size_t i = 0; i < results.of[part].size(); ++i)
      bad.add(results.of[part][i], model.variable(part, i).point_shape, finite);
}

// Points whose solve failed for something given, or for a step of zero, need no smaller step.
void excuse(const Model& model, const DeviceRequest& request, DeviceOutcome& outcome) {
  const Device device = outcome.status.device();
  const Tensor failed = outcome.failed();
  Bad given(request.batch, device);
  add_given(given, model, request, finite);
  const Tensor for_given = both(failed, given.mask());
  outcome.status = choose(for_given, NEML2_NON_FINITE, outcome.status);
  Tensor excused = for_given;
  const Tensor at_the_guess =
      both(failed, both(equal(outcome.iterations, 0.0), negated(finite(outcome.residual_norm))));
  for (const auto& [now, before] : steps_of(model.variables(Kind::input))) {
    const auto rows = [&](std::size_t i) {
      return shaped(expanded(request.given[Part::input][i], request.batch).row_major(), {request.batch.product()});
    };
    const Tensor same = both(at_most(rows(now), rows(before)), at_most(rows(before), rows(now)));
    excused = either(excused, both(at_the_guess, same));
  }
  outcome.suggested_cut = choose(excused, 1.0, outcome.suggested_cut);
}

}  // namespace

void mark(const Model& model, const DeviceRequest& request, const DeviceResults& results, DeviceOutcome& outcome) {
  if (request.batch.product() == 0) return;
  Bad bad(request.batch, outcome.status.device());
  add_results(bad, model, results);
  add_given(bad, model, request, is_number);
  outcome.status = choose(both(bad.mask(), equal(outcome.status, NEML2_OK)), NEML2_NON_FINITE, outcome.status);
  if (outcome.any_failed) excuse(model, request, outcome);
}

}  // namespace neml2_capi::model
