#include "capi/devices/dispatch.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "capi/base/error.h"
#include "capi/base/sort.h"
#include "capi/devices/host_arrays.h"
#include "capi/evaluation/plan.h"
#include "capi/evaluation/results.h"
#include "capi/evaluation/sums.h"
#include "capi/graph/backend.h"
#include "capi/model/remark.h"

namespace neml2_capi::model {
namespace {

std::vector<threads::Scheduler::Device> shares_of(const std::vector<Dispatch::Device>& devices) {
  std::vector<threads::Scheduler::Device> shares;
  for (const Dispatch::Device& device : devices) shares.push_back(device.share);
  return shares;
}

// Tells whether two variables have the same arrays: all that an array depends on.
bool same_variable(const Variable& a, const Variable& b) {
  return a.name == b.name && a.dtype == b.dtype && a.point_shape == b.point_shape;
}

bool same_derivative(const Derivative& a, const Derivative& b) {
  return a.output == b.output && a.input == b.input && a.batched == b.batched && same_variable(a.block, b.block);
}

bool same_model(const Model& a, const Model& b) {
  for (const Kind kind : {Kind::input, Kind::output, Kind::parameter, Kind::unknown})
    if (!std::ranges::equal(a.variables(kind), b.variables(kind), same_variable)) return false;
  for (const Kind kind : {Kind::input, Kind::parameter})
    if (!std::ranges::equal(a.derivatives(kind).all(), b.derivatives(kind).all(), same_derivative)) return false;
  return true;
}

}  // namespace

Dispatch::Dispatch(std::vector<Device> devices)
    : devices_(std::move(devices)), evaluated_(devices_.size()), scheduler_(shares_of(devices_)) {
  for (const Device& device : devices_) {
    if (!same_model(*primary(), *device.model))
      throw Error(NEML2_ERROR_ARTIFACT, device.name,
                  join("The model for ", device.name, " differs from that for ", devices_.front().name,
                       " in its variables or derivatives. Compile it once for all devices: neml2-compile --device cpu "
                       "cuda."));
    const std::int64_t baked = device.model->baked_batch();
    if (baked != 0 && device.share.batch_size % baked != 0)
      throw Error(NEML2_ERROR_UNSUPPORTED, device.name,
                  join(device.model->limiting_package(), " was compiled for a fixed batch of ", baked,
                       " points, of which the batch size of ", device.name, ", ", device.share.batch_size,
                       ", is no multiple. Choose one, or compile the model with --dynamic-batch."));
    if (device.route)
      routes_.push_back(std::make_unique<const Routes>(device.model, device.route));
    else if (device.model->compute_device().is_host())
      routes_.push_back(std::make_unique<const Routes>(device.model));
    else
      routes_.push_back(graph::on_devices([&] {
        return std::make_unique<const Routes>(device.model, std::make_shared<const HostArrays>(*device.model));
      }));
  }
  primary()->keep_on_host();
}

void Dispatch::require_solvable() const {
  if (devices_.size() == 1 && primary()->compute_device().is_host()) return;
  throw Error(NEML2_ERROR_UNSUPPORTED, "scheduler",
              join("A solve is for a model on the CPU alone, and the scheduler of this one has ",
                   devices_.size() == 1 ? devices_.front().name : join(devices_.size(), " devices"),
                   ": load it without a scheduler."));
}

std::int64_t Dispatch::most_points(const Device& device, std::int64_t points) const {
  return device.share.batch_size > 0 ? std::min(device.share.batch_size, points) : points;
}

bool Dispatch::takes_whole(std::int64_t points) const {
  return devices_.size() == 1 && primary()->compute_device().is_host() &&
         most_points(devices_.front(), points) == points;
}

void Dispatch::check(const Options& options, std::int64_t points) const {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const std::int64_t most = most_points(devices_[i], points);
    Request request{Bindings()};
    for (const std::int64_t part : {most, most > 0 ? points % most : 0}) {  // the last ones are fewer
      request.points = part;
      const Plan plan(*routes_[i], options, request);
    }
  }
}

std::int64_t Dispatch::points_evaluated(std::int64_t device) const {
  if (device < 0 || device >= std::ssize(devices_))
    throw Error(NEML2_ERROR_ARGUMENT, "index",
                join("The scheduler of the model has ", devices_.size(), " devices; there is none at ", device, "."));
  return evaluated_[static_cast<std::size_t>(device)];
}

// Evaluation in sub-batches of several threads.
class Dispatch::Spread {
 public:
  Spread(const Dispatch& dispatch, const Bindings& bindings, const Options& options)
      : dispatch_(dispatch),
        model_(*dispatch.primary()),
        whole_(bindings),
        sums_(model_, bindings, 0, bindings.points),
        options_(options) {
    sums_.replace(whole_);
    // Made here: memory waits in the thread that frees it, so a device's thread would fill the caller's cache.
    for (const Variable& unknown : model_.variables(Kind::unknown))
      if (whole_.unknowns)
        iterates_.push_back(Tensor::empty(unknown.dtype, Dims{whole_.points}.then(unknown.point_shape)));
  }

