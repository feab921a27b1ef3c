"""Records of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.labels import Array
from neml2_capi.driver.forces import Force, Table, write_ends
from neml2_capi.driver.memory import new_rows

if TYPE_CHECKING:
    from neml2_capi.model.call import Call

#: Parts of the report that are recorded.
REPORTED = ("status", "iterations", "residual_norm")


class Record:
    """Arrays over time, made once and filled from the arrays of a call, or by the library."""

    def __init__(
        self,
        call: Call,
        names: list[str],
        derivatives: Mapping[str, list[str]],
        steps: int,
        report: bool,
        forces: Mapping[str, Force],
    ) -> None:
        """`names` are names of outputs or, if there is no such output, of inputs.

        `forces` are prescribed; a force that a control changes is not among them.
        """
        self._call, self.derivatives = call, derivatives
        self.substeps = np.zeros(steps, np.int64)
        #: The parts of the report that are recorded.
        self.reported = REPORTED if report else ()
        self._names = names
        #: Arrays by name, (steps, *batch, *point shape).
        self.rows: dict[str, Array] = {}
        #: Recorded forces, except those whose values are the record already.
        self.forces: dict[str, Force] = {}
        for name, value in self._current().items():
            like = (steps, *value.shape), value.dtype
            force = None if name in call.outputs else forces.get(name)
            rows = force.lent(*like) if isinstance(force, Table) else None
            self.rows[name] = new_rows(*like) if rows is None else rows
            if force and rows is None:
                self.forces[name] = force
        if report:
            self.rows["report.iterations"] = np.zeros((steps, *call.batch), np.int32)
        #: Of increments that end within a step, if they are kept: the step, its fraction, values.
        self.between: list[tuple[int, float, dict[str, Array]]] = []

    def count(self, step: int, iterations: Array) -> None:
        """Add the iterations of a try, (*B,)."""
        if self.reported:
            self.rows["report.iterations"][step] += iterations

    def put(self, step: int, substeps: int) -> None:
        """Record what is in the arrays of the call, at the end of a step."""
        for name, value in self._current().items():
            self.rows[name][step] = value
        self.substeps[step] = substeps

    def put_between(self, step: int, fraction: float) -> None:
        """Keep what is in the arrays of the call, at the end of an increment within a step."""
        values = {name: value.copy() for name, value in self._current().items()}
        self.between.append((step, fraction, values))

    def put_forces(self, step: int, count: int) -> None:
        """Record the forces at the ends of so many steps, which are about to be made."""
        for name, force in self.forces.items():
            write_ends(self.rows[name][step : step + count], force, step)

    def made(self, step: int, made: int, tried: int) -> None:
        """Count the steps that were made, of `tried` ones whose rows the library wrote."""
        self.substeps[step : step + made] = 1
        if self.reported:
            self.rows["report.iterations"][step + made : step + tried] = 0

    def complete(self, step: int, names: set[str]) -> bool:
        """Record some of what is in the arrays of the call where the row of a step has NaN.

        True if nothing is missing any more.
        """
        current = self._current()
        for name in names:
            row = self.rows[name][step : step + 1]  # an array, of a scalar, too
            np.copyto(row, current[name], where=~np.isfinite(row))
        return all(np.isfinite(self.rows[name][step]).all() for name in names)

    def evaluated(self, unknown: set[str]) -> set[str]:
        """What is recorded of derivatives and of `unknown` outputs."""
        pairs = {f"{output}:{v}" for output, names in self.derivatives.items() for v in names}
        return pairs | unknown.intersection(self._names)

    def arrays(self, steps: int) -> Mapping[str, Array]:
        """The first steps."""
        recorded = {**self.rows, "substeps": self.substeps}
        return {name: rows[:steps] for name, rows in recorded.items()}

    def _current(self) -> dict[str, Array]:
        call = self._call
        values: dict[str, Any] = {
            name: call.outputs[name] if name in call.outputs else call.inputs[name]
            for name in self._names
        }
        for output, variables in self.derivatives.items():
            values |= {f"{output}:{v}": call.derivatives[output][v] for v in variables}
        values |= {f"report.{n}": call.report[n] for n in self.reported if n != "iterations"}
        return {name: np.asarray(value) for name, value in values.items()}
