"""Gradients of a driven history by what holds at its first time."""

from __future__ import annotations

import numpy as np
import pytest
from driving import plan
from states import Artifacts

from neml2_capi import FatalError, Model, UnknownNameError, drive

TIMES = np.linspace(0.0, 1.0, 5)


def test_a_prescribed_component_of_what_a_control_finds(artifacts: Artifacts) -> None:
    """A radial return does not remember its total strain."""
    model = Model(artifacts["radial_return"])
    strain = np.linspace(1e-3, 4e-3, 5)
    results = drive(
        model,
        TIMES,
        {"total_strain": {"xx": strain}},
        control={"cauchy_stress:total_strain": "uniaxial"},
        derivatives=["total_strain.xx"],
    )
    np.testing.assert_array_equal(results["total_strain"][:, 0], strain)
    for row in range(5):
        cotangent = np.zeros((5, 6))
        cotangent[row, 0] = 2.0
        gradient = results.gradient({"total_strain": cotangent})["total_strain.xx"]
        np.testing.assert_array_equal(gradient, cotangent[:, 0])


def test_an_initial_value_without_a_derivative_is_told(artifacts: Artifacts) -> None:
    """A time before the first, and an output that no step takes."""
    crystal = Model(artifacts["crystal"])
    times, forces, initial = plan("crystal", 3)
    for name, message in (
        ("t~1", "'t~1' is before the first time, and there are no derivatives by what is prescr"),
        ("t", "unknown initial value 't'"),
    ):
        kind = UnknownNameError if message.startswith("unknown") else FatalError
        with pytest.raises(kind, match=message):
            drive(crystal, times, forces, initial, derivatives=[f"initial:{name}"])
    radial = Model(artifacts["radial_return"])
    strain = 1e-3 * np.ones((5, 6))
    start = {"cauchy_stress": np.ones(6)}
    assert drive(radial, TIMES, {"total_strain": strain}, start)["cauchy_stress"][0, 0] == 1
    with pytest.raises(FatalError, match="'cauchy_stress' is in the first row of the results"):
        drive(
            radial,
            TIMES,
            {"total_strain": strain},
            start,
            derivatives=["initial:cauchy_stress"],
        )


@pytest.mark.full("torch")
def test_a_tensor_before_the_first_time_has_no_gradient(artifacts: Artifacts) -> None:
    torch = pytest.importorskip("torch")
    crystal = Model(artifacts["crystal"])
    times, forces, initial = plan("crystal", 3)
    tensors = {n: torch.tensor(np.asarray(v), dtype=torch.float64) for n, v in initial.items()}
    drive(crystal, times, forces, tensors)
    tensors["t~1"].requires_grad_(True)
    with pytest.raises(FatalError, match=r"without a gradient, tensor\.detach"):
        drive(crystal, times, forces, tensors)
