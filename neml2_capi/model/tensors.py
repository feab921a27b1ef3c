"""Evaluations by the library over tensors of any batch: arrays in, handles across, arrays out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from neml2_capi._ffi.arguments import Arguments
from neml2_capi._ffi.errors import Failure, FatalError, check, last_failure, unknown_name
from neml2_capi._ffi.handle import owned
from neml2_capi._ffi.kinds import Kinds
from neml2_capi._ffi.library import ffi, lib
from neml2_capi._ffi.variables import Variables
from neml2_capi._ffi.views import on_host
from neml2_capi.model.evaluation import (
    Evaluation,
    Operation,
    Report,
    check_mapping,
    kind_of_results,
)
from neml2_capi.model.opened import Opened
from neml2_capi.model.reports import OF_OPTIONS, REPORTS

# Function of each operation, and what derivatives are with respect to, if that is a choice.
_FUNCTIONS = {
    "forward": (lib.neml2_model_forward, ()),
    "jvp": (lib.neml2_model_jvp, ()),
    "vjp": (lib.neml2_model_vjp, (lib.NEML2_INPUT,)),
    "jacobian": (lib.neml2_model_jacobian, (lib.NEML2_INPUT,)),
    "param_vjp": (lib.neml2_model_vjp, (lib.NEML2_PARAMETER,)),
    "param_jacobian": (lib.neml2_model_jacobian, (lib.NEML2_PARAMETER,)),
}


def evaluate(
    backend: Opened,
    operation: Operation,
    inputs: Mapping[str, Any],
    overrides: Mapping[str, Any] | None,
    directions: Any = None,
) -> Evaluation:
    """Call the library. FatalError if it refuses."""
    handle, model = backend._open(), backend.signature
    wanted, along = operation.wanted(model), operation.along(model)
    report, kinds = NativeReport(backend), Kinds()
    with (
        Arguments(len(model.inputs), kinds) as given,
        Arguments(len(model.parameters), kinds) as replaced,
        Arguments(len(along), kinds) as directed,
        Arguments(len(model.outputs)) as outputs,
        Arguments(len(wanted)) as others,
    ):
        fill(given, model.inputs, inputs, "inputs")
        if overrides is not None:
            fill_resolved(replaced, model.parameters, overrides)
        if operation.directions:
            fill(directed, along, directions, operation.argument, operation.directions[0])
        function, kind = _FUNCTIONS[operation.name]
        made = (outputs, others) if operation.results else (outputs,)
        read = (given, directed) if operation.directions else (given,)
        status = function(
            *(arguments.handles for arguments in made),
            *(report.owner, handle[0], *kind),
            *(arguments.handles for arguments in read),
            ffi.NULL if overrides is None else replaced.handles,
        )
        check(status)
        report.hand_out = hand_out = kind_of_results(backend.kind, kinds.kind).hand_out
        named = {name: hand_out(outputs.take(i)) for i, name in enumerate(model.outputs.names)}
        results = [
            hand_out(others.take(i)) if others.handles[i] else None for i in range(len(wanted))
        ]
        return Evaluation(status, named, results, report)


class NativeReport(Report):
    """The report of an evaluation, read when it is asked for."""

    def __init__(self, backend: Opened) -> None:
        super().__init__(lambda: backend.implicit_segments)
        self.owner = owned("report")
        self._names = backend.signature.unknowns.names

    def arrays(self) -> dict[str, Any]:
        history = lib.NEML2_REPORT_RESIDUAL_HISTORY
        kinds = {name: kind for name, (kind, _) in REPORTS.items()} | {"residual_history": history}
        arrays = {}
        for name, kind in kinds.items():
            array = owned("tensor")
            status = lib.neml2_report_get(array, self.owner[0], kind)
            if name not in OF_OPTIONS:
                check(status)
            if status >= 0:
                arrays[name] = self.hand_out(array)
        return arrays

    def statuses(self) -> Any:
        return on_host(self._get(lib.NEML2_REPORT_STATUS))

    def failure(self, status: int) -> Failure:
        return last_failure(status)

    def unknowns(self) -> dict[str, Any]:
        values = {}
        for index, name in enumerate(self._names):
            tensor = owned("tensor")
            check(lib.neml2_report_get_unknown(tensor, self.owner[0], index))
            values[name] = self.hand_out(tensor)
        return values

    def _get(self, kind: int) -> Any:
        tensor = owned("tensor")
        check(lib.neml2_report_get(tensor, self.owner[0], kind))
        return tensor


def fill(
    arguments: Arguments,
    variables: Variables,
    values: Mapping[str, Any],
    argument: str,
    kind: str = "",
) -> None:
    """Values by their exact names; one that is not given stays NULL."""
    check_mapping(argument, values)
    unknown = [
        name
        for name, value in values.items()
        if name not in variables.index_of and (kind or not variables.is_replaced_guess(name, value))
    ]
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
