#include "capi/model/bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "capi/base/error.h"
#include "capi/base/log.h"
#include "capi/model/model.h"
#include "capi/tensor/rows.h"

namespace neml2_capi::model {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// In the type of the values, so that a value that was rounded to it as its bound was is not beyond.
template <class Scalar>
bool is_beyond(Scalar value, Scalar lower, Scalar upper) {
  return value < lower || value > upper;
}

template <class Scalar>
bool any_beyond(const Scalar* values, std::int64_t count, std::int64_t stride, double lower, double upper) {
  const auto least = static_cast<Scalar>(lower), greatest = static_cast<Scalar>(upper);
  int beyond = 0;  // no early end: so it is vectors of values at a time
  for (std::int64_t i = 0; i < count; ++i) {
    const Scalar value = values[i * stride];
    beyond |= static_cast<int>(value < least) | static_cast<int>(value > greatest);
  }
  return beyond != 0;
}

const Variable* find(const std::vector<Variable>& variables, const std::string& name) {
  const auto found = std::ranges::find(variables, name, &Variable::name);
  return found == variables.end() ? nullptr : &*found;
}

std::vector<double> filled(const std::vector<double>& side, std::size_t size) {
  return side.size() == 1 ? std::vector<double>(size, side.front()) : side;
}

bool is_uniform(const Bound& bound) {
  const auto alike = [](const std::vector<double>& side) {
    return std::ranges::all_of(side, [&](double each) { return each == side.front(); });
  };
  return alike(bound.lower) && alike(bound.upper);
}

Bound bound_of(const artifact::Metadata& metadata, const artifact::Bound& told, const std::vector<Variable>& inputs,
               const std::vector<Variable>& parameters) {
  const auto misfit = [&](const std::string& problem) {
    return Error(NEML2_ERROR_ARTIFACT, told.variable,
                 join((metadata.file.parent_path() / "bounds.json").string(), ": '", told.variable, "' ", problem,
                      " Write the bounds again with neml2-capi bounds."));
  };
  Bound bound;
  bound.physical = told.physical;
  const Variable* variable = find(inputs, told.variable);
  if (!variable) {
    bound.kind = Kind::parameter;
    variable = find(parameters, told.variable);
  }
  if (!variable) throw misfit("is no input and no parameter of the model.");
  bound.variable = static_cast<std::size_t>(variable - (bound.kind == Kind::input ? inputs : parameters).data());
  if (!is_real(variable->dtype)) throw misfit(join("is ", name_of(variable->dtype), "; bounds are of floats."));
  const auto size = static_cast<std::size_t>(variable->point_shape.product());
  for (const auto* side : {&told.lower, &told.upper})
    if (side->size() != 1 && side->size() != size)
      throw misfit(join("has ", size, " components, and bounds for ", side->size(), "."));
  bound.lower = filled(told.lower, size);
  bound.upper = filled(told.upper, size);
  bound.is_uniform = is_uniform(bound);
  bound.is_of_step = bound.kind == Kind::input && variable->name.find('~') == std::string::npos;
  return bound;
}

const Variable& variable_of(const Model& model, const Bound& bound) {
  return model.variables(bound.kind)[bound.variable];
}

// Returns "the input 'strain', component xx,".
std::string subject(const Variable& variable, Kind kind, std::int64_t component) {
  std::string name = join("the ", kind == Kind::input ? "input" : "parameter", " '", variable.name, "'");
  const std::int64_t size = variable.point_shape.product();
  if (size == 1) return name;
  constexpr const char* symmetric[] = {"xx", "yy", "zz", "yz", "xz", "xy"};
  if (variable.type == "SR2" && size == std::ssize(symmetric))
    return join(name, ", component ", symmetric[component], ",");
  std::string index;
  for (std::int64_t axis = variable.point_shape.size(), rest = component; axis-- > 0;) {
    const std::int64_t length = variable.point_shape[axis];
    index = join(rest % length, index.empty() ? "" : ", ", index);
    rest /= length;
  }
  return join(name, ", component [", index, "],");
}

// Tells how a value is beyond a bound: "is 700, above 600, the upper bound of its validity".
std::string verdict(const Bound& bound, std::int64_t component, double value) {
  const auto at = static_cast<std::size_t>(component);
  const bool above = value > bound.lower[at];
  return join(" is ", value, above ? ", above " : ", below ", above ? bound.upper[at] : bound.lower[at], ", its ",
              bound.physical ? "physical " : "", above ? "upper" : "lower", " bound");
}

}  // namespace

