"""The behaviour that a plug-in has for hosts of MFront's generic interface."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import Point
from numpy.typing import NDArray
from plugged import HARDENING, ORDER, SHEAR, expected, program
from test_large_strain_hosts import PROPS, umat

from neml2_capi.plugin import make
from neml2_capi.umat import draft

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


#: Of X1, 11, 22, 33, 12, 13, 23: it drives flow while strains are zero.
OFFSET = np.array([90.0, -40.0, -50.0, 200.0, 0.0, 0.0])


def with_offset(folder: Path, artifact: Path, name: str, offset: NDArray[np.float64]) -> Path:
    """A library whose mapping has an offset of a state."""
    file, library = folder / "steel.nml", folder / "libsteel.so"
    state, numbers = f"&state name = '{name}', ", ", ".join(map(str, offset))
    file.write_text(draft(artifact, file).replace(state, f"{state}offset = {numbers}, "))
    make(artifact, library, mapping=file)
    return library


def test_an_offset_is_one_tensor_for_all_hosts(alone: Path) -> None:
    """Its numbers were added to shears times sqrt(2), or in NEML2's order."""
    library, unit = with_offset(alone, HARDENING, "X1", OFFSET), np.eye(3)
    stress, statev = np.zeros(6), np.zeros(13)
    umat(library, unit, unit, stress, statev, unit, 0.0)
    assert abs(stress[3]) > 10
    near = {"rtol": 0, "atol": 1e-12 * abs(stress).max()}
    point = Point(library, PROPS)
    solid = point.call(0.0)
    np.testing.assert_allclose(solid.forces / SHEAR, stress, **near)
    np.testing.assert_allclose(solid.states[1:7] / SHEAR, statev[1:7], **near)
    plane = point.call(0.0, hypothesis="PlaneStrain")
    np.testing.assert_allclose(plane.forces[:4] / SHEAR[:4], stress[:4], **near)
    states = plane.states[1:7][ORDER] / SHEAR  # which are in NEML2's order there
    np.testing.assert_allclose(states, statev[1:7], **near)


@pytest.mark.full("a law is exported by torch")
def test_an_offset_of_the_unit_tensor_is_that_for_all_hosts(alone: Path) -> None:
    torch = pytest.importorskip("torch")
    export = pytest.importorskip("neml2_capi.export")
    first = np.array([[1, 0.1, 0], [0, 1, 0.2], [0.05, 0, 1]])

    def law(inputs: Any, parameters: Any) -> dict[str, Any]:
        """No stress if the state is `first`."""
        given, state = torch.tensor(first, dtype=inputs["strain"].dtype), inputs["Fp~1"]
        difference = 10 * (state - given)
        shears = (difference + difference.T)[[1, 0, 0], [2, 2, 1]]
        return {"stress": torch.cat([difference.diagonal(), shears]), "Fp": state}

    export.model(
        law,
        alone / "law",
        inputs={"strain": "SR2", "Fp~1": "R2"},
        outputs={"stress": "SR2", "Fp": "R2"},
        derivatives=["stress:strain"],
        kernels="only",
    )
    library, unit = with_offset(alone, alone / "law", "Fp", first.ravel()), np.eye(3)
    stress, statev = np.ones(6), np.zeros(9)
    umat(library, unit, unit, stress, statev, unit, 0.0, props=np.zeros(0))
    np.testing.assert_array_equal(stress, 0)
    for hypothesis in ("Tridimensional", "PlaneStrain", "PlaneStress"):
        result = Point(library).call(0.0, hypothesis=hypothesis)
        assert result.status == 1
        np.testing.assert_array_equal(result.forces, 0)
        np.testing.assert_array_equal(result.states, 0)
