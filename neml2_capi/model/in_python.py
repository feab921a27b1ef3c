"""The engine in Python as what evaluates a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from neml2_capi._ffi.arguments import Arguments
from neml2_capi._ffi.errors import Failure, FatalError
from neml2_capi._ffi.kinds import Kind, Kinds
from neml2_capi._ffi.labels import Label
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.logs import CHANNELS
from neml2_capi._ffi.options import refused
from neml2_capi._ffi.tensor import Tensor
from neml2_capi._ffi.views import on_host, taken
from neml2_capi.engine.description import attributes
from neml2_capi.engine.engine import Argument, Engine
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.results import Batch
from neml2_capi.model.evaluation import (
    JVP,
    Evaluation,
    Given,
    Operation,
    Report,
    kind_of_results,
)
from neml2_capi.model.opened import Opened
from neml2_capi.model.reports import OF_OPTIONS, REPORTS
from neml2_capi.model.source import Source, View
from neml2_capi.model.tensors import fill, fill_resolved


class InPython(Opened):
    """What Model(path, engine="python") has: the library describes, an Engine evaluates."""

    name = "python"

    def __init__(self, source: Source, kind: Kind) -> None:
        """Load it. `kind` is the kind of the results, NUMPY for the arguments' kind."""
        if source.runtime not in ("auto", "builtin"):
            raise _refused(
                f"runs on the built-in runtime: leave runtime={source.runtime!r} out", "runtime"
            )
        if source.devices is not None:
            raise _refused(
                "has no scheduler: leave scheduler= out, or load the model without engine='python'",
                "scheduler",
            )
        if source.view != View(strain=source.view.strain, stress=source.view.stress):
            raise _refused(
                "evaluates laws as they are: leave strain_measure=, material_axes= and hypothesis= "
                "out, or load the model without engine='python'",
                "strain_measure",
            )
        super().__init__(source._replace(runtime="builtin"), kind)
        self._engine = Engine(attributes(self.describe()), self.signature)

    def set_option(self, name: str, value: float | str) -> None:
        """Refuse what only the library can do."""
        if name == "capsule" and value:
            raise refused(name, repr(value), "nothing here: this engine writes no capsules")
        if name == "kernels" and value == "required":
            raise refused(name, repr(value), "auto or off: this engine runs the packages alone")
        if name == "bounds" and value == "fail":
            raise refused(name, repr(value), "warn or off: this engine does not look at bounds")
        super().set_option(name, value)

    def evaluate(
        self, operation: Operation, inputs: Given, overrides: Given | None, directions: Any = None
    ) -> Evaluation:
        """Evaluate, and report of each point."""
        self._open()
        if any(bound.physical for bound in self.signature.bounds):
            raise _refused(
                "does not look at physical bounds, which the artifact has: load the model without "
                "engine='python'",
                "bounds",
            )
        engine, kinds = self._engine, Kinds()
        given = [
            self._read("inputs", inputs, kinds, "inputs"),
            self._read("parameters", overrides or {}, kinds, "param_overrides"),
        ]
        self._complete(*given)
        if operation.directions:
            kind, of = operation.directions
            given.append(self._read(of, directions, kinds, operation.argument, kind))
        newton, by = Newton.like(self), operation.by
        wanted = by if operation.results else ""
        substep_del_tol, most = self.options["substep_del_tol"], int(self.options["rescue"])
        if most and newton.whole_batch:
            raise _refused(
                "rescues single points, and with convergence = batch one that fails fails all: set "
                "convergence = point, or rescue = 0",
                "rescue",
            )
        batch = engine.evaluate(given, wanted, newton, substep_del_tol, most)
        with np.errstate(all="ignore"):
            outputs = engine.outputs(batch)
            results: Sequence[Any] = []
            if operation.directions:
                adjoined = None if operation == JVP else given[by == "parameters"]
                results = engine.products(batch, by, given[2], adjoined)
            elif operation.results:
                results = engine.blocks(batch, by)
        report = _Report(self, batch, kind_of_results(self.kind, kinds.kind))
        if batch.non_finite:
            CHANNELS["model"].warning("%s", report.failure(lib.NEML2_NON_FINITE).message)
        return Evaluation(
            int(batch.status.max(initial=lib.NEML2_OK)),
            {name: report.give(array) for name, array in outputs.items()},
            [None if array is None else report.give(array) for array in results],
            report,
        )

    def _read(
        self, of: str, values: Given, kinds: Kinds, argument: str, kind: str = ""
    ) -> Argument:
        """The arrays of a caller; FatalError for a wrong name, element type or trailing shape."""
        variables = getattr(self.signature, of)
        named, arrays, labels = self._engine.of[of], {}, {}
        with Arguments(len(variables), kinds) as filled:
            if of == "parameters":
                fill_resolved(filled, variables, values)
            else:
                fill(filled, variables, values, argument, kind)
            for index, (key, variable) in enumerate(named.items()):
                label = labels[key] = Label(f"{kind} {variables.kind}".strip(), variable.name)
                if filled.handles[index]:
                    array = taken(filled.take(index), filled, label, variable.dtype)
                    if array.dtype != variable.dtype:
                        raise label.refuse(
                            f"must be {variable.dtype}; got {array.dtype}. Convert it first",
                            lib.NEML2_ERROR_DTYPE,
                        )
                    label.batch_of(array.shape, variable.point_shape)
                    arrays[key] = array
        return Argument(arrays, labels, named)

    def _complete(self, inputs: Argument, parameters: Argument) -> None:
        """Take the stored parameters that are not replaced; FatalError if an input is missing."""
        for index, key in enumerate(parameters.variables):
            if key not in parameters.arrays:
                parameters.arrays[key] = on_host(Tensor(self.parameter(index))._open())
        for key, v in inputs.variables.items():
            if key not in inputs.arrays:
                raise inputs.labels[key].refuse(
                    "is missing; every input must be given. Its shape is batch axes and then "
                    f"{v.point_shape}",
                    lib.NEML2_ERROR_MISSING,
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


class _Report(Report):
    """The report of an evaluation."""

    def __init__(self, backend: InPython, batch: Batch, kind: Kind) -> None:
        super().__init__(lambda: backend.implicit_segments)
        self._batch, self.hand_out = batch, kind.hand_out
        self._unknowns = backend._engine.of["unknowns"]
        names = (*REPORTS, "residual_history")
        options = {name: backend.options[option] for name, option in OF_OPTIONS.items()}
        self._names = [name for name in names if options.get(name, True)]

    def give(self, array: Any) -> Any:
        """An array of the results' kind."""
        tensor = Tensor(array)
        return self.hand_out(tensor._open(), tensor._source)

    def _of(self, each: Any) -> Any:
        return each.reshape(self._batch.shape + each.shape[1:])

    def arrays(self) -> dict[str, Any]:
        return {name: self.give(self._of(getattr(self._batch, name))) for name in self._names}

    def statuses(self) -> Any:
        return self._of(self._batch.status)

    def unknowns(self) -> dict[str, Any]:
        values, named = self._batch.unknowns, self._unknowns if self._batch.failed.any() else {}
        return {v.name: self.give(self._of(values[str(key)])) for key, v in named.items()}

    def failure(self, status: int) -> Failure:
        points, bad = self._batch.points, np.flatnonzero(self._batch.failed)
        if status == lib.NEML2_NON_FINITE:
            count = int((self._batch.status == status).sum())
            message = f"{count} of {points} points are not finite."
        else:
            others = "The other points hold good results. " if len(bad) < points else ""
            message = (
                f"{len(bad)} of {points} points did not converge (the first is point {bad[0]}). "
                f"{others}{self._advice(bad[0])}"
            )
        if self._batch.non_finite:
            point, what = self._batch.non_finite
            message += (
                f" Of point {point}, {what} is not finite. A smaller step does not mend that."
            )
        return Failure(status, "", message, lib.NEML2_CAUSE_NONE, ())

    def _advice(self, point: int) -> str:
        """Return the advice for a point whose solve failed."""
        norm, iterations = self._batch.residual_norm[point], self._batch.iterations[point]
        told = f"Of point {point}, |r| = {norm:.1e}"
        if np.isfinite(norm):
            return f"{told} after {iterations} iterations: reduce the step, or raise miters."
        if iterations == 0:
            return (
                f"{told} at the guess, before any iteration: check its inputs. A smaller step "
                "helps only if they are too large."
            )
        return (
            f"{told} after {iterations} iterations: the iterations left the range in which the "
            "equations have values. Reduce the step, or let a line search shorten the "
            "iterations' own (ls_max_iters)."
        )