bool Bound::is_exceeded(const Points& array, DType dtype, std::int64_t begin, std::int64_t points) const {
  return with_scalar(dtype, [&]<class Scalar>(Scalar*) {
    const auto size = std::ssize(lower);
    const bool is_one = array.stride == 0;
    const auto* values = reinterpret_cast<const Scalar*>(point(array, begin, sizeof(Scalar)));
    const std::int64_t count = is_one ? 1 : points;
    if (is_uniform && (is_one || array.stride == size))
      return any_beyond(values, count * size, 1, lower.front(), upper.front());
    for (std::size_t i = 0; i < lower.size(); ++i)
      if ((lower[i] != -infinity || upper[i] != infinity) &&
          any_beyond(values + i, count, array.stride, lower[i], upper[i]))
        return true;
    return false;
  });
}

std::int64_t Bound::component_beyond(const Points& array, DType dtype, std::int64_t index, double& value) const {
  return with_scalar(dtype, [&]<class Scalar>(Scalar*) {
    const auto* values = reinterpret_cast<const Scalar*>(point(array, index, sizeof(Scalar)));
    for (std::size_t i = 0; i < lower.size(); ++i)
      if (is_beyond(values[i], static_cast<Scalar>(lower[i]), static_cast<Scalar>(upper[i]))) {
        value = static_cast<double>(values[i]);
        return static_cast<std::int64_t>(i);
      }
    return std::int64_t{-1};
  });
}

std::vector<Bound> bounds_of(const artifact::Metadata& metadata, const std::vector<Variable>& inputs,
                             const std::vector<Variable>& parameters) {
  std::vector<Bound> bounds;
  for (const artifact::Bound& told : metadata.bounds) bounds.push_back(bound_of(metadata, told, inputs, parameters));
  return bounds;
}

std::vector<Bound> bounds_around(const Model& law, const std::vector<Variable>& inputs) {
  std::vector<Bound> bounds;
  for (Bound bound : law.bounds()) {
    if (bound.kind == Kind::input) {
      const Variable* own = find(inputs, variable_of(law, bound).name);
      if (!own) continue;
      const auto size = static_cast<std::size_t>(own->point_shape.product());
      if (size != bound.lower.size() && !bound.is_uniform) continue;
      bound.variable = static_cast<std::size_t>(own - inputs.data());
      bound.lower.resize(size, bound.lower.front());
      bound.upper.resize(size, bound.upper.front());
    }
    bounds.push_back(std::move(bound));
  }
  return bounds;
}

std::string words_of(const Model& model, const Exceeded& what) {
  const Model& law = model.innermost();
  const Bound& bound = law.bounds()[what.bound];
  return join(subject(variable_of(law, bound), bound.kind, what.component), verdict(bound, what.component, what.value));
}

void log_exceeded(const Model& model, const Vector<Exceeded>& all, std::int64_t points, std::int64_t steps) {
  for (const Exceeded& each : all) {
    if (each.fails || !model.innermost().note_exceeded(each.bound)) continue;
    const std::string in_steps = steps > 1 ? join(" in ", steps, " steps") : "";
    log::write(log::Channel::bounds, log::Level::warning, model.metadata().leaf.string(), ": of point ", each.point,
               steps > 1 ? join(" in step ", each.step, " of the ", steps, " of this call") : "", ", ",
               words_of(model, each),
               each.points == 1 ? join("; it is the only one of ", points, " points", in_steps)
                                : join("; so it is of ", each.points, " of ", points * steps, " points", in_steps),
               ". The law was evaluated all the same.");
  }
}

void check_parameter(const Model& model, std::size_t parameter, const Tensor& value) {
  const Options::Bounds policy = model.options().bounds();
  const std::vector<Bound>& bounds = model.innermost().bounds();
  for (std::size_t b = 0; b < bounds.size(); ++b) {
    const Bound& bound = bounds[b];
    if (bound.kind != Kind::parameter || bound.variable != parameter) continue;
    if (!bound.physical && policy == Options::Bounds::off) continue;
    const Variable& variable = model.variables(Kind::parameter)[parameter];
    const Tensor rows = value.row_major();
    const auto size = std::ssize(bound.lower);
    const Points array = {rows.data_as<char>(), size};
    for (std::int64_t p = 0; size > 0 && p < rows.numel() / size; ++p) {
      double found = 0;
      const std::int64_t component = bound.component_beyond(array, variable.dtype, p, found);
      if (component < 0) continue;
      const std::string words = words_of(model, {.bound = b, .component = component, .value = found});
      if (bound.physical || policy == Options::Bounds::fail)
        throw Error(NEML2_ERROR_ARGUMENT, variable.name,
                    join("It was to be set, but ", words, ". Set a value within",
                         bound.physical ? "." : ", or the option bounds to warn or off."));
      log::write(log::Channel::bounds, log::Level::warning, model.metadata().leaf.string(), ": ", words,
                 ". It was set all the same.");
      break;
    }
  }
}

}  // namespace neml2_capi::model
