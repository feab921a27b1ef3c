"""Gradients of a driven history by what holds at its first time."""

from __future__ import annotations

import numpy as np
from states import Artifacts

from neml2_capi import Model, drive

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
