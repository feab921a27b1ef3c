"""The plate with a hole of examples/fem: one eighth of it, by symmetry; lengths in mm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RADIUS, HALF_WIDTH, HALF_HEIGHT, HALF_THICKNESS = 5.0, 15.0, 20.0, 2.0
ELEMENTS = (6, 12, 3)  # outwards from the hole, around its quarter, through half the thickness


def displacement(time: float) -> float:
    """The end of the plate is pulled for 10 s."""
    return 0.08 * time / 10


def grid() -> tuple[Array, NDArray[np.int64]]:
    """Points (3, n) of the unit cube, and the 8 of each element, x fastest in each."""
    ticks = [np.linspace(0, 1, n + 1) for n in ELEMENTS]
    points = np.stack(np.meshgrid(*ticks, indexing="ij")).reshape(3, -1)
    number = np.arange(points.shape[1]).reshape([len(t) for t in ticks])
    i, j, k = (m.ravel() for m in np.indices(ELEMENTS))
    corners = [(a, b, c) for c in (0, 1) for b in (0, 1) for a in (0, 1)]
    return points, np.stack([number[i + a, j + b, k + c] for a, b, c in corners], axis=1)


def from_unit_cube(s: Array) -> Array:
    """Places in the plate of points (3, n) of the unit cube."""
    angle, outwards = np.pi / 2 * s[1], s[0] * (1 + s[0]) / 2
    hole = RADIUS * np.array([np.cos(angle), np.sin(angle)])
    edge = np.array(
        [HALF_WIDTH * np.minimum(1, 2 - 2 * s[1]), HALF_HEIGHT * np.minimum(1, 2 * s[1])]
    )
    return np.vstack([(1 - outwards) * hole + outwards * edge, HALF_THICKNESS * s[2:]])
