"""Four threads share one model, each with a call and points of its own."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scenario import Array, Points, load, print_points

N, THREADS, STEPS = 64, 4, 5

model = load("viscoplastic")


def state_after_steps(numbers: Sequence[int]) -> Array:
    points = Points(model, numbers)
    for k in range(1, STEPS + 1):
        points.load(k)
        points.call()
        points.accept()
    return points.state


serial = state_after_steps(range(N))
quarters = [range(N)[i : i + N // THREADS] for i in range(0, N, N // THREADS)]
with ThreadPoolExecutor(THREADS) as pool:
    parallel = np.concatenate(list(pool.map(state_after_steps, quarters)))
np.testing.assert_array_equal(parallel, serial)
print_points("state", serial[[0, -1]])
