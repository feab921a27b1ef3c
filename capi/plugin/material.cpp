#include "capi/plugin/material.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "capi/plugin/payload.h"

namespace neml2_capi::plugin {
namespace {

// The library looks for its provider beside itself: here it is opened from memory, and stays.
void open_provider(std::string_view file) {
  const int descriptor = memfd_create("neml2 provider", MFD_CLOEXEC);
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  const bool written = descriptor >= 0 && write(descriptor, file.data(), file.size()) == ssize_t(file.size());
  void* library = written ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (descriptor >= 0) close(descriptor);
  if (library) return;
  const char* reason = written ? dlerror() : nullptr;
  throw neml2::Error(NEML2_ERROR_RUNTIME, "",
                     std::string("The provider cannot be opened from memory: ") +
                         (reason ? reason : "memfd_create failed") + ". Allow memfd_create to this process.");
}

Material load() {
  const Payload parts = payload();
  open_provider(parts.provider);
  Material material{read_mapping(parts.mapping), neml2::Model({parts.artifact.data(), parts.artifact.size()}), {}, {}};
  for (const neml2::Variable& input : material.model.inputs()) material.inputs.insert(input.name);
  for (const auto& [name, value] : material.mapping.options) material.model.set_option(name, value);
  for (const Variable& state : material.mapping.states) {
    if (state.name == material.mapping.stress) {
      material.places.push_back(0);
      continue;
    }
    material.places.push_back(material.row);
    material.row += state.size;
  }
  return material;
}

}  // namespace

const Material& material() {
  static const Material only = load();
  return only;
}

std::string material_name() {
  try {
    return read_mapping(payload().mapping).material;
  } catch (const std::exception&) {
    return {};
  }
}

Workspace::Workspace(const Material& m, std::size_t points, bool with_tangent)
    : strain(6 * points),
      old_strain(6 * points),
      state(m.row * points),
      old_state(m.row * points),
      temperature(points),
      old_temperature(points),
      fields(m.mapping.nfields() * points),
      old_fields(fields),
      parameters(m.mapping.nprops()),
      tangent(with_tangent ? 36 * points : 0),
      cut(points),
      status(points),
      call(m.model) {
  bind(m, with_tangent);
}

void Workspace::bind(const Material& m, bool with_tangent) {
  const Mapping& map = m.mapping;
  const auto input = [&](const std::string& name, std::vector<double>& values, std::size_t first, std::size_t stride) {
    if (m.inputs.count(name)) call.bind_input(name, neml2::Span(values).from(first), std::int64_t(stride));
  };
  input(map.strain, strain, 0, 6);
  input(map.strain + "~1", old_strain, 0, 6);
  input(map.temperature, temperature, 0, 1);
  input(map.temperature + "~1", old_temperature, 0, 1);
  if (!map.time.empty()) call.bind_input(map.time, time, 0);
  if (m.inputs.count(map.time + "~1")) call.bind_input(map.time + "~1", old_time, 0);
  for (const Variable& field : map.fields) {
    input(field.name, fields, field.first, map.nfields());
    input(field.name + "~1", old_fields, field.first, map.nfields());
  }
  input(map.stress + "~1", old_state, 0, m.row);
  call.bind_output(map.stress, state, std::int64_t(m.row));
  for (std::size_t k = 0; k < map.states.size(); ++k) {
    const std::string& name = map.states[k].name;
    input(name + "~1", old_state, m.places[k], m.row);
    input(name, old_state, m.places[k], m.row);  // the first guess of its solve
    call.bind_output(name, neml2::Span(state).from(m.places[k]), std::int64_t(m.row));
  }
  for (const Variable& parameter : map.parameters)
    call.bind_parameter(parameter.name, neml2::Span(parameters).from(parameter.first), 0);
  if (with_tangent) call.bind_derivative(map.stress, map.strain, tangent);
  call.bind_report(NEML2_REPORT_SUGGESTED_CUT, cut).bind_report(NEML2_REPORT_STATUS, status);
}

void Workspace::stand_still() {
  strain = old_strain;
  temperature = old_temperature;
  fields = old_fields;
}

Workspace& workspace(std::size_t points, bool with_tangent) {
  thread_local std::unique_ptr<Workspace> kept[2];
  std::unique_ptr<Workspace>& own = kept[with_tangent];
  if (!own || own->points() < points) own = std::make_unique<Workspace>(material(), points, with_tangent);
  return *own;
}

}  // namespace neml2_capi::plugin
