"""The artifacts that come with the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from native import PREBUILT, ROOT
from oracle import ISOTROPIC_HARDENING, VISCOPLASTIC, elastic_stress

from neml2_capi import FatalError, Model, drive, examples, experiments

STRAIN = np.array([[4e-3, -1e-3, -2e-3, 3e-3, -5e-3, 2e-3], [1e-3, 0, 0, 0, 0, 0]])


def test_elasticity_is_hookes_law() -> None:
    stress = Model(examples.path("elasticity")).forward({"strain": STRAIN})["stress"]
    np.testing.assert_allclose(stress, elastic_stress(STRAIN, 200e3, 0.3), rtol=1e-13)


@pytest.mark.parametrize("name", ["isotropic_hardening", "chaboche"])
def test_the_others_are_their_equations(name: str) -> None:
    law = ISOTROPIC_HARDENING if name == "isotropic_hardening" else VISCOPLASTIC
    model = Model(examples.path(name))
    found = drive(model, [0.0, 1.0], {"strain": np.array([0 * STRAIN, STRAIN])})
    old = np.zeros((2, law.unknown_count))
    expected = law.advance(old, STRAIN, 0 * STRAIN, 1.0)[:, :6]
    np.testing.assert_allclose(found["stress"][1], expected, rtol=0, atol=1e-8)


def test_tangents_are_those_of_the_packages() -> None:
    models = Model(examples.path("chaboche")), Model(PREBUILT / "combined_hardening")
    inputs = models[0].state(2).inputs(strain=STRAIN, t=1.0)
    ours, theirs = (model.jacobian(inputs)[1]["stress"]["strain"] for model in models)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9 * np.abs(theirs).max())


@pytest.mark.parametrize("name", examples.NAMES)
def test_all_have_their_derivatives(name: str) -> None:
    model = Model(examples.path(name))
    by_variable = {d.variable for d in (*model.derivatives, *model.parameter_derivatives)}
    assert {"strain", *model.parameters.names} <= by_variable
    assert "E" in model.parameters.names
    folder = examples.path(name)
    assert not list(folder.rglob("*.pt2"))
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 1e6


def test_an_error_tells_of_them() -> None:
    with pytest.raises(FatalError, match=r"examples.path\(NAME\), for elasticity, isotropic_har"):
        Model("aoti/elasticity")
    with pytest.raises(ValueError, match="there are elasticity"):
        examples.path("plasticity")


@pytest.mark.parametrize("library", ["scipy", "torch", "jax"])
def test_calibrations_run_on_them(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library)
    program = ROOT / "examples" / f"calibrate_{library}.py"
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    assert "180000" in done.stdout.replace(".0", "") and "120" in done.stdout


def test_the_module_has_the_commands() -> None:
    path = examples.path("elasticity")
    done = subprocess.run(
        [sys.executable, "-m", "neml2_capi", "inspect", path], capture_output=True, text=True
    )
    assert done.returncode == 0 and "strain" in done.stdout


def test_without_torch_its_room_says_so() -> None:
    code = "import sys; sys.modules['torch'] = None; import neml2_capi.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install torch" in done.stderr


def test_a_back_stress_saturates_as_the_page_on_calibration_says() -> None:
    """In tension at sqrt(2/3) C/g: NEML2's g is sqrt(2/3) of the textbook's gamma."""
    model = Model(examples.path("chaboche"))  # C = 40000 MPa, g = 400
    fast = np.linspace(0, 0.01, 102)  # s: static recovery does nothing
    results = experiments.tension(model, fast, strain=0.1)
    axial = 1.5 * results["X1"][-1, 0]
    np.testing.assert_allclose(axial, np.sqrt(2 / 3) * 40000 / 400, rtol=1e-5)
