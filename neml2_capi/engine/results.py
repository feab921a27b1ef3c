"""The points of one evaluation on their way through the segments, and what becomes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

import numpy as np

from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.engine.blocks import Block, pull_back, push_forward
from neml2_capi.engine.description import Key, Shape, Values
from neml2_capi.engine.newton import Newton
from neml2_capi.engine.packing import as_vectors


@dataclass
class Outcome:
    """What a solve of a segment says of each point."""

    u: Array  # the solution, or the last iterate
    status: Array
    iterations: Array
    first_norm: Array
    norm: Array
    history: Array  # (points, miters): |r| of each iterate, NaN beyond


class Batch:
    """Values by the names inside the model, each with one row per point."""

    def __init__(
        self,
        shape: Shape,
        values: Values,
        newton: Newton,
        substep_del_tol: float,
        by: Sequence[str],
    ) -> None:
        """`shape` is the batch of the caller; `by` tells which derivatives segments are to find."""
        self.shape, self.points, self.values = shape, prod(shape), values
        self.newton, self.substep_del_tol = newton, substep_del_tol
        self.by, self.by_values, self.by_parameters = by, "inputs" in by, "parameters" in by
        #: In a rescue: where to begin, by unknown; NaN where no solution is known.
        self.guesses: dict[str, Array] | None = None
        #: The outputs of each segment so far, and the derivatives that it found.
        self.segments: list[tuple[Sequence[str], Sequence[Block]]] = []
        # Outcome of each point so far.
        self.status: Array = np.full(self.points, lib.NEML2_OK, dtype=np.int32)
        self.iterations: Array = np.zeros(self.points, dtype=np.int32)
        self.residual_norm: Array = np.zeros(self.points)
        self.suggested_cut: Array = np.ones(self.points)
        #: Of the last implicit segment.
        self.residual_history: Array = np.full((self.points, newton.miters), np.nan)
        #: The solves by which a point was rescued.
        self.rescue_solves: Array = np.zeros(self.points, dtype=np.int32)
        #: The last iterates of points that failed, else NaN.
        self.unknowns: dict[str, Array] = {}
        #: What is not finite, in words, and the first point at which it is.
        self.non_finite: tuple[int, str] | None = None
        #: Points whose solve failed, also for what was given to them: their results are NaN.
        self.lost: Array = np.zeros(self.points, bool)

    def part(self, values: Values, newton: Newton) -> Batch:
        """Return an evaluation of some points that is asked for the same."""
        shape = (len(next(iter(values.values()))),)
        return Batch(shape, values, newton, self.substep_del_tol, self.by)

    def take(self, trial: Batch, which: Array, rows: Array) -> None:
        """Take what another evaluation found at `which` of its points, which are `rows` here."""
        rows = rows[which]
        if len(rows) == 0:
            return

        def taken(whole: Array, found: Array) -> Array:
            whole = np.broadcast_to(whole, (self.points, *whole.shape[1:])).copy()
            whole[rows] = np.broadcast_to(found, (trial.points, *found.shape[1:]))[which]
            return whole

        for outputs, _ in self.segments:
            for name in outputs:
                self.values[name] = taken(self.values[name], trial.values[name])
        for name in ("status", "residual_norm", "suggested_cut", "residual_history"):
            setattr(self, name, taken(getattr(self, name), getattr(trial, name)))
        for name in self.unknowns:
            self.unknowns[name] = taken(self.unknowns[name], trial.unknowns[name])
        for s, (outputs, own) in enumerate(self.segments):
            found = {block.shape[:2]: block.matrices for block in trial.segments[s][1]}
            blocks = [Block(b.shape, taken(b.matrices, found[b.shape[:2]])) for b in own]
            self.segments[s] = outputs, blocks

    def push(self, directions: Values) -> Values:
        """Return directions behind all segments, from directions of inputs and parameters."""
        return reduce(lambda d, s: push_forward(s[1], s[0], d), self.segments, directions)

    def pull(self, directions: Values) -> Values:
        """The transpose."""
        return reduce(lambda d, s: pull_back(s[1], s[0], d), reversed(self.segments), directions)

    @property
    def failed(self) -> Array:
        """Points at which a solve failed."""
        return np.asarray(self.status > lib.NEML2_NON_FINITE)

    def add(self, outcome: Outcome) -> None:
        """Add what became of each point in one more segment."""
        failed = outcome.status != lib.NEML2_OK
        self.status = np.where(self.status == lib.NEML2_OK, outcome.status, self.status)
        self.iterations += outcome.iterations
        self.residual_norm = np.maximum(self.residual_norm, outcome.norm)  # NaN is greatest
        cut = np.where(outcome.norm < outcome.first_norm, 0.5, 0.25)
        self.suggested_cut = np.minimum(self.suggested_cut, np.where(failed, cut, 1.0))
        self.residual_history = outcome.history

    def mark(self, bad: Array, what: str) -> None:
        """Mark the points at which something is not finite, if nothing was wrong with them."""
        bad = bad & (self.status == lib.NEML2_OK)
        self.status[bad] = lib.NEML2_NON_FINITE
        first = int(np.argmax(bad)) if bad.any() else self.points
        if first < (self.non_finite[0] if self.non_finite else self.points):
            self.non_finite = first, what

    def mark_given(self, rows: Mapping[Key, Array], labels: Mapping[Key, object]) -> None:
        """Mark points by what was given to them, (points, ...) each: the rule is the header's."""
        for key, each in rows.items():
            values = as_vectors(each)
            if np.issubdtype(values.dtype, np.floating):
                what = f"the {labels[key]}"
                self._excuse(np.asarray(~np.isfinite(values).all(axis=1)), what)
                self.mark(np.asarray(np.isnan(values).any(axis=1)), what)

    def _excuse(self, bad: Array, what: str) -> None:
        """Take a failure of the solve for one of what was given: no smaller step mends it."""
        bad = bad & self.failed
        self.lost = self.lost | bad
        for iterate in self.unknowns.values():
            iterate[bad] = np.nan
        self.suggested_cut[bad] = 1.0
        self.status[bad] = lib.NEML2_OK
        self.mark(bad, what)

    def excuse_steps_of_zero(self, rows: Mapping[Key, Array]) -> None:
        """Suggest no smaller step than one of zero, at which a rate has no value."""
        begun = np.isfinite(self.residual_norm) | (self.iterations > 0)
        for key, now in rows.items():
            before = rows.get(f"{key}~1") if isinstance(key, str) else None
            if before is not None and now.ndim == 1:
                self.suggested_cut[self.failed & ~begun & (now == before)] = 1.0

    def array(self, rows: Array, point: Shape, dtype: str, what: str) -> Array:
        """Rows of points as (*B, *point), NaN if a solve failed; marks what is not finite."""
        rows = np.broadcast_to(rows.reshape(-1, *point), (self.points, *point)).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            self.mark(np.asarray(~np.isfinite(as_vectors(rows)).all(axis=1)), what)
            rows[self.failed | self.lost] = np.nan
        return rows.reshape(self.shape + point)


def summed_like(like: Array, total: Array, point: Shape) -> Array:
    """`total`, summed over the points if `like` is one value for many of them."""
    leading = total.ndim - like.ndim
    repeated = tuple(
        leading + axis
        for axis in range(like.ndim - len(point))
        if like.shape[axis] == 1 and total.shape[leading + axis] != 1
    )
    return np.asarray(total.sum(repeated, keepdims=True).sum(tuple(range(leading))))
