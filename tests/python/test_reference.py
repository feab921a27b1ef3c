"""Compiled models against NEML2's own runtime, as tests/data/make_reference.py recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from calls import evaluate
from numpy.typing import NDArray

from neml2_capi import Model

pytestmark = pytest.mark.numbers

Array = NDArray[np.float64]

REFERENCE: Mapping[str, Array] = dict(
    np.load(Path(__file__).resolve().parents[1] / "data" / "reference.npz")
)


def recorded(model: str, kind: str) -> dict[str, Array]:
    """The recorded variables of a model by name, with the axes [step, point, ...]."""
    prefix = f"{model}/{kind}/"
    return {name[len(prefix) :]: v for name, v in REFERENCE.items() if name.startswith(prefix)}


NAMES = ["viscoplastic", "isotropic_hardening", "radial_return", "elasticity_grains", "crystal"]
#: Models of the law of a recorded one, compiled with other options.
SAME_LAW = {
    "chaboche": "viscoplastic",
    "combined_hardening": "viscoplastic",
    "isotropic_hardening_parallel": "isotropic_hardening",
}


@pytest.mark.parametrize("name", [*NAMES, *SAME_LAW])
def test_outputs_are_those_of_neml2(artifacts: Mapping[str, Path], name: str) -> None:
    law = SAME_LAW.get(name, name)
    # All steps at once: their inputs are recorded, so a step is one more batch axis.
    outputs = Model(artifacts[name]).forward(recorded(law, "in"))
    expected = recorded(law, "out")
    assert outputs.keys() == expected.keys()
    for variable, value in expected.items():
        # Both have converged to a relative residual of 1e-10 only.
        scale = np.abs(value).max()
        np.testing.assert_allclose(outputs[variable], value, rtol=0, atol=1e-8 * scale)


@pytest.mark.parametrize("name", ["viscoplastic", "isotropic_hardening"])
def test_newton_iterates_as_neml2_does(artifacts: Mapping[str, Path], name: str) -> None:
    model = Model(artifacts[name])
    model.options["convergence"] = "batch"
    inputs, expected = recorded(name, "in"), REFERENCE[f"{name}/norms"]
    for step, norms in enumerate(expected):
        _, report = evaluate(model, {variable: v[step] for variable, v in inputs.items()})
        history = report["norms"].T  # [iteration, point]
        made = np.isfinite(norms).all(axis=-1)
        np.testing.assert_array_equal(np.isfinite(history[: len(norms)]).all(axis=-1), made)
        # The first residual has the greatest terms: their round-off remains.
        tolerance = 1e-10 * norms[made] + 2e-13 * norms[0]
        assert np.all(np.abs(history[: len(norms)][made] - norms[made]) <= tolerance), step


@pytest.mark.parametrize("name", ["viscoplastic", "isotropic_hardening"])
def test_the_recorded_norms_are_those_that_neml2_logs(name: str) -> None:
    greatest = REFERENCE[f"{name}/norms"].max(axis=-1)
    printed = REFERENCE[f"{name}/printed"]
    made = np.isfinite(printed)
    np.testing.assert_array_equal(np.isfinite(greatest), made)
    # The log has seven digits.
    np.testing.assert_allclose(greatest[made], printed[made], rtol=5e-7)
