"""A failed call made again, and what becomes of each point this time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Error, FatalError, Model
from neml2_capi._ffi.library import lib
from neml2_capi.cli.capsule import Capsule

STATUS = {
    lib.NEML2_OK: "converged",
    lib.NEML2_NON_FINITE: "not finite",
    lib.NEML2_NOT_CONVERGED: "not converged",
    lib.NEML2_SINGULAR: "singular",
    lib.NEML2_OUT_OF_BOUNDS: "out of bounds",
}


@dataclass(frozen=True)
class Outcome:
    """Status, iterations and residual of a point, then and now."""

    #: Its number in the batch of the failed call, and its row in the capsule.
    point: int
    row: int
    status: tuple[int, int]
    iterations: tuple[int, int]
    residual_norm: tuple[float, float]
    suggested_cut: tuple[float, float]
    #: The segment whose solve failed, now; "" if none did.
    segment: str
    #: |r| at the initial guess and after each step of the last implicit segment.
    history: list[float]

    @property
    def exact(self) -> bool:
        """Whether all is as it was, to the last bit."""
        norms = np.array(self.residual_norm)
        return (
            self.status[0] == self.status[1]
            and self.iterations[0] == self.iterations[1]
            and bool(norms[0] == norms[1] or np.isnan(norms).all())
        )


@dataclass(frozen=True)
class Rerun:
    """A call made again."""

    #: The status and the message of the call, then and now.
    status: tuple[int, int]
    message: tuple[str, str]
    #: Of all points in the capsule; empty after a fatal error.
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def failed(self) -> list[Outcome]:
        """The points that failed then or now."""
        return [outcome for outcome in self.outcomes if any(outcome.status)]

    @property
    def reproduced(self) -> bool:
        """Whether each point failed as it did, or the call as a whole."""
        if not self.outcomes:
            return self.status[0] == self.status[1]
        return all(outcome.status[0] == outcome.status[1] for outcome in self.outcomes)


def rerun(model: Model, capsule: Capsule) -> Rerun:
    """Evaluate what the capsule holds, with its parameters and options.

    FatalError if its arrays do not fit the model.
    """
    _require_fit(model, capsule)
    document = capsule.document
    model.options.update({**document["options"], "capsule": "", "collect_history": 1.0})
    then = (document["status"], document["message"])
    try:
        report, _ = _forward(model, capsule)
        status, message = _operation(model, capsule, int(report["status"].max(initial=0)))
    except Error as error:
        return Rerun((then[0], error.status), (then[1], str(error)))
    if not capsule.report:
        return Rerun((then[0], status), (then[1], message))
    before, failed = capsule.report, report["status"] > lib.NEML2_NON_FINITE
    segments = _segments(model, capsule, failed) if failed.any() else {}

    def pair(name: str, row: int) -> tuple[Any, Any]:
        return before[name][row].item(), report[name][row].item()

    outcomes = [
        Outcome(
            int(point),
            row,
            pair("status", row),
            pair("iterations", row),
            pair("residual_norm", row),
            pair("suggested_cut", row),
            segments.get(row, ""),
            _trimmed(report["residual_history"][row]) if "residual_history" in report else [],
        )
        for row, point in enumerate(capsule.points)
    ]
    return Rerun((then[0], status), (then[1], message), outcomes)


def _require_fit(model: Model, capsule: Capsule) -> None:
    points = len(capsule.points)
    for kind, variables, arrays in (
        ("input", model.inputs, capsule.inputs),
        ("parameter", model.parameters, capsule.parameters),
        ("tangent", model.inputs, capsule.tangents),
        ("cotangent", model.outputs, capsule.cotangents),
    ):
        shapes = {variable.name: variable.point_shape for variable in variables}
        missing = set(shapes) - set(arrays) if kind in ("input", "parameter") else set()
        wrong = {
            name
            for name, array in arrays.items()
            if name not in shapes or array.shape not in (shapes[name], (points, *shapes[name]))
        }
        for name in sorted(missing | wrong):
            raise FatalError(
                f"{capsule.file} does not hold the {kind} {name} as the model has it; say with "
                "--artifact which model the capsule is of",
                lib.NEML2_ERROR_SHAPE,
                name,
            )


def _forward(
    model: Model, capsule: Capsule, rows: slice = slice(None)
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The report, and the last iterates of points that failed."""
    inputs = _points(model, capsule, rows)
    parameters = {
        variable.name: _of_rows(capsule.parameters[variable.name], variable.point_shape, rows)
        for variable in model.parameters
    }
    try:
        model.forward(inputs, parameters)
    except ConvergenceError as error:
        return error.report, error.unknowns
    return model.evaluate(inputs, parameters)[1], {}


