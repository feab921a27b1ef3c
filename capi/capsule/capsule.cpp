#include "capi/capsule/capsule.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "capi/archive/crc32.h"
#include "capi/archive/files.h"
#include "capi/archive/npz.h"
#include "capi/base/json_writer.h"
#include "capi/base/log.h"
#include "capi/graph/backend.h"
#include "capi/model/remark.h"
#include "capi/platform/process.h"

namespace neml2_capi::model {
namespace {

namespace fs = std::filesystem;

// Bounds for a process in a folder: a run that goes wrong must not fill a disk.
constexpr std::int64_t most_files = 16;
constexpr std::int64_t most_points = 10000;

std::string time_as(const char* format) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::tm parts = platform::utc(now);
  char text[32];
  return {text, std::strftime(text, sizeof text, format, &parts)};
}

// Returns a text that may stand in the name of a file on any system.
std::string plain(std::string text) {
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') c = '_';
  return text;
}

// Returns a text as a word of a shell.
std::string word_of(const std::string& text) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || std::strchr("./-_+,:@%=", c); };
  if (std::all_of(text.begin(), text.end(), is_plain)) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string hexadecimal(std::uint32_t value) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", value);
  return text;
}

// Writes size and CRC-32 of a file as it is now.
void write_fingerprint(JsonWriter& out, const std::string& name, const fs::path& path) {
  const auto bytes = archive::read(path);
  if (!bytes) return out.member(name, std::optional<bool>());
  out.object(name, [&] {
    out.member("bytes", bytes->size());
    out.member("crc32", hexadecimal(archive::crc32(*bytes)));
  });
}

void write_artifact(JsonWriter& out, const artifact::Metadata& metadata) {
  out.member("path", fs::absolute(metadata.file).lexically_normal().string());
  out.member("dtype", name_of(metadata.dtype));
  out.object("files", [&] {
    write_fingerprint(out, metadata.file.filename().string(), metadata.file);
    for (const std::string& package : artifact::packages_of(metadata))
      write_fingerprint(out, package, metadata.leaf / package);
  });
}

void write_views(JsonWriter& out, const Views& views) {
  constexpr std::pair<const char*, std::string Views::*> words[] = {{"hypothesis", &Views::hypothesis},
                                                                    {"strain_measure", &Views::strain_measure},
                                                                    {"stress_measure", &Views::stress_measure},
                                                                    {"strain", &Views::strain},
                                                                    {"stress", &Views::stress}};
  out.member("material_axes", views.material_axes);
  for (const auto& [name, word] : words) out.member(name, views.*word);
}

void write_options(JsonWriter& out, const Options& options) {
  for (const Options::Info& info : Options::all())
    if (info.choices)
      out.member(info.name, std::string_view(options.text(info.name)));
    else
      out.member(info.name, options.number(info.name));
}

// Writes what the evaluation was asked for, by name.
void write_operation(JsonWriter& out, const Model& model, const Bindings& bindings) {
  constexpr std::pair<const char*, Part> asked[] = {
      {"outputs", Part::output}, {"derivatives", Part::block}, {"parameter_derivatives", Part::parameter_block},
      {"jvps", Part::jvp},       {"adjoints", Part::adjoint},  {"parameter_adjoints", Part::parameter_adjoint}};
  for (const auto& [key, part] : asked) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < bindings.of(part).size(); ++i)
      if (bindings.of(part)[i].data) names.push_back(model.variable(part, i).name);
    out.member(key, names);
  }
}

// Reports under the names that the header gives them.
constexpr std::pair<int, const char*> reported[] = {{NEML2_REPORT_STATUS, "status"},
                                                    {NEML2_REPORT_ITERATIONS, "iterations"},
                                                    {NEML2_REPORT_RESIDUAL_NORM, "residual_norm"},
                                                    {NEML2_REPORT_SUGGESTED_CUT, "suggested_cut"}};

Variable report_variable(int kind, const char* name) { return {name, "", dtype_of_report(kind), Dims(), 0}; }

// Tells failures from what was asked wrongly, or has no memory to be written.
bool is_failure(std::int32_t status) {
  return status == NEML2_ERROR_RUNTIME || status == NEML2_ERROR_UNSUPPORTED || status == NEML2_ERROR_INTERNAL;
}

}  // namespace

Capsule::Capsule(const Model& model, const Bindings& bindings, const Options& options)
    : model_(model), options_(options), watched_(bindings), copies_(bindings.inputs.size()), reports_(5) {
  const auto& inputs = model.variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (bindings.copies[i]) copies_[i] = gather(bindings.inputs[i], inputs[i], 0, bindings.points, true);
  for (const auto& [kind, name] : reported) {
    if (watched_.report[kind].data) continue;
    Tensor& own = reports_[static_cast<std::size_t>(kind)];
    own = Tensor::zeros(report_variable(kind, name).dtype, {bindings.points});
    watched_.report[kind] = {own.data_as<char>(), 1};
  }
}

