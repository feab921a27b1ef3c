#include "capi/evaluation/arrays.h"

#include <array>

#include "capi/base/error.h"
#include "capi/base/locks.h"

namespace neml2_capi::model {
namespace {

enum class Role { input, parameter, tangent, cotangent, output, jvp, adjoint, derivative, report };

const char* name_of(Role role) {
  constexpr const char* names[] = {"input",  "parameter",  "tangent of", "cotangent of", "output",
                                   "jvp of", "adjoint of", "derivative", "report"};
  return names[static_cast<std::size_t>(role)];
}

struct Array {
  Role role;
  const Points& points;
  const Variable& variable;
  std::size_t index;  // among the arrays of its role
};

// One element type and shape, one after another at the same place.
bool same_array(const Array& a, const Array& b) {
  return a.points.data == b.points.data && a.points.stride == b.points.stride && a.variable.dtype == b.variable.dtype &&
         a.variable.point_shape == b.variable.point_shape;
}

class Arrays {
 public:
  explicit Arrays(std::int64_t points) : points_(points) {}

  void read(Role role, const std::vector<Points>& arrays, const std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < arrays.size(); ++i) add(read_, {role, arrays[i], variables[i], i});
  }
  void written(Role role, const std::vector<Points>& arrays, const std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < arrays.size(); ++i) add(written_, {role, arrays[i], variables[i], i});
  }
  void written(const std::vector<Points>& blocks, const std::vector<Derivative>& derivatives) {
    for (std::size_t i = 0; i < blocks.size(); ++i)
      add(written_, {Role::derivative, blocks[i], derivatives[i].block, i});
  }
  void written(const Points& report, const Variable& variable) { add(written_, {Role::report, report, variable, 0}); }

  std::vector<bool> check(std::size_t num_inputs) const {
    std::vector<bool> copy(num_inputs, false);
    for (std::size_t k = 0; k < written_.size(); ++k) {
      const Array& out = written_[k];
      for (const Array& in : read_) {
        const bool may_be_one = out.role == Role::output && in.role == Role::input;
        if (may_be_one && same_array(in, out))
          copy[in.index] = true;
        else
          refuse_overlap(out, in,
                         may_be_one
                             ? "Bind arrays apart, or for an output the very array, with the same stride, of an input."
                             : "Bind arrays apart.");
      }
      for (std::size_t i = 0; i < k; ++i) refuse_overlap(out, written_[i], "Bind arrays apart.");
    }
    return copy;
  }

 private:
  void add(std::vector<Array>& to, const Array& array) {
    if (!array.points.data) return;
    check_extent(array.points, array.variable, points_);
    to.push_back(array);
  }

  void refuse_overlap(const Array& out, const Array& other, const char* advice) const {
    if (overlap(other.points, other.variable, out.points, out.variable, points_))
      throw Error(NEML2_ERROR_ARGUMENT, out.variable.name,
                  join("The array of the ", name_of(out.role), " '", out.variable.name, "' overlaps the array of the ",
                       name_of(other.role), " '", other.variable.name, "'. ", advice));
  }

  std::int64_t points_;
  std::vector<Array> read_, written_;
};

}  // namespace

Bindings bindings_for(const Model& model) {
  Bindings all;
  const std::size_t inputs = model.variables(Kind::input).size(), outputs = model.variables(Kind::output).size();
  for (auto* arrays : {&all.inputs, &all.tangents, &all.adjoints}) arrays->resize(inputs);
  for (auto* arrays : {&all.outputs, &all.jvps, &all.cotangents}) arrays->resize(outputs);
  for (auto* arrays : {&all.parameters, &all.parameter_adjoints})
    arrays->resize(model.variables(Kind::parameter).size());
  all.blocks.resize(model.derivatives(Kind::input).all().size());
  all.parameter_blocks.resize(model.derivatives(Kind::parameter).all().size());
  return all;
}

namespace {

constinit locks::Lazy<const std::array<Variable, 5>> all_reports;

}  // namespace

std::vector<bool> inputs_to_copy(const Model& model, const Bindings& bindings, std::int64_t miters) {
  const auto& reports = all_reports.get([] {
    return std::array<Variable, 5>{{{"status", "", DType::int32, {}, 0},
                                    {"iterations", "", DType::int32, {}, 0},
                                    {"residual norm", "", DType::float64, {}, 0},
                                    {},
                                    {"suggested cut", "", DType::float64, {}, 0}}};
  });
  const Variable history = {"residual history", "", DType::float64, {miters}, 0};
  const auto& inputs = model.variables(Kind::input);
  const auto& outputs = model.variables(Kind::output);
  const auto& parameters = model.variables(Kind::parameter);

  Arrays arrays(bindings.points);
  arrays.read(Role::input, bindings.inputs, inputs);
  arrays.read(Role::parameter, bindings.parameters, parameters);
  arrays.read(Role::tangent, bindings.tangents, inputs);
  arrays.read(Role::cotangent, bindings.cotangents, outputs);
  arrays.written(Role::output, bindings.outputs, outputs);
  arrays.written(Role::jvp, bindings.jvps, outputs);
  arrays.written(Role::adjoint, bindings.adjoints, inputs);
  arrays.written(Role::adjoint, bindings.parameter_adjoints, parameters);
  arrays.written(bindings.blocks, model.derivatives(Kind::input).all());
  arrays.written(bindings.parameter_blocks, model.derivatives(Kind::parameter).all());
  for (std::size_t kind = 0; kind < std::size(reports); ++kind)
    arrays.written(bindings.report[kind], kind == NEML2_REPORT_RESIDUAL_HISTORY ? history : reports[kind]);
  return arrays.check(inputs.size());
}

}  // namespace neml2_capi::model
