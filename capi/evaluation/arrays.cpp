#include "capi/evaluation/arrays.h"

#include <algorithm>
#include <array>
#include <optional>

#include "capi/base/error.h"
#include "capi/base/locks.h"

namespace neml2_capi::model {
namespace {

const char* name_of(std::optional<Part> part) {
  constexpr const char* names[] = {"input",      "parameter",  "tangent of", "cotangent of", "output",
                                   "derivative", "derivative", "jvp of",     "adjoint of",   "adjoint of"};
  return part ? names[static_cast<std::size_t>(*part)] : "report";
}

struct Array {
  std::optional<Part> part;  // none: a report
  const Points& points;
  const Variable& variable;
  std::size_t index = 0;  // among the arrays of its part
  bool is_slope = false;  // a derivative that is read
};

// One element type and shape, one after another at the same place.
bool same_array(const Array& a, const Array& b) {
  return a.points.data == b.points.data && a.points.stride == b.points.stride && a.variable.dtype == b.variable.dtype &&
         a.variable.point_shape == b.variable.point_shape;
}

class Arrays {
 public:
  explicit Arrays(Extent extent) : extent_(extent) {}

  void add(const Array& array) {
    if (!array.points.data) return;
    check_extent(array.points, array.variable, extent_);
    (array.is_slope || (array.part && is_given(*array.part)) ? read_ : written_).push_back(array);
  }

  std::vector<bool> check(std::size_t num_inputs) const {
    std::vector<bool> copy(num_inputs, false);
    for (std::size_t k = 0; k < written_.size(); ++k) {
      const Array& out = written_[k];
      for (const Array& in : read_) {
        const bool may_be_one = out.part == Part::output && in.part == Part::input && extent_.steps == 1;
        if (may_be_one && same_array(in, out))
          copy[in.index] = true;
        else
          refuse_overlap(out, in,
                         may_be_one
                             ? "Bind arrays apart, or for an output the very array, with the same stride, of an input."
                             : "Bind arrays apart.");
      }
      for (std::size_t i = 0; i < k; ++i) refuse_overlap(out, written_[i], "Bind arrays apart.");
      refuse_overlap_of_steps(out);
    }
    return copy;
  }

 private:
  void refuse_overlap(const Array& out, const Array& other, const char* advice) const {
    if (overlap(other.points, other.variable, out.points, out.variable, extent_))
      throw Error(NEML2_ERROR_ARGUMENT, out.variable.name,
                  join("The array of the ", name_of(out.part), " '", out.variable.name, "' overlaps the array of the ",
                       name_of(other.part), " '", other.variable.name, "'. ", advice));
  }

  void refuse_overlap_of_steps(const Array& out) const {
    if (steps_overlap(out.points, out.variable, extent_))
      throw Error(NEML2_ERROR_SHAPE, out.variable.name,
                  join("The array of the ", name_of(out.part), " '", out.variable.name, "' has steps that overlap: ",
                       extent_.points, " points lie ", out.points.stride, " elements apart, and ", extent_.steps,
                       " steps ", out.points.step, ". Set a greater step stride."));
  }

  Extent extent_;
  std::vector<Array> read_, written_;
};

}  // namespace

Variable variable_of(const Model& model, const Slope& slope) {
  const Variable &input = model.variables(Kind::input)[slope.input], &by = model.variables(slope.kind)[slope.variable];
  return {join(input.name, ":", by.name), "", input.dtype, input.point_shape.then(by.point_shape), 0};
}

void require_derivatives(const Model& model, const Bindings& bindings) {
  const auto& by_inputs = model.derivatives(Kind::input).all();
  for (const Slope& slope : bindings.slopes) {
    const Part part = slope.kind == Kind::parameter ? Part::parameter_block : Part::block;
    const auto& all = model.derivatives(slope.kind).all();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].input != slope.variable || !bindings.of(part)[i].data) continue;
      const bool is_compiled = std::ranges::any_of(
          by_inputs, [&](const Derivative& each) { return each.output == all[i].output && each.input == slope.input; });
      const std::string pair =
          join(model.variables(Kind::output)[all[i].output].name, ":", model.variables(Kind::input)[slope.input].name);
      if (!is_compiled)
        throw Error(NEML2_ERROR_UNSUPPORTED, pair,
                    join("The artifact was compiled without the derivative '", pair, "', by which '",
                         variable_of(model, slope).name, "' acts. Compile it with neml2-compile -d ", pair, "."));
    }
  }
}

Bindings bindings_for(const Model& model) {
  Bindings all;
  for (const Part part : all_parts) all.of(part).resize(model.count(part));
  return all;
}

namespace {

constinit locks::Lazy<const std::array<Variable, num_reports>> all_reports;

}  // namespace

std::vector<bool> inputs_to_copy(const Model& model, const Bindings& bindings, std::int64_t miters,
                                 std::int64_t component_stride) {
  const auto& reports = all_reports.get([] {
    return std::array<Variable, num_reports>{{{"status", "", DType::int32, {}, 0},
                                              {"iterations", "", DType::int32, {}, 0},
                                              {"residual norm", "", DType::float64, {}, 0},
                                              {},
                                              {"suggested cut", "", DType::float64, {}, 0},
                                              {"rescue solves", "", DType::int32, {}, 0}}};
  });
  const Variable history = {"residual history", "", DType::float64, {miters}, 0};
  std::vector<Variable> slopes;
  for (const Slope& slope : bindings.slopes) slopes.push_back(variable_of(model, slope));
  Arrays arrays({bindings.points, bindings.steps, component_stride});
  for (std::size_t i = 0; i < slopes.size(); ++i)
    arrays.add({Part::block, bindings.slopes[i].array, slopes[i], i, true});
  for (const Part part : all_parts)
    for (std::size_t i = 0; i < bindings.of(part).size(); ++i)
      arrays.add({part, bindings.of(part)[i], model.variable(part, i), i});
  for (std::size_t kind = 0; kind < std::size(reports); ++kind)
    arrays.add({{}, bindings.report[kind], kind == NEML2_REPORT_RESIDUAL_HISTORY ? history : reports[kind]});
  return arrays.check(model.count(Part::input));
}

}  // namespace neml2_capi::model
