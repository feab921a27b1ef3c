#include "capi/accelerator/by_text.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "capi/accelerator/kernels.h"
#include "capi/accelerator/program_cache.h"
#include "capi/archive/crc32.h"
#include "capi/archive/files.h"
#include "capi/artifact/locate.h"
#include "capi/base/error.h"
#include "capi/base/interrupt.h"
#include "capi/base/log.h"
#include "capi/evaluation/chunks.h"
#include "capi/evaluation/plan.h"

namespace neml2_capi::accelerator {
namespace {

using model::Kind;
using model::Options;

std::filesystem::path place_of(const artifact::Metadata& metadata, const graph::Driver& driver, bool by_parameters) {
  const std::filesystem::path name = driver.text();
  const std::string further = by_parameters ? "_by_parameters" : "";
  return artifact::kernels_folder(metadata.leaf) / (name.stem().string() + further + name.extension().string());
}

// At the end of a first line.
constexpr std::string_view values_alone = ", values alone", and_parameters = ", by parameters", together = ", together";

// Returns the text of a model, whose first line must name the model: a text has the sizes of arrays in it, and would
// reach beyond the arrays of another model. It tells, too, whether arrays come together.
std::string text_of(const model::Model& model, Sizes& sizes, const graph::Driver& driver, bool by_parameters) {
  const artifact::Metadata& metadata = model.metadata();
  const std::filesystem::path place = place_of(metadata, driver, by_parameters);
  std::optional<std::string> text = archive::read(place);
  const auto refuse = [&](std::int32_t status, const std::string& problem) {
    throw Error(status, driver.text(),
                join(problem, ". Write it: neml2-capi build-kernels ARTIFACT --target ", driver.target()));
  };
  if (!text)
    refuse(NEML2_ERROR_UNSUPPORTED,
           join("The artifact has no kernels in the language of the device",
                by_parameters ? " that derive with respect to parameters" : "", ": there is no ", place.string()));
  const std::string expected =
      join("// neml2_capi 5: ", sizes.inputs, " inputs, ", sizes.parameters, " parameters, ", sizes.outputs,
           " outputs, ", name_of(sizes.real), ", metadata ", archive::crc32(archive::read(metadata.file).value_or("")));
  const std::string_view first = std::string_view(*text).substr(0, text->find('\n'));
  std::string_view rest = first.starts_with(expected) ? first.substr(expected.size()) : "?";
  if (rest.starts_with(together)) {
    sizes.together = true;
    rest.remove_prefix(together.size());
  }
  const bool fits = by_parameters ? rest == and_parameters : rest.empty() || rest == values_alone;
  if (!fits)
    refuse(NEML2_ERROR_ARTIFACT,
           join("The kernels in ", place.string(), " are not of this model: the first line is not '", expected, "'"));
  return *std::move(text);
}

// The text has numbers of one type.
void require_one_type(const model::Model& model) {
  for (const Kind kind : {Kind::input, Kind::output, Kind::parameter})
    for (const model::Variable& variable : model.variables(kind))
      if (variable.dtype != model.dtype())
        throw Error(
            NEML2_ERROR_UNSUPPORTED, variable.name,
            join("'", variable.name, "' is of ", name_of(variable.dtype), ", and kernels on a device have numbers of ",
                 name_of(model.dtype()), " only. Open the model on the CPU."));
}

}  // namespace

bool has_text(const artifact::Metadata& metadata, const graph::Driver& driver) {
  return archive::is_file(place_of(metadata, driver, false));
}

ByText::ByText(const model::Model& model, Device device)
    : model_(model),
      name_(device.str()),
      device_(device),
      then_(model.metadata()),
      writer_(model),
      compiled_{Sizes(model), nullptr} {
  const graph::Driver& driver = graph::driver_of(device);
  const std::string text = text_of(model, compiled_.sizes, driver, false);
  derives_ = !text.substr(0, text.find('\n')).ends_with(values_alone);
  require_one_type(model);
  open_ = driver.open(device);
  require_same_process();
  compiled_.program = program_of(*open_, with_kernels(text, compiled_.sizes.real));
}

const ByText::Compiled& ByText::compiled(bool by_parameters) const {
  if (!by_parameters) return compiled_;
  const std::lock_guard lock(compiling_);
  if (!by_parameters_) {
    Sizes sizes(model_, true);
    const std::string text = text_of(model_, sizes, graph::driver_of(device_), true);
    require_same_process();
    by_parameters_ = Compiled{sizes, program_of(*open_, with_kernels(text, sizes.real))};
  }
  return *by_parameters_;
}

ByText::~ByText() = default;

bool ByText::gives(const model::Request& request, const Options& options) const {
  const auto refuse = [&](const char* subject, const char* what, const char* remedy) {
    throw Error(NEML2_ERROR_UNSUPPORTED, subject,
                join("The kernels on ", name_, " do not ", what, ". ", remedy, ", or open the model on the CPU."));
  };
  if (!derives_ && needs_tangent(request))
    refuse("derivatives", "give derivatives of this model, whose text has values alone",
           "Ask for outputs (build-kernels told why)");
  if (request.history) refuse("collect_history", "report the residuals of iterations", "Leave that report out");
  if (request.by_parameters()) compiled(true);
  if (model_.variables(Kind::unknown).empty()) return true;
  if (options.whole_batch())
    refuse("convergence", "let a batch converge as a whole", "Set the option convergence = point");
  if (!is_search_of_text(options))
    refuse("ls_max_iters", "search along Newton's step in another way than the artifact was compiled for",
           "Leave the options ls_type, ls_max_iters, ls_cutback, ls_c and substep_del_tol as they were");
  return true;
}

// The other settings are arguments of the kernel.
bool ByText::is_search_of_text(const Options& options) const {
  const newton::Settings now = options.newton(), then = then_.newton();
  return now.strong_wolfe == then.strong_wolfe && now.ls_max_iters == then.ls_max_iters &&
         now.ls_cutback == then.ls_cutback && now.ls_c == then.ls_c &&
         options.substep_del_tol() == then_.substep_del_tol();
}

// At most a quarter of the device's memory for each batch, and no more than keeps it busy: the host works meanwhile, and
// keeps memory for as many.
std::int64_t ByText::points_at_once(std::int64_t wanted, const model::Request& request, std::int64_t points) const {
  constexpr std::int64_t busy = 1 << 17;
  const bool with_tangent = needs_tangent(request);
  const Sizes& sizes = compiled(request.by_parameters()).sizes;
  return fit({sizes.bytes_per_point(with_tangent), sizes.largest_per_point(with_tangent)}, wanted == 0 ? busy : wanted,
             wanted == 0, points);
}

std::int64_t ByText::points_in_place(std::int64_t wanted, const Room& room, std::int64_t points) const {
  return fit(room, wanted == 0 ? points : wanted, wanted == 0, points);
}

std::int64_t ByText::fit(const Room& room, std::int64_t wanted, bool limits, std::int64_t points) const {
  constexpr std::int64_t enough = std::int64_t{1} << 28;  // bytes
  const std::int64_t memory = open_->memory() / 4,
                     fits = std::min(memory / room.all, open_->largest_piece() / room.largest);
  if (limits) wanted = std::min(wanted, enough / room.all);
  return std::max<std::int64_t>(std::min({wanted, points, fits}), 1);
}

// Threads of the driver are not there in the child of a fork, which would wait for them for ever.
void ByText::require_same_process() const {
  if (open_->forks == locks::forks()) return;
  throw Error(NEML2_ERROR_UNSUPPORTED, name_,
              join("The driver of ", name_,
                   " was opened before this process was forked, and does not work in it. Open "
                   "models on devices in processes of their own (in Python, the start method 'spawn')."));
}

std::unique_ptr<ByText::Pair> ByText::take(bool by_parameters) const {
  {
    const std::lock_guard lock(mutex_);
    auto& waiting = waiting_[by_parameters];
    if (!waiting.empty()) {
      std::unique_ptr<Pair> pair = std::move(waiting.back());
      waiting.pop_back();
      return pair;
    }
  }
  return std::make_unique<Pair>(model_, compiled(by_parameters));
}

void ByText::give_back(std::unique_ptr<Pair> pair, bool by_parameters) const {
  const std::lock_guard lock(mutex_);
  waiting_[by_parameters].push_back(std::move(pair));
}

void ByText::finish(Batch& batch, const model::Plan& plan, const model::Bindings& bindings, model::Workspace& workspace,
                    model::Tally& tally) const {
  if (!batch.is_under_way()) return;
  model::Chunk& chunk = workspace.chunk;
  const model::Derived derived = batch.end(bindings, plan.threads(), chunk);
  if (log::on(log::Channel::model, log::Level::debug))
    log::write(log::Channel::model, log::Level::debug, name_, ": ", chunk.points, " points took ",
               log::scientific(batch.seconds()), " s on the device");
  writer_.write(chunk, bindings, derived);
  tally.note(chunk.non_finite);
  tally.add(chunk.reports.status, chunk.reports.iterations, chunk.reports.residual_norm, chunk.begin);
  chunk.release_values();
}

void ByText::run(const model::Plan& plan, const model::Bindings& bindings, const model::Range& range,
                 model::Workspace& workspace, model::Tally& tally) const {
  require_same_process();
  tally.has_no_rescue = tally.has_own_search = true;
  if (!begin_sums(plan, bindings, range)) return;
  const std::int64_t end = range.begin + range.points,
                     size = points_at_once(plan.options().chunk(), plan.request(), range.points);
  const bool by_parameters = plan.request().by_parameters();
  std::unique_ptr<Pair> pair = take(by_parameters);  // if anything throws, it waits for the device and ends
  std::size_t turn = 0;
  for (std::int64_t p = range.begin; p < end; p += size, turn ^= 1) {
    interrupt::check();
    finish(pair->batches[turn], plan, bindings, workspace, tally);
    pair->batches[turn].begin(bindings, plan, p, std::min(size, end - p));
  }
  for (int i = 0; i < 2; ++i, turn ^= 1) finish(pair->batches[turn], plan, bindings, workspace, tally);
  end_sums(plan, range);
  give_back(std::move(pair), by_parameters);
}

}  // namespace neml2_capi::accelerator
