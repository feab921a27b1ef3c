"""Evaluations of a model, whatever evaluates it: what is asked for, and what comes out."""

from __future__ import annotations

import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError, Failure, FatalError
from neml2_capi._ffi.kinds import NUMPY, Kind
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Tensor
from neml2_capi._ffi.variables import Derivative, Variables
from neml2_capi._ffi.views import as_numpy, on_host
from neml2_capi.model.signature import Signature

#: Arrays of a caller by name.
Given = Mapping[str, Any]
#: The package of the residual of each implicit segment, and what it is solved for.
Segments = Sequence[tuple[str, set[str]]]


class Report:
    """Outcome of each point of an evaluation."""

    #: (owner, source=None): the array of the results' kind over a tensor.
    hand_out: Callable[..., Any] = staticmethod(as_numpy)

    def __init__(self, segments: Callable[[], Segments]) -> None:
        """`segments` returns the implicit segments, and is called if points failed."""
        self._segments = segments

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Return what Model.evaluate() returns."""

    @abstractmethod
    def statuses(self) -> Any:
        """Return the status of each point, a numpy array."""

    @abstractmethod
    def unknowns(self) -> dict[str, Any]:
        """Return the last iterates of points whose solve failed; NaN at the others."""

    @abstractmethod
    def failure(self, status: int) -> Failure:
        """Return what there is to tell of an evaluation whose status is not 0."""

    def error(self, status: int, outputs: Mapping[str, Any], named: Any) -> ConvergenceError:
        """The error with the results of the points that did not fail.

        With the status NEML2_NON_FINITE points of that status have failed, too.
        """
        failure, good = self.failure(status), np.asarray(is_good(self.statuses(), status))
        unknowns = {} if status == lib.NEML2_NON_FINITE else self.unknowns()
        mask = Tensor(good)
        return failure.unconverged(
            failed_segment(self._segments(), good, unknowns, status),
            report=self.arrays(),
            converged_mask=self.hand_out(mask._open(), mask._source),
            outputs=outputs,
            derivatives=named,
            unknowns=unknowns,
        )


def warn_of_non_finite(message: str) -> None:
    """Warn the caller of this package of results that are not finite, as numpy does."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("neml2_capi."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)


class Evaluation(NamedTuple):
    """Results of an evaluation: outputs by name, others in order, and the report."""

    status: int
    outputs: dict[str, Any]
    #: Values per input, output, parameter or derivative that was asked for; None if absent.
    results: Sequence[Any]
    report: Report

    def raise_if_failed(self, named: Any = None) -> None:
        """ConvergenceError if points failed, with `named` as the derivatives that were asked for.

        Values that are not finite are returned, with a warning. Derivatives that are not, of values
        that are, fail their point: nothing shows them to a caller that looks at the values.
        """
        if self.status > lib.NEML2_NON_FINITE:
            raise self.report.error(self.status, self.outputs, named)
        if self.status == lib.NEML2_NON_FINITE:
            if named is not None and self._values_are_finite():
                raise self.report.error(self.status, self.outputs, named)
            warn_of_non_finite(self.report.failure(self.status).message)

    def _values_are_finite(self) -> bool:
        """Tell whether all outputs are finite at a point that is NEML2_NON_FINITE."""
        bad = self.report.statuses().ravel() == lib.NEML2_NON_FINITE
        for output in self.outputs.values():
            bad &= np.isfinite(_on_host(output)).reshape(bad.size, -1).all(axis=1)
        return bool(bad.any())


