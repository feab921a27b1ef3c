"""One state of each test model, of few points, as tests/data/make_derivatives.py recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]
Artifacts = Mapping[str, Path]

RECORDED: Arrays = dict(np.load(Path(__file__).resolve().parents[1] / "data" / "derivatives.npz"))

EXPLICIT = ["elasticity_parameters", "elasticity_grains", "grains"]
DIRECT = [
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "polycrystal",
    "crystal",
    "warm_start",
]
KRYLOV = ["gmres", "bicgstab"]
SUBSTEPPING = ["substepping"]
IMPLICIT = DIRECT + KRYLOV + SUBSTEPPING
ALL = EXPLICIT + IMPLICIT


def recorded(name: str, kind: str) -> dict[str, Array]:
    """What was recorded of a model under `kind`, "in" or "jac" for example, by name."""
    prefix = f"{name}/{kind}/"
    return {k[len(prefix) :]: v.copy() for k, v in RECORDED.items() if k.startswith(prefix)}


def load(
    artifacts: Artifacts,
    name: str,
    convergence: str = "point",
    engine: str = "native",
    runtime: str = "auto",
) -> Model:
    """The model with the tolerances of the record, where a solve ends at round-off."""
    model = Model(artifacts[name], engine=engine, runtime=runtime)
    model.options["convergence"] = convergence
    if f"{name}/solver" in RECORDED:
        for option, value in zip(
            ("atol", "rtol", "miters"), RECORDED[f"{name}/solver"], strict=True
        ):
            model.options[option] = value
    return model


def random_like(values: Arrays) -> dict[str, Array]:
    """Directions of the magnitude of the values, so that no term of a product drowns."""
    random = np.random.default_rng(7)
    return {
        name: np.abs(value).max(initial=1e-3) * random.standard_normal(value.shape)
        for name, value in values.items()
    }


def repeated(inputs: Arrays, points: int) -> dict[str, Array]:
    """`points` different points: the recorded ones again and again, each loaded a little more."""
    count = len(next(iter(inputs.values())))
    factor = 1.0 + 1e-4 * (np.arange(points) // count)
    where = np.arange(points) % count
    forces = {"strain", "total_strain", "applied_stress", "deformation_rate"}
    return {
        name: value[where] * factor.reshape(-1, *(1,) * (value.ndim - 1))
        if name in forces
        else value[where]
        for name, value in inputs.items()
    }