void Capsule::end(const Tally& tally) noexcept {
  if (tally.worst() == NEML2_OK) return;
  try {
    const Points& status = watched_.report[NEML2_REPORT_STATUS];
    std::vector<std::int64_t> failed;
    const auto room = static_cast<std::size_t>(most_points);
    for (std::int64_t p = 0; p < watched_.points && failed.size() < room; ++p)
      if (*reinterpret_cast<const std::int32_t*>(point(status, p, sizeof(std::int32_t))) != NEML2_OK)
        failed.push_back(p);
    const bool all = watched_.points <= most_points;
    if (all) {
      failed.resize(static_cast<std::size_t>(watched_.points));
      std::iota(failed.begin(), failed.end(), 0);
    }
    write(tally.worst(), message_of(model_, watched_, tally, watched_.points), "", failed, all ? "all" : "failed");
  } catch (const std::exception& error) {
    log::write(log::Channel::model, log::Level::warning, "no capsule was written: ", error.what());
  }
}

void Capsule::end(const Error& error) noexcept {
  if (!is_failure(error.status())) return;
  try {
    std::vector<std::int64_t> points(static_cast<std::size_t>(std::min(watched_.points, most_points)));
    std::iota(points.begin(), points.end(), 0);
    write(error.status(), error.what(), error.subject(), points, watched_.points <= most_points ? "all" : "first");
  } catch (const std::exception& failure) {
    log::write(log::Channel::model, log::Level::warning, "no capsule was written: ", failure.what());
  }
}

// Returns the values of these points; of one value for all, that value.
Tensor Capsule::rows(const Points& array, const Variable& variable, const std::vector<std::int64_t>& points) const {
  const std::int64_t item = itemsize(variable.dtype);
  const auto bytes = static_cast<std::size_t>(variable.point_shape.product() * item);
  const bool one = array.stride == 0;
  const Dims sizes = (one ? Dims() : Dims{std::ssize(points)}).then(variable.point_shape);
  Tensor out = Tensor::empty(variable.dtype, sizes);
  char* to = out.data_as<char>();
  if (one) std::memcpy(to, array.data, bytes);
  for (std::size_t k = 0; !one && k < points.size(); ++k, to += bytes)
    std::memcpy(to, point(array, points[k], item), bytes);
  return out;
}

void Capsule::write(std::int32_t status, const std::string& message, const std::string& subject,
                    const std::vector<std::int64_t>& points, const char* kept) const {
  const std::int64_t number = options_.capsule()->next_number();
  if (number > most_files) return;
  archive::Npz file;
  const auto add = [&](const char* folder, const std::vector<Points>& arrays, Kind kind) {
    const auto& variables = model_.variables(kind);
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (!arrays[i].data) continue;
      const bool copied = kind == Kind::input && &arrays == &watched_.inputs && copies_[i].data();
      const std::int64_t size = variables[i].point_shape.product();
      const Points array = copied ? Points{copies_[i].data_as<char>(), size} : arrays[i];
      file.add(join(folder, "/", variables[i].name), rows(array, variables[i], points));
    }
  };
  add("inputs", watched_.inputs, Kind::input);
  add("parameters", watched_.parameters, Kind::parameter);
  add("tangents", watched_.tangents, Kind::input);
  add("cotangents", watched_.cotangents, Kind::output);
  if (status > NEML2_OK)
    for (const auto& [kind, name] : reported)
      file.add(join("report/", name), rows(watched_.report[kind], report_variable(kind, name), points));
  Tensor numbers = Tensor::empty(DType::int64, {std::ssize(points)});
  std::copy(points.begin(), points.end(), numbers.data_as<std::int64_t>());
  file.add("points", numbers);
  JsonWriter out;
  out.object([&] {
    out.member("format", 1);
    out.member("what", "a failed call of neml2_capi: rerun it with neml2-capi replay FILE");
    out.member("time", time_as("%Y-%m-%dT%H:%M:%SZ"));
    out.object("library", [&] {
      out.member("version", NEML2_CAPI_VERSION);
      out.member("abi", NEML2_ABI_VERSION);
      out.member("provider", graph::library_of(graph::Runtime::builtin));
    });
    out.object("host", [&] {
      out.member("name", platform::host_name());
      out.member("processor", platform::processor_name());
      out.member("process", platform::process_id());
    });
    out.object("artifact", [&] { write_artifact(out, model_.metadata()); });
    out.object("views", [&] { write_views(out, model_.views()); });
    out.object("options", [&] { write_options(out, options_); });
    out.object("operation", [&] { write_operation(out, model_, watched_); });
    out.member("status", status);
    out.member("message", message);
    out.member("subject", subject);
    out.member("batch", watched_.points);
    out.member("kept", kept);
  });
  file.add_text("capsule.json", out.take());

  const fs::path folder = options_.capsule()->path();
  std::error_code failure;
  fs::create_directories(folder, failure);  // if it cannot be, opening the file says why
  const std::string model = model_.metadata().file.parent_path().filename().string();
  const fs::path path = folder / plain(join("capsule-", model, "-", time_as("%Y%m%dT%H%M%SZ"), "-",
                                            platform::host_name(), "-", platform::process_id(), "-", number, ".npz"));
  file.write(path);
  log::write(log::Channel::model, log::Level::warning, "the failed call was written to ", path.string(),
             "; rerun it with: neml2-capi replay ", word_of(path.string()),
             model_.metadata().content ? " --artifact ARTIFACT, the folder of what was opened in memory" : "",
             number == most_files ? ". It is the last that this process writes there." : "");
}

}  // namespace neml2_capi::model
