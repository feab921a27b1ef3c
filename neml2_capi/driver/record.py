"""Records of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.tensor import Array

if TYPE_CHECKING:
    from neml2_capi.model.call import Call

#: Parts of the report that are recorded.
REPORTED = ("status", "iterations", "residual_norm")


class Record:
    """Arrays over time, made once and filled step by step from the arrays of a call."""

    def __init__(
        self,
        call: Call,
        names: list[str],
        derivatives: Mapping[str, list[str]],
        steps: int,
        report: bool,
    ) -> None:
        """`names` are names of outputs or, if there is no such output, of inputs."""
        self._call, self._derivatives = call, derivatives
        self._iterations = np.zeros((steps, *call.batch), np.int32)
        self._substeps = np.zeros(steps, np.int64)
        self._reported = REPORTED if report else ()
        self._names = names
        self._rows = {
            name: np.empty((steps, *value.shape), value.dtype)
            for name, value in self._current().items()
        }

    def count(self, step: int, iterations: Array) -> None:
        """Add the iterations of a try, (*B,)."""
        self._iterations[step] += iterations

    def put(self, step: int, substeps: int) -> None:
        """Record what is in the arrays of the call, at the end of a step."""
        for name, value in self._current().items():
            self._rows[name][step] = value
        self._substeps[step] = substeps

    def complete(self, step: int, names: set[str]) -> bool:
        """Record some of what is in the arrays of the call where the row of a step has NaN.

        True if nothing is missing any more.
        """
        current = self._current()
        for name in names:
            row = self._rows[name][step : step + 1]  # an array, of a scalar, too
            np.copyto(row, current[name], where=~np.isfinite(row))
        return all(np.isfinite(self._rows[name][step]).all() for name in names)

    def evaluated(self, unknown: set[str]) -> set[str]:
        """What is recorded of derivatives and of `unknown` outputs."""
        pairs = {f"{output}:{v}" for output, names in self._derivatives.items() for v in names}
        return pairs | unknown.intersection(self._names)

    def arrays(self, steps: int) -> Mapping[str, Array]:
        """The first steps."""
        recorded = dict(self._rows)
        if self._reported:
            recorded["report.iterations"] = self._iterations
        recorded["substeps"] = self._substeps
        return {name: rows[:steps] for name, rows in recorded.items()}

    def _current(self) -> dict[str, Array]:
        call = self._call
        values: dict[str, Any] = {
            name: call.outputs[name] if name in call.outputs else call.inputs[name]
            for name in self._names
        }
        for output, variables in self._derivatives.items():
            values |= {f"{output}:{v}": call.derivatives[output][v] for v in variables}
        values |= {f"report.{n}": call.report[n] for n in self._reported if n != "iterations"}
        return {name: np.asarray(value) for name, value in values.items()}
