#include "capi/model/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

#include "capi/base/error.h"
#include "capi/base/locks.h"
#include "capi/base/names.h"

namespace neml2_capi::model {
namespace {

constexpr double unbounded = std::numeric_limits<double>::max();
constexpr double most_iterations = 1e6;
constexpr double most_points = 1 << 20;
constexpr double most_threads = 1024;
constexpr const char* threads_variable = "NEML2_CAPI_THREADS";
constexpr const char* capsule_variable = "NEML2_CAPI_CAPSULE";

const Options::Info& find(std::string_view name, bool text) {
  for (const Options::Info& info : Options::all()) {
    if (name != info.name) continue;
    if ((info.choices != nullptr) == text) return info;
    throw Error(
        NEML2_ERROR_ARGUMENT, info.name,
        join("The option '", name, "' is a ", text ? "number" : "text", ", not a ", text ? "text." : "number."));
  }
  std::string names;
  std::vector<std::string> listed;
  for (const Options::Info& info : Options::all()) {
    add_name(names, info.name);
    listed.emplace_back(info.name);
  }
  throw Error(NEML2_ERROR_NAME, std::string(name),
              join("There is no option '", name, "'", did_you_mean(name, listed), " The options are ", names, "."));
}

// The object that a pointer to a member is of.
template <class T, class Own, class Newton>
Own& owner_of(T Options::*, Own& own, Newton&) {
  return own;
}
template <class T, class Own, class Newton>
Newton& owner_of(T newton::Settings::*, Own&, Newton& newton) {
  return newton;
}

constinit locks::Lazy<const std::vector<Options::Info>> infos;

}  // namespace

const std::vector<Options::Info>& Options::all() {
  return infos.get([] {
    using Newton = newton::Settings;
    return std::vector<Info>{
        {"atol", &Newton::atol, 0, unbounded, false, nullptr, {}},
        {"rtol", &Newton::rtol, 0, unbounded, false, nullptr, {}},
        {"divtol", &Newton::divtol, 1, unbounded, false, nullptr, {}},
        {"miters", &Newton::miters, 1, most_iterations, true, nullptr, {}},
        {"ls_type", &Newton::strong_wolfe, 0, 1, true, "BACKTRACKING STRONG_WOLFE", {"BACKTRACKING", "STRONG_WOLFE"}},
        {"ls_max_iters", &Newton::ls_max_iters, 1, most_iterations, true, nullptr, {}},
        {"ls_cutback", &Newton::ls_cutback, 1, unbounded, false, nullptr, {}},
        {"ls_c", &Newton::ls_c, 0, 1, false, nullptr, {}},
        {"substep_del_tol", &Options::substep_del_tol_, 0, unbounded, false, nullptr, {}},
        {"convergence", &Newton::whole_batch, 0, 1, true, "point batch", {"point", "batch"}},
        {"collect_history", &Options::collect_history_, 0, 1, true, nullptr, {}},
        {"chunk", &Options::chunk_, 0, most_points, true, nullptr, {}},
        {"threads", &Options::threads_, 0, most_threads, true, nullptr, {}},
        {"kernels", &Options::kernels_, 0, 2, true, "auto off required", {"auto", "off", "required"}},
        {"rescue", &Options::rescue_, 0, most_iterations, true, nullptr, {}},
        {"bounds", &Options::bounds_, 0, 2, true, "off warn fail", {"off", "warn", "fail"}},
        {"capsule", {}, 0, 0, false, any_text, {}},
    };
  });
}

Options::Options(const artifact::Metadata& metadata) {
  set_solver(metadata);
  if (const char* wanted = std::getenv(threads_variable)) set_threads(wanted);
  if (const char* folder = std::getenv(capsule_variable)) set("capsule", std::string_view(folder));
}

void Options::require_solver(const artifact::Metadata& metadata) { Options().set_solver(metadata); }

void Options::set_solver(const artifact::Metadata& metadata) {
  const artifact::SolverConfig& config = metadata.solver;
  // As in NEML2, bounds that are exclusive: 0 is no step and no trial, as 1 is.
  const auto bound = [](std::int64_t count) { return static_cast<double>(count == 0 ? 1 : count); };
  try {
    set("atol", config.atol);
    set("rtol", config.rtol);
    set("miters", bound(config.miters));
    set("ls_type", std::string_view(config.ls_type));
    set("ls_max_iters", bound(config.ls_max_iters));
    set("ls_cutback", config.ls_cutback);
    set("ls_c", config.ls_c);
    set("substep_del_tol", config.substep_del_tol);
  } catch (const Error& error) {
    const std::string file = metadata.file.string();
    throw Error(NEML2_ERROR_ARTIFACT, file,
                join(file, ": the solver: ", error.what(), " Compile the model again with other settings."));
  }
}

void Options::set_threads(std::string_view wanted) {
  int threads = -1;
  const auto [end, failure] = std::from_chars(wanted.data(), wanted.data() + wanted.size(), threads);
  if (failure != std::errc() || end != wanted.data() + wanted.size() || threads < 0 || threads > most_threads)
    throw Error(NEML2_ERROR_ARGUMENT, threads_variable,
                join("The environment variable ", threads_variable, " must be a number of threads between 0, for all ",
                     "processors, and ", most_threads, "; got '", wanted, "'."));
  threads_ = threads;
}

void Options::set(std::string_view name, double value) {
  const Info& info = find(name, false);
  if (!(value >= info.least && value <= info.greatest))
    throw Error(
        NEML2_ERROR_ARGUMENT, info.name,
        join("The option '", name, "' must lie between ", info.least, " and ", info.greatest, "; got ", value, "."));
  if (info.whole && value != std::floor(value))
    throw Error(NEML2_ERROR_ARGUMENT, info.name,
                join("The option '", name, "' must be a whole number; got ", value, "."));
  put(info, value);
}

void Options::set(std::string_view name, std::string_view value) {
  const Info& info = find(name, true);
  if (info.choices == any_text) {
    capsule_ = value.empty() ? nullptr : CapsuleFolder::of(value);
    return;
  }
  for (std::size_t i = 0; i < info.each.size(); ++i)
    if (value == info.each[i]) {
      put(info, static_cast<double>(i));
      return;
    }
  throw Error(NEML2_ERROR_ARGUMENT, info.name,
              join("The option '", name, "' must be one of: ", info.choices, "; got '", value, "'."));
}

void Options::put(const Info& info, double value) {
  const auto set = [&](auto& place) { place = static_cast<std::remove_reference_t<decltype(place)>>(value); };
  std::visit([&](auto place) { set(owner_of(place, *this, newton_).*place); }, info.place);
}

double Options::value_of(const Info& info) const {
  const auto get = [&](auto place) { return static_cast<double>(owner_of(place, *this, newton_).*place); };
  return std::visit(get, info.place);
}

double Options::number(std::string_view name) const { return value_of(find(name, false)); }

const char* Options::text(std::string_view name) const {
  const Info& info = find(name, true);
  if (info.choices == any_text) return capsule_ ? capsule_->path().c_str() : "";
  return info.each[static_cast<std::size_t>(value_of(info))];
}

Options Options::in_one_thread() const {
  Options options = *this;
  options.threads_ = 1;
  return options;
}

Options Options::with_bounds_checked() const {
  Options options = *this;
  options.bounds_are_checked_ = true;
  return options;
}

Options Options::with_more_solves() const {
  constexpr std::int64_t iterations = 100;
  constexpr double solves = 100;
  Options options = *this;
  options.newton_.miters = std::max(newton_.miters, iterations);
  options.rescue_ = std::max(rescue_, solves);
  return options;
}

Options Options::without_rescue() const {
  Options options = in_one_thread();
  options.rescue_ = 0;
  return options;
}

Options Options::in_rescue() const {
  constexpr std::int64_t trials = 10;  // the least step of a line search is then 1/256 of Newton's
  Options options = without_rescue();
  options.newton_.in_rescue = true;
  options.newton_.ls_max_iters = std::max(newton_.ls_max_iters, trials);
  return options;
}

}  // namespace neml2_capi::model
