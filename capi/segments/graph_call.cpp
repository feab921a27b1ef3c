#include "capi/segments/graph_call.h"

#include "capi/segments/misfit.h"

namespace neml2_capi::model {

void expect_arity(const Package& package, std::size_t inputs, std::size_t outputs) {
  if (package.num_inputs() != inputs || package.num_outputs() != outputs)
    throw misfit(package.name(), package.name(), " takes ", package.num_inputs(), " tensors and returns ",
                 package.num_outputs(), "; the metadata says ", inputs, " and ", outputs);
}

void expect_taken(const Package& package, std::size_t i, const Dims& shape, const std::string& who) {
  if (!package.batched_input(i) || package.input_shape(i).product() != shape.product())
    throw misfit(package.name(), package.name(), " takes input ", i, " with the shape ", package.input_shape(i).str(),
                 package.batched_input(i) ? " per point" : " for all points", ", but ", who, " has ", shape.str(),
                 " per point");
}

void expect_returned(const Package& package, std::size_t input, const Package& maker, std::size_t output,
                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    expect_taken(package, input + i, maker.output_shape(output + i), join("output ", output + i, " of ", maker.name()));
}

ParameterTail::ParameterTail(const std::vector<std::string>& names, const Package& package, std::size_t first,
                             const Scope& scope) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t parameter = scope.parameter(names[i], package.name());
    const Dims& base = scope.parameters()[parameter].base_shape;
    const Dims& wanted = package.input_shape(first + i);
    if (!(wanted == base))
      throw misfit(names[i], package.name(), " takes the parameter '", names[i], "' with the shape ", wanted.str(),
                   "; the metadata says ", base.str());
    parameters_.push_back(parameter);
    batched_.push_back(package.batched_input(first + i));
    if (!batched_.back()) uniform_.push_back(parameter);
  }
}

Tensor ParameterTail::taken(std::size_t i, const Vector<Tensor>& parameters) const {
  const Tensor& rows = parameters[parameters_[i]];
  if (batched_[i]) return rows;
  const Dims base = rows.sizes().last(rows.ndim() - 1);
  return Tensor(rows.storage(), rows.dtype(), base, base.row_major(), rows.offset());
}

void ParameterTail::append_to(Vector<Tensor>& inputs, const Vector<Tensor>& parameters) const {
  for (std::size_t i = 0; i < size(); ++i) inputs.push_back(taken(i, parameters));
}

GraphCall::GraphCall(const artifact::NamedGraph& graph, Scope& scope, std::size_t unnamed)
    : package_(scope.load(graph.package)) {
  expect_arity(package_, graph.inputs.size() + graph.parameters.size(), graph.outputs.size() + unnamed);
  scope.note_dtype(package_);
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
    inputs_.push_back(scope.require(graph.inputs[i], "an input of " + package_.name()));
    scope.declare(inputs_.back(), package_.input_shape(i), package_.input_dtype(i), package_.name());
    expect_taken(package_, i, package_.input_shape(i), "'" + graph.inputs[i] + "'");
  }
  tail_ = ParameterTail(graph.parameters, package_, graph.inputs.size(), scope);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    outputs_.push_back(scope.provide(graph.outputs[i]));
    scope.declare(outputs_.back(), package_.output_shape(i), package_.output_dtype(i), package_.name());
  }
}

Vector<Tensor> GraphCall::run(Chunk& chunk) const {
  Handles given(package_.num_inputs()), returned(package_.num_outputs());
  for (std::size_t i = 0; i < inputs_.size(); ++i) given[i] = new Tensor(chunk.values[inputs_[i]].row_major());
  for (std::size_t i = 0; i < tail_.size(); ++i)
    given[inputs_.size() + i] = new Tensor(tail_.taken(i, chunk.parameters));
  package_.run(chunk.points, given, returned);
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    returned[i]->make_row_major();
    chunk.values[outputs_[i]] = std::move(*returned[i]);
  }
  return returned.take(outputs_.size());
}

}  // namespace neml2_capi::model
