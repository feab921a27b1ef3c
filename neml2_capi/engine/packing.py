"""Values by name, side by side in the groups that a residual takes, and in flat vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from neml2_capi._ffi.tensor import Array
from neml2_capi.engine.artifact import Group, Variable


class Packing:
    """Groups of values; each array has one row per point in front."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.groups = groups
        self.variables: list[Variable] = [v for group in groups for v in group.variables]
        self.dense = all(group.structure == "dense" for group in groups)

    def pack(self, values: Mapping[str, Array]) -> list[Array]:
        """Pack one array per group: (points, *sub_batch_shape, width); dense: (points, width)."""
        return [
            np.concatenate(
                [
                    values[v.name].reshape(len(values[v.name]), *_outer(group), _width(v, group))
                    for v in group.variables
                ],
                axis=-1,
            )
            for group in self.groups
        ]

    def unpack(self, arrays: Sequence[Array]) -> dict[str, Array]:
        """The values in arrays of the groups."""
        values = {}
        for group, array in zip(self.groups, arrays, strict=True):
            begin = 0
            for v in group.variables:
                end = begin + _width(v, group)
                values[v.name] = array[..., begin:end].reshape(len(array), *v.point_shape)
                begin = end
        return values

    def split(self, vector: Array) -> list[Array]:
        """The groups in flat vectors, (points, size)."""
        arrays, begin = [], 0
        for group in self.groups:
            shape = (*_outer(group), sum(_width(v, group) for v in group.variables))
            end = begin + prod(shape)
            arrays.append(vector[:, begin:end].reshape(len(vector), *shape))
            begin = end
        return arrays


def flat(arrays: Sequence[Array]) -> Array:
    """Arrays of groups as flat vectors, (points, size)."""
    return np.concatenate([as_vectors(array) for array in arrays], axis=1)


def as_vectors(array: Array) -> Array:
    """(points, *shape) as (points, size)."""
    return array.reshape(len(array), prod(array.shape[1:]))


def _outer(group: Group) -> tuple[int, ...]:
    return group.sub_batch_shape if group.structure == "block" else ()


def _width(variable: Variable, group: Group) -> int:
    return prod(variable.point_shape) // prod(_outer(group))
