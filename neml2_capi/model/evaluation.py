"""One evaluation of a model: arrays in, handles across, arrays out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from neml2_capi._ffi.arguments import Arguments, free, results, take
from neml2_capi._ffi.errors import (
    FatalError,
    check,
    last_failure,
    unknown_name,
)
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.kinds import NUMPY, Kind, Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.tensor import Tensor, as_numpy, on_host
from neml2_capi._ffi.variables import Derivative, Variables

if TYPE_CHECKING:
    from neml2_capi.model.model import Model

_REPORTS = {
    "status": lib.NEML2_REPORT_STATUS,
    "iterations": lib.NEML2_REPORT_ITERATIONS,
    "residual_norm": lib.NEML2_REPORT_RESIDUAL_NORM,
    "suggested_cut": lib.NEML2_REPORT_SUGGESTED_CUT,
}


class Operation(NamedTuple):
    """A function of the library that evaluates a model, and what it takes and returns."""

    name: str
    function: Any
    #: What its directions are called and belong to: ("tangent of", "inputs").
    directions: tuple[str, str] | None = None
    #: What it returns beside the outputs: one result for each of these.
    results: str | None = None


FORWARD = Operation("forward", lib.neml2_model_forward)
JVP = Operation("jvp", lib.neml2_model_jvp, ("tangent of", "inputs"), "outputs")
VJP = Operation("vjp", lib.neml2_model_vjp, ("cotangent of", "outputs"), "inputs")
JACOBIAN = Operation("jacobian", lib.neml2_model_jacobian, None, "derivatives")
PARAM_JACOBIAN = Operation(
    "param_jacobian", lib.neml2_model_param_jacobian, None, "parameter_derivatives"
)
PARAM_VJP = Operation(
    "param_vjp", lib.neml2_model_param_vjp, ("cotangent of", "outputs"), "parameters"
)

OPERATIONS = (FORWARD, JVP, VJP, JACOBIAN, PARAM_JACOBIAN, PARAM_VJP)


class Report(Protocol):
    """What became of each point."""

    def arrays(self) -> dict[str, Any]:
        """What Model.evaluate() returns."""

    def raise_error(self, status: int, outputs: Mapping[str, Any], named: Any) -> None:
        """ConvergenceError with the results of the points that did not fail."""


class Evaluation(NamedTuple):
    """What an evaluation gives: outputs by name, other results in order, and the report."""

    status: int
    outputs: dict[str, Any]
    #: One per input, output, parameter or derivative, whatever it was asked for; None where absent.
    results: list[Any]
    report: Report

    def raise_if_failed(self, named: Any = None) -> None:
        """ConvergenceError where points failed, with `named` as what else was asked for."""
        if self.status > lib.NEML2_NON_FINITE:
            self.report.raise_error(self.status, self.outputs, named)


def evaluate(
    model: Model,
    operation: Operation,
    inputs: Mapping[str, Any],
    overrides: Mapping[str, Any] | None,
    directions: Any = None,
) -> Evaluation:
    """Call the library. FatalError where it refuses."""
    handle = model._open()
    wanted: Sequence[Any] = getattr(model, operation.results) if operation.results else ()
    outputs, others = results(len(model.outputs)), results(len(wanted))
    along: Any = getattr(model, operation.directions[1]) if operation.directions else ()
    report, kinds = NativeReport(model), Kinds()
    with (
        Arguments(len(model.inputs), kinds) as given,
        Arguments(len(model.parameters), kinds) as replaced,
        Arguments(len(along), kinds) as directed,
    ):
        fill(given, model.inputs, inputs, "inputs")
        if overrides is not None:
            fill_resolved(replaced, model.parameters, overrides)
        if operation.directions:
            name, kind = f"{operation.directions[0].split()[0]}s", operation.directions[0]
            fill(directed, along, directions, name, kind)
        arguments: list[Any] = [outputs]
        if operation.results:
            arguments.append(others)
        arguments += [report.owner, handle[0], given.handles]
        if operation.directions:
            arguments.append(directed.handles)
        try:
            status = operation.function(
                *arguments, replaced.handles if overrides is not None else ffi.NULL
            )
            check(status)
            report.hand_out = hand_out = kind_of_results(model, kinds.kind).hand_out
            return Evaluation(
                status,
                {
                    name: hand_out(take(outputs, index))
                    for index, name in enumerate(model.outputs.names)
                },
                [
                    hand_out(take(others, index)) if others[index] else None
                    for index in range(len(wanted))
                ],
                report,
            )
        finally:
            free(outputs, len(model.outputs))
            free(others, len(wanted))


def kind_of_results(model: Model, given: Kind | None) -> Kind:
    """That of the arguments, unless the model has one of its own."""
    return given if given is not None and model._kind is NUMPY else model._kind


def by_pair(derivatives: Sequence[Derivative], blocks: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Blocks as {output: {variable: block}}."""
    table: dict[str, dict[str, Any]] = {}
    for derivative, block in zip(derivatives, blocks, strict=True):
        table.setdefault(derivative.output, {})[derivative.variable] = block
    return table


