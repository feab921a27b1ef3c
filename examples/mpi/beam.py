"""A beam in bending, whose elements are distributed over the ranks of MPI.

    mpiexec -n 4 python -m mpi4py beam.py ARTIFACT FILE [DEVICE...]

Each rank has a contiguous block of the elements, with their Gauss points, and a model of its own;
of the devices, "cpu" unless some are named, each of the ranks of a node keeps one. If points of
one rank fail, all cut the step. Rank 0 gathers the states: it prints the bending moment, and writes
the states of all points to FILE.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Device, Error, Model, Scheduler, mpi

Array = NDArray[np.float64]

# The mesh: equal bricks, ordered by their distance from the neutral plane x = 0. Lengths in mm.
BRICKS = np.array([7, 4, 5])
LENGTHS = np.array([10.0, 8.0, 20.0]) / BRICKS
CORNERS = np.array(
    [
        [-1, -1, -1],
        [1, -1, -1],
        [1, 1, -1],
        [-1, 1, -1],
        [-1, -1, 1],
        [1, -1, 1],
        [1, 1, 1],
        [-1, 1, 1],
    ]
)

# Bent to and fro; in s, and 1/mm.
PATH = [(0.0, 0.0), (5.0, 1e-3), (10.0, 1e-2), (15.0, -1e-2), (20.0, 0.0)]

# The state of one point, side by side.
STATE = {"stress": 6, "equivalent_plastic_strain": 1, "X1": 6, "X2": 6}

State = Mapping[str, Array]

COMM = MPI.COMM_WORLD


def bend(x: Array) -> Array:
    """The displacement of a beam whose curvature is 1. Plastic flow keeps the volume."""
    poisson = 0.5
    u = (x[..., 2] * x[..., 2] + poisson * (x[..., 0] * x[..., 0] - x[..., 1] * x[..., 1])) / 2
    return np.stack([u, poisson * x[..., 0] * x[..., 1], -x[..., 0] * x[..., 2]], axis=-1)


def strains(elements: NDArray[np.int64]) -> Array:
    """The strains at the Gauss points of elements, at a curvature of 1: (points, 6), Mandel."""
    place = np.stack(np.unravel_index(elements, tuple(BRICKS)), axis=-1)
    gradient = np.zeros((len(elements), len(CORNERS), 3, 3))
    for corner in CORNERS:
        u = bend(LENGTHS * (place + (1 + corner) / 2))
        factor = 1 + corner * CORNERS / np.sqrt(3.0)  # at each of the Gauss points
        for j in range(3):
            slope = corner[j] * factor[:, (j + 1) % 3] * factor[:, (j + 2) % 3] / (4 * LENGTHS[j])
            gradient[..., j] += u[:, None, :] * slope[:, None]
    normal = [gradient[..., i, i] for i in range(3)]
    shear = [
        np.sqrt(0.5) * (gradient[..., j, k] + gradient[..., k, j])
        for j, k in ((1, 2), (2, 0), (0, 1))
    ]
    return np.stack(normal + shear, axis=-1).reshape(-1, 6)


def tell_cut(time: Array, error: ConvergenceError) -> None:
    """Say on rank 0 how many points of all ranks failed. Collective."""
    mask = error.converged_mask  # None if all points of this rank are well
    failed = COMM.allreduce(0 if mask is None else int(np.count_nonzero(~mask)))
    if COMM.rank == 0:
        print(f"the step to {time:g} s is cut: {failed} points failed")


def advance(model: Model, unit: Array, old: State, step: int) -> State:
    """Bring the points of all ranks through one step: at once, or in smaller ones. Collective."""
    (start, first), (end, last) = PATH[step - 1 : step + 1]
    time, strain = start, first * unit
    done, part = 0.0, 1.0  # fractions of the step
    while done < 1:
        s = done + part
        inputs = {f"{name}~1": value for name, value in old.items()}
        inputs |= {"t~1": np.array(time), "strain~1": strain}
        inputs |= {"t": np.array((1 - s) * start + s * end)}
        inputs |= {"strain": ((1 - s) * first + s * last) * unit}
        try:
            with mpi.together():
                new = model.forward(inputs)
        except ConvergenceError as error:  # on every rank
            tell_cut(inputs["t"], error)
            part /= 2
            if part < 1 / 64:
                raise
            continue
        time, strain, old = float(inputs["t"]), inputs["strain"], new
        done, part = s, min(part, 1 - s)
    return old


def gather(state: State, begins: NDArray[np.int64]) -> Array | None:
    """The states of all points, in their order, on rank 0. Collective."""
    own = np.concatenate([state[name].reshape(-1, size) for name, size in STATE.items()], axis=1)
    points = len(CORNERS) * begins
    states = np.empty((points[-1], own.shape[1])) if COMM.rank == 0 else None
    COMM.Gatherv(own, [states, own.shape[1] * np.diff(points)])
    return states


def bending_moment(states: Array) -> float:
    """Of the stresses in a mean cross section, in N mm."""
    layers = np.arange(len(states)) // (len(CORNERS) * BRICKS[1] * BRICKS[2])
    x = LENGTHS[0] * (layers + (1 + np.resize(CORNERS[:, 0], len(states)) / np.sqrt(3.0)) / 2)
    return float(-np.sum(states[:, 2] * x) * LENGTHS[0] * LENGTHS[1] / len(CORNERS) / BRICKS[2])


def main(artifact: str, file: str, *devices: str) -> None:
    """Bend the beam."""
    begins = np.prod(BRICKS) * np.arange(COMM.size + 1) // COMM.size
    unit = strains(np.arange(begins[COMM.rank], begins[COMM.rank + 1]))
    scheduler = Scheduler([Device(name, batch_size=4096) for name in devices or ("cpu",)])
    mpi.keep_rank(scheduler)
    with mpi.together():
        model = Model(artifact, scheduler=scheduler)

    state: State = {
        name: np.zeros((len(unit), size) if size > 1 else len(unit)) for name, size in STATE.items()
    }
    for step in range(1, len(PATH)):
        state = advance(model, unit, state, step)
        states = gather(state, begins)
        if states is not None:
            time, curvature = PATH[step]
            moment = bending_moment(states)
            print(f"at {time:g} s: curvature {curvature:g} /mm, moment {moment:.6g} N mm")
    if states is not None:
        Path(file).write_bytes(states.tobytes())


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(
            f"usage: mpiexec -n RANKS python -m mpi4py {sys.argv[0]} ARTIFACT FILE [DEVICE...]"
        )
    try:
        main(*sys.argv[1:])
    except Error as error:
        raise SystemExit(f"rank {COMM.rank}: {error}") from error
