"""The inputs of each model: one step of loading from a state that some steps led to.

All points differ. They flow plastically, so that Newton's method takes its usual number of steps;
the first point, which is the only one of a batch of one, takes the median number.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model

Array = NDArray[np.float64]
Arrays = dict[str, Array]
Random = np.random.Generator

# Points that go through a history of their own. Further points repeat them, loaded a little more.
DISTINCT = 1000
STEPS = 3
PATH_STEPS = 100


def _directions(random: Random, points: int) -> Array:
    """Strains of length one: tension across a random axis with some shear, and little dilation."""
    strain = random.standard_normal((points, 6))
    strain[:, :3] -= 0.8 * strain[:, :3].mean(axis=1, keepdims=True)
    result: Array = strain / np.linalg.norm(strain, axis=1, keepdims=True)
    return result


def _times(step: float, steps: int, points: int) -> Array:
    return np.repeat(step * np.arange(steps + 1.0)[:, None], points, axis=1)


def _strained(name: str, state: dict[str, tuple[int, ...]]) -> Callable[[Random, int], Any]:
    """Straining by 0.001 to 0.003 in each step of 1 s from a state of zeros, the last elsewhere."""

    def loading(random: Random, points: int) -> tuple[Arrays, Arrays]:
        size = random.uniform(1e-3, 3e-3, (points, 1))
        steps = np.repeat(size * _directions(random, points)[None], STEPS + 1, axis=0)
        steps[0], steps[STEPS] = 0.0, size * _directions(random, points)
        forces = {name: steps.cumsum(axis=0)}
        if state:
            forces["t"] = _times(1.0, STEPS, points)
        return forces, {key: np.zeros((points, *shape)) for key, shape in state.items()}

    return loading


def _crystal(random: Random, points: int) -> tuple[Arrays, Arrays]:
    """Stretching with some spin, of crystals in random orientations, 0.01 s a step."""
    rate = random.uniform(0.5, 1.0, (points, 1)) * [0.1, -0.05, -0.05, 0.02, 0.0, -0.01]
    forces = {
        "deformation_rate": np.repeat(rate[None], STEPS + 1, axis=0),
        "vorticity": np.broadcast_to([0.1, -0.05, -0.05], (STEPS + 1, points, 3)),
        "t": _times(0.01, STEPS, points),
    }
    state = {
        "elastic_strain": np.zeros((points, 6)),
        "dislocation_density": np.tile(10.0 + 0.1 * np.arange(12.0), (points, 1)),
        "orientation": random.uniform(-0.3, 0.3, (points, 3)),
    }
    return forces, state


_HARDENING = {"stress": (6,), "equivalent_plastic_strain": ()}
_RETURN = {
    "plastic_strain": (6,),
    "equivalent_plastic_strain": (),
    "kinematic_plastic_strain": (6,),
    "gamma": (),
}

LOADINGS: dict[str, Callable[[Random, int], tuple[Arrays, Arrays]]] = {
    "elasticity": _strained("strain", {}),
    "isotropic_hardening": _strained("strain", _HARDENING),
    "isotropic_hardening_parallel": _strained("strain", _HARDENING),
    "chaboche": _strained("strain", {**_HARDENING, "X1": (6,), "X2": (6,)}),
    "radial_return": _strained("total_strain", _RETURN),
    "crystal": _crystal,
}
# Inputs that grow a little from one repetition of the points to the next.
_DRIVING = {"strain", "total_strain", "deformation_rate"}


def _given(model: Model, forces: Arrays, state: Arrays, step: int) -> Arrays:
    given = {}
    for name in model.inputs.names:
        base, _, age = name.partition("~")
        given[name] = forces[base][step - bool(age)] if base in forces else state[base]
    return given


def _last_step(model: Model, name: str) -> tuple[Arrays, NDArray[np.int32]]:
    """The inputs of the distinct points in the last step, and the Newton steps they take."""
    forces, state = LOADINGS[name](np.random.default_rng(0), DISTINCT)
    for step in range(1, STEPS + 1):
        given = _given(model, forces, state, step)
        outputs, report = model.evaluate(given)
        if report["status"].any():
            raise RuntimeError(f"{name}: {np.count_nonzero(report['status'])} points failed")
        state = {key: outputs[key] for key in state}
    return given, report["iterations"]


def write_inputs(name: str, artifact: Path, folder: Path, points: int) -> float:
    """Write inputs/ and tangents/ for `points` points and path/; the mean count of Newton steps."""
    with Model(artifact) as model:
        given, iterations = _last_step(model, name)
        typical = int(np.argsort(iterations, kind="stable")[DISTINCT // 2])
    order = np.arange(DISTINCT)
    order[[0, typical]] = order[[typical, 0]]
    where = order[np.arange(points) % DISTINCT]
    more = 1.0 + 1e-5 * (np.arange(points) // DISTINCT)
    random = np.random.default_rng(1)
    inputs, tangents = {}, {}
    for key, value in given.items():
        factor = more.reshape(-1, *[1] * (value.ndim - 1)) if key in _DRIVING else 1.0
        inputs[key] = value[where] * factor
        tangents[key] = np.abs(value).max() * random.standard_normal(inputs[key].shape)
    _write(folder / "inputs", inputs)
    _write(folder / "tangents", tangents)
    if name in ("isotropic_hardening", "chaboche"):
        _write(folder / "path", _path(random))
    return float(iterations.mean())


def _path(random: Random) -> Arrays:
    """Two and a half cycles of straining of DISTINCT points, step by step."""
    phase = 2 * np.pi * np.arange(PATH_STEPS + 1) / 40
    strain = random.uniform(5e-3, 1e-2, (DISTINCT, 1)) * _directions(random, DISTINCT)
    cycles = np.sin(phase)[:, None, None] * strain
    return {"strain": cycles, "t": _times(1.0, PATH_STEPS, DISTINCT)}


def _write(folder: Path, arrays: Arrays) -> None:
    """The form of arrays.h."""
    folder.mkdir(parents=True)
    lines = []
    for name, array in arrays.items():
        np.ascontiguousarray(array).tofile(folder / f"{name}.bin")
        lines.append(" ".join(map(str, (name, *array.shape[1:]))) + "\n")
    (folder / "index.txt").write_text("".join(lines))
