"""A compiled graph as a function of arrays with one row per material point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.library import lib
from neml2_capi._ffi.tensor import Array
from neml2_capi.graph import Graph


@dataclass(frozen=True)
class Slot:
    """Value that a package takes or returns at one place."""

    shape: tuple[int, ...]  # of one point
    batched: bool  # else one value for all points of a run
    dtype: str


class Package:
    """A graph that is called with any number of points, in the runs that it takes.

    A run has as many points as the package was compiled for; and if the package takes a
    parameter as one value for all points, only points at which that is the same.
    """

    def __init__(self, leaf: str, name: str) -> None:
        self.name = name
        self.graph = Graph(Path(leaf, name), runtime="builtin")
        self._learn_inputs()
        self._learn_outputs()

    def _learn_inputs(self) -> None:
        # The batch axis is the leading one if it is dynamic. If none is, it is the first.
        given = self.graph.inputs
        dynamic = [bool(i.least) and i.least[0] != i.greatest[0] for i in given]
        self.fixed = not any(dynamic)
        batched = [bool(i.least) for i in given] if self.fixed else dynamic
        self.inputs = [
            Slot(i.greatest[1:] if rows else i.greatest, rows, i.dtype)
            for i, rows in zip(given, batched, strict=True)
        ]
        sizes = [
            (i.least[0], i.greatest[0]) for i, rows in zip(given, batched, strict=True) if rows
        ]
        self.least = max((least for least, _ in sizes), default=1)
        self.greatest = min((greatest for _, greatest in sizes), default=1)

    def _learn_outputs(self) -> None:
        # What has as many rows as there are points, for two numbers of them, has one per point.
        few = max(self.least, 2) if not self.fixed else self.least
        more = few if self.fixed else few + 1
        outputs = []
        made = (self.graph.flat(*self.filled(points)) for points in (few, more))
        for a, b in zip(*made, strict=True):
            if a.ndim and len(a) == few and len(b) == more:
                outputs.append(Slot(a.shape[1:], True, a.dtype.name))
            else:  # the same for all points, with or without an axis of length 1 in front
                outputs.append(
                    Slot(a.shape[1:] if a.shape[:1] == (1,) else a.shape, False, a.dtype.name)
                )
        self.outputs = outputs

    def filled(self, points: int) -> list[Array]:
        """Inputs that mean nothing, but make no matrix singular."""
        random = np.random.default_rng(0)
        arrays = []
        for slot in self.inputs:
            shape = (points, *slot.shape) if slot.batched else slot.shape
            floating = np.issubdtype(slot.dtype, np.floating)
            arrays.append(
                np.asarray(random.random(shape) + 0.5 if floating else np.zeros(shape)).astype(
                    slot.dtype
                )
            )
        return arrays

    def __call__(self, points: int, inputs: Sequence[Array]) -> list[Array]:
        """Run the graph on arrays of (points, *shape): what it returns, likewise."""
        return self.solve(points, inputs)[0]

    def solve(self, points: int, inputs: Sequence[Array]) -> tuple[list[Array], Array]:
        """Run a graph that solves linear systems: also at which points one was singular.

        What the graph returns there is NaN.
        """
        outputs = [np.empty((points, *slot.shape), slot.dtype) for slot in self.outputs]
        singular = np.zeros(points, dtype=bool)
        for rows in self._runs(points, inputs):
            self._run(rows, inputs, outputs, singular)
        return outputs, singular

    def _runs(self, points: int, inputs: Sequence[Array]) -> Iterator[Array]:
        """The points of each run."""
        common = [
            array.reshape(points, prod(slot.shape))
            for array, slot in zip(inputs, self.inputs, strict=True)
            if not slot.batched
        ]
        of_run = np.zeros(points, dtype=int)
        if common and points:
            of_run = np.unique(np.hstack(common), axis=0, return_inverse=True)[1].reshape(points)
        for run in range(of_run.max(initial=-1) + 1):
            rows = np.flatnonzero(of_run == run)
            yield from np.split(rows, range(self.greatest, len(rows), self.greatest))

    def _run(
        self, rows: Array, inputs: Sequence[Array], outputs: list[Array], singular: Array
    ) -> None:
        padded = np.pad(rows, (0, max(self.least - len(rows), 0)), mode="edge")
        given = [
            array[padded] if slot.batched else array[rows[0]]
            for array, slot in zip(inputs, self.inputs, strict=True)
        ]
        try:
            returned = self.graph.flat(*given)
        except FatalError as error:
            if error.cause != lib.NEML2_CAUSE_MATRIX_SINGULAR:
                raise
            if len(rows) > 1:  # the error does not say which
                for row in rows:
                    self._run(np.array([row]), inputs, outputs, singular)
                return
            singular[rows] = True
            for output in outputs:
                output[rows] = np.nan
            return
        for output, slot, value in zip(outputs, self.outputs, returned, strict=True):
            output[rows] = value[: len(rows)] if slot.batched else value.reshape(slot.shape)