def by_name(variables: Variables, values: Sequence[Any]) -> dict[str, Any]:
    """Values by the names of the variables; what is None is left out."""
    named = zip(variables.names, values, strict=True)
    return {name: value for name, value in named if value is not None}


class NativeReport:
    """The report of an evaluation, read when it is asked for."""

    def __init__(self, model: Model) -> None:
        self.owner = owned("report")
        self.hand_out: Callable[..., Any] = as_numpy
        self._model = model

    def arrays(self) -> dict[str, Any]:
        arrays = {name: self.hand_out(self._get(kind)) for name, kind in _REPORTS.items()}
        history = owned("tensor")  # is there only where the option collect_history asked for it
        if lib.neml2_report_get(history, self.owner[0], lib.NEML2_REPORT_RESIDUAL_HISTORY) >= 0:
            arrays["residual_history"] = self.hand_out(history)
        return arrays

    def unknowns(self) -> dict[str, Any]:
        """The last iterates of failed points; NaN at the others."""
        values = {}
        for index, name in enumerate(self._model.unknowns.names):
            tensor = owned("tensor")
            check(lib.neml2_report_unknown(tensor, self.owner[0], index))
            values[name] = self.hand_out(tensor)
        return values

    def raise_error(self, status: int, outputs: Mapping[str, Any], named: Any) -> None:
        failure = last_failure(status)
        good = on_host(self._get(lib.NEML2_REPORT_STATUS)) <= lib.NEML2_NON_FINITE
        converged, unknowns = Tensor(np.asarray(good)), self.unknowns()
        raise failure.unconverged(
            failed_segment(self._model, good, unknowns),
            report=self.arrays(),
            converged_mask=self.hand_out(converged._open(), converged._source),
            outputs=outputs,
            derivatives=named,
            unknowns=unknowns,
        )

    def _get(self, kind: int) -> Any:
        tensor = owned("tensor")
        check(lib.neml2_report_get(tensor, self.owner[0], kind))
        return tensor


def failed_segment(model: Model, good: Any, unknowns: Mapping[str, Any]) -> str:
    """The implicit segment at which the first point failed, by its residual; "" if unknown."""
    segments = model._implicit_segments()
    if len(segments) == 1:
        return segments[0][0]
    first = int(np.argmin(good.ravel()))
    for name, solved in reversed(segments):  # there are no iterates of those after it
        for unknown in solved & unknowns.keys():
            values = on_host(Tensor(unknowns[unknown])._open()).reshape(good.size, -1)[first]
            if not np.isnan(values).any():
                return name
    return ""


def fill(
    arguments: Arguments,
    variables: Variables,
    values: Mapping[str, Any],
    argument: str,
    kind: str = "",
) -> None:
    """Values by their exact names; one that is not given stays NULL."""
    check_mapping(argument, values)
    unknown = [name for name in values if name not in variables.index_of]
    if unknown:
        raise unknown_name(variables.kind, unknown[0], variables.names)
    for index, variable in enumerate(variables):
        value = values.get(variable.name)
        if value is not None:
            label = variables.labels[index]
            arguments.fill(
                index,
                value,
                label._replace(kind=f"{kind} {label.kind}") if kind else label,
                variable.dtype,
            )


def fill_resolved(arguments: Arguments, variables: Variables, values: Mapping[str, Any]) -> None:
    """Parameters by their qualified names or unique last components."""
    check_mapping("param_overrides", values)
    given: dict[int, Any] = {}
    for name, value in values.items():
        index = variables.resolve(name)
        if index in given:
            raise FatalError(
                f"the parameter {variables.names[index]!r} is given twice",
                lib.NEML2_ERROR_NAME,
                variables.names[index],
            )
        given[index] = value
        arguments.fill(index, value, variables.labels[index], variables[index].dtype)


def check_mapping(argument: str, values: object) -> None:
    """FatalError unless `values` is a mapping."""
    if not isinstance(values, Mapping):
        raise FatalError(
            f"{argument} must be a mapping of names to arrays; got {type(values).__name__}",
            lib.NEML2_ERROR_ARGUMENT,
            argument,
        )
