"""Values by name, side by side in the groups that a residual takes, and in flat vectors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from neml2_capi._ffi.labels import Array
from neml2_capi.engine.description import Key, Shape, point_shape


class Packing:
    """Groups of values; each array has one row per point in front."""

    def __init__(self, groups: Any) -> None:
        self.variables = [v for group in groups for v in group.variables]
        #: The components of each variable.
        self.sizes = {v.name: prod(point_shape(v)) for v in self.variables}
        #: For each group its axes before the last, and the names and widths of its variables.
        self.groups: list[tuple[Shape, dict[str, int]]] = []
        for group in groups:
            outer = tuple(group.sub_batch_shape) if group.structure == "block" else ()
            widths = {v.name: self.sizes[v.name] // prod(outer) for v in group.variables}
            self.groups.append((outer, widths))

    def pack(self, values: Mapping[Key, Array]) -> list[Array]:
        """Pack one array per group: (points, *sub_batch_shape, width); dense: (points, width)."""
        return [
            np.concatenate(
                [values[n].reshape(len(values[n]), *outer, width) for n, width in widths.items()],
                axis=-1,
            )
            for outer, widths in self.groups
        ]

    def split(self, vector: Array) -> list[Array]:
        """The groups in flat vectors, (points, size)."""
        shapes = [(*outer, sum(widths.values())) for outer, widths in self.groups]
        parts = zip(shapes, split_axis(vector, map(prod, shapes), 1), strict=True)
        return [part.reshape(len(vector), *shape) for shape, part in parts]

    def unpack(self, vector: Array) -> dict[str, Array]:
        """The values in flat vectors."""
        pieces: dict[str, Array] = {}
        for array, (_, widths) in zip(self.split(vector), self.groups, strict=True):
            pieces.update(zip(widths, split_axis(array, widths.values(), -1), strict=True))
        return {
            v.name: pieces[v.name].reshape(len(vector), *point_shape(v)) for v in self.variables
        }


def split_axis(array: Array, sizes: Iterable[int], axis: int) -> list[Array]:
    """The parts of an axis, one after another."""
    return np.split(array, np.cumsum(list(sizes))[:-1], axis)


def flat(arrays: Sequence[Array]) -> Array:
    """Arrays of groups as flat vectors, (points, size)."""
    return np.concatenate([as_vectors(array) for array in arrays], axis=1)


def as_vectors(array: Array) -> Array:
    """(points, *shape) as (points, size)."""
    return array.reshape(len(array), prod(array.shape[1:]))
