"""Adaptive substepping: an increment that a point cannot solve is halved, for this point alone."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.blocks import Block, dense_shape, push_forward
from neml2_capi.engine.description import Key, Promoted, Values, point_shape
from neml2_capi.engine.results import Batch, Outcome

if TYPE_CHECKING:
    from neml2_capi.engine.implicit import ImplicitSegment


class Substepping:
    """Solve of a segment for the points of a batch."""

    def __init__(self, segment: ImplicitSegment, batch: Batch) -> None:
        self.segment, self.batch = segment, batch
        self.levels = segment.described.max_substepping_level
        self.substeps = segment.described.substeps
        self.newton = replace(batch.newton, whole_batch=False, step_tol=batch.substep_del_tol)
        self.outcome: Outcome | None = None
        # Inputs of the predictor beside the givens of the residual are the same in every part.
        predictor = segment.described.predictor
        listed = {s.name for s in self.substeps} | set(segment.outputs)
        held = [n for n in (predictor.inputs if predictor else ()) if n not in listed]
        parameters = [key for key in batch.values if isinstance(key, Promoted)]
        self.held: list[Key] = [n for n in (*held, *parameters) if n in batch.values]
        # The solution of a part of the increment is the old state of the next.
        self.states = [s for s in self.substeps if s.role == "old_state"]
        self.old: Values = {s.name: batch.values[s.name].copy() for s in self.states}
        self.differentiates = batch.by_values or batch.by_parameters
        if self.differentiates:
            self._lay_out_columns()

    def run(self) -> tuple[Outcome, list[Block]]:
        self._solve(0.0, 1.0, np.arange(self.batch.points), level=0)
        assert self.outcome is not None
        return self.outcome, self._blocks() if self.differentiates else []

    def _solve(self, a: float, b: float, rows: Array, level: int) -> Array:
        """Solve the part [a, b] of the increment for these points; returns those that could."""
        given = self._part(self.batch.values, self.old, a, b)
        given |= {key: self.batch.values[key] for key in self.held}
        values = self.segment.predict({key: value[rows] for key, value in given.items()})
        part = self.segment.solve_from(values, self.newton)
        self._note(part, rows)
        good = part.status == lib.NEML2_OK
        solved: Array = rows[good]
        failed = rows[~good]
        if self.differentiates and len(solved):
            self._differentiate(part, values, a, b, rows, level)
        unknowns = self.segment.unknowns.unpack(part.u)
        for s in self.states:
            self.old[s.name][solved] = unknowns[s.partner][good]
        if level == self.levels or len(failed) == 0:
            return solved
        middle = 0.5 * (a + b)
        rescued = self._solve(a, middle, failed, level + 1)
        if len(rescued):
            rescued = self._solve(middle, b, rescued, level + 1)
        result: Array = np.sort(np.concatenate([solved, rescued]))
        return result

    def _part(self, whole: Values, old: Values, a: float, b: float) -> Values:
        """The givens of the part [a, b], or their derivatives, from the increment's."""

        def given(s: Any) -> Array:
            if s.role == "old_state":
                return old[s.name]
            # The derivative of the other end of a force is zero, if that end is no given.
            own, partner = whole[s.name], whole.get(s.partner, np.zeros(1))
            if s.role == "old_force":
                return _between(own, partner, a)
            if s.role == "force":
                return _between(partner, own, b)
            return own * (b - a) if s.role == "increment" else own

        return {s.name: given(s) for s in self.substeps}

    def _note(self, part: Outcome, rows: Array) -> None:
        if self.outcome is None:
            self.outcome = part
            return
        whole = self.outcome
        whole.u[rows], whole.status[rows], whole.norm[rows] = part.u, part.status, part.norm
        whole.iterations[rows] += part.iterations

    # The derivatives of the unknowns with respect to the givens of the whole increment and to the
    # parameters, each component a column.

    def _lay_out_columns(self) -> None:
        points, values = self.batch.points, self.batch.values
        keys: list[Key] = [*(s.name for s in self.substeps), *self.segment.parameters]
        sizes = [prod(values[key].shape[1:]) for key in keys]
        columns = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1])
        self.units: Values = {
            key: np.broadcast_to(unit, (points, *unit.shape))
            for key, unit in zip(keys, columns, strict=True)
        }
        self.of_old: Values = {s.name: self.units[s.name].copy() for s in self.states}
        self.of_solution = {
            v.name: np.full((points, prod(point_shape(v)), sum(sizes)), np.nan)
            for v in self.segment.unknowns.variables
        }

    def _differentiate(
        self, part: Outcome, values: Values, a: float, b: float, rows: Array, level: int
    ) -> None:
        if level > 0 and not self.segment.by_values.compiled:
            raise FatalError(
                "the tangent through substeps needs the derivatives of the unknowns with respect "
                "to the givens, which were not compiled. Compile the model with neml2-compile -d : "
                "for all pairs",
                lib.NEML2_ERROR_UNSUPPORTED,
                "max_substepping_level",
            )
        local = self.segment.differentiate(part, values, True, self.batch.by_parameters, every=True)
        given = self._part(self.units, self.of_old, a, b)
        given |= {key: self.units[key] for key in self.segment.parameters}
        directions = {key: direction[rows] for key, direction in given.items()}
        made = push_forward(local, self.segment.outputs, directions)
        good = part.status == lib.NEML2_OK
        solved = rows[good]
        for name, whole in self.of_solution.items():
            whole[solved] = made[name][good] if name in made else 0.0
        for s in self.states:
            if s.partner in made:
                self.of_old[s.name][solved] = made[s.partner][good]

    def _blocks(self) -> list[Block]:
        blocks = []
        for v in self.segment.unknowns.variables:
            begin = 0
            for key, unit in self.units.items():
                shape = dense_shape(v.name, key, point_shape(v), self.batch.values[key].shape[1:])
                end = begin + unit.shape[1]
                blocks.append(Block.of(shape, self.of_solution[v.name][:, :, begin:end]))
                begin = end
        return blocks


def _between(start: Array, end: Array, fraction: float) -> Array:
    result: Array = start + (end - start) * fraction
    return result
