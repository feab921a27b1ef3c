"""Helpers of the scenarios in Python: models, strains, and the printing of results."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neml2_capi import Call, Model

Array = NDArray[np.float64]

# Every language computes strains by these operations in this order: all get the same bits.
DIRECTION = np.array([1, -0.3, -0.25, 0.1, -0.2, 0.05])

YOUNG, POISSON = 200e3, 0.3

# The state of a viscoplastic point in one array.
STATE_SIZE = 19
STATE: dict[str, slice | int] = {
    "stress": slice(0, 6),
    "equivalent_plastic_strain": 6,
    "X1": slice(7, 13),
    "X2": slice(13, 19),
}


def artifact(name: str) -> Path:
    return Path(os.environ["NEML2_TEST_ARTIFACTS"]) / name


def load(name: str) -> Model:
    return Model(artifact(name))


def elastic_strains(points: int) -> Array:
    p = np.arange(points)[:, np.newaxis]
    return 1e-3 * DIRECTION * (1 + 0.1 * p)


def cycle_strains(points: Sequence[int], k: int) -> Array:
    """The strains of `points` in step k of the cycle."""
    triangle = k / 5 if k <= 5 else 2 - k / 5 if k <= 15 else k / 5 - 4
    amplitude = 0.01 * triangle / (1 + 0.5 * np.asarray(points)[:, np.newaxis])
    strain: Array = amplitude * DIRECTION
    return strain


def hooke(young: ArrayLike, strain: Array) -> Array:
    """Hooke's law in Mandel notation; one modulus, or one per point."""
    young = np.asarray(young)[..., np.newaxis]
    trace = strain[:, :3].sum(axis=1, keepdims=True)
    stress: Array = young / (1 + POISSON) * strain
    stress[:, :3] += young * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)) * trace
    return stress


class Points:
    """Viscoplastic points in one step of a history, bound in a call."""

    def __init__(self, model: Model, points: Sequence[int], derivatives: bool = False) -> None:
        """`points` are their numbers among all."""
        n = len(points)
        self.numbers = points
        self.time, self.old_time = np.zeros(()), np.zeros(())
        self.strain, self.old_strain = np.zeros((n, 6)), np.zeros((n, 6))
        self.state, self.old_state = np.zeros((n, STATE_SIZE)), np.zeros((n, STATE_SIZE))
        forces = {"t": self.time, "strain": self.strain}
        old_forces = {"t~1": self.old_time, "strain~1": self.old_strain}
        old_state = {f"{name}~1": self.old_state[:, part] for name, part in STATE.items()}
        self.call: Call = model.bind(
            {**forces, **old_forces, **old_state},
            {name: self.state[:, part] for name, part in STATE.items()},
            derivatives=derivatives,
            report=True,
        )

    def load(self, k: int) -> None:
        """Time and strains of step k of the cycle."""
        self.time[...] = k
        self.strain[...] = cycle_strains(self.numbers, k)

    def accept(self) -> None:
        """Copy new values over old ones."""
        self.old_time[...] = self.time
        self.old_strain[...] = self.strain
        self.old_state[...] = self.state


def print_points(name: str, values: Array) -> None:
    """Print a line per point."""
    for point in values.reshape(len(values), -1):
        print(name, *(format(value, ".17g") for value in point))


def near(values: Array, expected: Array, tolerance: float = 1e-12) -> bool:
    """Tell whether both are equal to `tolerance`, relative to the greatest `expected` one."""
    return bool(np.abs(values - expected).max() <= tolerance * np.abs(expected).max())
