"""The law of a material point as a differential-algebraic equation, integrated by SUNDIALS' IDA.

    python sundials.py ARTIFACT

The residual of backward Euler, r(x, x~1, t, t~1) = 0, has rates as (x - x~1) / (t - t~1). With a
step of one second and x~1 = x - x' it is F(t, x, x') = 0, which IDA integrates with orders and
steps of its own. The model's own steps are of the first order, and tend to the same.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray
from sksundae.ida import IDA

from neml2_capi import Model, drive

Array = NDArray[np.float64]

model = Model(sys.argv[1])
rate = 1e-3 * np.array([1, -0.5, -0.5, 0, 0, 0])  # of strain, 1/s
zero = {v.name: np.zeros(v.base_shape) for v in model.inputs}

# The model has one implicit segment: its unknowns, side by side, are x.
with model.solve(zero | {"t": np.array(1.0)}) as solve:
    (system,) = [solve.next()]
    assert system
    size = system.size
    index = {name: i[0].astype(int) for name, i in system.by_name(np.arange(size)[None]).items()}


def residual(time: float, x: Array, x_rate: Array, result: Array) -> None:
    """F(t, x, x')."""
    inputs = {f"{name}~1": (x - x_rate)[i] for name, i in index.items()}
    inputs |= {"strain": rate * time, "strain~1": rate * (time - 1)}
    inputs |= {"t": np.array(time), "t~1": np.array(time - 1)}
    with model.solve(inputs) as solve:
        system = solve.next()
        assert system
        result[:] = system.residual(x[None])[0]


times = np.linspace(0, 10, 6)
ida = IDA(residual, rtol=1e-9, atol=1e-9, calc_initcond="yp0", algebraic_idx=[])
curves = [ida.solve(times, np.zeros(size), np.zeros(size)).y[:, index["stress"][0]]]
for steps in (10, 100, 1000):
    t = np.linspace(0, 10, steps + 1)
    curves.append(drive(model, t, {"strain": t[:, None] * rate})["stress"][:: steps // 5, 0])
print("  time  axial stress: IDA  10 steps  100 steps  1000 steps")
for row in zip(times, *curves, strict=True):
    print("{:4.0f} s {:13.4f} MPa {:9.4f} {:10.4f} {:11.4f}".format(*row))
