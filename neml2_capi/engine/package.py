"""A compiled graph as a function of arrays with one row per material point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from neml2_capi._ffi.errors import FatalError
from neml2_capi._ffi.labels import Array
from neml2_capi._ffi.library import lib
from neml2_capi.graph import Graph


class Slot(NamedTuple):
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
        # The batch axis is the leading one if it is dynamic. If none is, it is the first.
        given = self.graph.inputs
        dynamic = [i for i in given if i.least[:1] != i.greatest[:1]]
        self.fixed = not dynamic
        batched = dynamic or [i for i in given if i.least]
        self.least = max((i.least[0] for i in batched), default=1)
        self.greatest = min((i.greatest[0] for i in batched), default=1)
        self.inputs = [
            Slot(i.greatest[1:] if i in batched else i.greatest, i in batched, i.dtype)
            for i in given
        ]
        made: Sequence[Any] = self.graph.outputs
        # Of an operator from outside, a package does not know what it returns.
        if any(None in (output.shape, output.dtype) for output in made):
            trial = zip(self.filled(max(self.least, 2)), self.inputs, strict=True)
            made = self.graph.flat(*[rows if slot.batched else rows[0] for rows, slot in trial])
            self.outputs = [Slot(array.shape[1:], True, array.dtype.name) for array in made]
        else:
            self.outputs = [self._output(output.shape, output.dtype) for output in made]

    def _output(self, shape: Any, dtype: str) -> Slot:
        rows = (self.least if self.fixed else None,)
        batched = shape[:1] == rows
        # What is the same for all points may have an axis of length 1 in front.
        return Slot(shape[1:] if batched or shape[:1] == (1,) else shape, batched, dtype)

    def filled(self, points: int) -> list[Array]:
        """Inputs that mean nothing, but make no matrix singular: (points, *shape) each."""
        random = np.random.default_rng(0)
        arrays = []
        for slot in self.inputs:
            shape = (points, *slot.shape)
            floating = np.issubdtype(slot.dtype, np.floating)
            values = random.random(shape) + 0.5 if floating else np.zeros(shape)
            arrays.append(np.asarray(values).astype(slot.dtype))
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
