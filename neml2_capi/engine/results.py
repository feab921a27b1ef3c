"""Results of an evaluation: arrays in the batch of the caller."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.boundary import Boundary, K, Shape, Side
from neml2_capi.engine.packing import as_vectors

#: {output: {variable: block}}
Blocks = dict[str, dict[str, Array]]


@dataclass(frozen=True)
class Report:
    """Outcome of each point."""

    status: Array  #: int32, (*B,): the NEML2_* of the header
    iterations: Array  #: int32, (*B,)
    residual_norm: Array  #: (*B,)
    suggested_cut: Array  #: (*B,): by what to multiply the increment before another try
    residual_history: Array | None  #: (*B, miters), with the option collect_history
    unknowns: dict[str, Array]  #: last iterates of failed points, else NaN; empty where none failed
    non_finite: tuple[int, str] | None  #: the first such point, and what is not finite there


@dataclass(frozen=True)
class Evaluation:
    """Outputs, and what else was asked for; None is what was not."""

    outputs: dict[str, Array]  #: (*B, *point shape), by name
    report: Report  #: what became of each point
    jvp: dict[str, Array] | None = None  #: of outputs, along the tangents
    blocks: Blocks | None = None  #: {output: {input: (*B, *block shape)}}
    parameter_blocks: Blocks | None = None  #: {output: {parameter: (*B, *block shape)}}
    adjoints: dict[str, Array] | None = None  #: of inputs, each of its input's shape
    parameter_adjoints: dict[str, Array] | None = None  #: of parameters, likewise


@dataclass(frozen=True)
class Results:
    """The rows of a batch as arrays of shape (*B, ...), NaN where a point failed."""

    boundary: Boundary
    batch: Batch
    shape: Shape  # B

    def give(self, side: Side[K], rows: Mapping[K, Array], kind: str) -> None:
        """Mark points by what was given to them, (points, ...) each: the rule is the header's."""
        for key, each in rows.items():
            values = as_vectors(each)
            if np.issubdtype(values.dtype, np.floating):
                what = f"the {kind} {side.name(key)!r}"
                self.batch.excuse(np.asarray(~np.isfinite(values).all(axis=1)), what)
                self.batch.mark(np.asarray(np.isnan(values).any(axis=1)), what)

    def excuse_steps_of_zero(self, rows: Mapping[str, Array]) -> None:
        """Suggest no smaller step than one of zero, at which a rate has no value."""
        batch = self.batch
        begun = np.isfinite(batch.residual_norm) | (batch.iterations > 0)
        for key, now in rows.items():
            before = rows.get(f"{key}~1")
            if before is not None and now.ndim == 1:
                batch.suggested_cut[batch.failed & ~begun & (now == before)] = 1.0

    def array(self, rows: Array, point: Shape, dtype: str, what: str) -> Array:
        """Rows of points as (*B, *point); marks points where they are not finite."""
        rows = rows.reshape(self.batch.points, *point).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            self.batch.mark(np.asarray(~np.isfinite(as_vectors(rows)).all(axis=1)), what)
            rows[self.batch.failed | self.batch.lost] = np.nan
        return rows.reshape(self.shape + point)

    def block(self, rows: Array, point: Shape, batched: bool, dtype: str, what: str) -> Array:
        """Rows of points, or the one that all points share, which has no batch."""
        each = self.array(np.broadcast_to(rows, (self.batch.points, *point)), point, dtype, what)
        if batched or self.batch.points == 0:
            return each
        only: Array = rows[0].astype(dtype)
        return only

    def adjoint(self, rows: Array, like: Array, dtype: str, what: str) -> Array:
        """Rows of points, summed where `like` is one value for many points."""
        point = rows.shape[1:]
        total = self.array(rows, point, dtype, what)
        leading = total.ndim - like.ndim
        repeated = tuple(
            leading + axis
            for axis in range(like.ndim - len(point))
            if like.shape[axis] == 1 and total.shape[leading + axis] != 1
        )
        return np.asarray(total.sum(repeated, keepdims=True).sum(tuple(range(leading))))

    def outputs(self) -> dict[str, Array]:
        """The outputs by name."""
        side, values = self.boundary.outputs, self.batch.values
        return {
            v.name: self.array(values[key], v.point_shape, v.dtype, f"the output {v.name!r}")
            for key, v in zip(side.keys, side.variables, strict=True)
        }

    def report(self, history: bool) -> Report:
        """Outcome of each point."""
        batch, side = self.batch, self.boundary.unknowns
        return Report(
            status=batch.status.reshape(self.shape),
            iterations=batch.iterations.reshape(self.shape),
            residual_norm=batch.residual_norm.reshape(self.shape),
            suggested_cut=batch.suggested_cut.reshape(self.shape),
            residual_history=batch.history.reshape(self.shape + batch.history.shape[1:])
            if history
            else None,
            unknowns={
                v.name: batch.unknowns[key].reshape(self.shape + v.point_shape)
                for key, v in zip(side.keys, side.variables, strict=True)
                if batch.failed.any()
            },
            non_finite=batch.non_finite,
        )