  void evaluate(const threads::Scheduler::SubBatch& of) {
    const Routes& routes = *dispatch_.routes_[of.device];
    Vector<Tensor> scratch, unknowns(model_.variables(Kind::unknown).size());
    Bindings part = slice(of, scratch);
    if (whole_.unknowns) part.unknowns = &unknowns;
    const Borrowed workspace(routes);
    Tally tally = Plan(routes, options_, Request(part)).evaluate(part, *workspace);
    dispatch_.evaluated_[of.device] += of.count;
    tally.shift(of.begin);
    const std::lock_guard lock(mutex_);
    if (whole_.unknowns) gather_unknowns(unknowns, of);
    if (const std::int32_t worst = tally.worst(); worst != NEML2_OK)
      failed_.push_back({of, Error(worst, "", message_of(model_, whole_, tally, of.count), tally.cause)});
    tally_.add(tally);
  }

  // Returns the tally of all points, or throws what the sub-batches threw.
  Tally finish(const std::vector<threads::Scheduler::Failure>& failures, const Bindings& bindings) {
    if (failures.size() == 1 && failed_.empty()) std::rethrow_exception(failures.front().error);
    for (const auto& failure : failures) failed_.push_back({failure.of, error_of(failure.error)});
    heap_sort(failed_, [](const Failed& a, const Failed& b) { return a.of.begin < b.of.begin; });
    for (const Failed& failed : failed_) tally_.parts.push_back(placed(failed));
    if (!failures.empty()) throw AggregateError(std::move(tally_.parts));
    clear_sums(model_, bindings);
    sums_.write();
    return std::move(tally_);
  }

 private:
  struct Failed {
    threads::Scheduler::SubBatch of;
    Error error;
  };

  static Error error_of(const std::exception_ptr& exception) try { std::rethrow_exception(exception); } catch (...) {
    return current_error();
  }

  Error placed(const Failed& failed) const {
    const auto& [of, error] = failed;
    return {error.status(), error.subject(),
            join("points ", of.begin, " to ", of.begin + of.count - 1, " on ", dispatch_.devices_[of.device].name, ": ",
                 error.what()),
            error.cause()};
  }

  // Returns the arrays of some points. A block that is one for all points comes from the last points, as on one device,
  // which writes it point after point; the others get `scratch`, for two devices must not write the same.
  Bindings slice(const threads::Scheduler::SubBatch& of, Vector<Tensor>& scratch) const {
    Bindings part = whole_;
    part.points = of.count;
    const bool last = of.begin + of.count == whole_.points;
    for (const Part kind : all_parts)
      for (std::size_t i = 0; i < part.of(kind).size(); ++i) {
        Points& array = part.of(kind)[i];
        const Variable& variable = model_.variable(kind, i);
        shift_to(of.begin, array, variable.dtype);
        if (last || !is_block(kind) || !is_one_value(array)) continue;
        scratch.push_back(Tensor::empty(variable.dtype, variable.point_shape));
        array.data = scratch.back().data_as<char>();
      }
    for (int kind = 0; kind < num_reports; ++kind) shift_to(of.begin, part.report[kind], dtype_of_report(kind));
    return part;
  }
  static void shift_to(std::int64_t begin, Points& array, DType dtype) {
    if (array.data) array.data = point(array, begin, itemsize(dtype));
  }

  // Writes the last iterates of failed points among all iterates.
  void gather_unknowns(const Vector<Tensor>& unknowns, const threads::Scheduler::SubBatch& of) const {
    for (std::size_t i = 0; i < unknowns.size(); ++i) {
      if (!unknowns[i].data()) continue;
      Tensor& all = whole_.unknowns->at(i);
      if (!all.data()) {
        all = iterates_[i];
        fill_nan(all.data_as<char>(), all.dtype(), all.numel());
      }
      const std::int64_t bytes_per_point = unknowns[i].numel() / of.count * unknowns[i].itemsize();
      unknowns[i].copy_to(all.data_as<char>() + of.begin * bytes_per_point);
    }
  }

  const Dispatch& dispatch_;
  const Model& model_;
  Bindings whole_;  // with a row per point instead of each sum
  Sums sums_;
  Vector<Tensor> iterates_;  // room for the unknowns of failed points
  const Options& options_;

  locks::FreedMutex mutex_;  // guards what follows
  Tally tally_;
  std::vector<Failed> failed_;
};

void Dispatch::run(const Plan& plan, const Bindings& bindings, const Range& range, Workspace& workspace,
                   Tally& tally) const {
  const Options& options = plan.options();
  if (takes_whole(range.points)) {
    tally = Plan(*routes_.front(), options, plan.request()).evaluate(bindings, workspace);
    evaluated_.front() += range.points;
    return;
  }
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    Request part = plan.request();
    part.points = most_points(devices_[i], range.points);
    Plan(*routes_[i], options, part).check(bindings);
  }
  Spread spread(*this, bindings, options);
  const auto failures =
      scheduler_.run(range.points, [&](const threads::Scheduler::SubBatch& of) { spread.evaluate(of); });
  tally = spread.finish(failures, bindings);
}

}  // namespace neml2_capi::model
