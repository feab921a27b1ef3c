#include "capi/model/arrays.h"

#include "capi/error.h"

namespace neml2_capi::model {
namespace {

struct Array {
  const Points& points;
  const Variable& variable;
  std::size_t index;  // among those of its kind
  bool output = false;
};

class Arrays {
 public:
  explicit Arrays(std::int64_t points) : points_(points) {}

  void read(const std::vector<Points>& arrays, const std::vector<Variable>& variables) {
    for (std::size_t i = 0; i < arrays.size(); ++i) add(read_, {arrays[i], variables[i], i});
  }
  void written(const std::vector<Points>& arrays, const std::vector<Variable>& variables, bool outputs = false) {
    for (std::size_t i = 0; i < arrays.size(); ++i) add(written_, {arrays[i], variables[i], i, outputs});
  }
  void written(const std::vector<Points>& arrays, const std::vector<Derivative>& derivatives) {
    for (std::size_t i = 0; i < arrays.size(); ++i) add(written_, {arrays[i], derivatives[i].block, i});
  }
  void written(const Points& array, const Variable& variable) { add(written_, {array, variable, 0}); }

  // `inputs`: how many of the arrays that are read come first and may be those of outputs.
  std::vector<bool> check(const std::vector<Points>& inputs) const {
    std::vector<bool> copy(inputs.size(), false);
    for (std::size_t k = 0; k < written_.size(); ++k) {
      const Array& out = written_[k];
      for (const Array& in : read_) {
        const bool input = &in.points >= inputs.data() && &in.points < inputs.data() + inputs.size();
        if (out.output && input && in.points.data == out.points.data && in.points.stride == out.points.stride &&
            in.variable.point_shape == out.variable.point_shape)
          copy[in.index] = true;
        else
          refuse_overlap(out, in,
                         input
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
      throw Error(
          NEML2_ERROR_ARGUMENT, out.variable.name,
          join("The array of '", out.variable.name, "' overlaps that of '", other.variable.name, "'. ", advice));
  }

  std::int64_t points_;
  std::vector<Array> read_, written_;
};

}  // namespace

std::vector<bool> inputs_to_copy(const Model& model, const Evaluation& evaluation, std::int64_t miters) {
  static const Variable reports[] = {{"the report of the status", "", DType::int32, {}, 0},
                                     {"the report of the iterations", "", DType::int32, {}, 0},
                                     {"the report of the residual norm", "", DType::float64, {}, 0},
                                     {},
                                     {"the report of the suggested cut", "", DType::float64, {}, 0}};
  const Variable history = {"the report of the residual history", "", DType::float64, {miters}, 0};
  const auto& inputs = model.variables(Kind::input);
  const auto& outputs = model.variables(Kind::output);
  const auto& parameters = model.variables(Kind::parameter);

  Arrays arrays(evaluation.points);
  arrays.read(evaluation.inputs, inputs);
  arrays.read(evaluation.parameters, parameters);
  arrays.read(evaluation.tangents, inputs);
  arrays.read(evaluation.cotangents, outputs);
  arrays.written(evaluation.outputs, outputs, true);
  arrays.written(evaluation.jvps, outputs);
  arrays.written(evaluation.adjoints, inputs);
  arrays.written(evaluation.parameter_adjoints, parameters);
  arrays.written(evaluation.blocks, model.derivatives(Kind::input).all());
  arrays.written(evaluation.parameter_blocks, model.derivatives(Kind::parameter).all());
  for (std::size_t kind = 0; kind < std::size(reports); ++kind)
    arrays.written(evaluation.report[kind], kind == NEML2_REPORT_RESIDUAL_HISTORY ? history : reports[kind]);
  return arrays.check(evaluation.inputs);
}

}  // namespace neml2_capi::model
