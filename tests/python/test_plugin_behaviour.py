"""The behaviour that a plug-in has for hosts of MFront's generic interface."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from plugged import HARDENING, SHEAR, expected, program

from neml2_capi.plugin import make

pytestmark = pytest.mark.native


def behaviour(library: Path, *arguments: str) -> tuple[list[str], dict[str, NDArray[np.float64]]]:
    """Lines of the tables that the program in C finds in a library, and the behaviour's results."""
    done = subprocess.run(
        [program("generic"), library, *arguments], capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    told = [line[2:] for line in lines if line.startswith("#")]
    given = (line.split() for line in lines if not line.startswith("#"))
    return told, {word: np.array([float(n) for n in numbers]) for word, *numbers in given}


def test_the_generic_behaviour_gives_what_the_model_gives(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    told, found = behaviour(alone / "libsteel.so")
    assert told == [
        "MaterialProperties E yield_stress",
        "InternalStateVariables equivalent_plastic_strain:0 X1:1 X2:1",
        "ExternalStateVariables",
        "TangentOperatorBlocks Stress Strain",
        "kind 1 1 1",
        "1 ",
    ]
    as_umat = expected()
    stress, tangent = as_umat["stress"] * SHEAR, as_umat["ddsdde"].reshape(6, 6).T
    states = np.concatenate(
        [as_umat["statev"][:1], as_umat["statev"][1:7] * SHEAR, as_umat["statev"][7:] * SHEAR]
    )
    np.testing.assert_allclose(found["stress"], stress, rtol=0, atol=1e-12 * abs(stress).max())
    tangent = tangent * SHEAR[:, None] * SHEAR
    np.testing.assert_allclose(found["K"], tangent.ravel(), rtol=0, atol=1e-12 * tangent.max())
    np.testing.assert_allclose(found["states"], states, rtol=0, atol=1e-12 * abs(states).max())


def test_the_prediction_of_the_generic_behaviour_is_elastic(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    _, found = behaviour(alone / "libsteel.so")
    E, nu = 200e3, 0.3
    mu, lame = E / 2 / (1 + nu), E * nu / (1 + nu) / (1 - 2 * nu)
    direct = np.array([1.0, 1, 1, 0, 0, 0])
    hooke = lame * np.outer(direct, direct) + 2 * mu * np.eye(6)
    np.testing.assert_allclose(found["prediction"].reshape(6, 6), hooke, atol=1e-6 * E)


def test_a_point_that_fails_asks_the_generic_host_for_a_smaller_step(alone: Path) -> None:
    make(HARDENING, alone / "libsteel.so")
    told, found = behaviour(alone / "libsteel.so", "too far")
    assert told[-1].startswith("-1 1 of 1 points did not converge")
    assert 0 < found["rdt"][0] < 1
    assert not found["stress"].any() and not found["states"].any()
