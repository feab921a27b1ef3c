"""What an evaluation gives: arrays in the batch of the caller."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.batch import Batch
from neml2_capi.engine.boundary import Boundary, Shape
from neml2_capi.engine.packing import as_vectors

#: {output: {variable: block}}
Blocks = dict[str, dict[str, Array]]


@dataclass(frozen=True)
class Report:
    """What became of each point."""

    status: Array  #: int32, (*B,): the NEML2_* of the header
    iterations: Array  #: int32, (*B,)
    residual_norm: Array  #: (*B,)
    suggested_cut: Array  #: (*B,): by what to multiply the increment before another try
    residual_history: Array | None  #: (*B, miters), with the option collect_history
    unknowns: dict[str, Array]  #: last iterates of failed points, else NaN; empty where none failed


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

    def array(self, rows: Array, point: Shape, dtype: str) -> Array:
        """Rows of points as (*B, *point)."""
        rows = rows.reshape(self.batch.points, *point).astype(dtype)
        if np.issubdtype(dtype, np.floating):
            rows[self.batch.failed] = np.nan
        return rows.reshape(self.shape + point)

    def block(self, rows: Array, point: Shape, batched: bool, dtype: str) -> Array:
        """Rows of points, or the one that all points share, which has no batch."""
        if batched or self.batch.points == 0:
            return self.array(np.broadcast_to(rows, (self.batch.points, *point)), point, dtype)
        only: Array = rows[0].astype(dtype)
        return only

    def adjoint(self, rows: Array, like: Array, dtype: str) -> Array:
        """Rows of points, summed where `like` is one value for many points."""
        point = rows.shape[1:]
        total = self.array(rows, point, dtype)
        leading = total.ndim - like.ndim
        repeated = tuple(
            leading + axis
            for axis in range(like.ndim - len(point))
            if like.shape[axis] == 1 and total.shape[leading + axis] != 1
        )
        return np.asarray(total.sum(repeated, keepdims=True).sum(tuple(range(leading))))

    def outputs(self) -> dict[str, Array]:
        """The outputs by name; marks points where one is not finite."""
        side, batch, arrays = self.boundary.outputs, self.batch, {}
        for key in side.keys:
            finite = np.isfinite(as_vectors(batch.values[key])).all(axis=1)
            batch.status[~finite & (batch.status == lib.NEML2_OK)] = lib.NEML2_NON_FINITE
        for key, v in zip(side.keys, side.variables, strict=True):
            arrays[v.name] = self.array(batch.values[key], v.point_shape, v.dtype)
        return arrays

    def report(self, history: bool) -> Report:
        """What became of each point."""
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
        )
