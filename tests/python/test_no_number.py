"""A time step of 0, and NaN: each host gets an error with the name, and never a cut."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generic_host import Array
from native import HOSTS, PREBUILT
from test_generic_behaviour import hooke

from neml2_capi.plugin import make

pytestmark = pytest.mark.native

SHEAR = np.array([1, 1, 1, *[2.0] * 3])  # of a stiffness for doubled shear


@dataclass
class Called:
    status: int
    message: str
    arrays: dict[str, Array]


Umat = Callable[..., Called]


@pytest.fixture
def umat(tmp_path: Path) -> Umat:
    """Call the UMAT of the law of rates once, in a process of its own, with some arguments."""
    library = tmp_path / "libsteel.so"
    make(PREBUILT / "combined_hardening", library)

    def call(**changes: Any) -> Called:
        arguments: dict[str, Any] = {
            "stress": np.zeros(6),
            "stran": np.zeros(6),
            "dstran": np.zeros(6),
            "statev": np.zeros(13),
            "props": np.array([200e3, 150.0]),
            "time": np.zeros(2),
            "dtime": np.ones(1),
            "pnewdt": np.ones(1),
            "cmname": "steel",
        } | changes
        files = [tmp_path / name for name in ("arguments.npz", "result.npz")]
        files[1].unlink(missing_ok=True)
        np.savez(files[0], **arguments)
        done = subprocess.run(
            [sys.executable, HOSTS / "umat.py", library, *files],
            capture_output=True,
            text=True,
        )
        arrays = dict(np.load(files[1])) if files[1].exists() else {}
        return Called(done.returncode, done.stderr, arrays)

    return call


def loaded(umat: Umat) -> dict[str, Array]:
    """Arguments of a point that flows."""
    strain = np.array([4e-3, -1.2e-3, -1.2e-3, 4e-4, 0, 0])
    before = umat(dstran=strain).arrays
    return {
        "stress": before["stress"],
        "statev": before["statev"],
        "stran": strain,
        "time": np.array([1.0, 1.0]),
    }


@pytest.mark.parametrize("pnewdt", [1.0, -1.0], ids=["abaqus", "calculix"])
def test_umat_gives_a_point_at_rest_its_elastic_tangent_without_time(
    umat: Umat, pnewdt: float
) -> None:
    for start in ({}, loaded(umat)):
        found = umat(**start, dtime=np.zeros(1), pnewdt=np.array([pnewdt]))
        assert found.status == 0, found.message
        stiffness = hooke() / SHEAR
        np.testing.assert_allclose(found.arrays["ddsdde"], stiffness, rtol=0, atol=1e-6 * 200e3)
        before = start.get("stress", np.zeros(6))
        np.testing.assert_allclose(found.arrays["stress"], before, rtol=0, atol=1e-6)
        assert found.arrays["pnewdt"] == pnewdt


@pytest.mark.parametrize("pnewdt", [1.0, 0.1])
def test_umat_asks_for_a_smaller_step(umat: Umat, pnewdt: float) -> None:
    """A smaller request of another point stays."""
    found = umat(dstran=np.full(6, 1e60), pnewdt=np.array([pnewdt]))
    assert found.status == 0, found.message
    assert found.arrays["pnewdt"] in ([0.1] if pnewdt == 0.1 else [0.25, 0.5])


@pytest.mark.parametrize("pnewdt, told", [(0.0, "PNEWDT is 0,"), (np.nan, "PNEWDT is NaN,")])
def test_umat_refuses_a_pnewdt_that_was_never_set(umat: Umat, pnewdt: float, told: str) -> None:
    """It was taken for CalculiX, which has no DROT."""
    found = umat(pnewdt=np.array([pnewdt]))
    assert found.status == 1 and told in found.message
    assert "Abaqus passes a positive number, CalculiX -1" in found.message


def test_umat_is_told_that_the_strain_moves_in_no_time(umat: Umat) -> None:
    found = umat(dtime=np.zeros(1), dstran=np.full(6, 1e-3))
    assert found.status == 1 and "DTIME is 0" in found.message
    assert "a time step above 0" in found.message


NUMBERS = {
    "stran": ("STRAN, component 11, is NaN or infinite", 0),
    "dstran": ("STRAN + DSTRAN, component 12, is NaN or infinite", 3),
    "stress": ("STRESS, component 23, is NaN or infinite", 5),
    "statev": ("STATEV, the state 'X1', is NaN or infinite", 2),
    "props": ("PROPS, the parameter 'yield_stress', is NaN or infinite", 1),
    "dtime": ("DTIME is NaN or infinite", 0),
    "time": ("TIME is NaN or infinite", 1),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_umat_names_what_is_not_finite(umat: Umat, name: str) -> None:
    told, place = NUMBERS[name]
    given = {
        **{key: np.zeros(6) for key in ("stran", "dstran", "stress")},
        "statev": np.zeros(13),
        "props": np.array([200e3, 150.0]),
        "dtime": np.ones(1),
        "time": np.zeros(2),
    }
    given[name][place] = np.nan
    found = umat(**given)
    assert found.status == 1 and told in found.message
    assert "A smaller step does not mend that" in found.message


def test_a_temperature_that_the_law_has_not_may_be_anything(umat: Umat) -> None:
    assert umat(temp=np.full(1, np.nan), predef=np.full(1, np.nan)).status == 0


def test_umat_refuses_a_negative_time_step(umat: Umat) -> None:
    assert "DTIME is -1" in umat(dtime=-np.ones(1)).message


@pytest.mark.parametrize("drot", [0.0, 2.0, np.nan])
def test_umat_is_told_of_a_rotation_that_was_never_set(umat: Umat, drot: float) -> None:
    """It would make the back stress zero, four times as great, or NaN, and blame STATEV."""
    found = umat(**loaded(umat), drot=drot * np.eye(3, order="F"))
    assert found.status == 1 and "DROT is no rotation" in found.message
    assert "the unit matrix if nothing turns" in found.message


def test_umat_is_told_of_a_reflection(umat: Umat) -> None:
    found = umat(**loaded(umat), drot=np.asfortranarray(np.diag([1.0, 1.0, -1.0])))
    assert found.status == 1 and "DROT is no rotation: it is a reflection" in found.message
