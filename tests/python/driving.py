"""Histories that tests drive: a cycle of strain, and steps that end at a recorded state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from states import Artifacts, recorded
from test_physics import DIRECTION

from neml2_capi import Model

Array = NDArray[np.float64]

TIMES = np.linspace(0.0, 10.0, 21)
AMPLITUDES = np.array([0.01, -0.006, 0.0005])
IMPLICIT = [
    "viscoplastic",
    "isotropic_hardening",
    "radial_return",
    "relaxation",
    "polycrystal",  # under a prescribed stress, with a constant of each grain
    "crystal",  # t~2
    "warm_start",  # an input of an output's name
]


def strain_at(time: Any) -> Array:
    """(3, 6): a cycle in 10 s."""
    phase = np.sin(2.0 * np.pi * np.asarray(time) / 10.0)
    strain: Array = (phase * AMPLITUDES)[..., np.newaxis] * DIRECTION
    return strain


STRAIN = np.stack([strain_at(time) for time in TIMES])


def equal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def few_iterations(artifacts: Artifacts, miters: int = 7) -> Model:
    model = Model(artifacts["viscoplastic"])
    model.options["miters"] = miters
    return model


def base_of(name: str) -> tuple[str, int]:
    base, _, age = name.partition("~")
    return base, int(age or 0)


def plan(name: str, steps: int) -> tuple[Array, dict[str, Array], dict[str, Array]]:
    """Times, forces and initial values whose first step is the state that was recorded."""
    inputs = recorded(name, "in")
    t, old = inputs["t"].ravel()[0], inputs["t~1"].ravel()[0]
    times: Array = old + (t - old) * np.arange(steps + 1.0)
    initial = {base_of(key)[0]: inputs[key] for key in inputs if base_of(key)[1] == 1}
    forces: dict[str, Array] = {}
    for key, value in inputs.items():
        if "~" not in key and key not in ("t", "equivalent_plastic_strain"):
            begin = initial.pop(key, value)
            forces[key] = np.stack([begin + n * (value - begin) for n in range(steps + 1)])
            forces[key][1] = value
    initial.pop("t")
    if "t~2" in inputs:
        initial["t~1"] = inputs["t~2"]
    return times, forces, initial
