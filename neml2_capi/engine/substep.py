"""Adaptive substepping: an increment that a point cannot solve is halved, for this point alone."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine import newton
from neml2_capi.engine.artifact import Substep
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.blocks import Block, Directions, Key, Promoted, dense_shape, push_forward
from neml2_capi.engine.operands import Operands

if TYPE_CHECKING:
    from neml2_capi.engine.implicit import ImplicitSegment


class Substepping:
    """Solve of a segment for the points of a batch."""

    def __init__(self, segment: ImplicitSegment, batch: Batch) -> None:
        self.segment, self.batch = segment, batch
        self.levels = segment.segment.max_substepping_level
        self.substeps = segment.segment.substeps
        self.settings = replace(batch.settings, whole_batch=False, step_tol=batch.substep_del_tol)
        self.outcome: newton.Outcome | None = None
        # Inputs of the predictor beside the givens of the residual are the same in every part.
        predictor = segment.segment.predictor
        listed = {s.name for s in self.substeps} | set(segment.outputs)
        self.held = [
            name
            for name in (predictor.inputs if predictor else ())
            if name in batch.values and name not in listed
        ]
        # The solution of a part of the increment is the old state of the next.
        self.old: dict[str, Array] = {
            s.name: batch.values[s.name].copy() for s in self.substeps if s.role == "old_state"
        }
        self.differentiates = batch.by_values or batch.by_parameters
        if self.differentiates:
            self._lay_out_columns()

    def run(self) -> tuple[newton.Outcome, list[Block]]:
        self._solve(0.0, 1.0, np.arange(self.batch.points), level=0)
        assert self.outcome is not None
        return self.outcome, self._blocks() if self.differentiates else []

    def _solve(self, a: float, b: float, rows: Array, level: int) -> Array:
        """Solve the part [a, b] of the increment for these points; returns those that could."""
        values = {s.name: self._given(s, a, b)[rows] for s in self.substeps}
        values |= {name: self.batch.values[name][rows] for name in self.held}
        parameters = {name: value[rows] for name, value in self.batch.parameters.items()}
        guess = self.segment.predict(values, parameters)
        part, operands = self.segment.solve_from(guess, parameters, self.settings)
        self._note(part, rows, level)
        solved, failed = rows[part.converged], np.delete(rows, part.converged)
        if self.differentiates and len(solved):
            self._differentiate(part, operands, a, b, rows, level)
        unknowns = self.segment.unknowns.unpack(self.segment.unknowns.split(part.u))
        for s in self.substeps:
            if s.role == "old_state":
                self.old[s.name][solved] = unknowns[s.partner][part.converged]
        if level == self.levels or len(failed) == 0:
            return solved
        middle = 0.5 * (a + b)
        rescued = self._solve(a, middle, failed, level + 1)
        if len(rescued):
            rescued = self._solve(middle, b, rescued, level + 1)
        result: Array = np.sort(np.concatenate([solved, rescued]))
        return result

    def _given(self, substep: Substep, a: float, b: float) -> Array:
        """A given of the part [a, b]."""
        value = self.batch.values
        if substep.role == "old_state":
            return self.old[substep.name]
        given: Array = value[substep.name]
        if substep.role == "old_force":
            return _between(given, value[substep.partner], a)
        if substep.role == "force":
            return _between(value[substep.partner], given, b)
        return given * (b - a) if substep.role == "increment" else given

    def _note(self, part: newton.Outcome, rows: Array, level: int) -> None:
        if self.outcome is None:
            self.outcome = deepcopy(part)
            return
        whole = self.outcome
        whole.u[rows], whole.status[rows], whole.norm[rows] = part.u, part.status, part.norm
        whole.iterations[rows] += part.iterations

    # The derivatives of the unknowns with respect to the givens of the whole increment and to the
    # parameters, each component a column.

    def _lay_out_columns(self) -> None:
        sizes: dict[Key, int] = {
            s.name: prod(self.batch.values[s.name].shape[1:]) for s in self.substeps
        }
        for name in self.segment.segment.parameters:
            sizes[Promoted(name)] = prod(self.batch.parameters[name].shape[1:])
        ends = np.cumsum(list(sizes.values()))
        self.columns = {
            key: slice(int(end) - size, int(end))
            for (key, size), end in zip(sizes.items(), ends, strict=True)
        }
        self.num_columns = int(ends[-1])
        self.of_solution = {
            v.name: np.full((self.batch.points, prod(v.point_shape), self.num_columns), np.nan)
            for v in self.segment.unknowns.variables
        }
        self.of_old = {s.name: self._unit(s.name) for s in self.substeps if s.role == "old_state"}

    def _unit(self, key: Key) -> Array:
        """The derivative of a given of the whole increment, or of a parameter."""
        columns = self.columns.get(key)
        if columns is None:  # the other end of a force, which is no given
            return np.zeros(1)
        unit = np.zeros((self.batch.points, columns.stop - columns.start, self.num_columns))
        unit[:, :, columns] = np.eye(columns.stop - columns.start)
        return unit

    def _direction(self, substep: Substep, a: float, b: float) -> Array:
        """The derivative of a given of the part [a, b]."""
        if substep.role == "old_state":
            return self.of_old[substep.name]
        if substep.role == "old_force":
            return _between(self._unit(substep.name), self._unit(substep.partner), a)
        if substep.role == "force":
            return _between(self._unit(substep.partner), self._unit(substep.name), b)
        unit = self._unit(substep.name)
        return unit * (b - a) if substep.role == "increment" else unit

    def _differentiate(
        self, part: newton.Outcome, operands: Operands, a: float, b: float, rows: Array, level: int
    ) -> None:
        if level > 0 and self.segment.given_sensitivity is None:
            raise FatalError(
                "the tangent through substeps needs the derivatives of the unknowns with respect "
                "to the givens, which were not compiled. Compile the model with neml2-compile -d : "
                "for all pairs",
                lib.NEML2_ERROR_UNSUPPORTED,
                "max_substepping_level",
            )
        local = self.segment.differentiate(
            part.u, operands, True, self.batch.by_parameters, part.converged, every=True
        )
        directions: Directions = {s.name: self._direction(s, a, b)[rows] for s in self.substeps}
        for name in self.segment.segment.parameters:
            directions[Promoted(name)] = self._unit(Promoted(name))[rows]
        made = push_forward(local, self.segment.outputs, directions)
        solved = rows[part.converged]
        for name, whole in self.of_solution.items():
            whole[solved] = made[name][part.converged] if name in made else 0.0
        for s in self.substeps:
            if s.role == "old_state" and s.partner in made:
                self.of_old[s.name][solved] = made[s.partner][part.converged]

    def _blocks(self) -> list[Block]:
        blocks = []
        for v in self.segment.unknowns.variables:
            for key, columns in self.columns.items():
                values = self.batch.parameters if isinstance(key, Promoted) else self.batch.values
                name = key.parameter if isinstance(key, Promoted) else key
                shape = dense_shape(v.name, key, v.point_shape, values[name].shape[1:])
                blocks.append(Block.of(shape, self.of_solution[v.name][:, :, columns]))
        return blocks


def _between(start: Array, end: Array, fraction: float) -> Array:
    result: Array = start + (end - start) * fraction
    return result
