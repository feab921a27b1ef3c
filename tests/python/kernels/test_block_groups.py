"""Groups of unknowns with sub-batch axes in lanes, of several variables that stand site by site."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_setup import ROOT, require_compiler
from numpy.typing import NDArray

from neml2_capi import ConvergenceError, Model

Array = NDArray[np.float64]
pytestmark = pytest.mark.full("it compiles a model")

POINTS, GRAINS = 13, 3
#: From a polycrystal whose grains have a stress, to one whose slip hardens them, too.
HARDENS = {
    "from = 'effective_stress strength'": "from = 'effective_stress strength slip'",
    "to = 'overstress'\n    weights = '1 -1'": "to = 'overstress'\n    weights = '1 -1 -2000'",
    "  # All grains\n": "  [integrate_slip]\n    type = ScalarBackwardEulerTimeIntegration\n"
    "    variable = 'slip'\n    rate = 'flow_rate'\n  []\n",
    "elasticity integrate_stress": "elasticity integrate_stress integrate_slip",
    "unknowns = 'stress; strain'": "unknowns = 'stress slip; strain'",
    "residuals = 'stress_residual;": "residuals = 'stress_residual slip_residual;",
    "unknowns_SR2 = 'stress strain'": "unknowns_SR2 = 'stress strain'\n"
    "    unknowns_Scalar = 'slip'",
    "    strength = '(2; 3)'": "    strength = '(2; 3)'\n    slip = '(2; 3)'",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not os.environ.get("NEML2_CAPI_COMPILER") and not importlib.util.find_spec("neml2"):
        pytest.skip("there is no neml2 to compile with")
    require_compiler("cc")
    text = (ROOT / "tests" / "models" / "polycrystal.i").read_text()
    for old, new in HARDENS.items():
        assert old in text
        text = text.replace(old, new)
    folder = tmp_path_factory.mktemp("hardens")
    (folder / "hardens.i").write_text(text)
    command = [sys.executable, "-m", "neml2_capi.cli", "compile", str(folder / "hardens.i")]
    command += ["--model", "polycrystal", "--output-dir", str(folder), "--kernels", "only"]
    command += ["-d", "strain:applied_stress", "-d", "strain:strain~1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "polycrystal"


@pytest.fixture
def inputs() -> dict[str, Array]:
    random = np.random.default_rng(0)
    return {
        "strain~1": 1e-3 * random.standard_normal((POINTS, 6)),
        "t": np.full(POINTS, 0.02),
        "t~1": np.zeros(POINTS),
        "strength": 150 + 50 * random.random((POINTS, GRAINS)),
        "applied_stress": 200 * random.standard_normal((POINTS, 6)),
        "stress~1": 150 * random.standard_normal((POINTS, GRAINS, 6)),
        "slip~1": 0.01 * random.random((POINTS, GRAINS)),
    }


def on(root: Path, kernels: str, **options: Any) -> Model:
    """The model in lanes, or with its kernels on tensors."""
    model = Model(root)
    model.options.update({"kernels": kernels, **options})
    return model


def test_lanes_are_what_tensors_are(root: Path, inputs: dict[str, Array]) -> None:
    inputs["applied_stress"][3] *= 1e60
    lanes, tensors = (on(root, kernels).evaluate(inputs) for kernels in ("required", "off"))
    np.testing.assert_array_equal(lanes[1]["status"], tensors[1]["status"])
    np.testing.assert_array_equal(lanes[1]["iterations"], tensors[1]["iterations"])
    assert (tensors[1]["status"] == 0).sum() == POINTS - 1
    for name, expected in tensors[0].items():
        scale = np.nanmax(np.abs(expected))
        np.testing.assert_allclose(lanes[0][name], expected, rtol=0, atol=1e-13 * scale)


def test_the_solution_is_in_balance_and_hardens(root: Path, inputs: dict[str, Array]) -> None:
    found = on(root, "required").forward(inputs)
    mean = found["stress"].mean(axis=1)
    np.testing.assert_allclose(mean, inputs["applied_stress"], atol=1e-8)
    deviator = found["stress"] - np.eye(6)[:, :3].sum(axis=1) * found["stress"][..., :3].mean(
        axis=-1, keepdims=True
    )
    effective = np.sqrt(1.5 * (deviator**2).sum(axis=-1))
    over = np.maximum(effective - inputs["strength"] - 2000 * found["slip"], 0)
    made = found["slip"] - inputs["slip~1"]
    np.testing.assert_allclose(made, 0.02 * (over / 300) ** 4, rtol=1e-7, atol=1e-12)


def test_derivatives_are_differences(root: Path, inputs: dict[str, Array]) -> None:
    model = on(root, "required", atol=1e-12, rtol=1e-13)
    direction = np.random.default_rng(1).standard_normal((POINTS, 6))
    _, blocks, *_ = model.jacobian(inputs)
    product = np.einsum("pij,pj->pi", blocks["strain"]["applied_stress"], direction)

    def strain(step: float) -> Array:
        moved = {**inputs, "applied_stress": inputs["applied_stress"] + step * direction}
        return np.asarray(model.forward(moved)["strain"])

    central = (strain(1e-2) - strain(-1e-2)) / 2e-2
    np.testing.assert_allclose(product, central, rtol=0, atol=1e-6 * np.abs(central).max())


def test_iterates_of_failed_points_are_told(root: Path, inputs: dict[str, Array]) -> None:
    told = []
    for kernels in ("required", "off"):
        with pytest.raises(ConvergenceError) as caught:
            on(root, kernels, miters=3).forward(inputs)
        told.append(caught.value.unknowns)
    for name, expected in told[1].items():
        scale = np.abs(expected).max()
        np.testing.assert_allclose(told[0][name], expected, rtol=0, atol=1e-12 * scale)