class Operation(NamedTuple):
    """A function of Model that evaluates: what it takes and returns."""

    name: str
    #: Name of its directions, and what they belong to: ("tangent of", "inputs").
    directions: tuple[str, str] | None = None
    #: Field of a Signature, of which it returns a result for each beside the outputs.
    results: str | None = None
    #: Name of these results in a Call.
    group: str = ""
    #: Field of a Signature: what its derivatives are with respect to.
    by: str = "inputs"
    #: True if it returns the outputs.
    with_outputs: bool = True

    @property
    def argument(self) -> str:
        """The name of the argument that has the directions: "tangents"."""
        return f"{self.directions[0].split()[0]}s" if self.directions else ""

    def wanted(self, signature: Signature) -> Sequence[Any]:
        """Return the variables or derivatives that it has a result for."""
        return getattr(signature, self.results) if self.results else ()

    def along(self, signature: Signature) -> Any:
        """The variables that its directions belong to."""
        return getattr(signature, self.directions[1]) if self.directions else ()

    def returned(self, signature: Signature, evaluation: Evaluation) -> Any:
        """Return what the function of Model returns; ConvergenceError if points failed."""
        wanted = self.wanted(signature)
        named = None
        if self.results:
            by = by_name if isinstance(wanted, Variables) else by_pair
            named = by(wanted, evaluation.results)
        evaluation.raise_if_failed(named)
        if named is None:
            return evaluation.outputs
        return (evaluation.outputs, named) if self.with_outputs else named


FORWARD = Operation("forward")
JVP = Operation("jvp", ("tangent of", "inputs"), "outputs", "jvps")
VJP = Operation("vjp", ("cotangent of", "outputs"), "inputs", "adjoints")
JACOBIAN = Operation("jacobian", None, "derivatives", "derivatives")
PARAM_JACOBIAN = Operation(
    "param_jacobian", None, "parameter_derivatives", "derivatives", "parameters"
)
PARAM_VJP = Operation(
    "param_vjp", ("cotangent of", "outputs"), "parameters", "adjoints", "parameters", False
)

OPERATIONS = (FORWARD, JVP, VJP, JACOBIAN, PARAM_JACOBIAN, PARAM_VJP)


def by_pair(derivatives: Any, blocks: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """Blocks as {output: {variable: block}}."""
    table: dict[str, dict[str, Any]] = {}
    pairs: Sequence[Derivative] = derivatives
    for derivative, block in zip(pairs, blocks, strict=True):
        table.setdefault(derivative.output, {})[derivative.variable] = block
    return table


def by_name(variables: Any, values: Sequence[Any]) -> dict[str, Any]:
    """Values by the names of the variables; what is None is left out."""
    named = zip(variables.names, values, strict=True)
    return {name: value for name, value in named if value is not None}


def kind_of_results(own: Kind, given: Kind | None) -> Kind:
    """The kind of the arguments, unless the model has one of its own."""
    return given if given is not None and own is NUMPY else own


def implicit_segments(description: Mapping[str, Any]) -> Segments:
    """The implicit segments of a description."""
    return [
        (
            segment["residual_package"],
            {v["name"] for group in segment["unknowns"] for v in group["variables"]},
        )
        for segment in description["segments"]
        if segment["kind"] == "implicit"
    ]


def is_good(statuses: Any, status: int) -> Any:
    """Tell which points did not fail, in an evaluation that did with `status`."""
    return statuses <= (lib.NEML2_OK if status == lib.NEML2_NON_FINITE else lib.NEML2_NON_FINITE)


def _on_host(array: Any) -> Any:
    return on_host(Tensor(array)._open())


def failed_segment(
    segments: Segments,
    good: Any,
    unknowns: Mapping[str, Any],
    status: int = lib.NEML2_NOT_CONVERGED,
) -> str:
    """The implicit segment at which the first point failed, by its residual; "" if unknown."""
    if status == lib.NEML2_NON_FINITE:  # all of them were solved
        return ""
    if len(segments) == 1:
        return segments[0][0]
    first = int(np.argmin(good.ravel()))
    for name, solved in reversed(segments):  # there are no iterates of those after it
        for unknown in solved & unknowns.keys():
            values = _on_host(unknowns[unknown]).reshape(good.size, -1)[first]
            if not np.isnan(values).any():
                return name
    return ""


def check_mapping(argument: str, values: object) -> None:
    """FatalError unless `values` is a mapping."""
    if not isinstance(values, Mapping):
        raise FatalError(
            f"{argument} must be a mapping of names to arrays; got {type(values).__name__}",
            lib.NEML2_ERROR_ARGUMENT,
            argument,
        )
