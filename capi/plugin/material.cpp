#include "capi/plugin/material.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "capi/base/locks.h"
#include "capi/hypotheses/hypothesis.h"
#include "capi/platform/memory_file.h"
#include "capi/platform/shared_object.h"
#include "capi/platform/thread_end.h"
#include "capi/plugin/bounds.h"
#include "capi/plugin/payload.h"
#if !defined(NEML2_CAPI_KERNELS_ALONE)
#include "capi/loader/image.h"
#endif

namespace neml2_capi::plugin {
namespace {

constexpr std::size_t HYPOTHESES = NEML2_AXISYMMETRICAL_GENERALISED_PLANE_STRAIN + 1;

// Opens the provider from memory, for the library to find by its name: there is no file beside it. It stays, and serves
// every plug-in of this build.
void open_provider([[maybe_unused]] std::string_view content) {
#if !defined(NEML2_CAPI_KERNELS_ALONE)
  std::string reason;
  if (platform::open_shared(aoti::provider_file, reason, platform::Opening::only_if_there)) return;
  const platform::MemoryFile file("neml2 provider", content);
  if (!platform::open_shared(file.path().c_str(), reason))
    throw neml2::Error(NEML2_ERROR_RUNTIME, "",
                       "The provider cannot be opened from memory: " + reason +
                           ". Allow this process to run code from memory, or from its temporary folder.");
#endif
}

// Adds the history that a hypothesis has: outputs of the strain's and the stress's name with "_transverse". A whole stress
// among the states is not read there.
void add_states(Material& material) {
  Mapping& map = material.mapping;
  std::size_t first = map.nstatv();
  std::erase_if(map.states, [&](const Variable& state) { return state.name == map.stress; });
  for (const neml2::Variable& output : material.model.outputs()) {
    if (output.name != map.strain + "_transverse" && output.name != map.stress + "_transverse") continue;
    Variable state;
    state.name = output.name;
    state.first = first;
    state.size = static_cast<std::size_t>(output.size());
    first += state.size;
    map.states.push_back(std::move(state));
  }
}

Material load(std::size_t number, const Mapping& mapping, std::int32_t hypothesis) {
  const std::string_view artifact = payload().artifacts.substr(mapping.begin, mapping.size);
  neml2::Source source(artifact.data(), artifact.size());
  if (hypothesis != NEML2_TRIDIMENSIONAL) source.hypothesis(hypothesis).tensors(mapping.strain, mapping.stress);
  Material material{number, mapping, neml2::Model(source)};
  material.components = model::hypothesis_of(hypothesis).given;
  material.row = material.size();
  if (hypothesis != NEML2_TRIDIMENSIONAL) add_states(material);
  for (const neml2::Variable& input : material.model.inputs()) material.inputs.insert(input.name);
  material.model.set_option("rescue", MOST_RESCUE_SOLVES);
  for (const auto& [name, value] : material.mapping.options)
    std::visit([&, &option = name](const auto& to) { material.model.set_option(option, to); }, value);
  for (const Variable& state : material.mapping.states) {
    if (state.name == material.mapping.stress) {
      material.places.push_back(0);
      continue;
    }
    if (state.name == material.mapping.stored_energy) material.stored_place = material.row;
    if (state.name == material.mapping.dissipated_energy) material.dissipated_place = material.row;
    material.places.push_back(material.row);
    material.row += state.size;
  }
  material.has_bounds = !material.model.bounds().empty();
  material.has_capsules = !material.model.text_option("capsule").empty();
  apply_policy(material);
  const Mapping& map = material.mapping;
  const auto has = [&](const std::string& name) { return material.inputs.count(name + "~1") > 0; };
  material.has_rates = has(map.time);
  material.has_history =
      has(map.strain) || has(map.stress) ||
      std::any_of(map.states.begin(), map.states.end(), [&](auto& state) { return has(state.name); });
  return material;
}

std::atomic<bool> opened = false;

std::vector<Material> load_all() {
  const Payload parts = payload();
  open_provider(parts.provider);
  std::vector<Material> materials;
  for (const Mapping& mapping : read_mappings(parts.mappings))
    materials.push_back(load(materials.size(), mapping, NEML2_TRIDIMENSIONAL));
  for (Material& each : materials)
    each.others = std::shared_ptr<std::atomic<const Material*>[]>(new std::atomic<const Material*>[HYPOTHESES] {});
  opened.store(true, std::memory_order_release);
  return materials;
}

constinit locks::Lazy<const std::vector<Material>> all;

constinit locks::Mutex opening;

// Returns what a host calls a material, in lower case: in Fortran's 80 characters, and for CalculiX behind @LIBRARY@.
std::string name_of(const char* cmname) {
  constexpr std::size_t length = 80;
  std::string name(cmname ? cmname : "", cmname ? strnlen(cmname, length) : 0);
  name.erase(name.find_last_not_of(' ') + 1);
  name.erase(0, name.rfind('@') + 1);
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name;
}

const Mapping& mapping_of(const Material& material) { return material.mapping; }
const Mapping& mapping_of(const Mapping& mapping) { return mapping; }

template <class Of>
auto find_material(const Of& materials, const char* cmname) {
  if (materials.size() == 1) return materials.begin();
  const std::string name = name_of(cmname);
  return std::find_if(materials.begin(), materials.end(),
                      [&](const auto& each) { return name_of(mapping_of(each).material.c_str()) == name; });
}

}  // namespace

const Material& material(const char* cmname) {
  const std::vector<Material>& materials = all.get(load_all);
  const auto found = find_material(materials, cmname);
  if (found != materials.end()) return *found;
  std::string names;
  for (const Material& each : materials) names += (names.empty() ? "" : ", ") + each.mapping.material;
  refuse("this library has no material of that name; it has " + names + ". Name the material in the input so.");
}

const Material& under(const Material& material, std::int32_t hypothesis) {
  if (hypothesis == NEML2_TRIDIMENSIONAL) return material;
  std::atomic<const Material*>& made = material.others[static_cast<std::ptrdiff_t>(hypothesis)];
  if (const Material* known = made.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(opening);
  if (const Material* known = made.load(std::memory_order_acquire)) return *known;
  const std::size_t number = all.get(load_all).size() + material.number * HYPOTHESES;
  // It stays, as the materials themselves do.
  const Material* opened =
      new Material(load(number + static_cast<std::size_t>(hypothesis), material.mapping, hypothesis));
  made.store(opened, std::memory_order_release);
  return *opened;
}

void for_each_opened(void (*visit)(const Material&)) {
  if (!opened.load(std::memory_order_acquire)) return;
  for (const Material& each : all.get(load_all)) {
    visit(each);
    for (std::size_t h = 0; h < HYPOTHESES; ++h)
      if (const Material* made = each.others[static_cast<std::ptrdiff_t>(h)].load(std::memory_order_acquire))
        visit(*made);
  }
}

const Material& only_material() {
  const std::vector<Material>& materials = all.get(load_all);
  if (materials.size() == 1) return materials.front();
  refuse("this library has several materials, and this host cannot say which. Make a library of one.");
}

void refuse(const std::string& message) { throw neml2::Error(NEML2_ERROR_ARGUMENT, "", message); }

void require(int given, std::size_t needed, const char* what, const char* remedy) {
  if (given >= 0 && std::size_t(given) >= needed) return;
  refuse("there are " + std::to_string(given) + " " + what + ", and the material needs " + std::to_string(needed) +
         ": " + remedy + ".");
}

void require_constants(int given, const Mapping& mapping) {
  constexpr const char* remedy = "give them to *USER MATERIAL, CONSTANTS";
  require(given, mapping.nprops(), "material constants", remedy);
  if (mapping.parameters.empty() || std::size_t(given) == mapping.nprops()) return;
  std::string names;
  for (const Variable& parameter : mapping.parameters) names += (names.empty() ? "" : ", ") + parameter.name;
  refuse("there are " + std::to_string(given) + " material constants, and the material has " +
         std::to_string(mapping.nprops()) + " (" + names + "): " + remedy +
         ", or name the others in the mapping file.");
}

std::string material_name(const char* cmname) {
  try {
    const std::vector<Mapping> mappings = read_mappings(payload().mappings);
    const auto found = find_material(mappings, cmname);
    return found != mappings.end() ? found->material : name_of(cmname);
  } catch (const std::exception&) {
    return {};
  }
}

Workspace::Workspace(const Material& m, std::size_t points, bool with_tangent)
    : strain(m.size() * points),
      old_strain(m.size() * points),
      state(m.row * points),
      old_state(m.row * points),
      temperature(points),
      old_temperature(points),
      fields(m.mapping.nfields() * points),
      old_fields(fields),
      parameters(m.mapping.nprops()),
      tangent(with_tangent ? m.size() * m.size() * points : 0),
      stored(points),
      dissipated(points),
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
  input(map.strain, strain, 0, m.size());
  input(map.strain + "~1", old_strain, 0, m.size());
  input(map.temperature, temperature, 0, 1);
  input(map.temperature + "~1", old_temperature, 0, 1);
  if (!map.time.empty()) call.bind_input(map.time, time, 0);
  if (m.inputs.count(map.time + "~1")) call.bind_input(map.time + "~1", old_time, 0);
  for (const Variable& field : map.fields) {
    input(field.name, fields, field.first, map.nfields());
    input(field.name + "~1", old_fields, field.first, map.nfields());
  }
  for (const Constant& constant : map.constants) call.bind_input(constant.name, constant.values, 0);
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
  if (!map.stored_energy.empty() && !m.stored_place) call.bind_output(map.stored_energy, stored);
  if (!map.dissipated_energy.empty() && !m.dissipated_place) call.bind_output(map.dissipated_energy, dissipated);
  if (with_tangent) call.bind_derivative(map.stress, map.strain, tangent);
  call.bind_report(NEML2_REPORT_SUGGESTED_CUT, cut).bind_report(NEML2_REPORT_STATUS, status);
}

void Workspace::stand_still(double part, double step) {
  strain = old_strain;
  temperature = old_temperature;
  fields = old_fields;
  time = old_time + moment(part, step, old_time);
}

double moment(double part, double step, double time) {
  constexpr double of_time = 1e-13;
  return std::max(part * (step > 0 ? step : 1), of_time * std::abs(time));
}

namespace {

constexpr std::size_t PURPOSES = 3;

// Workspaces of a thread, by their material and purpose.
constinit thread_local std::vector<std::unique_ptr<Workspace>>* kept = nullptr;
constinit thread_local thread_end::Record at_end{};

void free_workspaces() noexcept { delete std::exchange(kept, nullptr); }

}  // namespace

Workspace& workspace(const Material& material, std::size_t points, Purpose purpose) {
  at_end.run = free_workspaces;
  thread_end::call(at_end);
  if (!kept) kept = new std::vector<std::unique_ptr<Workspace>>;
  const std::size_t place = PURPOSES * material.number + static_cast<std::size_t>(purpose);
  if (kept->size() <= place) kept->resize(place + 1);
  std::unique_ptr<Workspace>& own = (*kept)[place];
  if (!own || own->points() < points) own = std::make_unique<Workspace>(material, points, purpose != Purpose::VALUES);
  return *own;
}

}  // namespace neml2_capi::plugin
