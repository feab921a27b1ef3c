"""Adaptive substepping: an increment that a point cannot solve is halved, for this point alone."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine.blocks import Block, push_forward, split
from neml2_capi.engine.description import Key, Promoted, Values
from neml2_capi.engine.implicit import ImplicitSegment
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.packing import split_axis
from neml2_capi.engine.results import Batch, Outcome


class SubsteppingSegment(ImplicitSegment):
    """Solves for its unknowns by Newton's method, in substeps where one step fails."""

    def solve_all(self, batch: Batch) -> tuple[Outcome, list[Block]]:
        """Solve for all points, and differentiate; in a rescue in one step."""
        return super().solve_all(batch) if batch.guesses else _Substepping(self, batch).run()

    def newton_of(self, batch: Batch) -> Newton:
        """The solver of a batch of points, or of a part of an increment."""
        return replace(batch.newton, whole_batch=False, step_tol=batch.substep_del_tol)


class _Substepping:
    """Solve of a segment for the points of a batch, and its derivatives.

    These are the derivatives of the unknowns with respect to the givens of the whole increment and
    to the parameters, each component a column.
    """

    def __init__(self, segment: SubsteppingSegment, batch: Batch) -> None:
        self.segment, self.batch = segment, batch
        self.substeps = segment.described.substeps
        self.newton = segment.newton_of(batch)
        # Inputs of the predictor beside the givens of the residual are the same in every part.
        predictor = segment.described.predictor
        listed = {s.name for s in self.substeps} | set(segment.outputs)
        held = [n for n in (predictor.inputs if predictor else ()) if n not in listed]
        parameters = [key for key in batch.values if isinstance(key, Promoted)]
        self.held: list[Key] = [n for n in (*held, *parameters) if n in batch.values]
        # The solution of a part of the increment is the old state of the next.
        self.states = [s for s in self.substeps if s.role == "old_state"]
        self.old: Values = {s.name: batch.values[s.name].copy() for s in self.states}
        self.units: Values = {}
        self.of_solution: dict[str, Array] = {}
        if batch.by_values or batch.by_parameters:
            self._lay_out_columns()

    def _lay_out_columns(self) -> None:
        values, points = self.batch.values, self.batch.points
        keys: list[Key] = [*(s.name for s in self.substeps), *self.segment.parameters]
        self.sizes = {key: prod(values[key].shape[1:]) for key in keys}
        columns = np.eye(sum(self.sizes.values()))
        for key, unit in zip(keys, split_axis(columns, self.sizes.values(), 0), strict=True):
            self.units[key] = np.broadcast_to(unit, (points, *unit.shape))
        self.of_old: Values = {s.name: self.units[s.name].copy() for s in self.states}
        self.of_solution = {
            name: np.full((points, size, len(columns)), np.nan)
            for name, size in self.segment.unknowns.sizes.items()
        }

    def run(self) -> tuple[Outcome, list[Block]]:
        self._solve(0.0, 1.0, np.arange(self.batch.points), level=0)
        blocks: list[Block] = []
        for name, whole in self.of_solution.items():
            blocks += split(whole, {name: whole.shape[1]}, self.sizes)
        return self.whole, blocks

    def _solve(self, a: float, b: float, rows: Array, level: int) -> Array:
        """Solve the part [a, b] of the increment for these points; returns those that could."""
        given = self._part(self.batch.values, self.old, a, b)
        given |= {key: self.batch.values[key] for key in self.held}
        values = self.segment.predict({key: value[rows] for key, value in given.items()})
        part = self.segment.solve_from(values, self.newton)
        if level == 0:
            self.whole = part
        whole = self.whole
        whole.u[rows], whole.status[rows], whole.norm[rows] = part.u, part.status, part.norm
        whole.iterations[rows] += part.iterations if level else 0
        good = part.status == lib.NEML2_OK
        solved, failed = np.asarray(rows[good]), rows[~good]
        if self.units and len(solved):
            self._differentiate(part, values, a, b, rows, level)
        unknowns = self.segment.unknowns.unpack(part.u)
        for s in self.states:
            self.old[s.name][solved] = unknowns[s.partner][good]
        if level == self.segment.described.max_substepping_level or len(failed) == 0:
            return solved
        middle = 0.5 * (a + b)
        rescued = self._solve(a, middle, failed, level + 1)
        if len(rescued):
            rescued = self._solve(middle, b, rescued, level + 1)
        return np.sort(np.concatenate([solved, rescued]))

    def _part(self, whole: Values, old: Values, a: float, b: float) -> Values:
        """The givens of the part [a, b], or their derivatives, from the increment's."""

        def given(s: Any) -> Array:
            if s.role == "old_state":
                return old[s.name]
            # The derivative of the other end of a force is zero, if that end is no given.
            own, partner = whole[s.name], whole.get(s.partner, np.zeros(1))
            if s.role == "old_force":
                return own + (partner - own) * a
            if s.role == "force":
                return partner + (own - partner) * b
            return own * (b - a) if s.role == "increment" else own

        return {s.name: given(s) for s in self.substeps}

    def _differentiate(
        self, part: Outcome, values: Values, a: float, b: float, rows: Array, level: int
    ) -> None:
        if level > 0 and self.segment.by_values is None:
            raise FatalError(
                "the tangent through substeps needs the derivatives of the unknowns with respect "
                "to the givens, which were not compiled. Compile the model with neml2-compile -d : "
                "for all pairs",
                lib.NEML2_ERROR_UNSUPPORTED,
                "max_substepping_level",
            )
        local = self.segment.differentiate(part, values, self.batch, every=True)
        given = self.units | self._part(self.units, self.of_old, a, b)
        directions = {key: direction[rows] for key, direction in given.items()}
        made = push_forward(local, self.segment.outputs, directions)
        good = part.status == lib.NEML2_OK
        solved = rows[good]
        for name, whole in self.of_solution.items():
            whole[solved] = made[name][good] if name in made else 0.0
        for s in self.states:
            if s.partner in made:
                self.of_old[s.name][solved] = made[s.partner][good]
