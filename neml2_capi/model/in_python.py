"""The engine in Python as what evaluates a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError, FatalError
from neml2_capi._ffi.kinds import Kind, Kinds
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import CHANNELS
from neml2_capi._ffi.options import Options
from neml2_capi._ffi.tensor import Label, Tensor
from neml2_capi.engine import Engine, Report
from neml2_capi.model.evaluation import (
    FORWARD,
    JACOBIAN,
    JVP,
    PARAM_JACOBIAN,
    PARAM_VJP,
    VJP,
    Evaluation,
    Given,
    Operation,
    check_mapping,
    failed_segment,
    implicit_segments,
    is_good,
    kind_of_results,
)
from neml2_capi.model.reports import REPORTS
from neml2_capi.model.signature import Signature
from neml2_capi.model.source import Source


class InPython:
    """An Engine: what Model(path, engine="python") has."""

    name = "python"
    runtime = "builtin"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is that of the results, NUMPY for that of the arguments."""
        if source.runtime not in ("auto", self.runtime):
            raise _refused(
                f"runs on the built-in runtime: leave runtime={source.runtime!r} out", "runtime"
            )
        if source.devices is not None:
            raise _refused(
                "has no scheduler: leave scheduler= out, or load the model without engine='python'",
                "scheduler",
            )
        self._engine: Engine | None = Engine(source.path, source.device, source.dtype)
        self.kind = kind
        engine = self._engine
        self.signature = Signature(
            inputs=engine.inputs,
            outputs=engine.outputs,
            parameters=engine.parameters,
            unknowns=engine.unknowns,
            derivatives=engine.derivatives,
            parameter_derivatives=engine.parameter_derivatives,
            histories=engine.histories,
            dtype=engine.dtype,
            device=(lib.NEML2_DEVICE_CPU, 0),
        )

    @property
    def closed(self) -> bool:
        """Whether close() was called."""
        return self._engine is None

    def close(self) -> None:
        """Let go of the engine."""
        self._engine = None

    def _open(self) -> Engine:
        engine = self._engine
        if engine is None:
            raise FatalError("this Model is closed", lib.NEML2_ERROR_ARGUMENT)
        return engine

    @property
    def options(self) -> Options:
        """The solver options as a live mapping."""
        return self._open().options

    @cached_property
    def implicit_segments(self) -> list[tuple[str, set[str]]]:
        """The implicit segments."""
        return implicit_segments(self.describe())

    def describe(self) -> dict[str, Any]:
        """Return what the artifact holds."""
        document: dict[str, Any] = json.loads(self._open().document)
        return document

    def points_evaluated(self, device: int) -> int:
        """Refuse: there are no devices."""
        raise _refused("has no scheduler")

    def parameter(self, index: int) -> Any:
        """Return an array over the memory of a stored parameter."""
        return _give(self._open().values[self.signature.parameters.names[index]], self.kind)

    def set_parameter(self, index: int, value: Any) -> None:
        """Store a copy of `value`."""
        engine, name = self._open(), self.signature.parameters.names[index]
        array = engine.boundary.parameters.read_one(name, value)
        if engine.values[name].shape == array.shape:
            engine.values[name][...] = array
        else:
            engine.values[name] = array.copy()

    def results(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Any:
        """Return what the function of Model returns; ConvergenceError where points failed."""
        found = self.evaluate(operation, inputs, overrides, directions)
        return operation.returned(self.signature, found)

    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate, and report of every point."""
        if operation.directions:
            check_mapping(operation.argument, directions)
        wanted: dict[Operation, dict[str, Any]] = {
            FORWARD: {},
            JVP: {"tangents": directions},
            VJP: {"cotangents": directions, "parameter_adjoints": False},
            JACOBIAN: {"jacobian": True},
            PARAM_JACOBIAN: {"parameter_jacobian": True},
            PARAM_VJP: {"cotangents": directions, "adjoints": False},
        }
        found = self._open().evaluate(inputs, parameters=overrides, **wanted[operation])
        if found.report.non_finite:
            CHANNELS["model"].warning("%s", _non_finite(found.report))
        kinds = Kinds()
        for given in (inputs, overrides or {}, directions or {}):
            for name, value in given.items():
                kinds.add(value, Label("argument", name))
        kind = kind_of_results(self.kind, kinds.kind)

        def give(array: Any) -> Any:
            return None if array is None else _give(array, kind)

        blocks = found.blocks or found.parameter_blocks
        named = found.jvp or found.adjoints or found.parameter_adjoints or {}
        results: list[Any] = []
        if blocks is not None:
            results = [blocks[d.output][d.variable] for d in operation.wanted(self.signature)]
        elif operation.results:
            results = [named.get(v.name) for v in operation.wanted(self.signature)]
        return Evaluation(
            int(found.report.status.max(initial=lib.NEML2_OK)),
            {name: give(array) for name, array in found.outputs.items()},
            [give(array) for array in results],
            _Outcome(self, found.report, give),
        )

    def new_call(self) -> Any:
        """Refuse: nothing is evaluated in place."""
        raise _refused(
            "binds no arrays: load the model without engine='python', or call forward() and the "
            "others"
        )

    def begin_solve(self, inputs: Any, overrides: Any) -> Any:
        """Refuse: the solver of the engine is there to be changed."""
        raise _refused(
            "hands out no systems: load the model without engine='python', or change the solver in "
            "neml2_capi/engine/newton.py"
        )


def _refused(why: str, subject: str = "") -> FatalError:
    return FatalError(f"the Python engine {why}", lib.NEML2_ERROR_UNSUPPORTED, subject)


def _non_finite(report: Report) -> str:
    count = int((report.status == lib.NEML2_NON_FINITE).sum())
    return f"{count} of {report.status.size} points are not finite.{_of_non_finite(report)}"


def _of_non_finite(report: Report) -> str:
    """Return what is not finite at the first such point, as a sentence after others."""
    if report.non_finite is None:
        return ""
    point, what = report.non_finite
    return f" Of point {point}, {what} is not finite. A smaller step does not mend that."


def _give(array: Any, kind: Kind) -> Any:
    """An array as one of another kind."""
    tensor = Tensor(array)
    return kind.hand_out(tensor._open(), tensor._source)


class _Outcome:
    """A report as Model wants it."""

    def __init__(self, backend: InPython, report: Report, give: Callable[[Any], Any]) -> None:
        self._backend, self._report, self._give = backend, report, give

    def arrays(self) -> dict[str, Any]:
        found = {name: getattr(self._report, name) for name in (*REPORTS, "residual_history")}
        return {name: self._give(array) for name, array in found.items() if array is not None}

    def statuses(self) -> Any:
        return self._report.status

    def told(self) -> str:
        return _non_finite(self._report)

    def _advice(self, point: int) -> str:
        """Return the advice for a point whose solve failed."""
        norm, iterations = self._report.residual_norm[point], self._report.iterations[point]
        told = f"Of point {point}, |r| = {norm:.1e}"
        if iterations == 0 and not np.isfinite(norm):
            return (
                f"{told} at the guess, before any iteration: check its inputs. A smaller step does "
                "not mend that."
            )
        if not np.isfinite(norm):
            return (
                f"{told} after {iterations} iterations: the iterations left the range in which the "
                "equations have values. Reduce the step, or let a line search shorten the "
                "iterations' own (ls_max_iters)."
            )
        return f"{told} after {iterations} iterations: reduce the step, or raise miters."

    def raise_error(self, status: int, outputs: Mapping[str, Any], named: Any) -> None:
        good = np.asarray(is_good(self._report.status, status))
        failed = np.flatnonzero(~good)
        if status == lib.NEML2_NON_FINITE:
            message = self.told()
        else:
            message = (
                f"{len(failed)} of {good.size} points did not converge (the first is point "
                f"{failed[0]}). {'The other points hold good results. ' if good.any() else ''}"
                f"{self._advice(failed[0])}{_of_non_finite(self._report)}"
            )
        raise ConvergenceError(
            message,
            status,
            failed_segment(self._backend.implicit_segments, good, self._report.unknowns, status),
            report=self.arrays(),
            converged_mask=self._give(good),
            outputs=outputs,
            derivatives=named,
            unknowns={name: self._give(value) for name, value in self._report.unknowns.items()},
        )
