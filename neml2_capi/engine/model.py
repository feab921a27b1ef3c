"""A Model that is evaluated in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from neml2_capi._ffi.errors import ConvergenceError, FatalError
from neml2_capi._ffi.kinds import Kind, Kinds
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Label, Tensor
from neml2_capi._ffi.variables import Derivative
from neml2_capi.engine.engine import Engine
from neml2_capi.engine.options import Options
from neml2_capi.engine.results import Blocks, Report
from neml2_capi.model import Model
from neml2_capi.model.evaluation import (
    FORWARD,
    JACOBIAN,
    JVP,
    PARAM_JACOBIAN,
    PARAM_VJP,
    VJP,
    Evaluation,
    Operation,
    failed_segment,
    kind_of_results,
)
from neml2_capi.model.reopening import Source


class PythonModel(Model):
    """A Model over an Engine: what Model(path, engine="python") is beside a Model."""

    #: The class that was asked for.
    _native: type[Model] = Model

    def _load(self, source: Source) -> None:
        if source.runtime not in ("auto", self.runtime):
            raise FatalError(
                "the Python engine runs on the built-in runtime: leave "
                f"runtime={source.runtime!r} out",
                lib.NEML2_ERROR_UNSUPPORTED,
                "runtime",
            )
        if source.devices is not None:
            raise FatalError(
                "the Python engine has no scheduler: leave scheduler= out, or load the model "
                "without engine='python'",
                lib.NEML2_ERROR_UNSUPPORTED,
                "scheduler",
            )
        engine = Engine(source.path, source.device, source.dtype)
        self._owner = self._pointer = [engine]
        self._inputs, self._outputs = engine.inputs, engine.outputs
        self._parameters, self._unknowns = engine.parameters, engine.unknowns
        self._derivatives = engine.derivatives
        self._parameter_derivatives = engine.parameter_derivatives
        self._histories = engine.histories
        self._dtype = engine.dtype

    @classmethod
    def from_stub(cls, *arguments: Any, **named: Any) -> NoReturn:
        """Not for this engine: load the artifact itself."""
        raise FatalError(
            "the Python engine loads no stub by name: load the artifact beside it",
            lib.NEML2_ERROR_UNSUPPORTED,
        )

    def _class_and_engine(self) -> tuple[type[Model], str]:
        return self._native, "python"

    @property
    def runtime(self) -> str:
        """What the compiled graphs run on: "builtin", always."""
        return "builtin"

    @property
    def engine(self) -> Engine:
        """What evaluates the model."""
        engine: Engine = self._open()[0]
        return engine

    def describe(self) -> dict[str, Any]:
        """What the artifact holds."""
        document: dict[str, Any] = json.loads(self.engine.document)
        return document

    @property
    def options(self) -> Options:  # type: ignore[override]
        """The solver options as a live mapping: `model.options["atol"] = 1e-12`."""
        return self.engine.options

    def set_parameter(self, name: str, value: Any) -> None:
        """Replace a parameter by a copy of `value`, of shape (*B, *base_shape)."""
        engine = self.engine
        name = self._parameters.names[self._parameters.resolve(name)]
        array = engine.boundary.parameters.read_one(name, value)
        if engine.values[name].shape == array.shape:
            engine.values[name][...] = array
        else:
            engine.values[name] = array.copy()

    def solve(self, *arguments: Any, **named: Any) -> NoReturn:
        """Not for this engine, whose own solver is there to be changed: engine/newton.py."""
        raise FatalError(
            "the Python engine hands out no systems: load the model without engine='python', or "
            "change the solver in neml2_capi/engine/newton.py",
            lib.NEML2_ERROR_UNSUPPORTED,
        )

    def bind(self, *arguments: Any, **named: Any) -> NoReturn:
        """Not for this engine, which evaluates nothing in place."""
        raise FatalError(
            "the Python engine binds no arrays: load the model without engine='python', or call "
            "forward() and the others",
            lib.NEML2_ERROR_UNSUPPORTED,
        )

    def _view(self, index: int) -> Any:
        return _give(self.engine.values[self._parameters.names[index]], self._kind)

    def _evaluate(
        self,
        operation: Operation,
        inputs: Mapping[str, Any],
        overrides: Mapping[str, Any] | None,
        directions: Any = None,
    ) -> Evaluation:
        wanted: dict[str, Any] = {
            FORWARD: {},
            JVP: {"tangents": directions},
            VJP: {"cotangents": directions, "parameter_adjoints": False},
            JACOBIAN: {"jacobian": True},
            PARAM_JACOBIAN: {"parameter_jacobian": True},
            PARAM_VJP: {"cotangents": directions, "adjoints": False},
        }[operation]
        if operation.directions and not isinstance(directions, Mapping):
            argument = f"{operation.directions[0].split()[0]}s"
            raise FatalError(
                f"{argument} must be a mapping of names to arrays; got {type(directions).__name__}",
                lib.NEML2_ERROR_ARGUMENT,
                argument,
            )
        found = self.engine.evaluate(inputs, parameters=overrides, **wanted)
        kinds = Kinds()
        for given in (inputs, overrides or {}, directions or {}):
            for name, value in given.items():
                kinds.add(value, Label("argument", name))
        kind = kind_of_results(self, kinds.kind)

        def give(array: Any) -> Any:
            return None if array is None else _give(array, kind)

        by_name = found.jvp or found.adjoints or found.parameter_adjoints or {}
        names = getattr(self, operation.results).names if by_name and operation.results else ()
        results = [by_name.get(name) for name in names]
        if found.blocks is not None:
            results = _in_order(self._derivatives, found.blocks)
        if found.parameter_blocks is not None:
            results = _in_order(self._parameter_derivatives, found.parameter_blocks)
        return Evaluation(
            int(found.report.status.max(initial=lib.NEML2_OK)),
            {name: give(array) for name, array in found.outputs.items()},
            [give(array) for array in results],
            _Outcome(self, found.report, give),
        )


def _give(array: Any, kind: Kind) -> Any:
    """An array as one of another kind."""
    tensor = Tensor(array)
    return kind.hand_out(tensor._open(), tensor._source)


class _Outcome:
    """A report as Model wants it."""

    def __init__(self, model: Model, report: Report, give: Any) -> None:
        self._model, self._report, self._give = model, report, give

    def arrays(self) -> dict[str, Any]:
        names = ["status", "iterations", "residual_norm", "suggested_cut", "residual_history"]
        found = {name: getattr(self._report, name) for name in names}
        return {name: self._give(array) for name, array in found.items() if array is not None}

    def raise_error(self, status: int, outputs: Mapping[str, Any], named: Any) -> None:
        good = np.asarray(self._report.status <= lib.NEML2_NON_FINITE)
        failed = np.flatnonzero(~good)
        raise ConvergenceError(
            f"{len(failed)} of {good.size} points did not converge (the first is point "
            f"{failed[0]}). {'The other points hold good results. ' if good.any() else ''}Reduce "
            "the step, or raise miters or ls_max_iters; a residual norm of NaN tells of bad inputs",
            status,
            failed_segment(self._model, good, self._report.unknowns),
            report=self.arrays(),
            converged_mask=self._give(good),
            outputs=outputs,
            derivatives=named,
            unknowns={name: self._give(value) for name, value in self._report.unknowns.items()},
        )


def _in_order(derivatives: tuple[Derivative, ...], blocks: Blocks) -> list[Any]:
    return [blocks[d.output][d.variable] for d in derivatives]


def in_python(cls: Any) -> Any:
    """The class that is `cls` in all but who evaluates."""
    if issubclass(cls, PythonModel):
        return cls
    if cls not in _IN_PYTHON:
        names = {"__module__": cls.__module__, "_native": cls}
        _IN_PYTHON[cls] = type(cls.__name__, (PythonModel, cls), names)
    return _IN_PYTHON[cls]


_IN_PYTHON: dict[type, type] = {}
