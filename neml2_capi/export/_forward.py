"""A forward law as a segment of an artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from neml2_capi.export._artifact import Artifact, Json, input_pair, parameter_pair
from neml2_capi.export._law import Law
from neml2_capi.export._points import PointFunction, jacobian
from neml2_capi.export._variables import Pairs, Parameter, Variable


def forward_segment(
    artifact: Artifact,
    law: Law,
    inputs: Sequence[Variable],
    parameters: Sequence[Parameter],
    outputs: Sequence[Variable],
    by_input: Pairs,
    by_parameter: Pairs,
) -> Json:
    """Compile the law and its derivatives; return the segment's metadata.

    The packages take the inputs and then the parameters, all with one value per point. The first
    gives the outputs, the second the outputs and a block for each pair, the third blocks only.
    """
    arguments: list[Variable | Parameter] = [*inputs, *parameters]
    shapes = [argument.shape for argument in arguments]
    position = {argument.name: index for index, argument in enumerate(arguments)}
    named = {variable.name: variable for variable in (*inputs, *outputs)}
    promoted = {parameter.name: parameter for parameter in parameters}

    def blocks(pairs: Pairs) -> PointFunction:
        return _blocks(law, outputs, position, pairs)

    segment: Json = {
        "kind": "forward",
        "package": artifact.add("", law, shapes),
        "inputs": [{"name": variable.name} for variable in inputs],
        "outputs": [{"name": variable.name} for variable in outputs],
        "param_inputs": [parameter.name for parameter in parameters],
    }
    if by_input:
        with_values = blocks(by_input)
        segment["jvp_package"] = artifact.add("_jvp", with_values, shapes)
        segment["jacobian_pairs"] = [input_pair(named[o], named[i]) for o, i in by_input]
    if by_parameter:
        with_values_too = blocks(by_parameter)

        def alone(*values: Any) -> tuple[Any, ...]:
            every: tuple[Any, ...] = with_values_too(*values)
            return every[len(outputs) :]

        segment["param_jacobian_package"] = artifact.add("_param_jacobian", alone, shapes)
        segment["param_jacobian_pairs"] = [
            parameter_pair(named[o], promoted[p]) for o, p in by_parameter
        ]
    return segment


def _blocks(
    law: Law,
    outputs: Sequence[Variable],
    position: dict[str, int],
    pairs: Pairs,
) -> PointFunction:
    """The outputs, and behind them the block of each pair."""
    rows = [output.name for output in outputs]
    columns = sorted({position[given] for _, given in pairs})
    differentiate = jacobian(law, columns, len(rows))

    def function(*values: Any) -> tuple[Any, ...]:
        made, derivatives = differentiate(*values)
        wanted = [
            derivatives[rows.index(out)][columns.index(position[given])] for out, given in pairs
        ]
        return (*made, *wanted)

    return function