def _operation(model: Model, capsule: Capsule, status: int) -> tuple[int, str]:
    """The call itself, whose status can be another if derivatives were asked for."""
    asked = capsule.document["operation"]
    if not any(names for name, names in asked.items() if name != "outputs"):
        return status, ""
    derivatives: dict[str, dict[str, bool]] = {}
    for name in (*asked["derivatives"], *asked["parameter_derivatives"]):
        output, _, variable_name = name.partition(":")
        derivatives.setdefault(output, {})[variable_name] = True
    with model.bind(
        _points(model, capsule),
        parameters=capsule.parameters,
        tangents=capsule.tangents or None,
        cotangents=capsule.cotangents or None,
        derivatives=derivatives or None,
        jvps=dict.fromkeys(asked["jvps"], True) or None,
        adjoints=dict.fromkeys((*asked["adjoints"], *asked["parameter_adjoints"]), True) or None,
    ) as call:
        try:
            call()
        except ConvergenceError as error:
            return error.status, str(error)
    return status, ""


def _points(model: Model, capsule: Capsule, rows: slice = slice(None)) -> dict[str, NDArray[Any]]:
    """The inputs, with a value for each point."""
    arrays = {}
    for variable in model.inputs:
        shape = variable.point_shape
        value = capsule.inputs[variable.name]
        all_rows = np.broadcast_to(value, (len(capsule.points), *shape))
        arrays[variable.name] = np.ascontiguousarray(all_rows[rows])
    return arrays


def _of_rows(array: NDArray[Any], shape: tuple[int, ...], rows: slice) -> NDArray[Any]:
    """Of these points, or one value for all."""
    return array if array.shape == shape else array[rows]


def _segments(model: Model, capsule: Capsule, failed: NDArray[Any]) -> dict[int, str]:
    """The segment whose solve failed at each of these rows.

    If there are several, each point is evaluated alone: only of segments that fail there are
    last iterates, and what comes after the first one fails, too.
    """
    description = model.describe()
    aliases = description["aliases"]["outputs"]
    unknowns = {
        f"segments[{number}]": [
            aliases.get(variable["name"], variable["name"])
            for group in segment["unknowns"]
            for variable in group["variables"]
        ]
        for number, segment in enumerate(description["segments"])
        if segment["kind"] == "implicit"
    }
    first, *more = unknowns or {"": []}
    rows = np.flatnonzero(failed).tolist()
    if not more:
        return dict.fromkeys(rows, first)
    found = {}
    for row in rows:
        _, iterates = _forward(model, capsule, slice(row, row + 1))
        known = (name for name, members in unknowns.items() if _any_known(iterates, members))
        found[row] = next(known, first)
    return found


def _any_known(iterates: Mapping[str, Any], names: Sequence[str]) -> bool:
    return any(name in iterates and not np.isnan(iterates[name]).all() for name in names)


def _trimmed(history: NDArray[Any]) -> list[float]:
    """Without what was not reached."""
    known = np.flatnonzero(~np.isnan(history))
    values: list[float] = history[: known[-1] + 1 if known.size else 0].tolist()
    return values


def chosen(outcomes: Sequence[Outcome], points: Sequence[int]) -> list[Outcome]:
    """Return the points of these numbers; all points if none is named."""
    return [outcome for outcome in outcomes if not points or outcome.point in points]
