#include <chrono>
#include <cmath>

#include "capi/artifact/locate.h"
#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/graph/backend.h"
#include "capi/model/model.h"
#include "capi/platform/refusals.h"

namespace neml2_capi::model {
namespace {

// Tells whether kernels may replace packages that are there.
bool may_take_kernels(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  return !metadata.kernels_only && artifact::have_kernels(metadata.leaf) && wanted.takes_kernels();
}

}  // namespace

// Takes the kernels if the packages do not run on this machine.
std::shared_ptr<Model> Model::make(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  const auto with = [&](const artifact::Metadata& chosen) { return std::shared_ptr<Model>(new Model(chosen, wanted)); };
  try {
    return with(metadata);
  } catch (const Error& error) {
    const bool is_limit = dynamic_cast<const refusals::LimitError*>(&error) != nullptr;
    if ((error.status() != NEML2_ERROR_UNSUPPORTED && !is_limit) || !may_take_kernels(metadata, wanted)) throw;
    artifact::Metadata alone = metadata;
    alone.kernels_only = true;
    try {
      const auto model = with(alone);
      log::write(log::Channel::model, log::Level::warning, metadata.leaf.string(),
                 ": the model runs on its kernels, since its packages do not run here. ", error.what());
      return model;
    } catch (const Error& other) {
      throw Error(error.status(), error.subject(), join(error.what(), " Nor do its kernels run: ", other.what()),
                  error.cause());
    }
  }
}

// Runs the packages on zeros, to learn about them; nobody can retry that.
std::shared_ptr<Model> Model::open(const artifact::Metadata& metadata, const graph::Wanted& wanted) try {
  return make(metadata, wanted);
} catch (const Error& error) {
  if (error.status() < NEML2_OK) throw;
  throw Error(NEML2_ERROR_RUNTIME, error.subject(),
              join(error.what(),
                   ". It was called with zeros, while the model was loaded: if there is no result, it "
                   "should give NaN."));
}

std::shared_ptr<Model> Model::load(const artifact::Metadata& metadata, const graph::Wanted& wanted) {
  const auto start = std::chrono::steady_clock::now();
  const std::shared_ptr<Model> model = open(metadata, wanted);
  if (!log::on(log::Channel::model, log::Level::warning)) return model;
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  model->tell(time.count());
  return model;
}

// Logs what a user may want to know of a model that was loaded in `seconds`.
void Model::tell(double seconds) const {
  const auto write = [](log::Level level, const auto&... parts) { log::write(log::Channel::model, level, parts...); };
  const std::string where = metadata_.leaf.string();
  const auto runtime_text = [&] {
    const std::string library = graph::library_of(runtime());
    if (library.empty()) return std::string("kernels alone");
    return runtime() == graph::Runtime::builtin ? "built-in provider " + library : library;
  };
  if (dtype_ != metadata_.dtype)
    write(log::Level::warning, where, ": the packages are ", neml2_capi::name_of(dtype_), ", though compiled as ",
          neml2_capi::name_of(metadata_.dtype), "; give and expect ", neml2_capi::name_of(dtype_), ".");
  std::size_t packages = 0, implicit = 0;
  for (const auto& segment : segments_) packages += segment->packages().size();
  for (const artifact::Segment& segment : metadata_.segments)
    implicit += std::holds_alternative<artifact::ImplicitSegment>(segment);
  write(log::Level::info, "loaded ", where, " in ", std::round(1e4 * seconds) / 10, " ms: segments ",
        metadata_.segments.size(), " (implicit ", implicit, "), packages ", packages, ", ", runtime_text(),
        baked_batch_ == 0 ? "" : join(", in runs of exactly ", baked_batch_, " points"));
}

}  // namespace neml2_capi::model
