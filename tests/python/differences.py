"""Derivatives by central differences of sixth order."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_STEPS = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
_WEIGHTS = np.array([-1.0, 9.0, -45.0, 45.0, -9.0, 1.0]) / 60.0


def central_differences(
    function: Callable[[Array], Array], value: Array, step: float, point_axes: int
) -> Array:
    """The derivative of a `function` of a batch of points, [*B, *point shape] for both.

    `value` has `point_axes` axes after its batch. The result is [*B, *out, *in]: `function` is
    called once, with all perturbations of all components as two more batch axes.
    """
    point = value.shape[value.ndim - point_axes :]
    components = int(np.prod(point))
    batch = (1,) * (value.ndim - point_axes)
    units = np.eye(components).reshape(components, 1, *batch, *point)
    steps = _STEPS.reshape(-1, *batch, *(1,) * point_axes)
    results = function(value + step * steps * units)
    slopes = np.tensordot(_WEIGHTS, results, axes=(0, 1)) / step
    block: Array = np.moveaxis(slopes, 0, -1)
    return block.reshape(*block.shape[:-1], *point)
