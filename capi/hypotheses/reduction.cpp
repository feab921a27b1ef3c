#include "capi/hypotheses/reduction.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "capi/base/error.h"
#include "capi/model/tensor_pair.h"

namespace neml2_capi::model {
namespace {

constexpr const char* suffix = "_transverse";

Components all_of(std::int64_t size) {
  Components all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// Returns k of the name `base~k`, and 0 of another one.
std::int64_t age_of(const Model& law, std::size_t input, const std::string& base) {
  for (const Model::History& history : law.histories())
    if (static_cast<std::size_t>(history.input) == input &&
        law.variables(Kind::input)[input].name.substr(0, base.size() + 1) == base + "~")
      return history.age;
  return 0;
}

// Returns a tensor with some components, which its type lists: "SR2(xx, yy, xy)".
Variable reduced(Variable variable, const Components& kept) {
  constexpr const char* names[] = {"xx", "yy", "zz", "yz", "xz", "xy"};
  std::string listed;
  for (const std::int64_t c : kept) add_name(listed, names[c]);
  variable.point_shape = {std::ssize(kept)};
  variable.type = join("SR2(", listed, ")");
  return variable;
}

std::string before(const std::string& name, std::int64_t age) { return join(name, "~", age); }

}  // namespace

Reduction::Reduction(const Model& law, const Hypothesis& hypothesis, std::string_view strain, std::string_view stress)
    : law_(law), hypothesis_(hypothesis) {
  const TensorPair pair =
      tensor_pair_of(law, join("The hypothesis ", hypothesis_.name), strain, stress, Changes::taken);
  strain_ = pair.strain;
  stress_ = pair.stress;
  tangent_ = derivative_of(law_, Kind::input, stress_, strain_);
  if (tangent_ < 0 && !hypothesis_.free.empty()) refuse_without_tangent();
  reduce_outputs();
  reduce_inputs();
  condense(Kind::input);
  condense_by_guess();
  condense(Kind::parameter);
  hold();
}

void Reduction::refuse_without_tangent() const {
  const std::string pair =
      join(law_.variables(Kind::output)[stress_].name, ":", law_.variables(Kind::input)[strain_].name);
  throw Error(NEML2_ERROR_UNSUPPORTED, pair,
              join("The hypothesis ", hypothesis_.name, " needs the derivative '", pair,
                   "', and the artifact was compiled without it. Compile it with neml2-compile -d ", pair,
                   "; export a law in torch again with derivatives=[\"", pair, "\"]."));
}

void Reduction::reduce_outputs() {
  boundary_.outputs = law_.variables(Kind::output);
  outputs_.resize(boundary_.outputs.size());
  Variable& stress = boundary_.outputs[stress_];
  const Variable whole = stress;
  stress = reduced(stress, hypothesis_.given);
  outputs_[stress_].is_reduced = true;
  const auto add = [&](const std::string& name, const Components& held) {
    boundary_.outputs.push_back(reduced({join(name, suffix), "", whole.dtype, {}, 0}, held));
    return std::ssize(boundary_.outputs) - 1;
  };
  if (!hypothesis_.free.empty()) free_output_ = add(law_.variables(Kind::input)[strain_].name, hypothesis_.free);
  const auto& inputs = law_.variables(Kind::input);
  for (std::size_t i = 0; i < inputs.size() && stress_others_ < 0; ++i)
    if (age_of(law_, i, whole.name) > 0 && !hypothesis_.zero.empty())
      stress_others_ = add(whole.name, hypothesis_.zero);
  outputs_[stress_].others = stress_others_;
  outputs_[stress_].held = hypothesis_.zero;
}

void Reduction::reduce_inputs() {
  boundary_.inputs = law_.variables(Kind::input);
  inputs_.resize(boundary_.inputs.size());
  const std::string strain = boundary_.inputs[strain_].name, stress = law_.variables(Kind::output)[stress_].name;
  const auto add = [&](const std::string& name, std::int64_t age, const Components& held, DType dtype) {
    boundary_.inputs.push_back(reduced({before(join(name, suffix), age), "", dtype, {}, 0}, held));
    return std::ssize(boundary_.inputs) - 1;
  };
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    const std::int64_t of_strain = age_of(law_, i, strain), of_stress = age_of(law_, i, stress);
    Role& role = inputs_[i];
    role.is_reduced = i == strain_ || of_strain > 0 || of_stress > 0 || boundary_.inputs[i].name == stress;
    if (!role.is_reduced) continue;
    boundary_.inputs[i] = reduced(boundary_.inputs[i], hypothesis_.given);
    const DType dtype = boundary_.inputs[i].dtype;
    if (of_strain > 0 && !hypothesis_.free.empty()) {
      role = {true, add(strain, of_strain, hypothesis_.free, dtype), hypothesis_.free};
      if (of_strain == 1) free_before_ = role.others;
    } else if (of_stress > 0 && !hypothesis_.zero.empty()) {
      role = {true, add(stress, of_stress, hypothesis_.zero, dtype), hypothesis_.zero};
    }
  }
  if (free_before_ < 0 && !hypothesis_.free.empty() && !law_.histories().empty())
    free_before_ = add(strain, 1, hypothesis_.free, boundary_.inputs[strain_].dtype);
}

// Adds a derivative at the boundary, whose block has the rows and columns of `condensed`.
void Reduction::add(Kind kind, std::size_t output, std::size_t variable, Condensed condensed) {
  const bool by_parameter = kind == Kind::parameter;
  const Variable& of = boundary_.outputs[output];
  const Variable& by = by_parameter ? law_.variables(kind)[variable] : boundary_.inputs[variable];
  Derivative derivative;
  derivative.output = output;
  derivative.input = variable;
  derivative.rows = of.point_shape.product();
  derivative.columns = by.point_shape.product();
  derivative.block = {join(of.name, ":", by.name), "", law_.dtype(), of.point_shape.then(by.point_shape), 0};
  (by_parameter ? boundary_.by_parameters : boundary_.by_inputs).push_back(std::move(derivative));
  (by_parameter ? condensation_.by_parameters : condensation_.by_inputs).push_back(std::move(condensed));
}

// Takes the derivatives of the law for which all that the condensation needs was compiled, too.
void Reduction::condense(Kind kind) {
  const bool has_free = !hypothesis_.free.empty();
  const auto& all = law_.derivatives(kind).all();
  const auto size = [&](Kind of, std::size_t i) { return law_.variables(of)[i].point_shape.product(); };
  const auto is_dense = [&](const Derivative& each) {
    return each.block.point_shape.product() == size(Kind::output, each.output) * size(kind, each.input);
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t o = all[i].output, z = all[i].input;
    const std::int64_t by_strain = derivative_of(law_, Kind::input, o, strain_),
                       of_stress = derivative_of(law_, kind, stress_, z);
    if (!is_dense(all[i]) || (has_free && (by_strain < 0 || of_stress < 0))) continue;
    if (has_free && !is_dense(all[static_cast<std::size_t>(of_stress)])) continue;
    const Role of = outputs_[o], by = kind == Kind::parameter ? Role() : inputs_[z];
    Condensed direct{static_cast<std::int64_t>(i),
                     has_free ? by_strain : -1,
                     has_free ? of_stress : -1,
                     false,
                     of.is_reduced ? hypothesis_.given : all_of(size(Kind::output, o)),
                     by.is_reduced ? hypothesis_.given : all_of(size(kind, z)),
                     size(kind, z)};
    const auto add_by = [&](const Condensed& condensed, std::size_t output) {
      add(kind, output, z, condensed);
      if (by.others < 0) return;
      Condensed others = condensed;
      others.columns = by.held;
      add(kind, output, static_cast<std::size_t>(by.others), others);
    };
    add_by(direct, o);
    if (o != stress_) continue;
    if (stress_others_ >= 0) {
      Condensed others = direct;
      others.rows = hypothesis_.zero;
      add_by(others, static_cast<std::size_t>(stress_others_));
    }
    if (has_free) {
      Condensed of_free = direct;
      of_free.direct = of_free.by_free = -1;
      of_free.is_of_free = true;
      of_free.rows = all_of(std::ssize(hypothesis_.free));
      add_by(of_free, static_cast<std::size_t>(free_output_));
    }
  }
}

// Adds derivatives by the start of the free strains, which changes no solution: they are zero, unless the law has them.
void Reduction::condense_by_guess() {
  if (free_before_ < 0) return;
  const auto guess = static_cast<std::size_t>(free_before_);
  std::vector<std::size_t> outputs;
  for (const Derivative& each : boundary_.by_inputs) {
    if (each.input == guess) return;
    if (each.input == strain_) outputs.push_back(each.output);
  }
  for (const std::size_t output : outputs)
    add(Kind::input, output, guess,
        {-1, -1, -1, false, all_of(boundary_.outputs[output].point_shape.product()),
         all_of(std::ssize(hypothesis_.free)), 0});
}

// Tells which components of its tensors the variables at the boundary hold.
void Reduction::hold() {
  const auto add = [&](const std::vector<Role>& roles, std::vector<kernels::Condensation::Held>& held) {
    for (std::size_t i = 0; i < roles.size(); ++i) {
      if (roles[i].is_reduced) held.push_back({i, i, hypothesis_.given});
      if (roles[i].others >= 0) held.push_back({static_cast<std::size_t>(roles[i].others), i, roles[i].held});
    }
  };
  add(inputs_, condensation_.inputs);
  add(outputs_, condensation_.outputs);
  condensation_.input = strain_;
  condensation_.output = stress_;
  condensation_.tangent = tangent_;
  condensation_.free = hypothesis_.free;
  condensation_.free_output = free_output_;
  condensation_.free_begin = free_before_;
}

}  // namespace neml2_capi::model
