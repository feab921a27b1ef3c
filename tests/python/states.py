"""One state of each test model, of few points, as tests/data/make_derivatives.py recorded it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neml2_capi import Model, Scheduler

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "models"))

from recipes import KERNEL_RECIPES, RECIPES  # noqa: E402  (tests/models is no package)

Array = NDArray[np.float64]
Arrays = Mapping[str, Array]
Artifacts = Mapping[str, Path]

RECORDED: Arrays = dict(np.load(TESTS / "data" / "derivatives.npz"))

#: Three points of tests/models/bar.i: MPa and s.
BAR: Arrays = {
    "stress": np.array([150.0, 400.0, 4000.0]),
    "stress~1": np.array([100.0, 300.0, 0.0]),
    "strain~1": np.array([0.0, 0.01, 0.0]),
    "strain~2": np.array([0.0, 0.009, 0.0]),
    "t": np.full(3, 3.0),
    "t~1": np.full(3, 1.0),
    "t~2": np.zeros(3),
}

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


def state_of(name: str, model: Model) -> dict[str, Array]:
    """A state of any model of tests/models/compile.py: that recorded of it, or of another model,
    of the same input file if there is one, that takes the same inputs; a guess that no state has
    is what was before."""
    shapes = {v.name: (*v.sub_batch_shape, *v.base_shape) for v in model.inputs}
    whole = list(_states(name))
    guessed = [_with_guesses(values, shapes) for values in whole]
    for values in (*whole, *guessed):
        if all(n in values and values[n].shape[1:] == shape for n, shape in shapes.items()):
            return {n: values[n].astype(model.dtype) for n in shapes}
    raise LookupError(
        f"no state is recorded that has the inputs {shapes} of {name}: record one with "
        "tests/data/make_derivatives.py, and name the model in states.py"
    )


def _with_guesses(values: Arrays, names: Iterable[str]) -> Arrays:
    before = {name: values[f"{name}~1"] for name in names if f"{name}~1" in values}
    return {**before, **values}


def _states(name: str) -> Iterator[Arrays]:
    """All that are recorded, the likeliest one first."""
    of = {**RECIPES, **KERNEL_RECIPES}[name]

    def likelihood(other: str) -> tuple[bool, bool, int]:
        same = other in RECIPES and RECIPES[other].input == of.input
        return other == name, same, ALL.index(other)

    for other in sorted(ALL, key=likelihood, reverse=True):
        yield recorded(other, "in")
    reference, prefix = np.load(TESTS / "data" / "reference.npz"), "viscoplastic/in/"
    yield {k[len(prefix) :]: reference[k][-1] for k in reference if k.startswith(prefix)}
    yield BAR


def load(
    artifacts: Artifacts,
    name: str,
    convergence: str = "point",
    engine: str = "native",
    runtime: str = "auto",
    scheduler: Scheduler | None = None,
) -> Model:
    """The model with the tolerances of the record, if a solve ends at round-off."""
    dtype = "float32" if "float32" in RECIPES[name].options else "float64"
    if scheduler is None:
        model = Model(artifacts[name], dtype=dtype, engine=engine, runtime=runtime)
    else:
        model = Model(artifacts[name], dtype=dtype, scheduler=scheduler)
    model.options["convergence"] = convergence
    if f"{name}/solver" in RECORDED:
        for option, value in zip(
            ("atol", "rtol", "miters"), RECORDED[f"{name}/solver"], strict=True
        ):
            model.options[option] = value
    return model


def random_like(values: Arrays) -> dict[str, Array]:
    """Directions of the magnitude and type of the values, so that no term of a product drowns."""
    random = np.random.default_rng(7)
    return {
        name: (np.abs(value).max(initial=1e-3) * random.standard_normal(value.shape)).astype(
            value.dtype
        )
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


def first_step(model: Model, strain: Any, dt: float = 1.0) -> dict[str, Any]:
    """The inputs of a step of length `dt` to a strain; all else is zero."""
    virgin = {variable.name: np.zeros(variable.base_shape) for variable in model.inputs}
    return {**virgin, "strain": strain, "t": dt}
