#include "capi/model/remark.h"

#include <cstring>

#include "capi/base/error.h"
#include "capi/values/marks.h"
#include "capi/values/steps.h"

namespace neml2_capi::model {
namespace {

// Returns the names of those variables whose derivative, or with respect to which one, takes part in a product.
template <class Takes>
std::string names_where(const std::vector<Variable>& variables, Takes&& takes) {
  std::string names;
  for (std::size_t i = 0; i < variables.size(); ++i)
    if (takes(i)) add_name(names, join("'", variables[i].name, "'"));
  return names;
}

class NonFiniteRemark {
 public:
  NonFiniteRemark(const Model& model, const Bindings& bindings, const NonFinite& what)
      : model_(model), bindings_(bindings), index_(static_cast<std::size_t>(what.named.index)), what_(what) {}

  std::string str() const {
    if (what_.point < 0) return "";
    return join(" Of point ", what_.point, ", ", subject(), " is not finite", advice());
  }

 private:
  const std::string& name(Kind kind) const { return model_.variables(kind)[index_].name; }

  std::string subject() const {
    switch (what_.named.part) {
      case Part::input: return join("the input '", name(Kind::input), "'");
      case Part::parameter: return join("the parameter '", name(Kind::parameter), "'");
      case Part::tangent: return join("the tangent of the input '", name(Kind::input), "'");
      case Part::cotangent: return join("the cotangent of the output '", name(Kind::output), "'");
      case Part::output: return join("the output '", name(Kind::output), "'");
      case Part::block: return of_block(Kind::input);
      case Part::parameter_block: return of_block(Kind::parameter);
      case Part::jvp: return derivative(name(Kind::output), along());
      case Part::adjoint: return derivative(pulled(Kind::input), name(Kind::input));
      case Part::parameter_adjoint: return derivative(pulled(Kind::parameter), name(Kind::parameter));
    }
    return "a result";
  }
  static std::string quoted(const std::string& name) { return name.starts_with("'") ? name : join("'", name, "'"); }
  static std::string derivative(const std::string& output, const std::string& variable) {
    return join("the derivative of ", quoted(output), " with respect to ", quoted(variable));
  }
  std::string of_block(Kind kind) const {
    const Derivative& block = model_.derivatives(kind).all()[index_];
    return derivative(model_.variables(Kind::output)[block.output].name, model_.variables(kind)[block.input].name);
  }
  // The inputs along which a product goes, and the outputs from which one comes.
  std::string along() const {
    return names_where(model_.variables(Kind::input), [&](std::size_t input) {
      return bindings_.tangents[input].data && is_derived(Kind::input, index_, input);
    });
  }
  std::string pulled(Kind kind) const {
    return names_where(model_.variables(Kind::output), [&](std::size_t output) {
      return bindings_.cotangents[output].data && is_derived(kind, output, index_);
    });
  }
  bool is_derived(Kind kind, std::size_t output, std::size_t input) const {
    for (const Derivative& each : model_.derivatives(kind).all())
      if (each.output == output && each.input == input) return true;
    return false;
  }

  std::string advice() const {
    if (what_.named.part < Part::output) return ": correct what gives it. A smaller step does not mend that.";
    if (what_.named.part == Part::output)
      return ", though its inputs are: look for a division by zero, for a root or a logarithm of what is negative, and "
             "for an overflow.";
    const char* const system =
        model_.variables(Kind::unknown).empty() ? "" : ", or the Jacobian of its system is singular at the solution";
    return join(", though its values are: the law has no finite slope there, as sqrt(x) at 0", system,
                ". Write sqrt(x + eps), or torch.where() with an argument inside it that is safe in both branches.");
  }

  const Model& model_;
  const Bindings& bindings_;
  const std::size_t index_;
  const NonFinite what_;
};

// Returns what is not finite in the arrays of a point, if the route could not tell.
NonFinite found_at(const Model& model, const Bindings& bindings, std::int64_t point) {
  Vector<std::int32_t> status = {NEML2_OK};
  Marks marks(status, point);
  std::vector<Points> kept = bindings.inputs;  // others than those that outputs were written over
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (bindings.copies[i]) kept[i] = {};
  for (const Part part : given_parts)
    marks.give(part == Part::input ? kept : bindings.of(part), model.variables(kind_of(part)), part);
  for (const Part part : all_parts)
    for (std::size_t i = 0; !is_given(part) && i < bindings.of(part).size(); ++i)
      if (const Points& array = bindings.of(part)[i]; !is_one_value(array))
        marks.look(Rows(array, model.variable(part, i), point), {part, static_cast<std::int64_t>(i)});
  return marks.first();
}

// Returns what is beyond the bounds at the first point that failed for one.
std::string out_of_bounds(const Model& model, const Tally& tally) {
  for (const Exceeded& each : tally.exceeded) {
    if (!each.fails || each.point != tally.first[NEML2_OUT_OF_BOUNDS]) continue;
    const bool physical = model.innermost().bounds()[each.bound].physical;
    return join(" Of point ", each.point, ", ", words_of(model, each),
                physical ? ", beyond which it has no meaning."
                         : ". Keep it within, or set the option bounds to warn, which evaluates the law all the same.");
  }
  return "";
}

}  // namespace

std::string steps_of_zero(const Model& model, const Bindings& bindings, std::int64_t index) {
  const auto& inputs = model.variables(Kind::input);
  std::string names;
  for (const auto& [now, before] : steps_of(inputs)) {
    const std::int64_t size = itemsize(inputs[now].dtype);
    const char* const a = point(bindings.inputs[now], index, size);
    const char* const b = point(bindings.inputs[before], index, size);
    if (std::memcmp(a, b, static_cast<std::size_t>(size)) == 0)
      add_name(names, join(inputs[now].name, " = ", inputs[before].name));
  }
  return names;
}

NonFinite non_finite_given(const Model& model, const Bindings& bindings, std::int64_t point) {
  Vector<std::int32_t> status = {NEML2_NOT_CONVERGED};
  Marks marks(status, point);
  for (const Part part : given_parts) marks.give(bindings.of(part), model.variables(kind_of(part)), part);
  marks.judge_failed([](std::size_t) {});
  return marks.first();
}

std::string message_of(const Model& model, const Bindings& bindings, const Tally& tally, std::int64_t points) {
  Tally::Remarks remarks;
  if (tally.failed_at_the_guess()) {
    const std::string names = steps_of_zero(model, bindings, tally.failed.point);
    if (!names.empty()) remarks.failed = join("a step of zero, ", names);
  }
  if (tally.count[NEML2_NON_FINITE] > 0) {
    const bool known = tally.non_finite.point >= 0;
    const NonFinite what = known ? tally.non_finite : found_at(model, bindings, tally.first[NEML2_NON_FINITE]);
    remarks.non_finite = NonFiniteRemark(model, bindings, what).str();
  }
  if (tally.count[NEML2_OUT_OF_BOUNDS] > 0) remarks.out_of_bounds = out_of_bounds(model, tally);
  return tally.message(points, remarks);
}

}  // namespace neml2_capi::model
