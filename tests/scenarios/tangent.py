"""The consistent tangent of a plastic step.

The load turns before, and the back stresses do not follow at once: the tangent is not symmetric.
"""

import numpy as np
from scenario import DIRECTION, Array, Points, load, print_points

N, STEPS, H = 3, 5, 1e-7

points = Points(load("combined_hardening"), range(N), derivatives=True)
for k in range(1, STEPS + 1):
    points.load(k)
    points.call()
    points.accept()
points.time[...] = STEPS + 1
turn = 0.005 / (1 + 0.5 * np.arange(N))
turned = points.strain + turn[:, np.newaxis] * DIRECTION[::-1]
points.strain[...] = turned
points.call()
tangent = points.call.derivatives["stress"]["strain"].copy()


def stress_at(shift: Array) -> Array:
    points.strain[...] = turned + shift
    points.call()
    stress: Array = points.state[:, :6].copy()
    return stress


columns = [(stress_at(H * e) - stress_at(-H * e)) / (2 * H) for e in np.eye(6)]
for block, difference in zip(tangent, np.stack(columns, axis=-1), strict=True):
    norm = np.linalg.norm(block)
    assert np.linalg.norm(block - difference) < 1e-6 * norm
    assert np.linalg.norm(block - block.T) > 1e-4 * norm
print_points("tangent", tangent)
